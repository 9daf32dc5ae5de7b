"""Version 1 of Cohere's chat API."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import REGISTRY, answer, blocks, counts, decode, exchange, frame, said

from wiretape.model.http import JsonBody

URL = "https://api.cohere.com/v1/chat"
ASKED: dict[str, Any] = {"model": "command", "message": "hi"}
ANSWER: dict[str, Any] = {
    "response_id": "r",
    "generation_id": "g",
    "text": "Hello!",
    "chat_history": [{"role": "USER", "message": "hi"}, {"role": "CHATBOT", "message": "Hello!"}],
    "finish_reason": "COMPLETE",
    "meta": {
        "billed_units": {"input_tokens": 1, "output_tokens": 2},
        "tokens": {"input_tokens": 67, "output_tokens": 3},
    },
}
CALL = {"name": "clock", "parameters": {"zone": "UTC"}}


def test_an_answer() -> None:
    response = answer(URL, ANSWER, request=ASKED)
    assert said(response) == [("text", "Hello!")]
    assert (response.id, response.finish, response.raw_finish) == ("r", "stop", "COMPLETE")
    assert counts(response) == (67, None, None, 3, None)


def test_tool_calls_and_their_results() -> None:
    response = answer(URL, {**ANSWER, "text": "I ask.", "tool_calls": [CALL]}, request=ASKED)
    assert said(response) == [("text", "I ask."), ("call", None, "clock", '{"zone":"UTC"}')]
    assert response.finish == "tool_calls"
    history = [
        {"role": "USER", "message": "time?"},
        {"role": "CHATBOT", "message": "I ask.", "tool_calls": [CALL]},
        {"role": "TOOL", "tool_results": [{"call": CALL, "outputs": [{"time": "22:34"}]}]},
    ]
    request = {
        **ASKED,
        "preamble": "Be brief.",
        "chat_history": history,
        "message": "",
        "tools": [{"name": "clock", "description": "tells time", "parameter_definitions": {"zone": {"type": "str"}}}],
        "tool_results": [{"call": CALL, "outputs": [{"time": "22:35"}]}],
    }
    call = decode(exchange(URL, JsonBody(ANSWER), request=request))
    assert blocks(call.request.messages) == [
        ("text", "Be brief."),
        ("text", "time?"),
        ("text", "I ask."),
        ("call", None, "clock", '{"zone":"UTC"}'),
        ("result", None, "clock", '{"time":"22:34"}'),
        ("result", None, "clock", '{"time":"22:35"}'),
    ]
    assert [message.role for message in call.request.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert [tool.name for tool in call.request.tools] == ["clock"]


@pytest.mark.parametrize("as_lines", [False, True])
def test_a_stream(as_lines: bool) -> None:
    events = [
        {"event_type": "stream-start", "generation_id": "g", "is_finished": False},
        {"event_type": "text-generation", "text": "Hel", "is_finished": False},
        {"event_type": "text-generation", "text": "lo!", "is_finished": False},
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": ANSWER, "is_finished": True},
    ]
    frames = [frame(event) for event in events]
    if as_lines:
        frames = [one.removeprefix(b"data: ").removesuffix(b"\n") for one in frames]
    response = answer(URL, frames, request=ASKED)
    assert (said(response), response.finish, response.complete) == ([("text", "Hello!")], "stop", True)
    assert counts(response) == (67, None, None, 3, None)
    cut = answer(URL, frames[:2], request=ASKED)
    assert (said(cut), cut.finish, cut.complete) == ([("text", "Hel")], None, False)


def test_another_programs_chat_is_not_claimed() -> None:
    own = exchange("https://app.example.com/v1/chat", JsonBody({"reply": "hello"}), request={"message": "hi"})
    assert REGISTRY.recognise(own) is None
    assert REGISTRY.recognise(exchange(URL, JsonBody(ANSWER), request={"message": "hi"})) is not None
