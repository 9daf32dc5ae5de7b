"""One connection of the replay server: what is answered at once, what takes uvicorn's way, and that both look alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, exchange, reply, session, stream, user
from tests.support.talking import app_for, asked, talk
from uvicorn.server import ServerState

from wiretape.adapters.replay_server.listening import _config, listen, serve
from wiretape.adapters.replay_server.replay_protocol import ReplayProtocol
from wiretape.adapters.replay_server.server import ReplayApp
from wiretape.matching.values import Answer, LiveRequest, Outcome

EVENTS = stream("data: 1\n\n", "data: 2\n\n")


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests that took the long way, as a task each."""
    long: list[str] = []
    original = ReplayApp.__call__

    async def called(app: ReplayApp, scope: Any, receive: Any, send: Any) -> None:
        long.append(scope["method"])
        await original(app, scope, receive, send)

    monkeypatch.setattr(ReplayApp, "__call__", called)
    yield long


def bodies(data: bytes) -> list[Any]:
    return [orjson.loads(part.partition(b"\r\n\r\n")[2]) for part in data.split(b"HTTP/1.1 200 OK")[1:]]


TWO = (exchange(1, chat(user("a")), "one"), exchange(2, chat(user("b")), "two"))
LAST = orjson.dumps(reply("two"))


def test_pipelined_requests_get_their_answers_in_order_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Outcome] = []
    with noted(monkeypatch) as long:
        data = talk(app_for(*TWO, on_outcome=told.append), asked("a") + asked("b"), until=LAST)
    assert bodies(data) == [reply("one"), reply("two")]
    assert [outcome.number for outcome in told] == [1, 2]
    assert long == []


def test_a_request_may_come_byte_by_byte() -> None:
    whole = asked("b")
    data = talk(app_for(*TWO), *(whole[at : at + 40] for at in range(0, len(whole), 40)), until=LAST)
    assert bodies(data) == [reply("two")]


def test_a_body_in_pieces_is_waited_for_and_what_comes_behind_it_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = asked("a"), asked("b")
    start = first.index(b"\r\n\r\n") + 4
    for cuts in ((start, start + 5, len(first) - 1), (start + 9,), (len(first) + 7,), (len(first) + len(second) - 3,)):
        both = first + second
        ends = [*cuts, len(both)]
        with noted(monkeypatch) as long:
            parts = [both[begin:end] for begin, end in zip([0, *cuts], ends, strict=True)]
            data = talk(app_for(*TWO), *parts, until=LAST)
        assert bodies(data) == [reply("one"), reply("two")], cuts
        assert len(long) <= (1 if cuts == (len(first) + 7,) else 0)  # the second's head came in two parts


def test_a_client_that_goes_away_in_the_middle_of_a_body_is_no_request() -> None:
    told: list[Outcome] = []

    async def talking() -> None:
        listening, stop = listen(), asyncio.Event()
        serving = asyncio.ensure_future(serve(app_for(*TWO, on_outcome=told.append), listening, stop))
        _, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1])
        writer.write(asked("a")[:-5])
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        _, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1])
        writer.write(asked("b"))
        while not told:
            await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        stop.set()
        await serving

    asyncio.run(asyncio.wait_for(talking(), 30))
    assert [outcome.exchange.number for outcome in told if isinstance(outcome, Answer)] == [2]


def test_what_is_no_request_is_refused_behind_the_answers_to_what_was_one() -> None:
    data = talk(app_for(*TWO), asked("b") + b"no request at all\r\n\r\n")
    assert data.index(LAST) < data.index(b"HTTP/1.1 400")


def test_a_request_behind_a_stream_waits_for_its_end() -> None:
    app = app_for(exchange(1, chat(user("a")), EVENTS), TWO[1])
    data = talk(app, asked("a") + asked("b"), until=LAST)
    assert data.index(b"data: 2") < data.index(b"0\r\n\r\n") < data.index(LAST)


@pytest.mark.parametrize(
    "request_bytes",
    [
        asked("b", "connection: close"),
        asked("b", version="1.0"),
        asked("b", "expect: 100-continue", "connection: close"),
    ],
)
def test_a_connection_that_is_to_be_closed_is_closed(request_bytes: bytes) -> None:
    data = talk(app_for(*TWO), request_bytes)
    assert data.endswith(LAST)
    assert b"connection: close" in data


def test_an_answer_that_somebody_looks_at_first_takes_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[LiveRequest] = []

    async def look(request: LiveRequest, outcome: Outcome) -> Outcome:
        seen.append(request)
        return outcome

    with noted(monkeypatch) as long:
        data = talk(app_for(*TWO, interpose=look), asked("b"), until=LAST)
    assert bodies(data) == [reply("two")]
    assert long == ["POST"]
    assert [orjson.loads(request.body) for request in seen] == [chat(user("b"))]


def test_a_short_stream_is_sent_at_once_each_event_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    with noted(monkeypatch) as long:
        data = talk(app_for(exchange(1, chat(user("a")), EVENTS)), asked("a"), until=b"0\r\n\r\n")
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.split(b"\r\n")
    assert rest == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
    assert long == []


def test_the_session_is_asked_once_where_the_answer_takes_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Outcome] = []
    app = app_for(exchange(1, chat(user("a")), EVENTS), on_outcome=told.append, pace=0.001)
    with noted(monkeypatch) as long:
        data = talk(app, asked("a"), until=b"0\r\n\r\n")
    assert data.count(b"data: ") == 2
    assert [outcome.number for outcome in told] == [1]
    assert long == ["POST"]


def test_a_client_in_the_middle_of_a_request_is_not_idle() -> None:
    async def talking() -> bool:
        config = _config(app_for(*TWO))
        config.load()
        protocol = ReplayProtocol(config=config, server_state=ServerState(), app_state={})
        protocol.connection_made(asyncio.Transport())
        idle = asyncio.get_running_loop().call_later(60, protocol.timeout_keep_alive_handler)
        protocol.timeout_keep_alive_task = idle  # as after an answer
        protocol.data_received(asked("a")[:-5])
        return idle.cancelled()

    assert asyncio.run(talking())


def test_what_became_of_a_request_is_told_when_its_answer_is_on_its_way() -> None:
    """To tell it may take as long as to answer it."""
    order: list[str] = []

    class Noting(asyncio.Transport):
        def is_closing(self) -> bool:
            return False

        def write(self, data: Any) -> None:
            order.append(f"{bytes(data).count(b'HTTP/1.1 200')} written")

    async def talking() -> None:
        config = _config(app_for(*TWO, on_outcome=lambda outcome: order.append(f"{outcome.number} told")))
        config.load()
        protocol = ReplayProtocol(config=config, server_state=ServerState(), app_state={})
        protocol.connection_made(Noting())
        protocol.data_received(asked("a") + asked("b"))
        await asyncio.sleep(0)

    asyncio.run(talking())
    assert order == ["2 written", "1 told", "2 told"]


def test_a_method_of_any_name_is_passed_on() -> None:
    told: list[Outcome] = []
    odd = asked("b", method="FROBNICATE")
    talk(app_for(*TWO, on_outcome=told.append), odd, until=b"\r\n\r\n")
    assert "FROBNICATE" in str(told[0])


def test_nothing_is_answered_ahead_of_a_client_that_does_not_read() -> None:
    told: list[Outcome] = []
    count, long = 600, "x" * 60_000
    app = ReplayApp(session(exchange(1, chat(user("a")), long), repeat=True), on_outcome=told.append)

    async def talking() -> int:
        listening, stop = listen(), asyncio.Event()
        serving = asyncio.ensure_future(serve(app, listening, stop))
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1], limit=1024)
        writer.write(asked("a") * count)
        seen = -1
        while seen != len(told):  # until it goes on no more
            seen = len(told)
            await asyncio.sleep(0.1)
        read = 0
        while len(told) < count or read < count * len(long):
            read += len(await reader.read(1 << 20))
        writer.close()
        stop.set()
        await serving
        return seen

    assert asyncio.run(asyncio.wait_for(talking(), 60)) < count
    assert len(told) == count
