"""A sealed replay: direct connections to an address are answered from the tape, or refused and reported."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, exchange, session, user
from tests.support.sealing import PYTHON, inside, need_sealing

from wiretape.adapters.launch.child import run_child
from wiretape.adapters.mitm.tls_interception import why_not
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.adapters.sealed import transparent_proxy
from wiretape.adapters.sealed.transparent_proxy import intercepted_ports
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.session import ReplaySession

pytestmark = pytest.mark.slow

ASKED = chat(user("hi"))
URL = "http://models.example.com/v1/chat/completions"
# A client that ignores all variables: sends its second argument to the address in the first, and prints the answer.
STRAIGHT = """
import socket, sys
for host, port, said in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3]):
    try:
        with socket.create_connection((host, int(port)), 30) as talking:
            talking.sendall(said.encode())
            answer = b""
            while more := talking.recv(65536):
                answer += more
        print(answer.decode())
    except OSError as error:
        print(error.strerror)
"""
# A name that is looked up alone, and a client that would like to speak HTTP/3.
ASIDE = """
import socket
socket.gethostbyname("asked.example.com")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
    sending.sendto(b"x", ("models.example.com", 443))
"""


def recorded(url: str = URL, **options: Any) -> ReplaySession:
    answer = {"choices": [{"message": {"role": "assistant", "content": "one"}}]}
    return session(exchange(1, ASKED, answer, url=url), **options)


def request(host: str, path: str = "/v1/chat/completions") -> str:
    body = orjson.dumps(ASKED).decode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n{body}"


@contextmanager
def sealed(replay: ReplaySession, **options: Any) -> Iterator[ReplayServer]:
    need_sealing()
    with ReplayServer(replay, ReplayServerOptions(sealed=True, **options)) as running:
        yield running


def straight(running: ReplayServer, *words: str) -> list[str]:
    assert running.sealed_network is not None
    return inside(running.sealed_network, STRAIGHT, *words).splitlines()


@contextmanager
def database() -> Iterator[int]:
    """A server that speaks first, outside."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"ready for ")
                connection.sendall(connection.recv(100))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    thread.join(30)
    listening.close()


def test_direct_connections_to_a_recorded_host_are_answered_and_counted() -> None:
    replay = recorded()
    with sealed(replay) as running:
        said = straight(running, "models.example.com", "80", request("models.example.com"))
    assert (said[0], json.loads(said[-1])["choices"][0]["message"]["content"]) == ("HTTP/1.1 200 OK", "one")
    assert running.intercepted == {"models.example.com:80": 1}
    report = replay.report()
    assert ([played.tier for played in report.played], report.missed, report.strayed) == (["exact"], (), ())


def test_a_fault_through_the_proxy_equals_a_fault_by_base_url() -> None:
    with sealed(recorded(faults=(parse_fault("reset@1"),))) as running:
        said = straight(running, *("models.example.com", "80", request("models.example.com")) * 2)
    assert said[:2] == ["Connection reset by peer", "HTTP/1.1 200 OK"]


def test_a_host_known_only_by_its_address_is_identified_by_its_requests() -> None:
    with sealed(recorded()) as running:
        said = straight(running, "192.0.2.1", "80", request("models.example.com"))
    assert said[0] == "HTTP/1.1 200 OK"
    assert running.intercepted == {"models.example.com:80": 1}


def test_other_connections_are_refused_immediately_and_reported() -> None:
    replay = recorded("http://models.example.com:8000/v1/chat/completions")
    with sealed(replay) as running:
        said = straight(
            running, "telemetry.example.com", "5000", "", "192.0.2.1", "22", "", "models.example.com", "8000", ""
        )
        said += straight(running, "other.example.com", "443", "SSH-2.0-x\r\n", "other.example.com", "443", "\x01")
        assert running.sealed_network is not None
        inside(running.sealed_network, ASIDE)
    assert said == ["Connection refused"] * 3 + ["Connection reset by peer"] * 2
    report = replay.report()
    assert [(stray.what, stray.note, stray.times) for stray in report.strayed] == [
        (
            "connection to telemetry.example.com:5000",
            "refused: no --pass names it (--pass telemetry.example.com:5000)",
            1,
        ),
        ("connection to 192.0.2.1:22", "refused: no --pass names it (--pass 192.0.2.1:22)", 1),
        ("CONNECT other.example.com:443", "only hosts that --pass names can be reached (--pass other.example.com)", 2),
        ("datagram to models.example.com:443", "UDP is blocked", 1),
        ("lookup of asked.example.com", "nothing was sent to it", 1),
    ]
    assert [(miss.what, miss.message.splitlines()) for miss in report.missed] == [
        (
            "connection to models.example.com:8000",
            [
                (
                    "a connection to models.example.com:8000 ignored the proxy variables and was refused: "
                    "wiretape does not listen on that port"
                ),
                (
                    f"  use http://127.0.0.1:{running.port}/http:models.example.com:8000 instead of "
                    "http://models.example.com:8000 in the program's base URL"
                ),
                "  (--port keeps the address from one run to the next)",
            ],
        )
    ]


def test_a_name_with_a_search_domain_behind_it_is_known_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resolv.conf").write_text("search svc.cluster.local\noptions ndots:5\n")
    monkeypatch.setattr(transparent_proxy, "_RESOLVER", tmp_path / "resolv.conf")
    replay = recorded("http://models.example.com:8000/v1/chat/completions")
    with sealed(replay) as running:
        assert straight(running, "models.example.com.svc.cluster.local", "8000", "") == ["Connection refused"]
    assert [missed.what for missed in replay.report().missed] == ["connection to models.example.com:8000"]


def test_a_library_with_its_own_server_is_not_reported() -> None:
    replay = recorded("http://127.0.0.1:8137/v1/chat/completions")
    with sealed(replay) as running:
        said = straight(running, "127.0.0.1", "8138", "", "localhost", "8137", "")
    assert said == ["Connection refused"] * 2
    ours = f"http://127.0.0.1:{running.port}/127.0.0.1:8137"
    note = f"it is on the tape, and nothing listens there now; use {ours} as the model's base URL"
    assert [(stray.what, stray.note) for stray in replay.report().strayed] == [("connection to 127.0.0.1:8137", note)]


def test_allowed_hosts_are_reached_from_inside_also_if_the_server_sends_first() -> None:
    replay = recorded()
    with database() as port, sealed(replay, let_through=[f"127.0.0.1:{port}"]) as running:
        said = straight(running, *("127.0.0.1", str(port), "queries") * 2, "other.example.com", str(port), "")
    assert said == ["ready for queries"] * 2 + ["Connection reset by peer"]
    assert replay.report().passed == {f"127.0.0.1:{port}": 2}
    assert running.intercepted == {}


def test_localhost_may_be_passed_by_that_name() -> None:
    replay = recorded()
    with database() as port, sealed(replay, let_through=[f"localhost:{port}"]) as running:
        assert straight(running, *("localhost", str(port), "queries") * 2) == ["ready for queries"] * 2
    assert replay.report().passed == {f"localhost:{port}": 2}


def test_an_allowed_host_that_is_unreachable_is_reported() -> None:
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with sealed(recorded(), let_through=[f"127.0.0.1:{port}"], trouble=told.append) as running:
        assert straight(running, *("127.0.0.1", str(port), "") * 2) == ["Connection reset by peer"] * 2
    assert len(told) == 1
    assert told[0].startswith(f"wiretape replay could not reach 127.0.0.1:{port}: ")


def test_ports_of_the_web_and_those_that_pass_names_are_met() -> None:
    globs = ["a.example", "127.0.0.1:5432", "*.corp.example:6379", "b.example:443", "c.example:0", "d.example:99999"]
    assert intercepted_ports(globs) == (80, 443, 5432, 6379)


def test_a_tls_client_gets_the_refusal_as_a_response() -> None:
    code = """
import socket, ssl
try:
    ssl.create_default_context().wrap_socket(
        socket.create_connection(("api.openai.com", 443), 30), server_hostname="api.openai.com")
except ssl.SSLError as error:
    print(error.reason)
"""
    replay = recorded()
    with sealed(replay, why_closed="  this would open it") as running:
        assert running.sealed_network is not None
        assert inside(running.sealed_network, code) == "TLSV1_ALERT_ACCESS_DENIED\n"
    (missed,) = replay.report().missed
    assert missed.message.splitlines()[0::3] == [
        "wiretape replay does not intercept TLS: the connection to api.openai.com:443 was blocked",
        "  this would open it",
    ]


@pytest.mark.proxy
@pytest.mark.skipif(why_not() is not None, reason="opening TLS needs mitmproxy (Python 3.12 or later)")
def test_tls_is_intercepted_where_possible(tmp_path: Path) -> None:
    from wiretape.adapters.mitm.tls_interception import authority

    code = """
import http.client, json, ssl, sys
talking = http.client.HTTPSConnection("models.example.com", context=ssl.create_default_context(cafile=sys.argv[1]))
talking.request("POST", "/v1/chat/completions", sys.argv[2], {"content-type": "application/json"})
print(json.load(talking.getresponse())["choices"][0]["message"]["content"])
"""
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    replay = recorded(URL.replace("http:", "https:"))
    with sealed(replay, authority=authority(environ)) as running:
        assert running.sealed_network is not None
        trusted = running.variables(environ)["SSL_CERT_FILE"]
        assert inside(running.sealed_network, code, trusted, orjson.dumps(ASKED).decode()) == "one\n"
    assert running.intercepted == {"models.example.com:443": 1}
    assert replay.report().missed == ()


def test_a_sealed_program_exits_as_it_would_outside() -> None:
    need_sealing()
    with sealed(recorded()) as running:
        assert running.sealed_network is not None
        codes = [
            run_child(["sh", "-c", end], {"PATH": "/usr/bin:/bin"}, start=running.sealed_network.start)
            for end in ("exit 7", "kill -KILL $$")
        ]
    assert codes == [7, 137]


def test_the_command_seals_its_program_and_reports_intercepted_connections(tmp_path: Path) -> None:
    need_sealing()
    tape = Path(__file__).parents[2] / "captures" / "introduction.tape"
    (tmp_path / "pyproject.toml").write_text("[tool.wiretape]\nsealed = true\n")
    report = tmp_path / "report.json"
    program = [*PYTHON, STRAIGHT, "api.openai.com", "80", "GET /v1/models HTTP/1.0\r\n\r\n", "192.0.2.1", "22", ""]
    command = [sys.executable, "-m", "wiretape", "replay", "-v", "--report", str(report), str(tape), "--", *program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 3
    assert (done.stdout.splitlines()[0], done.stdout.splitlines()[-1]) == (
        "HTTP/1.1 404 Not Found",
        "Connection refused",
    )
    for part in (
        "wiretape: sealed: the program can reach only this replay\n",
        "  led here    api.openai.com:80 (1 connection), past the variables; unsealed it",
        "connection to 192.0.2.1:22: refused: no --pass names it",
        "It was sealed: its connections are listed above.",
    ):
        assert part in done.stderr
    assert json.loads(report.read_text())["straight"] == {"api.openai.com:80": 1}
