"""The ASGI app: what it asks the session, what it sends, and when it stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import MutableMapping
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, exchange, reply, response, session, stream, user

from wiretape.adapters.http1 import sending
from wiretape.adapters.http1.sending import TRANSPORT
from wiretape.adapters.replay_server.listening import listen
from wiretape.adapters.replay_server.server import ReplayApp
from wiretape.errors import UsageError
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Outcome
from wiretape.model.http import Ended, Exchange

ROUTE = "/api.example.com/v1/chat/completions"
FRAMES = ("data: 1\n\n", "data: 2\n\n", "data: 3\n\n")


class Transport:
    closed = False

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


class Client:
    """Speaks ASGI to the app. `hangs_up_after`: seconds until it goes away."""

    def __init__(
        self, body: Any, path: str = "/api.example.com/v1/chat/completions", hangs_up_after: float = 60
    ) -> None:
        self.sent: list[MutableMapping[str, Any]] = []
        self.transport = Transport()
        self._hangs_up_after = hangs_up_after
        data = orjson.dumps(body)
        half = len(data) // 2
        self._parts = [
            {"type": "http.request", "body": data[:half], "more_body": True},
            {"type": "http.request", "body": data[half:], "more_body": False},
        ]
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            TRANSPORT: self.transport,
        }

    async def receive(self) -> MutableMapping[str, Any]:
        if self._parts:
            return self._parts.pop(0)
        await asyncio.sleep(self._hangs_up_after)
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)

    def talk_to(self, app: ReplayApp) -> list[MutableMapping[str, Any]]:
        asyncio.run(app(self.scope, self.receive, self.send))
        return self.sent


def app_for(*recorded: Exchange, pace: float = 0, told: list[Outcome] | None = None) -> tuple[ReplayApp, ReplaySession]:
    replay = session(*recorded)
    return ReplayApp(replay, pace, on_outcome=told.append if told is not None else None), replay


def test_a_plain_answer_is_sent_whole_with_its_length() -> None:
    told: list[Outcome] = []
    app, _ = app_for(exchange(1, chat(user("hi")), "one"), told=told)
    start, body = Client(chat(user("hi"))).talk_to(app)
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-length"] == str(len(body["body"])).encode()
    assert orjson.loads(body["body"]) == reply("one")
    assert [type(outcome).__name__ for outcome in told] == ["Answer"]


@pytest.mark.parametrize("path", ["/api.example.com/v1/chat/completions", "/v1/chat/completions", "/chat/completions"])
def test_a_path_with_or_without_a_host_finds_its_answer(path: str) -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), "one"))
    assert Client(chat(user("hi")), path).talk_to(app)[0]["status"] == 200


def test_each_event_is_a_chunk_of_its_own() -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), stream(*FRAMES)))
    _, *chunks = Client(chat(user("hi"))).talk_to(app)
    assert [chunk["body"].decode() for chunk in chunks] == [*FRAMES, ""]
    assert [chunk["more_body"] for chunk in chunks] == [True, True, True, False]


def test_recorded_pauses_are_kept_only_when_asked_for() -> None:
    recorded = exchange(1, chat(user("hi")), stream(*FRAMES, ms=[0, 100, 200]))
    for pace, least, most in [(0, 0, 0.15), (1, 0.2, 2)]:
        app, _ = app_for(recorded, pace=pace)
        start = time.monotonic()
        Client(chat(user("hi"))).talk_to(app)
        assert least <= time.monotonic() - start < most


def test_a_paced_answer_stops_when_the_client_goes() -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), stream(*FRAMES, ms=[0, 60_000, 120_000])), pace=1)
    client = Client(chat(user("hi")), hangs_up_after=0.05)
    start = time.monotonic()
    client.talk_to(app)
    assert time.monotonic() - start < 5
    assert [message["body"] for message in client.sent[1:]] == [b"data: 1\n\n"]


def test_a_cut_stream_is_cut_without_its_end() -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), stream(*FRAMES[:2]), ended=Ended.UPSTREAM_CLOSED))
    client = Client(chat(user("hi")))
    assert [chunk["more_body"] for chunk in client.talk_to(app)[1:]] == [True, True]
    assert client.transport.closed


def test_an_unreachable_upstream_closes_the_connection_without_an_answer() -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), None, ended=Ended.UPSTREAM_UNREACHABLE))
    client = Client(chat(user("hi")))
    assert client.talk_to(app) == []
    assert client.transport.closed


def test_a_client_that_hung_up_in_the_recording_is_given_time_to_do_so(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = exchange(1, chat(user("hi")), stream(*FRAMES[:1]), ended=Ended.CLIENT_CLOSED)
    app, _ = app_for(recorded)
    gone = Client(chat(user("hi")), hangs_up_after=0.01)
    start = time.monotonic()
    gone.talk_to(app)
    assert time.monotonic() - start < sending.LINGER_SECONDS
    monkeypatch.setattr(sending, "LINGER_SECONDS", 0.05)
    app, _ = app_for(recorded)
    stays = Client(chat(user("hi")))
    stays.talk_to(app)
    assert stays.transport.closed


def test_a_client_that_goes_before_its_request_is_complete_asks_nothing() -> None:
    app, replay = app_for(exchange(1, chat(user("hi")), "one"))
    client = Client(chat(user("hi")), hangs_up_after=0)
    client._parts.pop()
    assert client.talk_to(app) == []
    assert replay.report().played == ()


def test_a_429_keeps_its_status_and_retry_after() -> None:
    limited = response({"error": {"message": "slow down"}}, status=429, retry_after="7")
    app, _ = app_for(exchange(1, chat(user("hi")), limited))
    start, _ = Client(chat(user("hi"))).talk_to(app)
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (429, b"7")


def test_a_port_in_use_is_named() -> None:
    with listen() as taken, pytest.raises(UsageError, match=f"port {taken.getsockname()[1]} on .* in use: .*--port"):
        listen(taken.getsockname()[1])
