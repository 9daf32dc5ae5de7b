"""Recorded exchanges as a session takes them."""

from __future__ import annotations

import orjson
import pytest
from tests.support.replaying import chat, exchange, live, session, stream, user

from wiretape.matching.playback import playback
from wiretape.model.http import Ended, Exchange

SAID = 'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": %s}]}\n\n'
RESPONSES = "https://api.openai.com/v1/responses"
COMPLETED = orjson.dumps(
    {"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed", "output": []}}
).decode()


def left(frames: list[str], url: str | None = None) -> Exchange:
    body = chat(user("a"), stream=True) if url is None else {"model": "m", "input": "a", "stream": True}
    return exchange(1, body, stream(*frames), ended=Ended.CLIENT_CLOSED, **({"url": url} if url else {}))


@pytest.mark.parametrize(
    ("recorded", "cut"),
    [
        (left([SAID % '"stop"', "data: [DONE]\n\n"]), False),
        (left([SAID % "null"]), True),
        (left([f"event: response.completed\ndata: {COMPLETED}\n\n"], RESPONSES), False),
        (left(['event: response.created\ndata: {"type": "response.created"}\n\n'], RESPONSES), True),
    ],
)
def test_a_stream_that_its_client_closed_after_the_last_event_ends_complete(recorded: Exchange, cut: bool) -> None:
    replay = session(recorded)
    assert recorded.request.body is not None
    answer = replay.answer(live(recorded.request.body.value, recorded.request.url))  # type: ignore[union-attr]
    shown = playback(answer)
    assert (shown.status, shown.cut, shown.linger) == (200, cut, cut)
