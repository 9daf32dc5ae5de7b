"""The proxy port: what it refuses, what it hands to the replay server, and whom it lets through."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import orjson
import pytest
from tests.support.replaying import chat, exchange, live, session, user

from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.adapters.replay_server.forward_proxy import _Progress, _while_progressing
from wiretape.adapters.routing.dummy_keys import DUMMY_KEY, dummy_keys
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.values import Outcome

URL = "http://models.example.com/v1/chat/completions"


@contextmanager
def host() -> Iterator[tuple[int, list[bytes]]]:
    """A server that answers one thing to everyone, and what it was sent."""
    heard: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nreal")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], heard
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def through(replaying: ReplayServer) -> httpx.Client:
    return httpx.Client(proxy=f"http://127.0.0.1:{replaying.proxy_port}", trust_env=False)


def test_a_tunnel_is_refused_with_the_reason_and_listed() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with ReplayServer(replay) as replaying, through(replaying) as client, pytest.raises(httpx.ProxyError, match="403"):
        client.get("https://tracking.example.com/x")
    assert [(s.what, s.note) for s in replay.report().strayed] == [
        (
            "CONNECT tracking.example.com:443",
            "only hosts that --pass names can be reached (--pass tracking.example.com)",
        )
    ]


def test_a_tunnel_to_a_host_on_the_tape_is_a_miss_that_says_what_to_do() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    seen: list[Outcome] = []
    with ReplayServer(replay, ReplayServerOptions(on_outcome=seen.append)) as replaying:
        answers = [tunnelled(replaying, "api.example.com:443", b"") for _ in range(2)]
        own = f"http://127.0.0.1:{replaying.port}/api.example.com"
    assert answers[0].startswith(b"HTTP/1.1 403 ")
    [missed] = replay.report().missed
    assert (missed.what, missed.reason, missed.times) == ("CONNECT api.example.com:443", "not opened", 2)
    assert missed.message.splitlines() == [
        "wiretape replay does not intercept TLS: the connection to api.example.com:443 was blocked",
        f"  use {own} instead of https://api.example.com in the program's base URL",
        "  (--port keeps the address from one run to the next)",
    ]
    assert answers[1].decode().endswith(f"\r\n\r\n{missed.message}\n")
    assert seen == replay.misses[:1]
    assert replay.report().strayed == ()


@pytest.mark.parametrize("let_through", [[], ["*"], ["api.openai.*"]])
def test_a_tunnel_to_a_model_provider_is_a_miss_and_never_let_through(let_through: list[str]) -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with ReplayServer(replay, ReplayServerOptions(let_through=let_through)) as replaying:
        assert tunnelled(replaying, "api.openai.com:443", b"").startswith(b"HTTP/1.1 403 ")
    [missed] = replay.report().missed
    assert "let it read OPENAI_BASE_URL or OPENAI_API_BASE, which wiretape sets" in missed.message
    assert "--pass" not in missed.message
    assert replay.report().passed == {}


@pytest.mark.parametrize(
    ("url", "known", "unknown"),
    [
        ("https://127.0.0.1:18080/v1/chat/completions", "127.0.0.1:18080", "127.0.0.1:18081"),
        ("https://models.example.com:8443/v1/chat/completions", "models.example.com:8443", "models.example.com:443"),
        ("https://models.example.com/v1/chat/completions", "models.example.com:443", "models.example.com:8443"),
        ("https://[::1]:18080/v1/chat/completions", "[::1]:18080", "[::1]:18081"),
    ],
)
def test_another_port_of_a_recorded_host_is_not_on_the_tape(url: str, known: str, unknown: str) -> None:
    replay = session(exchange(1, chat(user("hi")), "one", url=url))
    with ReplayServer(replay) as replaying:
        assert b"only hosts that --pass names can be reached" in tunnelled(replaying, unknown, b"")
        assert b"does not intercept TLS" in tunnelled(replaying, known, b"")
    assert [missed.what for missed in replay.report().missed] == [f"CONNECT {known}"]
    assert [strayed.what for strayed in replay.report().strayed] == [f"CONNECT {unknown}"]


def test_plain_http_through_the_proxy_is_answered_from_the_tape() -> None:
    replay = session(exchange(1, chat(user("hi")), "one", url=URL))
    with ReplayServer(replay) as replaying, through(replaying) as client:
        assert client.post(URL, json=chat(user("hi"))).json()["choices"][0]["message"]["content"] == "one"
        assert client.post(URL, json=chat(user("other"))).status_code == 400
        assert client.get("http://elsewhere.example.com/x").status_code == 404
        own = f"http://127.0.0.1:{replaying.port}/models.example.com/v1/chat/completions"
        assert client.post(own, json=chat(user("hi"))).json()["error"]["code"] == "wiretape_miss"


def test_a_host_that_is_let_through_is_reached_and_listed() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with host() as (port, heard), ReplayServer(replay, ReplayServerOptions(let_through=["127.0.0.*"])) as replaying:
        with through(replaying) as client:
            assert client.get(f"http://127.0.0.1:{port}/tool?q=1").text == "real"
        with socket.create_connection(("127.0.0.1", replaying.proxy_port)) as raw:
            raw.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            assert raw.recv(4096).startswith(b"HTTP/1.1 200 ")
            raw.sendall(b"hello")
            assert b"real" in b"".join(iter(lambda: raw.recv(4096), b""))
        assert heard[0].startswith(b"GET /tool?q=1 HTTP/1.1\r\n")
        assert heard[1] == b"hello"
    assert replay.report().passed == {f"127.0.0.1:{port}": 2}


def test_a_host_that_is_not_named_is_not_reached() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with host() as (port, heard), ReplayServer(replay, ReplayServerOptions(let_through=["*.example.com"])) as replaying:
        with through(replaying) as client:
            assert client.get(f"http://127.0.0.1:{port}/tool").status_code == 404
        assert heard == []
    assert replay.report().passed == {}


def test_an_unreachable_host_that_is_let_through_is_a_502() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with (
        ReplayServer(replay, ReplayServerOptions(let_through=["127.0.0.1"])) as replaying,
        through(replaying) as client,
    ):
        assert client.get(f"http://127.0.0.1:{port}/").status_code == 502


@pytest.mark.parametrize("rubbish", [b"\x16\x03\x01\r\n\r\n", b"CONNECT nowhere HTTP/1.1\r\n\r\n", b"", b"GET\r\n\r\n"])
def test_rubbish_ends_its_own_connection_only(rubbish: bytes) -> None:
    replay = session(exchange(1, chat(user("hi")), "one", url=URL))
    with ReplayServer(replay) as replaying:
        with socket.create_connection(("127.0.0.1", replaying.proxy_port)) as raw:
            raw.sendall(rubbish)
            raw.shutdown(socket.SHUT_WR)
            assert raw.recv(4096).partition(b"\r\n")[0] in (b"", b"HTTP/1.1 400 Bad Request")
        with through(replaying) as client:
            assert client.post(URL, json=chat(user("hi"))).status_code == 200


def test_keys_are_made_up_for_providers_on_the_tape_and_never_over_the_users_own() -> None:
    replay = session(exchange(1, chat(user("hi")), "one", url="https://api.deepseek.com/chat/completions"))
    assert dummy_keys({}, replay) == {"DEEPSEEK_API_KEY": DUMMY_KEY, "OPENAI_API_KEY": DUMMY_KEY}
    assert dummy_keys({"DEEPSEEK_API_KEY": "mine", "OPENAI_API_KEY": "mine"}, replay) == {}


def test_a_tape_with_nothing_on_it_has_heard_of_no_provider_and_every_one_gets_its_key() -> None:
    lent = dummy_keys({"ANTHROPIC_AUTH_TOKEN": "mine"}, session())
    assert {"OPENAI_API_KEY", "GEMINI_API_KEY", "ARK_API_KEY", "CO_API_KEY"} <= set(lent)
    assert set(lent.values()) == {DUMMY_KEY}
    assert "ANTHROPIC_API_KEY" not in lent


def test_the_childs_variables_lead_here_and_nowhere_else() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with ReplayServer(replay) as replaying:
        variables = replaying.variables({"OPENAI_BASE_URL": "https://api.example.com/v1", "NO_PROXY": "*"})
        assert variables["OPENAI_BASE_URL"] == f"http://127.0.0.1:{replaying.port}/api.example.com/v1"
        assert variables["HTTPS_PROXY"] == f"http://127.0.0.1:{replaying.proxy_port}"
        assert variables["NO_PROXY"] == variables["no_proxy"] == ""
    assert replay.answer(live(chat(user("hi")))).number == 1


def test_an_open_tunnel_does_not_hold_up_the_end() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with ReplayServer(replay, ReplayServerOptions(let_through=["127.0.0.1"])) as replaying:
            raw = socket.create_connection(("127.0.0.1", replaying.proxy_port))
            raw.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % listening.getsockname()[1])
            assert raw.recv(4096).startswith(b"HTTP/1.1 200 ")
            start = time.monotonic()
        assert time.monotonic() - start < 5
        raw.close()


def tunnelled(replaying: ReplayServer, target: str, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", replaying.proxy_port)) as raw:
        raw.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        answer = raw.recv(4096)
        if not answer.startswith(b"HTTP/1.1 200 "):
            return answer
        raw.sendall(request)
        return b"".join(iter(lambda: raw.recv(65536), b""))


def post(path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    )
    return head.encode() + b"connection: close\r\n\r\n" + body


def test_a_client_that_tunnels_plain_http_is_answered_from_the_tape() -> None:
    url = "http://127.0.0.1:9/v1/chat/completions"
    replay = session(*[exchange(n, chat(user("hi")), f"answer {n}", url=url) for n in (1, 2)])
    body = orjson.dumps(chat(user("hi")))
    with ReplayServer(replay) as replaying:
        own = tunnelled(replaying, f"127.0.0.1:{replaying.port}", post("/127.0.0.1:9/v1/chat/completions", body))
        recorded = tunnelled(replaying, "127.0.0.1:9", post("/v1/chat/completions", body))
        elsewhere = tunnelled(replaying, "127.0.0.1:10", post("/v1/chat/completions", body))
        assert tunnelled(replaying, "127.0.0.1:9", b"\x16\x03\x01\x02\x00") == b""
    assert [missed.what for missed in replay.report().missed] == ["CONNECT 127.0.0.1:9"]
    assert "use http://127.0.0.1:" in replay.misses[0].message
    assert "/https:127.0.0.1:9 instead of https://127.0.0.1:9 in" in replay.misses[0].message
    assert [stray.what for stray in replay.report().strayed] == ["CONNECT 127.0.0.1:10"]
    assert b"answer 1" in own
    assert b"answer 2" in recorded
    assert elsewhere.startswith(b"HTTP/1.1 403 ")


def raw(replaying: ReplayServer, *said: bytes, done: bool = False) -> bytes:
    """All that a client hears that says this; `done`: and that it will say no more."""
    with socket.create_connection(("127.0.0.1", replaying.proxy_port), timeout=30) as connection:
        heard = b""
        for number, one in enumerate(said, 1):
            connection.sendall(one)
            if number < len(said):
                heard += connection.recv(65536)
        if done:
            connection.shutdown(socket.SHUT_WR)
        return heard + b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("way", ["absolute form", "tunnel"])
def test_a_client_that_says_no_more_still_hears_its_answer(way: str) -> None:
    body = orjson.dumps(chat(user("hi")))
    head = b"host: models.example.com\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    with ReplayServer(session(exchange(1, chat(user("hi")), "one", url=URL))) as replaying:
        if way == "tunnel":
            asked = [b"CONNECT models.example.com:80 HTTP/1.1\r\n\r\n", b"POST /v1/chat/completions HTTP/1.1\r\n"]
        else:
            asked = [b"POST %b HTTP/1.1\r\n" % URL.encode()]
        asked[-1] += head + body
        assert b'"content":"one"' in raw(replaying, *asked, done=True)


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        (b"CONNECT models.example.com HTTP/1.1\r\n\r\n", 400, b"names no host and port"),
        (b"CONNECT :443 HTTP/1.1\r\n\r\n", 400, b"names no host and port"),
        (b"GET http://x:99999/ HTTP/1.1\r\n\r\n", 400, b"could not read this request to its proxy port: Port out of"),
        (b"nonsense\r\n\r\n", 400, b"this request to its proxy port: it is not an HTTP/1 request"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n", 431, b"request headers of up to 64 KiB"),
    ],
)
def test_what_the_proxy_port_cannot_read_is_told_so(said: bytes, status: int, why: bytes) -> None:
    with ReplayServer(session()) as replaying:
        told = raw(replaying, said)
    assert told.startswith(b"HTTP/1.1 %d " % status)
    assert why in told
    assert b"x-should-retry: false" in told


def test_a_reset_is_one_behind_the_proxy_port_too() -> None:
    replay = session(exchange(1, chat(user("hi")), "one", url=URL), faults=(parse_fault("reset@1"),))
    body = orjson.dumps(chat(user("hi")))
    asked = b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (URL.encode(), len(body), body)
    with ReplayServer(replay) as replaying, pytest.raises(ConnectionResetError):
        raw(replaying, asked)


def test_a_half_closed_client_is_given_what_comes_for_as_long_as_something_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved, asked = _Progress(), []

    async def five_pieces_come(ways: set[asyncio.Future[None]], timeout: float) -> None:
        asked.append(timeout)
        moved.reads += len(asked) <= 5

    async def listen() -> None:
        way: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(asyncio, "wait", five_pieces_come)
        await _while_progressing(way, moved, 60.0)
        way.set_result(None)
        await _while_progressing(way, _Progress(), 60.0)  # there is nothing to wait for

    asyncio.run(listen())
    assert asked == [60.0] * 6
