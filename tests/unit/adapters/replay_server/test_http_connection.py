"""What uvicorn leaves out of a connection: half-closed clients, declined upgrades, frames behind a handshake, hosts."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, exchange, reply, session, stream, user
from tests.support.sockets import create, events, message, socket
from tests.support.talking import PATH, app_for, asked, head, talk

from wiretape.adapters.http1.ws_frames import TEXT
from wiretape.adapters.replay_server.listening import _config, listen, serve
from wiretape.adapters.replay_server.server import ReplayApp
from wiretape.matching.values import LiveRequest, Outcome

TWO = (exchange(1, chat(user("a")), "one"), exchange(2, chat(user("b")), "two"))
LAST = orjson.dumps(reply("two"))
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


def framed(value: Any) -> bytes:
    """A text message of a client, masked with zeros."""
    data = orjson.dumps(value)
    assert 125 < len(data) < 1 << 16 or len(data) < 126
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([0x80 | TEXT]) + size + bytes(4) + data


def looked_at(seen: list[LiveRequest]) -> Any:
    """Takes every request the long way, through the parser."""

    async def look(request: LiveRequest, outcome: Outcome) -> Outcome:
        seen.append(request)
        return outcome

    return look


# -- clients that say no more -----------------------------------------------------------------------------------------


def test_a_client_that_says_no_more_hears_all_of_a_stream_that_is_larger_than_what_waits_for_it() -> None:
    frames = [f"data: {number} {'x' * 8000}\n\n" for number in range(400)]
    data = talk(app_for(exchange(1, chat(user("a")), stream(*frames))), asked("a"), says_no_more=True)
    assert data.count(b"data: ") == 400
    assert data.endswith(b"0\r\n\r\n")


def test_a_client_that_says_no_more_hears_a_paced_stream_and_the_answer_behind_it() -> None:
    data = talk(app_for(PACED, TWO[1], pace=1), asked("a") + asked("b"), says_no_more=True)
    assert data.index(b"data: 1") < data.index(b"data: 2") < data.index(b"0\r\n\r\n") < data.index(LAST)
    assert data.endswith(LAST)


@pytest.mark.parametrize("begun", [0, 10, 150, -4], ids=["nothing", "line", "head", "body"])
def test_what_a_client_that_says_no_more_has_only_begun_is_no_request(begun: int) -> None:
    told: list[Outcome] = []
    app = app_for(PACED, TWO[1], pace=1, on_outcome=told.append)
    data = talk(app, asked("a") + asked("b")[:begun], says_no_more=True)
    assert data.endswith(b"data: 2\n\n\r\n0\r\n\r\n")
    assert [outcome.number for outcome in told] == [1]


@pytest.mark.parametrize("sent", [b"", asked("a")[:-4], asked("a")[:20]], ids=["nothing", "body", "line"])
def test_a_connection_on_which_nothing_was_asked_is_closed_with_the_client_s_half(sent: bytes) -> None:
    assert talk(app_for(*TWO), sent, says_no_more=True) == b""


def test_a_client_that_has_gone_is_noticed_when_something_is_written_to_it() -> None:
    frames = [f"data: {number}\n\n" for number in range(3000)]
    recorded = exchange(1, chat(user("a")), stream(*frames, ms=range(0, 300_000_000, 100_000)))
    told: list[Outcome] = []
    app = app_for(recorded, pace=0.0002, on_outcome=told.append)  # 20 ms between two, a minute in all

    async def talking() -> None:
        listening, stop = listen(), asyncio.Event()
        serving = asyncio.ensure_future(serve(app, listening, stop))
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1])
        writer.write(asked("a"))
        await reader.readuntil(b"data: 0")
        writer.close()
        while not told:
            await asyncio.sleep(0.005)
        stop.set()
        await serving

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [outcome.number for outcome in told] == [1]


def test_a_client_that_goes_with_requests_behind_the_first_ends_all_of_them() -> None:
    """uvicorn tells only the last one."""
    told: list[Outcome] = []
    stalled = exchange(1, chat(user("a")), stream("data: 1\n\n", "data: 2\n\n", ms=[0, 600_000]))
    app = app_for(stalled, TWO[1], pace=1, on_outcome=told.append)

    async def talking() -> None:
        listening, stop = listen(), asyncio.Event()
        serving = asyncio.ensure_future(serve(app, listening, stop))
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1])
        writer.write(asked("a"))
        await reader.readuntil(b"data: 1")
        writer.write(asked("b"))
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.transport.abort()
        while not told:
            await asyncio.sleep(0.005)
        stop.set()
        await serving

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [outcome.number for outcome in told] == [1]


# -- upgrades ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [[], [5], [len(HANDSHAKE)], [len(HANDSHAKE) + 3]], ids=str)
def test_frames_that_come_with_a_handshake_are_heard(pieces: list[int]) -> None:
    app = app_for(socket([create("hi"), *events("r1", message("one"))]))
    whole = HANDSHAKE + framed(create("hi")[1])
    parts = [whole[start:end] for start, end in zip([0, *pieces], [*pieces, len(whole)], strict=True)]
    data = talk(app, *parts, until=b'"type":"response.completed"')
    assert data.startswith(b"HTTP/1.1 101 ")
    assert b'"delta":"one"' in data


def test_a_handshake_that_is_refused_ends_its_connection_whatever_came_behind_it() -> None:
    data = talk(app_for(*TWO), HANDSHAKE + framed(create("hi")[1]))
    assert data.startswith(b"HTTP/1.1 404 ")
    assert data.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("interposed", [False, True])
def test_an_offer_of_http_2_is_declined_and_the_request_s_body_is_read(interposed: bool) -> None:
    """Java's own client offers it with every request to http://."""
    seen: list[LiveRequest] = []
    app = app_for(*TWO, interpose=looked_at(seen) if interposed else None)
    data = talk(app, asked("a", *H2C) + asked("b", *H2C), until=LAST)
    assert data.count(b"HTTP/1.1 200 OK") == 2
    assert b"101" not in data.split(b"\r\n")[0]
    assert [orjson.loads(one.body) for one in seen] == ([chat(user("a")), chat(user("b"))] if interposed else [])


def test_a_declined_upgrade_keeps_the_method_the_parser_does_not_know() -> None:
    told: list[Outcome] = []
    talk(app_for(*TWO, on_outcome=told.append), asked("a", *H2C, method="FROBNICATE"), until=b"\r\n\r\n")
    assert "FROBNICATE" in str(told[0])


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
    app = app_for(*TWO, interpose=looked_at(seen))

    async def talking() -> None:
        listening, stop = listen(), asyncio.Event()
        serving = asyncio.ensure_future(serve(app, listening, stop))
        port = listening.getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asked("b", target=f"http://localhost:{port}{PATH}?x=1"))
        await reader.readuntil(b"HTTP/1.1 ")
        writer.close()
        stop.set()
        await serving

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [one.url for one in seen] == ["https://api.example.com/v1/chat/completions?x=1"]


def test_trailers_are_no_headers() -> None:
    seen: list[LiveRequest] = []
    body = orjson.dumps(chat(user("b")))
    chunks = b"%x;x=1\r\n%b\r\n%x\r\n%b\r\n0\r\nx-sum: 1\r\n\r\n" % (9, body[:9], len(body) - 9, body[9:])
    app = app_for(*TWO, interpose=looked_at(seen))
    talk(app, head("transfer-encoding: chunked", "trailer: x-sum") + chunks, until=LAST)
    assert orjson.loads(seen[0].body) == chat(user("b"))
    assert "x-sum" not in seen[0].headers


@pytest.mark.parametrize(("version", "told"), [("1.0", 0), ("1.1", 1)])
def test_only_clients_of_http_1_1_are_told_to_go_on(version: str, told: int) -> None:
    whole = asked("b", "expect: 100-continue", "connection: close", version=version)
    start = whole.index(b"\r\n\r\n") + 4
    data = talk(app_for(*TWO), whole[:start], whole[start:])
    assert data.count(b"HTTP/1.1 100 Continue\r\n\r\n") == told
    assert data.endswith(LAST)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + bytes(190), b"speaks plain HTTP on this port: take http://"),
        (b"CONNECT api.example.com:443 HTTP/1.1\r\nhost: x\r\n\r\n", b"is no proxy on this port"),
        (b"GET http://[bad/x HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 request: invalid url b'http://[bad/x'"),
        (b"hello\r\n\r\n", b"could not read this as an HTTP/1.1 request: Invalid method"),
    ],
)
def test_who_does_not_speak_http_to_the_server_is_told_so(sent: bytes, why: bytes) -> None:
    data = talk(app_for(*TWO), sent)
    assert data.startswith(b"HTTP/1.1 400 ")
    assert why in data


def test_no_connection_is_closed_as_idle_between_two_calls_of_an_agent() -> None:
    """A client whose next request is on its way then loses it."""
    assert _config(ReplayApp(session(*TWO))).timeout_keep_alive >= 300
