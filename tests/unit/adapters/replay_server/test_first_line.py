"""Methods that the server's parser has never heard of."""

from __future__ import annotations

import socket

import httpx
import pytest
from tests.support.replaying import chat, exchange, response, session, user

from wiretape.adapters.replay_runner import ReplayServer
from wiretape.adapters.replay_server.first_line import FirstLine

URL = "http://tools.example.com/things/1"


@pytest.mark.parametrize("sent", [b"POST /x HTTP/1.1\r\n", b"OPTIONS * HTTP/1.1\r\n", b"\r\nGET / HTTP/1.1\r\n"])
def test_usual_methods_stay(sent: bytes) -> None:
    line = FirstLine()
    assert (line.known(sent), line.method) == (sent, "")


@pytest.mark.parametrize("sent", [b"\x16\x03\x01 \x00", b" / HTTP/1.1\r\n", b"caf\xc3\xa9 / HTTP/1.1\r\n", b"X" * 99])
def test_what_is_no_request_stays(sent: bytes) -> None:
    line = FirstLine()
    assert (line.known(sent), line.method) == (sent, "")


@pytest.mark.parametrize("method", ["FOO", "post", "X-Odd.1", "G"])
def test_another_name_stands_in_however_the_method_is_cut(method: str) -> None:
    whole = f"{method} /x HTTP/1.1\r\n".encode()
    for cut in range(len(whole)):
        line = FirstLine()
        given = b"".join(line.known(part) for part in (whole[:cut], whole[cut:]) if part and not line.method)
        rest = whole[cut:] if given and cut > len(method) else b""
        assert given + rest == b"POST /x HTTP/1.1\r\n"
        assert line.method == method


def test_a_usual_method_may_be_cut_too() -> None:
    line = FirstLine()
    assert line.known(b"DEL") == b""
    assert line.known(b"ETE /x HTTP/1.1\r\n") == b"DELETE /x HTTP/1.1\r\n"
    assert line.method == ""


def test_a_request_with_a_method_of_its_own_is_answered_from_the_tape() -> None:
    answers = [exchange(n, {"q": n}, response({"found": n}), url=URL, method="FOO") for n in (1, 2)]
    replay = session(*answers, exchange(3, chat(user("hi")), "one"))
    with ReplayServer(replay) as replaying, httpx.Client(trust_env=False) as client:
        route = f"http://127.0.0.1:{replaying.port}/http:tools.example.com/things/1"
        for number in (1, 2):
            assert client.request("FOO", route, json={"q": number}).json() == {"found": number}
        assert client.post(route, json={"q": 1}).status_code == 404
        own = f"http://127.0.0.1:{replaying.port}/api.example.com/v1/chat/completions"
        assert client.post(own, json=chat(user("hi"))).status_code == 200  # on the same connection
    report = replay.report()
    assert [played.answer.exchange for played in report.played] == [1, 2, 3]
    assert [strayed.what for strayed in report.strayed] == ["POST tools.example.com/things/1"]


def test_a_method_of_its_own_that_nobody_recorded_is_listed() -> None:
    replay = session(exchange(1, chat(user("hi")), "one"))
    with ReplayServer(replay) as replaying:
        for port in (replaying.port, replaying.gate_port):
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(b"FOO /tools.example.com/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                assert b"".join(iter(lambda: raw.recv(4096), b"")).startswith(b"HTTP/1.1 404 ")
    assert [(s.what, s.times) for s in replay.report().strayed] == [("FOO tools.example.com/x", 2)]
