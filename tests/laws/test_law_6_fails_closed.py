"""Law 6: a replay never opens an upstream connection, for matches and misses alike, drained or not.

Two watches: a canary that real traffic would reach, and an audit hook that sees every connection that is attempted.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.replaying import chat, exchange, response, session, user

from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions

_WATCHERS: list[list[Any]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for watcher in _WATCHERS:
            watcher.append(arguments[1])
    elif event == "socket.getaddrinfo":
        for watcher in _WATCHERS:
            watcher.append((arguments[0], arguments[1]))


sys.addaudithook(_audit)


@contextmanager
def connections() -> Iterator[list[Any]]:
    """Every address that this process connects to or resolves inside the block."""
    seen: list[Any] = []
    _WATCHERS.append(seen)
    try:
        yield seen
    finally:
        _WATCHERS.remove(seen)


@contextmanager
def canary() -> Iterator[tuple[int, list[Any]]]:
    """Stands where the real server was recorded, and must never hear anything."""
    heard: list[Any] = []
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.05)
    stop = threading.Event()

    def listen() -> None:
        while not stop.is_set():
            try:
                connection, peer = listening.accept()
            except TimeoutError:
                continue
            heard.append(peer)
            connection.close()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield listening.getsockname()[1], heard
    finally:
        stop.set()
        thread.join()
        listening.close()


def outside(seen: list[Any], replaying: ReplayServer, *own_ports: int) -> list[Any]:
    own = {("127.0.0.1", port) for port in (replaying.port, replaying.proxy_port, *own_ports)}
    return [address for address in seen if address[:2] not in own]


asked = st.lists(
    st.tuples(
        st.sampled_from(["matched", "other", "telemetry", "connect", "bare", "websocket", "moved", "away"]),
        st.sampled_from(["server", "proxy"]),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=8, deadline=None)
@given(asked)
def test_no_request_ever_reaches_the_recorded_server(requests: list[tuple[str, str]]) -> None:
    with canary() as (port, heard), connections() as seen:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        there = {"moved": f"http://127.0.0.1:{port}/v1/elsewhere", "away": "https://away.example.com/v1/elsewhere"}
        moves = [
            exchange(number, chat(user(what)), response({}, 307, location=target), url=url)
            for number, (what, target) in enumerate(there.items(), 2)
        ]
        replay = session(exchange(1, chat(user("hi")), "one", url=url), *moves, repeat=True)
        with (
            ReplayServer(replay) as replaying,
            httpx.Client(trust_env=False, follow_redirects=True) as direct,
            httpx.Client(
                proxy=f"http://127.0.0.1:{replaying.proxy_port}", trust_env=False, follow_redirects=True
            ) as proxied,
        ):
            base = f"http://127.0.0.1:{replaying.port}"
            for what, way in requests:
                client, prefix = (direct, f"{base}/127.0.0.1:{port}") if way == "server" else (proxied, url[:-20])
                match what:
                    case "matched":
                        client.post(f"{prefix}/v1/chat/completions", json=chat(user("hi")))
                    case "other":
                        answer = client.post(f"{prefix}/v1/chat/completions", json=chat(user("new")))
                        assert answer.status_code == 400
                    case "moved" | "away":
                        with suppress(httpx.ProxyError):  # TLS is not opened here
                            answer = client.post(f"{prefix}/v1/chat/completions", json=chat(user(what)))
                            assert (answer.status_code, "is not on the tape" in answer.text) == (400, True)
                    case "telemetry":
                        assert client.post(f"{prefix}/telemetry", json={}).status_code == 404
                    case "bare":
                        direct.post(f"{base}/v1/chat/completions", json=chat(user("hi")))
                    case "websocket":
                        upgrade = {"connection": "upgrade", "upgrade": "websocket"}
                        assert client.get(f"{prefix}/v1/responses", headers=upgrade).status_code == 404
                    case "connect":
                        with pytest.raises(httpx.ConnectError):  # it was recorded in plain HTTP: no TLS there
                            proxied.get(f"https://127.0.0.1:{port}/v1/models")
                        with pytest.raises(httpx.ProxyError):
                            proxied.get("https://api.example.com/v1/models")
        assert heard == []
        assert outside(seen, replaying) == []


def test_a_name_of_a_real_host_is_not_even_looked_up() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with connections() as seen, ReplayServer(replay) as replaying:
        with httpx.Client(proxy=f"http://127.0.0.1:{replaying.proxy_port}", trust_env=False) as client:
            with pytest.raises(httpx.ProxyError):
                client.get("https://api.example.com/v1/models")
            assert client.get("http://api.example.com/v1/models").status_code == 404
        assert outside(seen, replaying) == []


def test_the_connection_watch_sees_allowed_connections() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with (
        canary() as (port, heard),
        connections() as seen,
        ReplayServer(replay, ReplayServerOptions(let_through=["127.0.0.1"])) as replaying,
        httpx.Client(proxy=f"http://127.0.0.1:{replaying.proxy_port}", trust_env=False) as client,
    ):
        with pytest.raises(httpx.HTTPError):
            client.get(f"http://127.0.0.1:{port}/tool")
        assert len(heard) == 1
        assert outside(seen, replaying) == [("127.0.0.1", port)]
    assert replay.report().passed == {f"127.0.0.1:{port}": 1}


INSIDE = ["matched", "other", "telemetry", "websocket", "h2", "distrusting", "no HTTP", "plain", "gone"]
inside_tls = st.lists(st.sampled_from(INSIDE), min_size=1, max_size=8)
UPGRADE = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="}


@pytest.mark.proxy
@pytest.mark.skipif(find_spec("mitmproxy") is None, reason="opening TLS needs mitmproxy (Python 3.12 or later)")
@settings(max_examples=8, deadline=None)
@given(inside_tls, st.booleans())
def test_no_opened_tunnel_reaches_the_recorded_server(requests: list[str], everything: bool) -> None:
    from tests.support.tls_replaying import H2, client, opening, tunnel

    with canary() as (port, heard), connections() as seen:
        url = f"https://localhost:{port}/v1/chat/completions"  # a name: it would have to be looked up
        replay = session(exchange(1, chat(user("hi")), "one", url=url), repeat=True)
        with (
            opening(replay, _state(), everything) as (replaying, trust, _),
            client(replaying, trust) as proxied,
        ):
            for what in requests:
                match what:
                    case "matched":
                        assert proxied.post(url, json=chat(user("hi"))).status_code == 200
                    case "other":
                        assert proxied.post(url, json=chat(user("new"))).status_code == 400
                    case "telemetry":
                        assert proxied.post(f"https://localhost:{port}/telemetry", json={}).status_code == 404
                    case "websocket":
                        assert proxied.get(f"https://localhost:{port}/v1/x", headers=UPGRADE).status_code == 404
                    case "h2":
                        with H2(replaying, trust, "localhost", port) as connection:
                            connection.start("/v1/chat/completions", b"{}")
                            next(connection.events())
                    case "distrusting":
                        with client(replaying, True) as other, suppress(httpx.ConnectError):
                            other.post(url, json=chat(user("hi")))
                    case "no HTTP" | "plain":
                        said = b"\x00\x00\x00\x08\x04\xd2\x16\x2f" if what == "no HTTP" else b"GET / HTTP/1.1\r\n\r\n"
                        with tunnel(replaying, "localhost", port) as raw:
                            raw.sendall(said)
                            raw.recv(4096)
                    case "gone":
                        tunnel(replaying, "localhost", port).close()
            opener = replaying.interceptor
            own = [opener.running_port] if opener is not None and opener.running_port else []
        assert heard == []
        assert outside(seen, replaying, *own) == []
    assert replay.report().passed == {}


@cache
def _state() -> Path:
    """Where the authority is kept: making one takes a moment."""
    return Path(tempfile.mkdtemp(prefix="wiretape-state-"))
