"""mitmproxy's flow files and its HAR, written by mitmproxy itself; and our HAR, loaded by it."""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.importing import outcomes, reasons, taken

from wiretape.adapters.exporters.har import har
from wiretape.adapters.importers.importing import ImportedExchange, RefusedEntry
from wiretape.model.http import (
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    StreamBody,
    TextBody,
    body_bytes,
)

mitmproxy = pytest.importorskip("mitmproxy", reason="needs mitmproxy (Python 3.12 or later)")
pytestmark = pytest.mark.proxy

STREAM = "data: 你好\n\ndata: [DONE]\n\n".encode()


def flow(**more: Any) -> Any:
    from mitmproxy.test import tflow, tutils

    headers = ((b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip"))
    request = tutils.treq(
        method=b"POST",
        scheme=b"https",
        host="api.example.com",
        port=443,
        authority=b"api.example.com",
        path=b"/v1/messages?beta=true",
        http_version=b"HTTP/2.0",
        headers=((b"content-type", b"application/json"), (b"x-api-key", b"k")),
        content=b'{"model": "m"}',
        timestamp_start=1000.0,
        timestamp_end=1000.01,
    )
    response = tutils.tresp(
        headers=headers, content=gzip.compress(STREAM), timestamp_start=1000.25, timestamp_end=1001.5, **more
    )
    return tflow.tflow(req=request, resp=response)


def file_of(*flows: Any) -> bytes:
    from mitmproxy.io import FlowWriter

    out = io.BytesIO()
    writer = FlowWriter(out)
    for one in flows:
        writer.add(one)
    return out.getvalue()


def test_http_flows() -> None:
    (found,) = outcomes(file_of(flow()))
    assert isinstance(found, ImportedExchange)
    assert (found.container, found.started) == ("mitmproxy", 1000.0)
    exchange = found.exchange
    assert exchange.request == Request(
        "POST",
        "https://api.example.com/v1/messages?beta=true",
        Headers([("content-type", "application/json"), ("x-api-key", "k")]),
        JsonBody({"model": "m"}, "spaced"),
        "2",
    )
    assert exchange.response is not None
    assert exchange.response.body == StreamBody(("data: 你好\n\n".encode(), b"data: [DONE]\n\n"), (0, 0))
    assert (exchange.response.headers_at, exchange.ended_at, exchange.ended) == (250, 1500, Ended.COMPLETE)


def test_websocket_flows() -> None:
    from mitmproxy.test import tflow

    socket = tflow.twebsocketflow(close_code=1000, close_reason="bye")
    (exchange,) = taken(file_of(socket))
    assert [(m.sender, m.body) for m in exchange.messages] == [
        ("client", BytesBody(b"hello binary")),
        ("client", TextBody("hello text")),
        ("server", TextBody("it's me")),
    ]
    assert exchange.close == Close(1000, "bye", "server")
    assert exchange.response is not None
    assert exchange.response.status == 101


def test_flows_that_broke() -> None:
    from mitmproxy.test import tflow

    cut = flow()
    cut.error = tflow.terr("Client disconnected.")
    unreachable = tflow.tflow(err=True)
    unreachable.server_conn.timestamp_tcp_setup = None
    first, second = taken(file_of(cut, unreachable))
    assert first.ended is Ended.CLIENT_CLOSED
    assert first.response is not None
    assert second.response is None
    assert second.ended is Ended.UPSTREAM_UNREACHABLE


def test_what_is_no_http_is_named_and_so_is_a_body_that_is_not_there() -> None:
    from mitmproxy.test import tflow

    streamed = flow()
    streamed.response.content = None
    found = outcomes(file_of(tflow.ttcpflow(), streamed, flow()))
    assert [str(one) for one in found if isinstance(one, RefusedEntry)] == [
        "dir/file entry 1: is not an HTTP exchange (tcp)",
        "dir/file entry 2: its response was streamed through mitmproxy, and the file does not have its body",
    ]
    assert len(found) == 3


def test_a_file_that_breaks_off_gives_what_stands_before() -> None:
    data = file_of(flow(), flow())
    first, second = outcomes(data[: len(data) - 30])
    assert isinstance(first, ImportedExchange)
    assert isinstance(second, RefusedEntry)
    assert second.entry == 2
    assert second.reason.startswith("cannot be read, nor what follows it")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a library of mitmproxy's
def test_mitmproxys_har_has_the_same() -> None:
    from mitmproxy.addons.savehar import SaveHar
    from mitmproxy.test import tflow

    saved = json.dumps(SaveHar().make_har([flow(), tflow.twebsocketflow()]))
    first, socket = taken(saved)
    (straight,) = taken(file_of(flow()))
    assert first.request == straight.request
    assert first.response == straight.response
    assert first.ended_at == straight.ended_at
    assert [m.body for m in socket.messages] == [
        BytesBody(b"hello binary"),
        TextBody("hello text"),
        TextBody("it's me"),
    ]


def test_mitmproxy_loads_our_har() -> None:
    from mitmproxy.io import FlowReader

    (straight,) = taken(file_of(flow()))
    binary = Response(200, Headers([("content-type", "image/png")]), 5, BytesBody(b"\x89PNG\xff"))
    more = [
        Exchange(2, 2000, Request("GET", "http://127.0.0.1:8080/a.png"), binary, Ended.COMPLETE, 2010),
        Exchange(4, 2500, Request("GET", "wss://a.example.com/live"), Response(101), Ended.COMPLETE, 2600),
        Exchange(5, 2700, Request("POST", "unknown:a.json"), Response(200), Ended.COMPLETE, 2700),
        Exchange(3, 3000, Request("GET", "https://gone.example.com/"), None, Ended.UPSTREAM_UNREACHABLE, 3001),
    ]
    text = b"".join(har([straight, *more], datetime(2026, 1, 1, tzinfo=UTC), ""))
    first, second, socket, unknown, third = FlowReader(io.BytesIO(text)).stream()
    assert first.request.url == straight.request.url
    assert first.request.content == b'{"model": "m"}'
    assert first.response.status_code == 200
    assert first.response.content == STREAM == body_bytes(straight.response.body if straight.response else None)
    assert second.response.content == b"\x89PNG\xff"
    assert socket.request.host == "a.example.com"
    assert unknown.request.host == "unknown.invalid"
    assert third.response.status_code == 0


def test_without_mitmproxy_a_flow_file_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    data = file_of(flow())
    monkeypatch.setitem(sys.modules, "mitmproxy.io", None)
    (said,) = reasons(data)
    assert "pip install '.[proxy]'" in said
