"""Background responses: one call with any number of fetches."""

from __future__ import annotations

from typing import Any

from tests.support.wire import RESPONSES, blocks, counts, exchange, named, stream

from wiretape.model.http import Ended, Exchange, JsonBody
from wiretape.wire.registry import Registry, built_in, decode

DONE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m-1",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}],
    "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
}


def running(status: str = "queued") -> JsonBody:
    return JsonBody({"id": "resp_1", "object": "response", "status": status, "output": []})


def fetch(body: Any, number: int, response_id: str = "resp_1", query: str = "") -> Exchange:
    return exchange(
        f"{RESPONSES}/{response_id}{query}", body, method="GET", request={}, number=number, at=number * 1000
    )


def test_the_first_complete_fetch_is_the_answer() -> None:
    asked = exchange(RESPONSES, running(), request={"model": "m", "input": "go", "background": True})
    fetches = [fetch(running("in_progress"), 2), fetch(JsonBody(DONE), 3), fetch(JsonBody(DONE), 4)]
    (call,) = decode([asked, *fetches], Registry(built_in()))
    assert call.response is not None
    assert (blocks(call.response.messages), call.response.finish) == ([("text", "Done")], "stop")
    assert counts(call.response) == (9, None, None, 3, None)
    assert (call.exchange, call.ended_at) == (1, 3500)


def test_a_truncated_stream_that_is_resumed() -> None:
    started = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
    ended = {"type": "response.completed", "response": DONE}
    asked = exchange(RESPONSES, stream(named([started])), ended=Ended.UPSTREAM_CLOSED)
    resumed = fetch(stream(named([ended])), 2, query="?stream=true&starting_after=0")
    (call,) = decode([asked, resumed], Registry(built_in()))
    assert call.response is not None
    assert call.response.complete
    assert blocks(call.response.messages) == [("text", "Done")]


def test_a_response_that_is_never_fetched_stays_paused() -> None:
    asked = exchange(RESPONSES, running())
    (call,) = decode([asked, fetch(JsonBody({**DONE, "id": "resp_2"}), 2, "resp_2")], Registry(built_in()))
    assert call.response is not None
    assert (call.response.finish, call.response.messages) == ("pause", ())
