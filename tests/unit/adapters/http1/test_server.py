"""One connection of the server: order, half-closed clients, upgrades, odd requests, idleness and its end."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, exchange, reply, session, stream, user
from tests.support.sockets import create, events, message, socket
from tests.support.talking import PATH, app_for, asked, head, served, talk

from wiretape.adapters.http1 import server
from wiretape.adapters.http1.send_playback import PlaybackSender
from wiretape.adapters.http1.server import Connections, HttpConnection
from wiretape.adapters.http1.websocket_frames import TEXT
from wiretape.adapters.replay_server.server import ReplayHandler
from wiretape.matching.playback import Playback
from wiretape.matching.values import Answer, LiveRequest, Outcome

TWO = (exchange(1, chat(user("a")), "one"), exchange(2, chat(user("b")), "two"))
LAST = orjson.dumps(reply("two"))
EVENTS = stream("data: 1\n\n", "data: 2\n\n")
PACED = exchange(1, chat(user("a")), stream("data: 1\n\n", "data: 2\n\n", ms=[0, 60]))
HANDSHAKE = head(
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
    method="GET",
    target="/api.example.com/v1/responses",
)
H2C = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAEAAEAAAAIAAAAB")


@pytest.fixture
def sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> list[Playback]:
    """The answers that were not sent in one piece."""
    parts: list[Playback] = []
    original = PlaybackSender.play

    async def play(sender: PlaybackSender, shown: Playback) -> None:
        parts.append(shown)
        await original(sender, shown)

    monkeypatch.setattr(PlaybackSender, "play", play)
    return parts


def framed(value: Any) -> bytes:
    """A text message of a client, masked with zeros."""
    data = orjson.dumps(value)
    assert 125 < len(data) < 1 << 16 or len(data) < 126
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([0x80 | TEXT]) + size + bytes(4) + data


def noting(seen: list[LiveRequest]) -> Any:
    """An interposer that notes each request."""

    async def look(request: LiveRequest, outcome: Outcome) -> Outcome:
        seen.append(request)
        return outcome

    return look


def bodies(data: bytes) -> list[Any]:
    return [orjson.loads(part.partition(b"\r\n\r\n")[2]) for part in data.split(b"HTTP/1.1 200 OK")[1:]]


# -- several requests on one connection -------------------------------------------------------------------------------


def test_pipelined_requests_get_their_answers_in_order_and_in_one_piece_each(sent_in_parts: list[Playback]) -> None:
    told: list[Outcome] = []
    data = talk(app_for(*TWO, on_outcome=told.append), asked("a") + asked("b"), until=LAST)
    assert bodies(data) == [reply("one"), reply("two")]
    assert [outcome.number for outcome in told] == [1, 2]
    assert sent_in_parts == []


def test_a_request_may_arrive_in_small_pieces() -> None:
    whole = asked("b")
    data = talk(app_for(*TWO), *(whole[at : at + 40] for at in range(0, len(whole), 40)), until=LAST)
    assert bodies(data) == [reply("two")]


def test_requests_may_be_cut_anywhere() -> None:
    first, second = asked("a"), asked("b")
    start = first.index(b"\r\n\r\n") + 4
    for cuts in ((start, start + 5, len(first) - 1), (start + 9,), (len(first) + 7,), (len(first) + len(second) - 3,)):
        both = first + second
        parts = [both[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(both)], strict=True)]
        assert bodies(talk(app_for(*TWO), *parts, until=LAST)) == [reply("one"), reply("two")], cuts


def test_a_request_behind_a_stream_waits_for_its_end() -> None:
    app = app_for(exchange(1, chat(user("a")), EVENTS), TWO[1])
    data = talk(app, asked("a") + asked("b"), until=LAST)
    assert data.index(b"data: 2") < data.index(b"0\r\n\r\n") < data.index(LAST)


def test_bytes_that_are_not_a_request_are_refused_after_the_answers_to_earlier_requests() -> None:
    data = talk(app_for(*TWO), asked("b") + b"no request at all\r\n\r\n")
    assert data.index(LAST) < data.index(b"HTTP/1.1 400")


def test_bytes_that_are_not_a_request_are_refused_after_a_paced_stream() -> None:
    data = talk(app_for(PACED, pace=1), asked("a") + b"no request at all\r\n\r\n")
    assert data.index(b"data: 2") < data.index(b"0\r\n\r\n") < data.index(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "request_bytes",
    [
        asked("b", "connection: close"),
        asked("b", "connection: close") + asked("a"),
        asked("b", version="1.0"),
        asked("b", "expect: 100-continue", "connection: close"),
    ],
)
def test_a_connection_is_closed_after_its_last_request(request_bytes: bytes) -> None:
    data = talk(app_for(*TWO), request_bytes)
    assert data.endswith(LAST)
    assert b"connection: close" in data


def test_a_short_stream_is_sent_in_one_piece_and_a_paced_one_in_parts(sent_in_parts: list[Playback]) -> None:
    data = talk(app_for(exchange(1, chat(user("a")), EVENTS)), asked("a"), until=b"0\r\n\r\n")
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.split(b"\r\n")
    assert rest == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
    assert sent_in_parts == []
    told: list[Outcome] = []
    data = talk(app_for(PACED, on_outcome=told.append, pace=0.001), asked("a"), until=b"0\r\n\r\n")
    assert data.count(b"data: ") == 2
    assert [outcome.number for outcome in told] == [1]
    assert len(sent_in_parts) == 1


def test_the_response_to_head_has_no_body() -> None:
    answers = [exchange(1, None, "one", url="https://api.example.com/v1/chat/completions", method="HEAD"), TWO[1]]
    request = head(method="HEAD")
    data = talk(app_for(*answers), request + asked("b"), until=LAST)
    assert data.count(b"HTTP/1.1 ") == 2
    assert b'"one"' not in data
    missed = talk(app_for(TWO[1]), head(method="HEAD", target="/elsewhere.example.com/x") + asked("b"), until=LAST)
    assert missed.startswith(b"HTTP/1.1 404 ")
    assert missed.partition(b"\r\n\r\n")[2].startswith(b"HTTP/1.1 200 OK")


class Noting(asyncio.Transport):
    """Counts the answers in each write."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self._order = order

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def write(self, data: Any) -> None:
        self._order.append(f"{bytes(data).count(b'HTTP/1.1 200')} written")

    def resume_reading(self) -> None:
        pass


def test_an_outcome_is_reported_after_its_answer_was_written() -> None:
    """A report may take as long as an answer."""
    order: list[str] = []

    async def talking() -> None:
        app = app_for(*TWO, on_outcome=lambda outcome: order.append(f"{outcome.number} told"))
        connection = HttpConnection(app, Connections())
        connection.connection_made(Noting(order))
        connection.data_received(asked("a") + asked("b"))
        await asyncio.sleep(0)

    asyncio.run(talking())
    assert order == ["2 written", "1 told", "2 told"]


def test_nothing_is_answered_ahead_of_a_client_that_does_not_read() -> None:
    told: list[Outcome] = []
    count, long = 600, "x" * 60_000
    app = ReplayHandler(session(exchange(1, chat(user("a")), long), repeat=True), on_outcome=told.append)

    async def talking() -> int:
        async with served(app) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(asked("a") * count)
            seen = -1
            while seen != len(told):  # until it goes on no more
                seen = len(told)
                await asyncio.sleep(0.1)
            read = 0
            while len(told) < count or read < count * len(long):
                read += len(await reader.read(1 << 20))
            writer.close()
        return seen

    assert asyncio.run(asyncio.wait_for(talking(), 60)) < count
    assert len(told) == count


def test_a_request_whose_client_goes_away_in_the_middle_of_its_body_is_ignored() -> None:
    told: list[Outcome] = []

    async def talking() -> None:
        async with served(app_for(*TWO, on_outcome=told.append)) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("a")[:-5])
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("b"))
            while not told:
                await asyncio.sleep(0.01)
            writer.close()
            await writer.wait_closed()

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [outcome.exchange.number for outcome in told if isinstance(outcome, Answer)] == [2]


def test_a_handler_that_fails_ends_its_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise RuntimeError("a fault of its own")

    assert talk(lambda request, connection: fails(), asked("a")) == b""
    assert "a fault of its own" in caplog.text


# -- half-closed clients ----------------------------------------------------------------------------------------------


def test_a_half_closed_client_gets_all_of_a_stream_that_is_larger_than_the_buffers() -> None:
    frames = [f"data: {number} {'x' * 8000}\n\n" for number in range(400)]
    data = talk(app_for(exchange(1, chat(user("a")), stream(*frames))), asked("a"), half_closed=True)
    assert data.count(b"data: ") == 400
    assert data.endswith(b"0\r\n\r\n")


def test_a_half_closed_client_gets_a_paced_stream_and_the_answer_behind_it() -> None:
    data = talk(app_for(PACED, TWO[1], pace=1), asked("a") + asked("b"), half_closed=True)
    assert data.index(b"data: 1") < data.index(b"data: 2") < data.index(b"0\r\n\r\n") < data.index(LAST)
    assert data.endswith(LAST)


@pytest.mark.parametrize("begun", [0, 10, 150, -4], ids=["nothing", "line", "head", "body"])
def test_an_incomplete_request_of_a_half_closed_client_is_ignored(begun: int) -> None:
    told: list[Outcome] = []
    app = app_for(PACED, TWO[1], pace=1, on_outcome=told.append)
    data = talk(app, asked("a") + asked("b")[:begun], half_closed=True)
    assert data.endswith(b"data: 2\n\n\r\n0\r\n\r\n")
    assert [outcome.number for outcome in told] == [1]


@pytest.mark.parametrize("sent", [b"", asked("a")[:-4], asked("a")[:20]], ids=["nothing", "body", "line"])
def test_a_connection_without_a_complete_request_is_closed_with_the_client_s_half(sent: bytes) -> None:
    assert talk(app_for(*TWO), sent, half_closed=True) == b""


def test_a_client_that_has_gone_is_noticed_at_a_write() -> None:
    frames = [f"data: {number}\n\n" for number in range(3000)]
    recorded = exchange(1, chat(user("a")), stream(*frames, ms=range(0, 300_000_000, 100_000)))
    told: list[Outcome] = []
    app = app_for(recorded, pace=0.0002, on_outcome=told.append)  # 20 ms between two, a minute in all

    async def talking() -> None:
        async with served(app) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("a"))
            await reader.readuntil(b"data: 0")
            writer.close()
            while not told:
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [outcome.number for outcome in told] == [1]


def test_a_client_that_goes_ends_all_of_its_requests() -> None:
    told: list[Outcome] = []
    stalled = exchange(1, chat(user("a")), stream("data: 1\n\n", "data: 2\n\n", ms=[0, 600_000]))
    app = app_for(stalled, TWO[1], pace=1, on_outcome=told.append)

    async def talking() -> None:
        async with served(app) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("a"))
            await reader.readuntil(b"data: 1")
            writer.write(asked("b"))
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.transport.abort()
            while not told:
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [outcome.number for outcome in told] == [1]


# -- upgrades ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [[], [5], [len(HANDSHAKE)], [len(HANDSHAKE) + 3]], ids=str)
def test_frames_that_arrive_with_a_handshake_are_read(pieces: list[int]) -> None:
    app = app_for(socket([create("hi"), *events("r1", message("one"))]))
    whole = HANDSHAKE + framed(create("hi")[1])
    parts = [whole[start:end] for start, end in zip([0, *pieces], [*pieces, len(whole)], strict=True)]
    data = talk(app, *parts, until=b'"type":"response.completed"')
    assert data.startswith(b"HTTP/1.1 101 ")
    assert b'"delta":"one"' in data


def test_a_refused_handshake_ends_its_connection() -> None:
    data = talk(app_for(*TWO), HANDSHAKE + framed(create("hi")[1]))
    assert data.startswith(b"HTTP/1.1 404 ")
    assert data.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("interposed", [False, True])
def test_an_offer_of_http_2_is_declined_and_the_body_of_the_request_is_read(interposed: bool) -> None:
    """Java's own client offers it with every request to http://."""
    seen: list[LiveRequest] = []
    app = app_for(*TWO, interpose=noting(seen) if interposed else None)
    data = talk(app, asked("a", *H2C) + asked("b", *H2C), until=LAST)
    assert data.count(b"HTTP/1.1 200 OK") == 2
    assert b"101" not in data.split(b"\r\n")[0]
    assert [orjson.loads(one.body) for one in seen] == ([chat(user("a")), chat(user("b"))] if interposed else [])


# -- requests ---------------------------------------------------------------------------------------------------------


def test_a_target_with_a_host_finds_the_answers_of_that_host() -> None:
    here, there = (
        exchange(number, chat(user("a")), text, url=f"https://{host}/v1/chat/completions")
        for number, text, host in ((1, "one", "one.example.com"), (2, "two", "two.example.com"))
    )
    for scheme in ("http", "https"):
        target = f"{scheme}://two.example.com/v1/chat/completions"
        assert talk(app_for(here, there), asked("a", target=target), until=LAST).startswith(b"HTTP/1.1 200 OK")


def test_a_target_with_the_server_s_own_address_is_a_path() -> None:
    seen: list[LiveRequest] = []
    app = app_for(*TWO, interpose=noting(seen))

    async def talking() -> None:
        async with served(app) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("b", target=f"http://localhost:{port}{PATH}?x=1"))
            await reader.readuntil(b"HTTP/1.1 ")
            writer.close()

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [one.url for one in seen] == ["https://api.example.com/v1/chat/completions?x=1"]


def test_trailers_are_not_headers() -> None:
    seen: list[LiveRequest] = []
    body = orjson.dumps(chat(user("b")))
    chunks = b"%x;x=1\r\n%b\r\n%x\r\n%b\r\n0\r\nx-sum: 1\r\n\r\n" % (9, body[:9], len(body) - 9, body[9:])
    app = app_for(*TWO, interpose=noting(seen))
    talk(app, head("transfer-encoding: chunked", "trailer: x-sum") + chunks, until=LAST)
    assert orjson.loads(seen[0].body) == chat(user("b"))
    assert "x-sum" not in seen[0].headers


@pytest.mark.parametrize(("version", "told"), [("1.0", 0), ("1.1", 1)])
def test_only_clients_of_http_1_1_get_100_continue(version: str, told: int) -> None:
    whole = asked("b", "expect: 100-continue", "connection: close", version=version)
    start = whole.index(b"\r\n\r\n") + 4
    data = talk(app_for(*TWO), whole[:start], whole[start:])
    assert data.count(b"HTTP/1.1 100 Continue\r\n\r\n") == told
    assert data.endswith(LAST)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + bytes(190), b"speaks plain HTTP on this port: use http://"),
        (b"CONNECT api.example.com:443 HTTP/1.1\r\nhost: x\r\n\r\n", b"is not a proxy on this port"),
        (b"GET http://[bad/x HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 request: invalid url b'http://[bad/x'"),
        (b"FOO / HTTP/1.1\r\nhost: x\r\n\r\n", b"could not read this as an HTTP/1.1 request: Invalid method"),
        (b"hello\r\n\r\n", b"could not read this as an HTTP/1.1 request: Invalid method"),
    ],
)
def test_bytes_that_are_not_a_request_to_this_port_are_refused_with_the_reason(sent: bytes, why: bytes) -> None:
    data = talk(app_for(*TWO), sent)
    assert data.startswith(b"HTTP/1.1 400 ")
    assert why in data


# -- the end ----------------------------------------------------------------------------------------------------------


def test_an_idle_connection_is_closed_and_one_in_the_middle_of_a_request_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert server.IDLE_S >= 300  # a client whose next request is on its way would lose it
    monkeypatch.setattr(server, "IDLE_S", 0.05)

    async def talking() -> None:
        async with served(app_for(*TWO)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("a")[:-5])
            await asyncio.sleep(0.2)
            writer.write(asked("a")[-5:])
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
            await asyncio.wait_for(reader.read(), 10)  # until the server closes it
            writer.close()

    asyncio.run(talking())


def test_a_stopping_server_ends_the_answer_that_it_sends_and_closes_idle_connections() -> None:
    async def talking() -> bytes:
        async with served(app_for(PACED, TWO[1], pace=1)) as port:
            idle, idle_writer = await asyncio.open_connection("127.0.0.1", port)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("a") + asked("b"))
            await reader.readuntil(b"data: 1")
        assert await idle.read() == b""
        rest = await reader.read()
        for one in (idle_writer, writer):
            one.close()
        return rest

    rest = asyncio.run(asyncio.wait_for(talking(), 30))
    assert b"data: 2" in rest
    assert rest.endswith(b"0\r\n\r\n")


def test_a_stopping_server_cuts_an_answer_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SHUTDOWN_S", 0.05)
    told: list[Outcome] = []
    stalled = exchange(1, chat(user("a")), stream("data: 1\n\n", "data: 2\n\n", ms=[0, 600_000]))

    async def talking() -> None:
        async with served(app_for(stalled, pace=1, on_outcome=told.append)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked("a"))
            await reader.readuntil(b"data: 1")
        writer.close()

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [outcome.number for outcome in told] == [1]
