"""`http.client` in a context, and what stands on it: which requests are answered from the tape, on which connection."""

from __future__ import annotations

import http.client
import socket
import sys
import urllib.request
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, exchange, reply, stream, user
from tests.support.upstream import Upstream

import wiretape
from wiretape.errors import MissInterrupt
from wiretape.model.http import Ended, body_bytes
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape, read_tape

HOST = "models.example"
URL = f"https://{HOST}/v1/chat/completions"
HEADER = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
JSON = {"content-type": "application/json"}
HI = orjson.dumps(chat(user("hi")))


def tape(*urls: str) -> Tape:
    said = chat(user("hi"))
    made = [exchange(number, said, reply(f"answer {number}"), url=url) for number, url in enumerate(urls, 1)]
    return Tape(Path("hand.tape"), HEADER, tuple(made), (), False)


def said(connection: http.client.HTTPConnection, target: str = "/v1/chat/completions") -> str:
    connection.request("POST", target, HI, JSON)
    return text_of(connection.getresponse())


def text_of(response: Any) -> str:
    return str(orjson.loads(response.read())["choices"][0]["message"]["content"])


def opened_by_hand() -> str:
    with closing(http.client.HTTPSConnection(HOST)) as connection:
        connection.connect()
        return said(connection)


def through_a_tunnel() -> str:
    with closing(http.client.HTTPSConnection("proxy.example", 3128)) as connection:
        connection.set_tunnel(HOST, 443)
        return said(connection)


def to_a_proxy() -> str:
    with closing(http.client.HTTPConnection("proxy.example", 3128)) as connection:
        return said(connection, URL)


def piece_by_piece() -> str:
    with closing(http.client.HTTPSConnection(HOST)) as connection:
        connection.request("POST", "/v1/chat/completions", iter([HI[:5], HI[5:]]), JSON, encode_chunked=True)
        return text_of(connection.getresponse())


def by_urllib() -> str:
    with urllib.request.urlopen(urllib.request.Request(URL, HI, JSON)) as response:
        return text_of(response)


@pytest.mark.parametrize("ask", [opened_by_hand, through_a_tunnel, to_a_proxy, piece_by_piece, by_urllib])
def test_whichever_way_a_request_is_made_the_tape_answers(ask: Callable[[], str]) -> None:
    with wiretape.replay(tape(URL)) as ctx:
        assert ask() == "answer 1"
    assert not ctx.report.left_over


def test_a_connection_that_was_open_before_is_not_used_and_a_replayed_one_not_kept() -> None:
    with Upstream() as upstream, closing(http.client.HTTPConnection(upstream.url.removeprefix("http://"))) as kept:
        there = f"{upstream.url}/v1/chat/completions"
        live = said(kept)
        with wiretape.replay(tape(there, there)):
            assert [said(kept), said(kept)] == ["answer 1", "answer 2"]
        assert len(upstream.seen) == 1
        assert said(kept) == live
        assert len(upstream.seen) == 2


def test_a_host_that_is_let_through_is_spoken_to_on_a_connection_that_was_replayed(tmp_path: Path) -> None:
    with Upstream() as upstream, closing(http.client.HTTPConnection(upstream.url.removeprefix("http://"))) as kept:
        there = f"{upstream.url}/v1/chat/completions"
        with wiretape.replay(tape(there)):
            kept.connect()
            with wiretape.replay(tape(URL), pass_hosts="127.0.0.1") as inner, wiretape.record(tmp_path / "x.tape"):
                live = said(kept)
            assert said(kept) == "answer 1"
        assert inner.report.passed == {upstream.url.removeprefix("http://"): 1}
        assert len(upstream.seen) == 1
    (recorded,) = read_tape(tmp_path / "x.tape").exchanges
    assert recorded.response is not None
    assert live.encode() in body_bytes(recorded.response.body)


def test_httplib2_which_connects_by_itself_before_it_asks_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connecting:
        def connect(self) -> None:
            raise AssertionError("opened a connection")

    library: Any = ModuleType("httplib2")
    for kind in (http.client.HTTPConnection, http.client.HTTPSConnection):
        name = f"{kind.__name__}WithTimeout"
        setattr(library, name, type(name, (Connecting, kind), dict(vars(Connecting))))
    stood = library.HTTPSConnectionWithTimeout.connect
    monkeypatch.setitem(sys.modules, "httplib2", library)
    with wiretape.replay(tape(URL)), closing(library.HTTPSConnectionWithTimeout(HOST)) as connection:
        connection.connect()
        assert said(connection) == "answer 1"
    assert library.HTTPSConnectionWithTimeout.connect is stood


def test_a_target_that_is_no_path_changes_no_host() -> None:
    with wiretape.replay(tape(URL)) as ctx, closing(http.client.HTTPConnection("127.0.0.1", 8137)) as connection:
        connection.request("OPTIONS", "*")
        assert connection.getresponse().status == 404
        connection.close()
        with pytest.raises(ConnectionRefusedError, match=r"could not read this as an HTTP/1\.1 request"):
            connection.request("GET", "v1/models")
    assert [stray.what for stray in ctx.report.strayed] == ["OPTIONS 127.0.0.1:8137/*"]


def test_what_broke_off_breaks_off_with_what_the_library_raises() -> None:
    cut = exchange(1, chat(user("hi")), stream("data: 1\n\n", "data: 2\n\n"), url=URL, ended=Ended.UPSTREAM_CLOSED)
    gone = exchange(2, chat(user("hi")), None, url=URL, ended=Ended.UPSTREAM_CLOSED)
    nobody = exchange(3, chat(user("hi")), None, url=URL, ended=Ended.UPSTREAM_UNREACHABLE)
    with wiretape.replay(Tape(Path("hand.tape"), HEADER, (cut, gone, nobody), (), False)):
        connection = http.client.HTTPSConnection(HOST)
        connection.request("POST", "/v1/chat/completions", HI, JSON)
        with pytest.raises(http.client.IncompleteRead) as broken:
            connection.getresponse().read()
        assert broken.value.partial == b"data: 1\n\ndata: 2\n\n"
        with pytest.raises(http.client.RemoteDisconnected):
            said(connection)
        with pytest.raises(ConnectionRefusedError, match="as recorded"):
            said(connection)


def test_on_miss_raise_raises_at_the_call() -> None:
    other = orjson.dumps(chat(user("ho")))
    with pytest.raises(MissInterrupt, match=r"live\s+ho"), wiretape.replay(tape(URL), on_miss="raise"):
        urllib.request.urlopen(urllib.request.Request(URL, other, JSON))


def test_a_connection_opened_in_a_replay_fails_after_it() -> None:
    connection = http.client.HTTPSConnection(HOST)
    with wiretape.replay(tape(URL)):
        connection.connect()
    with pytest.raises(ConnectionResetError, match="this connection was opened in a replay that has ended"):
        said(connection)


def test_a_connection_that_nobody_took_is_recorded_with_what_was_to_be_sent(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with pytest.raises(ConnectionRefusedError), wiretape.record(tmp_path / "x.tape"):
        connection.request("POST", "/v1/x?a=1", HI, JSON)
    (recorded,) = read_tape(tmp_path / "x.tape").exchanges
    assert recorded.request.url == f"http://127.0.0.1:{port}/v1/x?a=1"
    assert recorded.request.headers["content-type"] == "application/json"
    assert recorded.ended is Ended.UPSTREAM_UNREACHABLE


def test_requests_are_recorded_and_counted_once(tmp_path: Path) -> None:
    """urllib3 stands on `http.client`, and both have a door."""
    urllib3 = pytest.importorskip("urllib3")
    requested = urllib3.PoolManager().request
    with Upstream() as upstream, wiretape.record(tmp_path / "x.tape") as made:
        requested("POST", f"{upstream.url}/v1/chat/completions", body=HI, headers=JSON)
        requested("POST", f"{upstream.url}/v1/chat/completions", body=HI, headers=JSON)
        with wiretape.replay(tape(URL), pass_hosts="127.0.0.1") as ctx:
            requested("POST", f"{upstream.url}/v1/chat/completions", body=HI, headers=JSON)
    assert made.summary is not None
    assert made.summary.exchanges == 2
    assert list(ctx.report.passed.values()) == [1]
