"""The recording proxy in front of a scripted upstream: what the client and the recorder get."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")
pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.support.proxying import Spy, recording
from tests.support.upstream import CHAT_ANSWER, CHAT_EVENTS, Upstream, frame, raw_upstream, read_frame

from wiretape.adapters.routing.base_urls import default_route_warning
from wiretape.model.http import Ended

pytestmark = pytest.mark.proxy
STREAM = b"".join(CHAT_EVENTS)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


class Door:
    """One way to an upstream through the proxy, spoken with the standard library's client."""

    opened: ClassVar[list[http.client.HTTPConnection | http.client.HTTPResponse]] = []

    def __init__(self, port: int, prefix: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self.opened.append(self.connection)
        self._prefix = prefix

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> http.client.HTTPResponse:
        self.connection.request(method, self._prefix + path, body, headers)
        response = self.connection.getresponse()
        self.opened.append(response)
        return response


@pytest.fixture(autouse=True)
def _closed_doors() -> Iterator[None]:
    yield
    while Door.opened:
        Door.opened.pop().close()


def by_route(running: Any, upstream: Upstream) -> Door:
    return Door(running.port, f"/127.0.0.1:{upstream.port}")


def by_proxy(running: Any, upstream: Upstream) -> Door:
    return Door(running.port, upstream.url)


DOORS = pytest.mark.parametrize("door", [by_route, by_proxy])


@DOORS
def test_messages_of_the_upstream_reach_client_and_recorder(door: Any, upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, troubles):
        answer = door(running, upstream).send("POST", "/v1/chat/completions?a=b", b'{"model":"m"}')
        assert (answer.status, json.loads(answer.read())) == (200, CHAT_ANSWER)
        assert spy.wait_for_end() is Ended.COMPLETE
    (method, url, version, headers) = spy.named("begin")[0]
    assert (method, url, version) == ("POST", f"{upstream.url}/v1/chat/completions?a=b", "1.1")
    assert dict(headers)["Host"] == f"127.0.0.1:{upstream.port}"
    assert spy.data("request_data") == b'{"model":"m"}'
    assert spy.named("request_end") == [(1,)]
    assert json.loads(spy.data("response_data")) == CHAT_ANSWER
    assert upstream.seen[0].path == "/v1/chat/completions?a=b"
    assert troubles == []


@DOORS
def test_a_429_passes_unchanged_with_its_retry_after(door: Any, upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = door(running, upstream).send("POST", "/limited", b"{}")
        body = answer.read()
        assert (answer.status, answer.headers["retry-after"], answer.headers["x-odd"]) == (429, "7", "\xe9")
        assert body == b'{"error":{"message":"slow down","type":"rate_limit"}}'
        spy.wait_for_end()
    _, status, headers = spy.named("response")[0]
    assert (status, dict(headers)["retry-after"], dict(headers)["x-odd"]) == (429, "7", "\xe9")


@DOORS
def test_each_event_of_a_stream_passes_on_at_once(door: Any, upstream: Upstream, state: Path) -> None:
    with recording(Spy(), state) as (running, _):
        answer = door(running, upstream).send("POST", "/held", b"{}")
        for event in CHAT_EVENTS:
            # The next event is sent when the gate opens, so bytes that arrive now were not buffered.
            assert answer.read(len(event)) == event
            upstream.open_gate()
        assert answer.read() == b""


def test_the_recorder_gets_a_chunk_before_the_client(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = by_route(running, upstream).send("POST", "/held", b"{}")
        answer.read(len(CHAT_EVENTS[0]))
        assert spy.data("response_data") == CHAT_EVENTS[0]
        answer.close()


def test_the_content_encoding_is_unchanged(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = by_route(running, upstream).send("GET", "/gzip")
        raw = answer.read()
        assert answer.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(raw)) == CHAT_ANSWER
        spy.wait_for_end()
    assert spy.data("response_data") == raw


@DOORS
def test_a_stream_that_the_upstream_resets_is_kept_to_its_last_byte(door: Any, upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = door(running, upstream).send("POST", "/reset", b"{}")
        got = b"".join(CHAT_EVENTS[:2])
        assert answer.read(len(got)) == got
        upstream.open_gate()
        with pytest.raises(ConnectionResetError):
            answer.read()
        assert spy.wait_for_end() is Ended.UPSTREAM_CLOSED
    assert spy.data("response_data") == got


def test_a_body_that_ends_early_ends_early_for_the_client(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = by_route(running, upstream).send("GET", "/cut")
        with pytest.raises(http.client.IncompleteRead):
            answer.read()
        assert spy.wait_for_end() is Ended.UPSTREAM_CLOSED
    assert spy.data("response_data") == b'{"half": '


@DOORS
def test_a_reset_without_an_answer_is_no_answer_for_the_client(door: Any, upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        with pytest.raises(ConnectionResetError) as caught:
            door(running, upstream).send("POST", "/reset-at-once", b"{}")
        assert not isinstance(caught.value, http.client.RemoteDisconnected)  # which a plain close gives
        assert spy.wait_for_end() is Ended.UPSTREAM_CLOSED
    assert spy.data("request_data") == b"{}"
    assert spy.named("response") == []


def test_a_disconnected_client_is_reported_and_its_bytes_are_kept(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        door = by_route(running, upstream)
        answer = door.send("POST", "/held", b"{}")
        assert answer.read(len(CHAT_EVENTS[0])) == CHAT_EVENTS[0]
        answer.close()
        door.connection.close()
        assert spy.wait_for_end() is Ended.CLIENT_CLOSED
        assert upstream.closed.wait(20), "the upstream must see that the client is gone"
    assert spy.data("response_data") == CHAT_EVENTS[0]


def test_a_client_that_hangs_up_before_any_answer(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        door = by_route(running, upstream)
        door.connection.request("POST", f"/127.0.0.1:{upstream.port}/hangs", b"{}")
        spy.wait_for("request_end")
        door.connection.close()
        assert spy.wait_for_end() is Ended.CLIENT_CLOSED


@DOORS
def test_an_upstream_that_cannot_be_reached(door: Any, upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        upstream.port, port = unused.getsockname()[1], upstream.port
        with recording(spy, state) as (running, troubles):
            with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
                door(running, upstream).send("POST", "/v1/chat/completions", b'{"kept": true}')
            assert spy.wait_for_end() is Ended.UPSTREAM_UNREACHABLE
        assert spy.data("request_data") == b'{"kept": true}'
        assert len(troubles) == 1
        assert f"127.0.0.1:{upstream.port} could not be reached" in troubles[0]
        upstream.port = port


def test_a_channel_without_end_is_recorded_while_it_is_open(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = by_route(running, upstream).send("GET", "/channel")
        answer.read(len(b"event: message\ndata: 0\n\n"))
        for number in range(1, 4):
            upstream.open_gate()
            event = b"event: message\ndata: %d\n\n" % number
            assert answer.read(len(event)) == event
            assert spy.data("response_data").endswith(event)
        began = time.monotonic()
    assert time.monotonic() - began < 3, "an open channel must not hold the recorder up"
    assert spy.ends == {}, "the recorder states who ended it"


@pytest.mark.parametrize("size", [0, 1, 100_000, 6_000_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_request_bodies_of_any_size_and_framing(size: int, chunked: bool, upstream: Upstream, state: Path) -> None:
    spy = Spy()
    body = os.urandom(size)
    with recording(spy, state) as (running, _):
        door = by_route(running, upstream)
        path = f"/127.0.0.1:{upstream.port}/echo"
        if chunked:
            pieces = [body[i : i + 50_000] for i in range(0, size, 50_000)]
            door.connection.request("POST", path, iter(pieces), encode_chunked=True)
        else:
            door.connection.request("POST", path, body)
        assert json.loads(door.connection.getresponse().read())["length"] == size
        spy.wait_for_end()
    assert spy.data("request_data") == body
    assert len(spy.named("request_end")) == 1


def test_a_kept_connection_carries_many_exchanges(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        door = by_route(running, upstream)
        for path in ("/a", "/nothing", "/limited", "/gzip", "/b"):
            door.send("GET", path).read()
        spy.wait_for_end(5)
    assert [url.rpartition("/")[2] for _, url, _, _ in spy.named("begin")] == ["a", "nothing", "limited", "gzip", "b"]
    assert set(spy.ends.values()) == {Ended.COMPLETE}


def test_a_request_without_a_host_gets_a_hint(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = Door(running.port, "").send("POST", "/v1/chat/completions", b"{}")
        message = json.loads(answer.read())["error"]["message"]
        assert (answer.status, answer.headers["x-should-retry"]) == (404, "false")
        assert f"http://127.0.0.1:{running.port}/HOST/PATH" in message
        assert running.addon.unrouted == {"POST /v1/chat/completions"}
    assert spy.calls == []


def test_such_requests_are_sent_to_the_given_upstream(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state, upstream=f"{upstream.url}/base") as (running, _):
        Door(running.port, "").send("GET", "/v1/models?x=1").read()
        spy.wait_for_end()
    assert upstream.seen[0].path == "/base/v1/models?x=1"


def test_a_foreign_host_header_is_refused(upstream: Upstream, state: Path) -> None:
    """A web page may point its own name at 127.0.0.1 and so speak to us: it must not speak through us."""
    spy = Spy()
    with recording(spy, state, everything=True) as (running, _):
        route = f"/127.0.0.1:{upstream.port}/v1/x"
        for host in ("evil.example", f"evil.example:{running.port}"):
            answer = Door(running.port, "").send("GET", route, Host=host)
            assert (answer.status, b"--allow-host evil.example" in answer.read()) == (403, True), host
        page = Door(running.port, "").send("GET", route, Origin="https://evil.example")
        assert (page.status, b"--allow-origin https://evil.example" in page.read()) == (403, True)
        other_port = Door(running.port, "").send("GET", "/v1/x", Host=f"127.0.0.1:{upstream.port}")
        assert (other_port.status, b"names no host" in other_port.read()) == (404, True)
    assert spy.calls == []
    assert upstream.seen == []


def test_a_host_and_an_origin_that_are_allowed_are_served(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    options = {"allow_hosts": ["recorder.internal"], "allow_origins": ["https://app.example"]}
    with recording(spy, state, **options) as (running, _):
        door = by_route(running, upstream)
        answer = door.send(
            "POST", "/v1/chat/completions", b"{}", Host="recorder.internal", Origin="https://app.example"
        )
        assert json.loads(answer.read()) == CHAT_ANSWER
        spy.wait_for_end()
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_a_proxied_request_is_not_checked(upstream: Upstream, state: Path, origin: str) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = by_proxy(running, upstream).send("POST", "/v1/chat/completions", b"{}", Origin=origin)
        assert answer.status == 200
        answer.read()
        spy.wait_for_end()


def test_an_unknown_host_passes_unrecorded_and_is_named(upstream: Upstream, state: Path) -> None:
    """Loopback is recorded, so a stranger is made of a name that resolves to this machine."""
    spy = Spy()
    stranger = socket.gethostname()
    try:
        address = socket.gethostbyname(stranger)
    except OSError:
        pytest.skip("this machine's name does not resolve")
    if not address.startswith("127."):
        pytest.skip("this machine's name is not a loopback address")
    with recording(spy, state) as (running, _):
        answer = Door(running.port, f"http://{stranger}:{upstream.port}").send("GET", "/x")
        assert json.loads(answer.read())["path"] == "/x"
    assert spy.calls == [("bypassed", stranger)]


@pytest.mark.parametrize(
    "failing",
    [("begin",), ("request_data",), ("request_end",), ("response",), ("response_data",), ("end",)],
    ids=lambda names: names[0],
)
@DOORS
def test_a_recorder_that_fails_never_harms_the_traffic(
    door: Any, failing: tuple[str, ...], upstream: Upstream, state: Path
) -> None:
    with recording(Spy(failing), state) as (running, troubles):
        client = door(running, upstream)
        answer = client.send("POST", "/v1/chat/completions", b'{"stream":true}')
        assert answer.read() == STREAM
        answer = client.send("POST", "/v1/chat/completions", b'{"stream":false}')
        assert json.loads(answer.read()) == CHAT_ANSWER
    assert troubles, "the person must be told"
    assert all(f"disk full in {failing[0]}" in trouble for trouble in troubles)


def test_nothing_is_recorded_after_the_end(upstream: Upstream, state: Path) -> None:
    """Flows that are cut by our own stop must not be blamed on the client."""
    spy = Spy()
    with recording(spy, state) as (running, _):
        answer = by_route(running, upstream).send("POST", "/held", b"{}")
        answer.read(len(CHAT_EVENTS[0]))
    assert spy.ends == {}


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        ([b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", OK + b"content-length: 5\r\n\r\nhello"], b"hello"),
        ([b"HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nl", b": x\r\n\r\n" + OK + b"content-length: 2\r\n\r\nhi"], b"hi"),
        ([OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n", b"x-checksum: 1\r\n\r\n"], b"hi"),
        ([OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"], b"hi"),
        ([b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi"], b"hi"),
        ([b"HTTP/1.0 200 OK\r\n\r\nh", b"i"], b"hi"),
        ([OK + b"content-length: 0\r\n\r\n"], b""),
    ],
    ids=["early hints", "two interim", "trailers", "two framings", "no reason", "until the end", "empty"],
)
def test_answers_that_are_odd_and_valid_reach_the_client(pieces: list[bytes], body: bytes, state: Path) -> None:
    spy = Spy()
    with raw_upstream(*pieces) as port, recording(spy, state) as (running, _):
        answer = Door(running.port, f"/127.0.0.1:{port}").send("GET", "/x")
        assert (answer.status, answer.read()) == (200, body)
        assert spy.wait_for_end() is Ended.COMPLETE
    assert spy.data("response_data") == body
    assert [status for _, status, _ in spy.named("response")] == [200]


# WebSockets


async def talk(
    port: int, path: str, messages: list[tuple[int, bytes]], close: bytes | None, keep: bool = True
) -> list[tuple[int, bytes]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"permessage-deflate" not in head
    answers = []
    for opcode, data in messages:
        writer.write(frame(opcode, data, mask=b"abcd"))
        answer = await read_frame(reader)
        if keep:
            answers.append(answer)
    if close is not None:
        writer.write(frame(8, close, mask=b"abcd"))
        answers.append(await read_frame(reader))
    writer.close()
    await writer.wait_closed()
    return answers


def test_websocket_messages_are_recorded_whole(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        path = f"/127.0.0.1:{upstream.port}/ws"
        sent = [(1, "grüße".encode()), (2, b"\x00\xff"), (1, b"x" * 70_000)]
        got = asyncio.run(talk(running.port, path, sent, b"\x03\xe8bye"))
        assert got == [*sent, (8, b"\x03\xe8bye")]
        assert spy.wait_for_end() is Ended.COMPLETE
    texts = ["grüße", b"\x00\xff", "x" * 70_000]
    assert spy.named("message") == [(1, who, data) for data in texts for who in ("client", "server")]
    assert spy.named("close_ws") == [(1, 1000, "bye", "client")]
    assert spy.named("response")[0][1] == 101


def test_a_websocket_whose_client_disconnects(upstream: Upstream, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, _):
        asyncio.run(talk(running.port, f"/127.0.0.1:{upstream.port}/ws", [(1, b"hi")], None))
        assert spy.wait_for_end() is Ended.CLIENT_CLOSED
    assert len(spy.named("message")) == 2


async def broken_off(running: Any, by: str) -> dict[str, int | None]:
    """The close code that each side of a WebSocket sees when one side drops the connection."""
    client_module = pytest.importorskip("websockets.asyncio.client")
    server_module = pytest.importorskip("websockets.asyncio.server")
    codes: dict[str, int | None] = {}
    gone = asyncio.Event()

    async def upstream(connection: Any) -> None:
        await connection.recv()
        await connection.send("hello")
        if by == "upstream":
            connection.transport.abort()
        await connection.wait_closed()
        codes["upstream"] = connection.close_code
        gone.set()

    async with server_module.serve(upstream, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"ws://127.0.0.1:{running.port}/127.0.0.1:{port}/ws"
        async with client_module.connect(url, proxy=None) as connection:
            await connection.send("hi")
            assert await connection.recv() == "hello"
            if by == "client":
                connection.transport.abort()
            await connection.wait_closed()
            codes["client"] = connection.close_code
        await asyncio.wait_for(gone.wait(), 10)
    return codes


@pytest.mark.parametrize(("by", "ended"), [("upstream", Ended.UPSTREAM_CLOSED), ("client", Ended.CLIENT_CLOSED)])
def test_a_websocket_that_breaks_off_is_not_closed_in_order(by: str, ended: Ended, state: Path) -> None:
    spy = Spy()
    with recording(spy, state) as (running, troubles):
        assert asyncio.run(broken_off(running, by)) == {"client": 1006, "upstream": 1006}
        assert spy.wait_for_end() is ended
    assert spy.named("close_ws") == []
    assert troubles == []


def test_a_long_websocket_needs_no_more_memory_than_a_short_one(upstream: Upstream, state: Path) -> None:
    import resource

    class Forgetful(Spy):
        def _note(self, name: str, *values: Any) -> int | None:
            return 1 if name == "message" else super()._note(name, *values)

    def talk_megabytes(port: int, count: int) -> int:
        asyncio.run(
            talk(port, f"/127.0.0.1:{upstream.port}/ws", [(2, b"y" * 500_000)] * count, b"\x03\xe8", keep=False)
        )
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with recording(Forgetful(), state) as (running, _):
        before = talk_megabytes(running.port, 5)
        after = talk_megabytes(running.port, 60)
    assert (after - before) / 1024 < 25, "60 MB went each way"


# Time


def test_the_first_event_is_not_buffered(upstream: Upstream, state: Path) -> None:
    """Only a buffered stream exceeds this bound; a benchmark measures the ratio to the bare proxy."""
    times = []
    with recording(Spy(), state) as (running, _):
        for _ in range(15):
            door = by_route(running, upstream)
            began = time.perf_counter()
            answer = door.send("POST", "/channel", b"{}")
            answer.read(10)
            times.append(time.perf_counter() - began)
            answer.close()
            door.connection.close()
    assert statistics.median(times) < 0.1


def test_an_internal_error_of_the_proxy_is_reported(upstream: Upstream, state: Path) -> None:
    import logging

    with recording(Spy(), state) as (_, troubles):
        logging.getLogger("mitmproxy.addonmanager").error("Addon error: it broke\nTraceback (most recent call last):")
    assert troubles == ["mitmproxy reports: Addon error: it broke"]


@pytest.mark.parametrize(
    ("status", "said"), [(401, ["127.0.0.1 answered 401: "]), (403, ["127.0.0.1 answered 403: "]), (404, [])]
)
def test_a_default_route_that_is_not_welcome_is_doubted(state: Path, status: int, said: list[str]) -> None:
    spy = Spy()
    answer = b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status
    with raw_upstream(answer) as port, recording(spy, state) as (running, troubles):
        running.addon.default_routes["127.0.0.1"] = "OPENAI_BASE_URL"
        assert Door(running.port, f"/127.0.0.1:{port}").send("GET", "/v1/models").status == status
        spy.wait_for_end()
    assert troubles == [start + default_route_warning("127.0.0.1", "OPENAI_BASE_URL") for start in said]


def test_a_default_route_that_cannot_be_reached_is_doubted(state: Path) -> None:
    spy = Spy()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with recording(spy, state) as (running, troubles):
            running.addon.default_routes["127.0.0.1"] = "OPENAI_BASE_URL"
            with pytest.raises((http.client.HTTPException, OSError)):
                Door(running.port, f"/127.0.0.1:{port}").send("GET", "/v1/models")
            spy.wait_for_end()
    assert troubles[0].startswith(f"127.0.0.1:{port} could not be reached: ")
    assert troubles[1:] == [default_route_warning("127.0.0.1", "OPENAI_BASE_URL")]
