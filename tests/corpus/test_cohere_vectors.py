"""Cohere: one small exchange for each case."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import (
    DONE,
    answer,
    blocks,
    check_chunking,
    check_paths,
    counts,
    decode,
    exchange,
    named,
    said,
    stream,
)
from tests.support.wire_binary import ASKED, COHERE, COHERE_EVENTS, COHERE_FRAMES, cohere

from wiretape.model.call import CallResponse, Unknown
from wiretape.model.http import Ended

WHOLE = [
    ("reasoning", "I will 看。"),
    ("reasoning", "想 🙂"),
    ("text", "你好"),
    ("call", "f_1", "f", '{"城市":"成都"}'),
    ("call", "g_1", "g", "{}"),
]


def chat(body: Any, **more: Any) -> CallResponse:
    return answer(COHERE, body, request=ASKED[COHERE], **more)


def test_a_whole_stream() -> None:
    response = check_chunking(COHERE, COHERE_FRAMES, request=ASKED[COHERE])
    assert said(response) == WHOLE
    assert (response.id, response.finish, response.raw_finish) == ("c1", "tool_calls", "TOOL_CALL")
    assert counts(response) == (1549, 1504, None, 95, None)
    assert (response.complete, response.streamed) == (True, True)


def test_streams_without_sse_names_decode_equally() -> None:
    frames = [frame.partition(b"\n")[2] for frame in named(COHERE_EVENTS)]
    assert said(chat([*frames, DONE])) == WHOLE


def test_the_stream_and_the_plain_answer_are_the_same() -> None:
    message = {
        "role": "assistant",
        "tool_plan": "I will 看。",
        "content": [{"type": "thinking", "thinking": "想 🙂"}, {"type": "text", "text": "你好"}],
        "tool_calls": [
            {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": '{"城市":"成都"}'}},
            {"id": "g_1", "type": "function", "function": {"name": "g", "arguments": ""}},
        ],
    }
    usage = {"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 1549, "output_tokens": 95}}
    body = {"id": "c1", "message": message, "finish_reason": "TOOL_CALL", "usage": {**usage, "cached_tokens": 1504}}
    response = chat(body)
    assert (said(response), response.finish, counts(response)) == (WHOLE, "tool_calls", (1549, 1504, None, 95, None))


def test_a_truncated_stream_keeps_the_received_part() -> None:
    response = chat(named(COHERE_EVENTS[:12]), ended=Ended.UPSTREAM_CLOSED)
    assert said(response) == [*WHOLE[:3], ("call", "f_1", "f", '{"城市":')]
    assert (response.complete, response.finish, response.usage) == (False, None, None)


def test_the_first_token_is_the_first_content() -> None:
    assert chat(COHERE_FRAMES).first_token_at == 101


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        ("COMPLETE", "stop"),
        ("STOP_SEQUENCE", "stop"),
        ("MAX_TOKENS", "length"),
        ("TOOL_CALL", "tool_calls"),
        ("ERROR", "error"),
        ("NEW", None),
    ],
)
def test_finish_reasons(raw: str, finish: str | None) -> None:
    body = {"id": "c", "message": {"role": "assistant", "content": [{"type": "text", "text": "x"}]}}
    assert chat({**body, "finish_reason": raw}).finish == finish


def test_citations_are_kept() -> None:
    cited = {"start": 0, "end": 1, "text": "你", "sources": []}
    events = [*COHERE_EVENTS[:10], cohere("citation-start", 0, citations=cited), cohere("citation-end", 0)]
    response = check_chunking(COHERE, named([*events, COHERE_EVENTS[-1]]), request=ASKED[COHERE])
    assert response.messages[0].extra == (("citations", [cited]),)


REQUEST: dict[str, Any] = {
    "model": "command",
    "messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}]},
        {
            "role": "assistant",
            "tool_plan": "Plan.",
            "tool_calls": [{"id": "f_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "f_1", "content": [{"type": "document", "document": {"data": "20°"}}]},
        {"role": "tool", "tool_call_id": "f_2", "content": "21°"},
    ],
    "documents": [{"id": "d"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}


def test_a_request() -> None:
    call = decode(exchange(COHERE, None, request=REQUEST))
    assert blocks(call.request.messages) == [
        ("text", "You help."),
        ("text", "Look"),
        ("reasoning", "Plan."),
        ("call", "f_1", "f", '{"a": 1}'),
        ("result", "f_1", None, "20°"),
        ("result", "f_2", None, "21°"),
    ]
    assert check_paths(call, REQUEST) == 6
    assert (call.request.settings, [tool.name for tool in call.request.tools]) == ({"documents": [{"id": "d"}]}, ["f"])


def test_errors_before_and_in_a_stream() -> None:
    error = chat({"id": "x", "message": "invalid request"}, status=400).error
    assert error is not None
    assert (error.status, error.message, error.retryable) == (400, "invalid request", False)
    end = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "upstream broke"}}
    response = check_chunking(COHERE, named([*COHERE_EVENTS[:9], end]), request=ASKED[COHERE])
    assert response.error is not None
    assert (response.error.message, response.error.phase, response.finish) == ("upstream broke", "mid_stream", "error")
    assert said(response)[-1] == ("text", "你好")


def test_events_of_unknown_types_are_kept_whole() -> None:
    strange = {"type": "brand-new", "x": 1}
    response = chat(named([*COHERE_EVENTS[:4], strange, *COHERE_EVENTS[4:]]))
    assert said(response)[:-1] == WHOLE
    assert response.messages[-1].blocks == (Unknown("event", strange),)


def test_the_response_alone_shows_the_format() -> None:
    for body in (COHERE_FRAMES, named(COHERE_EVENTS)):
        found = decode(exchange("http://127.0.0.1:1/proxy", stream(body), request={"x": 1}))
        assert found.format == "cohere.chat"
