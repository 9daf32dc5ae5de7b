"""The replay server and a page in a browser: foreign Host and Origin headers get no recorded answer."""

from __future__ import annotations

import json
import socket

import httpx
import pytest
from tests.support.replaying import chat, exchange, session, user
from tests.support.sockets import URL as SOCKET_URL
from tests.support.sockets import socket as recorded_socket

from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.matching.session import ReplaySession

URL = "https://api.example.com/v1/chat/completions"
BODY = json.dumps(chat(user("hi"))).encode()


def recorded() -> ReplaySession:
    return session(exchange(1, chat(user("hi")), "the recorded answer", url=URL), repeat=True)


def spoken(port: int, *lines: str, target: str = "/api.example.com/v1/chat/completions", body: bytes = BODY) -> str:
    """What a raw request gets, to the end of its connection."""
    head = [f"POST {target} HTTP/1.1", "content-type: application/json", f"content-length: {len(body)}", *lines]
    with socket.create_connection(("127.0.0.1", port), 20) as talking:
        talking.sendall("\r\n".join([*head, "", ""]).encode() + body)
        talking.shutdown(socket.SHUT_WR)
        answer = b""
        while more := talking.recv(65536):
            answer += more
    return answer.decode()


FOREIGN = [
    ("host: evil.example", "--allow-host evil.example"),
    ("host: evil.example:{port}", "--allow-host evil.example"),
    ("host: 127.0.0.1:{port}\r\norigin: https://evil.example", "--allow-origin https://evil.example"),
    ("host: evil.example\r\norigin: null", "--allow-host evil.example"),
]


@pytest.mark.parametrize(("lines", "option"), FOREIGN)
@pytest.mark.parametrize("way", ["fast", "parsed", "to the proxy port", "a miss", "a tool"])
def test_a_foreign_page_reads_no_recorded_answer(lines: str, option: str, way: str) -> None:
    """On the short way of plain requests, on the parser's, and where a request has no answer either."""
    replay = recorded()
    with ReplayServer(replay) as running:
        port = running.proxy_port if way == "to the proxy port" else running.port
        said = spoken(
            port,
            lines.format(port=running.port),
            *(["expect: 100-continue"] if way == "parsed" else []),
            body=BODY.replace(b"hi", b"zz") if way == "a miss" else BODY,
            target="/wiretape/tool/search" if way == "a tool" else "/api.example.com/v1/chat/completions",
        )
    assert " 403 Forbidden\r\n" in said
    assert option in said
    assert "the recorded answer" not in said
    assert "access-control" not in said.lower()
    report = replay.report()
    assert (report.played, report.missed) == ((), ())
    assert [option in one.note for one in report.strayed] == [True]


@pytest.mark.parametrize(
    "lines",
    [
        "host: 127.0.0.1:{port}",
        "host: [::1]:{port}",
        "host: 10.0.0.7",
        "host: app.localhost:{port}",
        "host: host.docker.internal:{port}",
        "host: api.example.com",
        "host: recorder.corp.example",
        "host: localhost\r\norigin: null",
        "host: localhost\r\norigin: http://localhost:5173",
        "host: localhost\r\norigin: vscode-webview://1a2b",
        "host: localhost\r\norigin: https://app.example",
    ],
)
def test_local_recorded_and_allowed_names_are_answered(lines: str) -> None:
    options = {"allow_hosts": ["*.corp.example"], "allow_origins": ["https://app.example"]}
    with ReplayServer(recorded(), ReplayServerOptions(**options)) as running:
        said = spoken(running.port, lines.format(port=running.port))
    assert said.startswith("HTTP/1.1 200 OK\r\n")
    assert "the recorded answer" in said


def test_a_foreign_handshake_opens_no_recorded_websocket() -> None:
    replay = session(recorded_socket([("server", "the recorded greeting")]))
    upgrade = ["upgrade: websocket", "connection: Upgrade", "sec-websocket-version: 13"]
    key = "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=="
    target = "/" + SOCKET_URL.removeprefix("https://")
    with ReplayServer(replay) as running:
        for line in ("host: evil.example", "host: localhost\r\norigin: https://evil.example"):
            head = "\r\n".join([f"GET {target} HTTP/1.1", line, *upgrade, key, "", ""])
            with socket.create_connection(("127.0.0.1", running.port), 20) as talking:
                talking.sendall(head.encode())
                talking.shutdown(socket.SHUT_WR)
                answer = b""
                while more := talking.recv(65536):
                    answer += more
            assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n"), line
            assert b"the recorded greeting" not in answer
    assert replay.report().sockets == 1


def test_proxied_traffic_is_not_checked() -> None:
    replay = session(exchange(1, chat(user("hi")), "one", url="http://models.example.com/v1/chat/completions"))
    with (
        ReplayServer(replay) as running,
        httpx.Client(proxy=f"http://127.0.0.1:{running.proxy_port}", trust_env=False) as client,
    ):
        headers = {"origin": "https://page.example"}
        for host in ("models.example.com", "other.example.com"):
            url = f"http://{host}/v1/chat/completions"
            assert client.post(url, json=chat(user("hi")), headers=headers).status_code != 403, host
    assert [played.tier for played in replay.report().played] == ["exact"]
