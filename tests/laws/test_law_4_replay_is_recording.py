"""Law 4: replay(record(run)) = run.

Recording a replay gives the same exchanges in the same order per thread, the same request values, response bytes and
ends; except for times and content-encoding.
"""

from __future__ import annotations

import gzip
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from wiretape.matching.playback import playback
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest
from wiretape.model.http import Ended, Exchange, Headers, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

URL = "https://api.example.com/v1/chat/completions"
JSON = ("content-type", "application/json")
SSE = ("content-type", "text/event-stream")


@dataclass(frozen=True)
class Sent:
    """What one call sends and gets: the answer's chunks as the wire brought them."""

    thread: int
    body: bytes
    status: int | None
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]
    ended: Ended


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
ends = st.sampled_from([Ended.COMPLETE, Ended.COMPLETE, Ended.CLIENT_CLOSED, Ended.UPSTREAM_CLOSED])


@st.composite
def answers(draw: st.DrawFn) -> tuple[int | None, tuple[tuple[str, str], ...], tuple[bytes, ...], Ended]:
    kind = draw(st.sampled_from(["plain", "gzip", "stream", "error", "unreachable", "text"]))
    said = draw(texts)
    ended = draw(ends)
    plain = orjson.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]})
    match kind:
        case "plain":
            return 200, (JSON,), (plain,), ended
        case "gzip":
            return 200, (JSON, ("content-encoding", "gzip")), (gzip.compress(plain),), Ended.COMPLETE
        case "stream":
            frames = [b"data: %b\n\n" % orjson.dumps({"choices": [{"delta": {"content": c}}]}) for c in said]
            return 200, (SSE,), (*frames, b"data: [DONE]\n\n"), ended
        case "error":
            return 429, (JSON, ("retry-after", "1")), (b'{"error": {"message": "slow"}}',), Ended.COMPLETE
        case "text":
            return 500, (("content-type", "text/plain"),), (said.encode() or b"x",), ended
        case _:
            return None, (), (), Ended.UPSTREAM_UNREACHABLE


@st.composite
def runs(draw: st.DrawFn) -> list[list[Sent]]:
    """Threads of calls; each call resends the history and adds to it, and some calls are repeated as they are."""
    threads = []
    for thread in range(draw(st.integers(1, 3))):
        history: list[dict[str, Any]] = [{"role": "system", "content": f"agent {thread}"}]
        calls = []
        for _ in range(draw(st.integers(1, 4))):
            if not draw(st.booleans()) or len(history) == 1:
                history.append({"role": "user", "content": draw(texts)})
            body = orjson.dumps({"model": "m", "messages": history, "temperature": draw(st.sampled_from([0, 0.5, 1]))})
            calls.append(Sent(thread, body, *draw(answers())))
        threads.append(calls)
    return threads


def interleaved(threads: Sequence[Sequence[Sent]], seed: int) -> list[Sent]:
    """All calls, each thread's in its order."""
    order = [thread for thread, calls in enumerate(threads) for _ in calls]
    random.Random(seed).shuffle(order)
    waiting = [iter(calls) for calls in threads]
    return [next(waiting[thread]) for thread in order]


class Tapes:
    def __init__(self, folder: str) -> None:
        self._names = (Path(folder) / f"{n}.tape" for n in count())

    def record(self, calls: Sequence[Sent]) -> list[Exchange]:
        path, clock = next(self._names), count()
        started = datetime(2026, 2, 28, tzinfo=UTC)
        recorder = Recorder(path, clock=lambda: float(next(clock)), started=started, redactor=Redactor())
        for call in calls:
            x = recorder.begin("POST", URL, "1.1", [JSON])
            recorder.request_data(x, call.body)
            recorder.request_end(x)
            if call.status is not None:
                recorder.response(x, call.status, call.headers)
                for chunk in call.chunks:
                    recorder.response_data(x, chunk)
            recorder.end(x, call.ended)
        assert recorder.close().troubles == ()
        self.last = path
        return list(read_tape(path).exchanges)

    def replay(self, calls: Sequence[Sent]) -> list[Sent]:
        """What the same program gets from the last tape."""
        session = ReplaySession([read_tape(self.last)])
        got = []
        for call in calls:
            outcome = session.answer(LiveRequest("POST", URL, Headers([JSON]), call.body))
            assert isinstance(outcome, Answer), outcome
            shown = playback(outcome)
            assert shown.cut == (outcome.exchange.ended is not Ended.COMPLETE)
            assert outcome.exchange.ended is not None
            chunks = tuple(piece.data for piece in shown.pieces)
            headers = tuple(shown.headers)
            got.append(Sent(call.thread, call.body, shown.status, headers, chunks, outcome.exchange.ended))
        assert session.report().left_over == ()
        return got


def told(exchange: Exchange) -> tuple[Any, ...]:
    """An exchange without its times and content-encoding."""
    request, response = exchange.request, exchange.response
    sent = (request.method, request.url, body_bytes(request.body), exchange.ended)
    if response is None:
        return sent
    headers = {k: v for k, v in response.headers.items() if k not in ("content-encoding", "content-length")}
    return (*sent, response.status, headers, body_bytes(response.body))


def per_thread(calls: Sequence[Sent], exchanges: Sequence[Exchange]) -> dict[int, list[tuple[Any, ...]]]:
    threads: dict[int, list[tuple[Any, ...]]] = {}
    for call, exchange in zip(calls, exchanges, strict=True):
        threads.setdefault(call.thread, []).append(told(exchange))
    return threads


@settings(max_examples=40, deadline=None)
@given(runs(), st.integers(0, 99), st.integers(0, 99))
def test_recording_a_replay_gives_the_recording(threads: list[list[Sent]], one: int, other: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tapes = Tapes(folder)
        first = interleaved(threads, one)
        recorded = tapes.record(first)
        second = interleaved(threads, other)
        again = tapes.record(tapes.replay(second))
    assert per_thread(second, again) == per_thread(first, recorded)
