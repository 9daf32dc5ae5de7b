"""Ollama's chat and generate: one small exchange for each case."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import answer, blocks, check_chunking, check_paths, counts, decode, exchange, said, stream
from tests.support.wire_binary import ASKED, GENERATE, GENERATE_LINES, OLLAMA, OLLAMA_LINES, WEATHER, lines

from wiretape.model.call import CallResponse, Media, ToolResult, Unknown
from wiretape.model.http import Ended, JsonBody

NDJSON = [("content-type", "application/x-ndjson")]
WHOLE = [("reasoning", "想 🙂"), ("text", "你好"), ("call", None, "weather", '{"城市":"成都","n":1}')]


def chat(frames: Any, **more: Any) -> CallResponse:
    return answer(OLLAMA, frames, request=ASKED[OLLAMA], **more)


def test_a_whole_stream() -> None:
    response = check_chunking(OLLAMA, OLLAMA_LINES, request=ASKED[OLLAMA], headers=NDJSON)
    assert said(response) == WHOLE
    assert (response.finish, response.raw_finish, response.model) == ("tool_calls", "stop", "m")
    assert counts(response) == (26, None, None, 9, None)
    assert (response.complete, response.streamed, len(response.messages)) == (True, True, 1)
    assert response.messages[0].extra == ()


def test_the_stream_and_the_plain_answer_are_the_same() -> None:
    message = {"role": "assistant", "content": "你好", "thinking": "想 🙂", "tool_calls": [WEATHER]}
    body = {"model": "m", "created_at": "t", "message": message, "done": True, "done_reason": "stop"}
    response = chat({**body, "prompt_eval_count": 26, "eval_count": 9})
    assert (said(response), response.finish, response.streamed) == (WHOLE, "tool_calls", False)
    assert counts(response) == (26, None, None, 9, None)


def test_a_request_streams_by_default() -> None:
    body = {"model": "m", "messages": []}
    for given, expected in (({}, True), ({"stream": True}, True), ({"stream": False}, False)):
        assert decode(exchange(OLLAMA, None, request={**body, **given})).request.stream is expected


REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Look", "images": ["AA=="]},
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [WEATHER]},
        {"role": "tool", "content": "20°", "tool_name": "weather"},
        {"role": "tool", "content": "21°", "tool_call_id": "c2", "tool_name": "weather"},
        {"role": "assistant", "content": "So.", "mood": "fine"},
    ],
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
    "options": {"num_ctx": 9},
    "keep_alive": "5m",
}


def test_a_request() -> None:
    call = decode(exchange(OLLAMA, None, request=REQUEST))
    assert blocks(call.request.messages) == [
        ("text", "You help."),
        ("text", "Look"),
        ("media", "image"),
        ("reasoning", "hm"),
        ("call", None, "weather", '{"城市":"成都","n":1}'),
        ("result", None, "weather", "20°"),
        ("result", "c2", "weather", "21°"),
        ("text", "So."),
    ]
    assert check_paths(call, REQUEST) == 8
    assert (call.request.messages[1].blocks[1], call.request.messages[-1].extra) == (
        Media("image", {"image": "AA=="}),
        (("mood", "fine"),),
    )
    assert [(tool.name, tool.schema) for tool in call.request.tools] == [("weather", {"type": "object"})]
    assert call.request.settings == {"options": {"num_ctx": 9}, "keep_alive": "5m"}
    assert isinstance(call.request.messages[3].blocks[0], ToolResult)


def test_newer_servers_give_ids() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", **WEATHER}]}
    body = {"model": "m", "created_at": "t", "message": message, "done": True, "done_reason": "stop"}
    assert said(chat(body)) == [("call", "call_1", "weather", '{"城市":"成都","n":1}')]


def test_omitted_counts_are_unknown() -> None:
    body = {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "x"}, "done": True}
    assert chat(body).usage is None
    assert counts(chat({**body, "eval_count": 3})) == (None, None, None, 3, None)
    assert chat(body).finish is None


def test_a_truncated_stream_keeps_the_received_part() -> None:
    for n, expected in ((1, WHOLE[:0]), (3, [WHOLE[0], ("text", "你")]), (5, WHOLE)):
        response = chat(stream(OLLAMA_LINES[:n]), ended=Ended.UPSTREAM_CLOSED)
        assert said(response) == (expected or [("reasoning", "想 ")])
        assert (response.complete, response.streamed, response.finish, response.usage) == (False, True, None, None)


def test_the_first_token_is_the_first_content() -> None:
    empty = lines({"model": "m", "created_at": "t", "message": {"role": "assistant", "content": ""}, "done": False})
    assert chat([*empty, *OLLAMA_LINES]).first_token_at == 101


@pytest.mark.parametrize("reason", ["load", "unload"])
def test_loading_a_model_is_not_a_generation(reason: str) -> None:
    body = {"model": "m", "created_at": "t", "done": True, "done_reason": reason}
    for url, idle in ((OLLAMA, {"message": {"role": "assistant", "content": ""}}), (GENERATE, {"response": ""})):
        asked = {"model": "m", "messages": []} if url == OLLAMA else {"model": "m"}
        call = decode(exchange(url, JsonBody({**body, **idle}), request=asked))
        assert call.response is not None
        assert (call.kind, call.response.finish, call.response.messages) == ("prewarm", "pause", ())
        assert decode(exchange(url, None, request=asked)).kind == "prewarm"
    assert decode(exchange(OLLAMA, None, request=ASKED[OLLAMA])).kind == "inference"


def test_errors_before_and_in_a_stream() -> None:
    error = chat({"error": "model 'x' not found"}, status=404).error
    assert error is not None
    assert (error.status, error.message, error.phase, error.retryable) == (
        404,
        "model 'x' not found",
        "before_stream",
        False,
    )
    response = check_chunking(OLLAMA, [*OLLAMA_LINES[:4], *lines({"error": "out of memory"})], request=ASKED[OLLAMA])
    assert response.error is not None
    assert (response.error.message, response.error.phase, response.complete) == ("out of memory", "mid_stream", False)
    assert said(response) == WHOLE[:2]


def test_unreadable_lines_are_kept() -> None:
    frames = [*OLLAMA_LINES[:2], b"proxy says hello\n", *lines({"brand": "new"}), *OLLAMA_LINES[2:]]
    response = chat(frames)
    assert said(response)[:3] == WHOLE
    assert response.messages[-1].blocks == (
        Unknown("event", {"brand": "new"}),
        Unknown("unreadable_event", "proxy says hello"),
    )


def test_the_response_alone_shows_the_format() -> None:
    found = decode(exchange("http://127.0.0.1:1/proxy", stream(OLLAMA_LINES), request={"x": 1}))
    assert found.format == "ollama.chat"
    assert decode(exchange(OLLAMA, stream(OLLAMA_LINES), request={"x": 1})).format == "ollama.chat"


# -- generate ---------------------------------------------------------------------------------------------------------


def test_generate() -> None:
    request = {"model": "m", "system": "You help.", "prompt": "Look", "images": ["AA=="], "raw": True}
    response = check_chunking(GENERATE, GENERATE_LINES, request=request)
    assert said(response) == [("reasoning", "想"), ("text", "你好 🙂")]
    assert response.messages[0].block_paths == (".thinking", ".response")
    assert (response.finish, counts(response), response.complete) == ("length", (4, None, None, 5, None), True)
    call = decode(exchange(GENERATE, stream(GENERATE_LINES), request=request))
    assert (call.format, call.kind) == ("ollama.generate", "inference")
    assert blocks(call.request.messages) == [("text", "You help."), ("text", "Look"), ("media", "image")]
    assert check_paths(call, request) == 3
    assert (call.request.path(2), call.request.settings) == ("images[0]", {"raw": True})


def test_generate_continues_from_an_answers_context() -> None:
    first = decode(exchange(GENERATE, stream(GENERATE_LINES), request=ASKED[GENERATE]))
    asked = {**ASKED[GENERATE], "context": [1, 2, 3]}
    then = decode(exchange(GENERATE, stream(GENERATE_LINES), request=asked))
    assert first.response is not None
    assert first.response.id is not None
    assert then.request.previous_response_id == first.response.id
    assert first.request.previous_response_id is None
    other = decode(exchange(GENERATE, None, request={**asked, "context": [1, 2, 4]}))
    assert other.request.previous_response_id != first.response.id


def test_generate_returns_images() -> None:
    progress = [{"model": "m", "created_at": "t", "completed": n, "total": 2, "done": False} for n in (1, 2)]
    frames = lines(*progress, {"model": "m", "created_at": "t", "image": "AA==", "done": True, "done_reason": "stop"})
    response = check_chunking(GENERATE, frames, request=ASKED[GENERATE])
    assert (said(response), response.complete) == ([("media", "image")], True)
