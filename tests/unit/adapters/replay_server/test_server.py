"""The handler of the replay server: what it sends, and when it stops."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, exchange, reply, response, session, stream, user

from wiretape.adapters.http1 import send_playback
from wiretape.adapters.http1.server import Connections, HttpConnection, HttpRequest, listen
from wiretape.adapters.replay_server.server import ReplayHandler
from wiretape.errors import UsageError
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Outcome
from wiretape.model.http import Ended, Exchange, Headers

ROUTE = "/api.example.com/v1/chat/completions"
FRAMES = ("data: 1\n\n", "data: 2\n\n", "data: 3\n\n")


class Client(asyncio.Transport):
    """A connection to the handler. `hangs_up_after`: seconds until it disconnects."""

    def __init__(self, body: Any, path: str = ROUTE, hangs_up_after: float = 60) -> None:
        super().__init__()
        self.chunks: list[bytes] = []  # as they were written, the head first
        self.closed = False
        self._hangs_up_after = hangs_up_after
        content = Headers([("content-type", "application/json")])
        self._request = HttpRequest("POST", path, content, orjson.dumps(body), "1.1", True, False)

    def write(self, data: Any) -> None:
        self.chunks.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def talk_to(self, handler: ReplayHandler) -> bytes:
        """Send the request; return all that was written."""

        async def talking() -> None:
            connection = HttpConnection(handler, Connections())
            connection.transport = self
            asyncio.get_running_loop().call_later(self._hangs_up_after, connection.half_closed.set)
            asyncio.get_running_loop().call_later(self._hangs_up_after, connection.gone.set)
            answering = handler(self._request, connection)
            if answering is not None:
                await answering
            await asyncio.sleep(0)

        asyncio.run(talking())
        return b"".join(self.chunks)


def status_of(data: bytes) -> int:
    return int(data.split(b" ", 2)[1])


def body_of(data: bytes) -> Any:
    return orjson.loads(data.partition(b"\r\n\r\n")[2])


def app_for(
    *recorded: Exchange, pace: float = 0, told: list[Outcome] | None = None
) -> tuple[ReplayHandler, ReplaySession]:
    replay = session(*recorded)
    return ReplayHandler(replay, pace, on_outcome=told.append if told is not None else None), replay


def test_a_plain_answer_is_sent_whole_with_its_length() -> None:
    told: list[Outcome] = []
    app, _ = app_for(exchange(1, chat(user("hi")), "one"), told=told)
    sent = Client(chat(user("hi"))).talk_to(app)
    assert status_of(sent) == 200
    assert f"content-length: {len(orjson.dumps(reply('one')))}\r\n".encode() in sent
    assert body_of(sent) == reply("one")
    assert [type(outcome).__name__ for outcome in told] == ["Answer"]


@pytest.mark.parametrize("path", ["/api.example.com/v1/chat/completions", "/v1/chat/completions", "/chat/completions"])
def test_a_path_with_or_without_a_host_finds_its_answer(path: str) -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), "one"))
    assert status_of(Client(chat(user("hi")), path).talk_to(app)) == 200


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
    sent = client.talk_to(app)
    assert time.monotonic() - start < 5
    assert sent.count(b"data: ") == 1


def test_a_cut_stream_is_cut_without_its_end() -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), stream(*FRAMES[:2]), ended=Ended.UPSTREAM_CLOSED))
    client = Client(chat(user("hi")))
    assert client.talk_to(app).endswith(b"9\r\ndata: 2\n\n\r\n")
    assert client.closed


def test_an_unreachable_upstream_closes_the_connection_without_an_answer() -> None:
    app, _ = app_for(exchange(1, chat(user("hi")), None, ended=Ended.UPSTREAM_UNREACHABLE))
    client = Client(chat(user("hi")))
    assert client.talk_to(app) == b""
    assert client.closed


def test_a_client_that_hung_up_in_the_recording_is_given_time_to_do_so(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = exchange(1, chat(user("hi")), stream(*FRAMES[:1]), ended=Ended.CLIENT_CLOSED)
    app, _ = app_for(recorded)
    gone = Client(chat(user("hi")), hangs_up_after=0.01)
    start = time.monotonic()
    gone.talk_to(app)
    assert time.monotonic() - start < send_playback.LINGER_SECONDS
    monkeypatch.setattr(send_playback, "LINGER_SECONDS", 0.05)
    app, _ = app_for(recorded)
    stays = Client(chat(user("hi")))
    stays.talk_to(app)
    assert stays.closed


def test_a_429_keeps_its_status_and_retry_after() -> None:
    limited = response({"error": {"message": "slow down"}}, status=429, retry_after="7")
    app, _ = app_for(exchange(1, chat(user("hi")), limited))
    sent = Client(chat(user("hi"))).talk_to(app)
    assert status_of(sent) == 429
    assert b"\r\nretry-after: 7\r\n" in sent


def test_a_port_in_use_is_named() -> None:
    with listen() as taken, pytest.raises(UsageError, match=f"port {taken.getsockname()[1]} on .* in use: .*--port"):
        listen(taken.getsockname()[1])
