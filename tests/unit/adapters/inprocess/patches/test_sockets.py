"""What reaches out with sockets of its own, or past Python's: refused by a replay, named by a recording."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.support.replaying import chat, exchange, reply, user

import wiretape
from wiretape.adapters.inprocess.network_guard import is_own_address
from wiretape.adapters.inprocess.patches import sockets
from wiretape.adapters.inprocess.patches.native import _host_and_port
from wiretape.adapters.inprocess.patches.sockets import WATCH
from wiretape.errors import MissError, MissInterrupt, NetworkRefused
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape, read_tape

OPENAI = "https://api.openai.com/v1/chat/completions"
HEADER = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
TAPE = Tape(Path("hand.tape"), HEADER, (exchange(1, chat(user("hi")), reply("one"), url=OPENAI),), (), False)
OURS = Tape(
    Path("our.tape"), HEADER, (exchange(1, chat(user("hi")), url="https://models.corp.example/v1/x"),), (), False
)
THERE = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("203.0.113.7", 443))]
UNPATCHED = "a library that wiretape does not patch tried to reach {}; the replay of {} opens no connection"


def connected(host: str, port: int = 443) -> None:
    socket.create_connection((host, port)).close()


def in_datagrams(host: str) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", (host, 53))


def in_asyncio(host: str) -> None:
    """The name is looked up in a thread that knows no context."""
    asyncio.run(asyncio.wait_for(asyncio.open_connection(host, 443), 5))


@pytest.mark.parametrize("reach", [connected, in_asyncio])
@pytest.mark.parametrize(
    ("tape", "host"), [(TAPE, "api.openai.com"), (TAPE, "api.x.ai"), (OURS, "models.corp.example")]
)
def test_a_model_that_is_reached_past_every_door_is_a_miss_though_the_program_hides_it(
    tape: Tape, host: str, reach: Callable[[str], None]
) -> None:
    said = UNPATCHED.format(f"{host}:443", tape.path)
    with pytest.raises(MissError) as caught, wiretape.replay(tape) as ctx:  # noqa: PT012
        for _ in range(2):  # programs try again
            with pytest.raises(NetworkRefused, match=said):
                reach(host)
    assert str(caught.value).splitlines()[0] == said
    assert str(caught.value).splitlines()[-1] == f'  to allow this host: wiretape.replay(…, pass_hosts=["{host}"])'
    assert [missed.what for missed in ctx.report.missed] == [f"{host}:443"]


@pytest.mark.parametrize(
    ("reach", "what"),
    [
        (lambda: connected("db.example", 5432), "db.example:5432"),
        (lambda: connected("203.0.113.9", 80), "203.0.113.9:80"),
        (lambda: in_datagrams("203.0.113.9"), "203.0.113.9:53"),
        (lambda: socket.gethostbyname("db.example"), "db.example"),
    ],
)
def test_what_is_no_model_is_refused_and_listed(reach: Callable[[], None], what: str) -> None:
    with wiretape.replay(TAPE) as ctx, pytest.raises(NetworkRefused, match=UNPATCHED.format(what, "hand.tape")):
        reach()
    assert [(one.what, one.note) for one in ctx.report.strayed] == [(what, "by a library that wiretape does not patch")]


def test_on_miss_raise_goes_past_who_catches_errors() -> None:
    """Programs take a refused connection for one more thing to try again."""
    past = pytest.raises(MissInterrupt, match="does not patch")
    with past, wiretape.replay(TAPE, on_miss="raise"), suppress(OSError):
        connected("api.openai.com")


def test_this_machine_is_free_and_afterwards_everything_is_as_it_was() -> None:
    before = socket.getaddrinfo
    with wiretape.replay(TAPE), closing(socket.create_server(("127.0.0.1", 0))) as server:
        connected("localhost", server.getsockname()[1])
        one, other = socket.socketpair()
        one.close(), other.close()
        assert socket.getaddrinfo is not before
    assert socket.getaddrinfo is before
    assert "connect" not in vars(socket.socket)


def test_this_machine_is_free_by_its_address_on_a_network_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs listen on all of them, and meet themselves by the machine's name."""
    monkeypatch.setattr(sockets, "is_own_address", lambda host: host == "203.0.113.7")
    with wiretape.replay(TAPE) as ctx:
        WATCH.check("203.0.113.7", 8000)
        with pytest.raises(NetworkRefused, match=r"tried to reach 203\.0\.113\.8:8000"):
            WATCH.check("203.0.113.8", 8000)
    assert [one.what for one in ctx.report.strayed] == ["203.0.113.8:8000"]


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("127.0.0.1", True),
        ("::ffff:127.0.0.1", True),
        ("203.0.113.9", False),
        ("224.0.0.251", False),
        ("fe80::1", False),
    ],
)
def test_whose_an_address_is_the_system_knows(address: str, is_own: bool) -> None:
    assert is_own_address(address) is is_own


def test_an_address_is_known_by_its_name_whichever_interface_leads_to_it() -> None:
    WATCH.found("fe80::1234%eth0", "printer.example")
    assert WATCH.names("fe80::1234") == {"fe80::1234", "printer.example"}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name leads to one address."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: THERE)


@pytest.mark.usefixtures("there")
def test_a_host_that_is_let_through_is_so_under_its_address_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.corp.example:3128")
    with wiretape.replay(TAPE, pass_hosts=["*.tools.example", "db.example:5432"]):
        socket.getaddrinfo("a.tools.example", 443)
        WATCH.check("203.0.113.7", 443)
        WATCH.check("db.example", 5432)
        assert socket.getaddrinfo("db.example", "5432") == THERE
        WATCH.check("db.example", None)  # a look-up that knows no port
        WATCH.check("proxy.corp.example", 3128)  # over which they are reached
        with pytest.raises(NetworkRefused, match=r"tried to reach db.example:80"):
            WATCH.check("db.example", 80)
    with wiretape.replay(TAPE), pytest.raises(NetworkRefused, match=r"tried to reach proxy\.corp\.example:3128"):
        WATCH.check("proxy.corp.example", 3128)


def in_a_bare_thread(function: Callable[[], None]) -> list[BaseException]:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised


@pytest.mark.usefixtures("there")
def test_a_thread_that_may_belong_to_several_contexts_connects_only_where_all_let_it() -> None:
    """A name may be looked up: event loops do it in threads that know no context."""

    contexts = [wiretape.replay(TAPE, pass_hosts="tools.example"), wiretape.replay(OURS)]
    inside = [contextvars.copy_context() for _ in contexts]
    for one, context in zip(inside, contexts, strict=True):
        one.run(context.__enter__)
    try:
        assert in_a_bare_thread(lambda: WATCH.check("tools.example", None)) == []
        (refused,) = in_a_bare_thread(lambda: WATCH.check("tools.example", 443))
        assert str(refused).startswith(UNPATCHED.format("tools.example:443", "our.tape"))
        inside[0].run(WATCH.check, "tools.example", 443)
        with pytest.raises(NetworkRefused):
            inside[1].run(WATCH.check, "tools.example", None)
    finally:
        for one, context in zip(inside, contexts, strict=True):
            one.run(context.__exit__, None, None, None)


@pytest.mark.usefixtures("there")
def test_a_recording_names_what_went_past_its_doors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tape = tmp_path / "x.tape"
    with wiretape.record(tape) as made:
        for host in ("api.openai.com", "api.x.ai", "db.example"):
            socket.getaddrinfo(host, 443)
            WATCH.check("203.0.113.7", 443)
        made.begin_exchange("POST", OPENAI, [])  # as a door tells it
    assert made.summary is not None
    assert made.summary.bypassed == ("api.x.ai",)
    said = (
        f"wiretape: {tape}: a library that wiretape does not patch connected to api.x.ai: those requests are not on "
        "the tape\n"
    )
    assert capsys.readouterr().err.startswith(said)
    assert len(read_tape(tape).exchanges) == 1


# -- libraries that Python's sockets never see


class _UnaryUnaryMultiCallable:
    """As gRPC's class: it holds its channel, and its target as bytes."""

    def __init__(self, target: bytes) -> None:
        self._target = target

    def __call__(self, request: bytes) -> bytes:
        return b"answered " + request


class Curl:
    """As pycurl's class."""

    def __init__(self) -> None:
        self.url = ""

    def getinfo(self, which: int) -> str:
        return self.url

    def perform(self) -> str:
        return "performed"


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, ModuleType]]:
    rpc, curl = ModuleType("grpc._channel"), ModuleType("pycurl")
    kind = type("_UnaryUnaryMultiCallable", (_UnaryUnaryMultiCallable,), dict(vars(_UnaryUnaryMultiCallable)))
    kind.__module__ = rpc.__name__
    vars(rpc).update(_UnaryUnaryMultiCallable=kind)
    vars(curl).update(Curl=Curl, CurlMulti=type("CurlMulti", (), {}), EFFECTIVE_URL=1)
    for module in (rpc, curl):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    yield rpc, curl
    assert curl.Curl is Curl


def test_grpc_and_curl_are_refused_in_a_replay(native: tuple[Any, Any]) -> None:
    rpc, curl = native
    made = rpc._UnaryUnaryMultiCallable(b"dns:///aiplatform.googleapis.com:443")
    here = rpc._UnaryUnaryMultiCallable(b"localhost:50051")
    with pytest.raises(MissError, match="2 requests had no recorded answer"), wiretape.replay(TAPE):  # noqa: PT012
        with pytest.raises(NetworkRefused, match=r"tried to reach aiplatform\.googleapis\.com:443"):
            made(b"x")
        handle = curl.Curl()
        handle.url = "https://api.openai.com/v1/models"
        with pytest.raises(NetworkRefused, match=r"tried to reach api\.openai\.com:443"):
            handle.perform()
        handle.url = "127.0.0.1:8000/"
        assert (here(b"x"), handle.perform()) == (b"answered x", "performed")
    assert made(b"x") == b"answered x"


@pytest.mark.parametrize(
    ("target", "place"),
    [
        (b"dns:///host.example:443", ("host.example", 443)),
        ("dns://8.8.8.8/host.example:50051", ("host.example", 50051)),
        ("host.example", ("host.example", 443)),
        ("ipv4:192.0.2.1:80", ("192.0.2.1", 80)),
        ("[::1]:50051", ("[::1]", 50051)),
        ("unix:///run/x.sock", None),
    ],
)
def test_where_a_grpc_target_leads(target: bytes | str, place: tuple[str, int] | None) -> None:
    assert _host_and_port(target) == place
