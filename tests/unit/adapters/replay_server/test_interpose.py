"""The seam between an answer and what is sent: it can be held, changed and cancelled, and a held stream stays alive."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from tests.support.replaying import CHAT, chat, exchange, response, session, stream, user

from wiretape.adapters.http1 import send_playback
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.matching.values import Answer, LiveRequest, Miss, Outcome

HI, STREAMED = chat(user("hi")), chat(user("hi"), stream=True)
FRAMES = "data: 1\n\n", "data: 2\n\n"
ROUTE = CHAT.replace("https://", "")


class Held:
    """Holds every answer until it is let go, and may put another in its place."""

    def __init__(self, instead: Outcome | None = None) -> None:
        self.seen: list[tuple[LiveRequest, Outcome]] = []
        self.cancelled = threading.Event()
        self._instead = instead
        self._go = threading.Event()

    async def __call__(self, request: LiveRequest, outcome: Outcome) -> Outcome:
        self.seen.append((request, outcome))
        try:
            while not self._go.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return self._instead or outcome

    def let_go(self) -> None:
        self._go.set()

    def let_go_when_it_holds(self) -> None:
        while not self.seen:
            time.sleep(0.01)
        time.sleep(0.1)  # longer than a stream is left without a comment
        self.let_go()


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_playback, "KEEP_ALIVE_SECONDS", 0.05)


def after_comments(lines: Iterator[bytes], held: Held) -> bytes:
    """What comes besides comments; the first two of those let the answer go."""
    got, comments = b"", 0
    for chunk in lines:
        if chunk.startswith(b": "):
            comments += 1
            if comments == 2:
                held.let_go()
        got += chunk.replace(b": wiretape holds this answer\n\n", b"")
    assert comments >= 2
    return got


def test_a_held_stream_begins_and_says_that_it_lives_until_its_events_come() -> None:
    told: list[Outcome] = []
    held = Held()
    replay = session(exchange(1, STREAMED, stream(*FRAMES)))
    with (
        ReplayServer(replay, ReplayServerOptions(interpose=held, on_outcome=told.append)) as running,
        httpx.Client(trust_env=False, timeout=30) as asking,
        asking.stream("POST", f"http://127.0.0.1:{running.port}/{ROUTE}", json=STREAMED) as answer,
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
        assert told == []
        assert after_comments(answer.iter_raw(), held) == "".join(FRAMES).encode()
    [(request, outcome)] = held.seen
    assert (request.method, request.url) == ("POST", CHAT)
    assert told == [outcome]
    assert isinstance(outcome, Answer)


def test_a_held_stream_can_still_be_changed() -> None:
    recorded = exchange(1, STREAMED, stream(*FRAMES))
    [outcome] = [session(recorded).answer(LiveRequest("POST", CHAT, body=_bytes(STREAMED)))]
    assert isinstance(outcome, Answer)
    held = Held(replace(outcome, exchange=replace(recorded, response=stream("data: changed\n\n"))))
    with (
        ReplayServer(session(recorded), ReplayServerOptions(interpose=held)) as running,
        httpx.Client(trust_env=False, timeout=30) as asking,
        asking.stream("POST", f"http://127.0.0.1:{running.port}/{ROUTE}", json=STREAMED) as answer,
    ):
        assert after_comments(answer.iter_raw(), held) == b"data: changed\n\n"


def test_another_head_than_the_one_that_was_sent_breaks_the_connection_off() -> None:
    told: list[Outcome] = []
    miss = Miss(1, "POST /x", "never recorded", "changed into a miss", body=b"{}")
    held = Held(miss)
    replay = session(exchange(1, STREAMED, stream(*FRAMES)))
    with (
        ReplayServer(replay, ReplayServerOptions(interpose=held, on_outcome=told.append)) as running,
        httpx.Client(trust_env=False, timeout=30) as asking,
        asking.stream("POST", f"http://127.0.0.1:{running.port}/{ROUTE}", json=STREAMED) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        after_comments(answer.iter_raw(), held)
    assert told == [miss]


def test_what_is_no_stream_comes_when_it_is_let_go_and_any_outcome_may_take_its_place() -> None:
    miss = Miss(1, "POST /x", "never recorded", "changed into a miss", body=b'{"changed": true}')
    for instead, status in ((None, 200), (miss, 400)):
        held = Held(instead)
        threading.Thread(target=held.let_go_when_it_holds).start()
        with ReplayServer(session(exchange(1, HI, "one")), ReplayServerOptions(interpose=held)) as running:
            url = f"http://127.0.0.1:{running.port}/{ROUTE}"
            answer = httpx.post(url, json=HI, trust_env=False, timeout=30)
        assert answer.status_code == status
        assert len(held.seen) == 1


def test_other_calls_go_on_and_one_whose_client_goes_is_let_go_of() -> None:
    held = Held()
    replay = session(exchange(1, STREAMED, stream(*FRAMES)), exchange(2, HI, response({"answer": 2})))

    async def only_streams(request: LiveRequest, outcome: Outcome) -> Outcome:
        return await held(request, outcome) if request.body == _bytes(STREAMED) else outcome

    with (
        ReplayServer(replay, ReplayServerOptions(interpose=only_streams)) as running,
        httpx.Client(trust_env=False, timeout=30) as asking,
    ):
        url = f"http://127.0.0.1:{running.port}/{ROUTE}"
        with asking.stream("POST", url, content=_bytes(STREAMED)):
            assert asking.post(url, json=HI).json() == {"answer": 2}
        assert held.cancelled.wait(30)


def test_what_raises_ends_the_connection_without_an_answer() -> None:
    async def fails(request: LiveRequest, outcome: Outcome) -> Outcome:
        raise RuntimeError("a fault of its own")

    with (
        ReplayServer(session(exchange(1, HI, "one")), ReplayServerOptions(interpose=fails)) as running,
        pytest.raises(httpx.TransportError),
    ):
        httpx.post(f"http://127.0.0.1:{running.port}/{ROUTE}", json=HI, trust_env=False, timeout=30)


def _bytes(body: object) -> bytes:
    import orjson

    return orjson.dumps(body)
