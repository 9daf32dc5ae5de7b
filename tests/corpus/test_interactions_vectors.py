"""Interactions: one small exchange for each case."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import (
    REGISTRY,
    answer,
    blocks,
    check_chunking,
    check_paths,
    counts,
    decode,
    exchange,
    frame,
    said,
    stream,
)

from wiretape.model.call import CallRequest, ToolResult
from wiretape.model.http import Ended, Exchange, JsonBody
from wiretape.wire.registry import decode as decode_all

URL = "https://generativelanguage.googleapis.com/v1beta/interactions"
ASKED = {"model": "gemini-9", "input": "go", "stream": True}
USAGE = {
    "total_tokens": 1373,
    "total_input_tokens": 22,
    "total_cached_tokens": 7,
    "total_output_tokens": 973,
    "total_tool_use_tokens": 129,
    "total_thought_tokens": 249,
}
DONE = b"event: done\ndata: [DONE]\n\n"


def event(kind: str, **members: Any) -> bytes:
    return frame({**members, "event_type": kind}, kind)


def created() -> bytes:
    return event("interaction.created", interaction={"id": "v1_a", "status": "in_progress", "model": "gemini-9"})


def step(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    frames = [event("step.start", index=index, step=begun)]
    frames += [event("step.delta", index=index, delta=delta) for delta in deltas]
    return [*frames, event("step.stop", index=index)]


def completed(status: str = "completed", **members: Any) -> list[bytes]:
    done = {"id": "v1_a", "status": status, "model": "gemini-9", "usage": USAGE, **members}
    return [event("interaction.completed", interaction=done), DONE]


THOUGHT = step(
    0,
    {"type": "thought"},
    {"type": "thought_summary", "content": {"type": "text", "text": "I "}},
    {"type": "thought_summary", "content": {"type": "text", "text": "think"}},
    {"type": "thought_signature", "signature": "c2ln"},
)
OUTPUT = step(1, {"type": "model_output"}, {"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"})
CALL = step(
    2,
    {"type": "function_call", "id": "c1", "name": "f", "arguments": {}, "signature": ""},
    {"type": "arguments_delta", "arguments": '{"city":'},
    {"type": "arguments_delta", "arguments": '"成都"}'},
)


def test_a_whole_stream() -> None:
    frames = [created(), *THOUGHT, *OUTPUT, *CALL, *completed("requires_action")]
    response = check_chunking(URL, frames, request=ASKED)
    assert said(response) == [
        ("reasoning", "I think", "c2ln"),
        ("text", "Hello"),
        ("call", "c1", "f", '{"city":"成都"}'),
    ]
    assert (response.id, response.model) == ("v1_a", "gemini-9")
    assert (response.finish, response.raw_finish) == ("tool_calls", "requires_action")
    assert counts(response) == (151, 7, None, 1222, 249)
    assert (response.complete, response.streamed, len(response.messages)) == (True, True, 3)


def test_the_stream_and_the_plain_answer_are_the_same() -> None:
    steps = [
        {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "I think"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "Hello"}]},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {"city": "成都"}},
    ]
    body = {"id": "v1_a", "object": "interaction", "status": "requires_action", "model": "gemini-9", "steps": steps}
    plain = answer(URL, {**body, "usage": USAGE}, request=ASKED)
    streamed = answer(URL, [created(), *THOUGHT, *OUTPUT, *CALL, *completed("requires_action")], request=ASKED)
    assert (said(plain), counts(plain)) == (said(streamed), counts(streamed))
    assert (plain.finish, plain.id, plain.streamed) == ("tool_calls", "v1_a", False)
    assert [m.block_paths for m in plain.messages] == [m.block_paths for m in streamed.messages]


def test_hosted_tools() -> None:
    search = step(0, {"type": "google_search_call", "id": "s1"}, {"type": "google_search_call", "arguments": {"q": 1}})
    found = step(
        1,
        {"type": "google_search_result", "call_id": "s1"},
        {"type": "google_search_result", "result": [{"search_suggestions": "x"}], "is_error": False},
    )
    response = check_chunking(URL, [created(), *search, *found, *completed()], request=ASKED)
    assert said(response) == [
        ("call", "s1", "google_search", '{"q":1}', "server"),
        ("result", "s1", "google_search", "", "server"),
    ]
    result = response.messages[1].blocks[0]
    assert isinstance(result, ToolResult)
    assert (result.parts, result.is_error, response.finish) == (({"search_suggestions": "x"},), False, "stop")


def test_annotations_stay_with_their_text() -> None:
    told = [{"type": "url_citation", "url": "u"}]
    output = step(
        0,
        {"type": "model_output"},
        {"type": "text", "text": "A"},
        {"type": "text_annotation_delta", "annotations": told},
        {"type": "text", "text": "B"},
        {"type": "image", "data": "aGk=", "mime_type": "image/png"},
    )
    response = check_chunking(URL, [created(), *output, *completed()], request=ASKED)
    assert said(response) == [("text", "A"), ("text", "B"), ("media", "image")]
    assert dict(response.messages[0].extra) == {"content[0].annotations": told}


def test_the_events_of_an_earlier_version() -> None:
    frames = [
        event("interaction.start", interaction={"id": "v1_a", "status": "in_progress"}),
        event("content.start", index=0, content={"type": "text"}),
        event("content.delta", index=0, delta={"type": "text", "text": "Hel"}),
        event("content.delta", index=0, delta={"type": "text", "text": "lo"}),
        event("content.stop", index=0),
        event("interaction.complete", interaction={"id": "v1_a", "status": "completed"}),
    ]
    response = check_chunking(URL, frames, request=ASKED)
    assert (said(response), response.complete) == ([("text", "Hello")], True)
    body = {"id": "v1_a", "status": "completed", "outputs": [{"type": "text", "text": "Hello"}]}
    assert said(answer(URL, body, request=ASKED)) == [("text", "Hello")]


@pytest.mark.parametrize(
    ("status", "expected"),
    [("completed", "stop"), ("incomplete", "length"), ("in_progress", "pause"), ("cancelled", "error"), ("new", None)],
)
def test_finish(status: str, expected: str | None) -> None:
    assert answer(URL, {"id": "v1_a", "status": status, "steps": []}, request=ASKED).finish == expected


def test_errors_before_in_and_after_a_stream() -> None:
    plain = answer(URL, {"error": {"code": "invalid_request", "message": "No."}}, request=ASKED, status=400)
    middle = answer(URL, [created(), event("error", error={"code": "overloaded", "message": "No."})], request=ASKED)
    end = answer(URL, [created(), *completed("failed", errors=[{"code": "x", "message": "No."}])], request=ASKED)
    for response, phase in ((plain, "before_stream"), (middle, "mid_stream"), (end, "terminal_event")):
        assert response.error is not None
        assert (response.error.phase, response.error.message) == (phase, "No.")
    assert (middle.complete, end.complete, end.finish) == (False, True, "error")


def test_a_truncated_stream_keeps_the_received_part() -> None:
    frames = [created(), *OUTPUT[:2]]
    response = answer(URL, stream(frames), request=ASKED, ended=Ended.UPSTREAM_CLOSED)
    assert (said(response), response.complete, response.finish) == ([("text", "Hel")], False, None)


def test_the_first_token_is_the_first_content() -> None:
    frames = [created(), *THOUGHT[:1], *THOUGHT[3:], *OUTPUT, *completed()]
    times = [10 * n for n in range(1, len(frames) + 1)]
    response = answer(URL, stream(frames, times), request=ASKED)
    assert response.first_token_at == 100 + 60  # the sixth event: after a signature and the start of a step


def request(body: Any) -> CallRequest:
    call = decode(exchange(URL, None, request=body))
    assert call.format == "gemini.interactions"
    check_paths(call, body)
    return call.request


def test_a_request_of_steps() -> None:
    body = {
        "model": "gemini-9",
        "system_instruction": "You help.",
        "input": [
            {"type": "user_input", "content": "rain?"},
            {"type": "thought", "signature": "c2ln"},
            {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}, "signature": "c2ln"},
            {"type": "function_result", "call_id": "c1", "name": "f", "result": {"rain": True}},
            {"type": "function_result", "call_id": "c2", "result": [{"type": "text", "text": "no"}], "is_error": True},
            {"type": "model_output", "content": [{"type": "text", "text": "Rain."}]},
            {"type": "text", "text": "thanks"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "google_search"}],
        "generation_config": {"thinking_level": "low"},
        "store": False,
    }
    decoded = request(body)
    assert blocks(decoded.messages) == [
        ("text", "You help."),
        ("text", "rain?"),
        ("reasoning", "", "c2ln"),
        ("call", "c1", "f", '{"a":1}'),
        ("reasoning", "", "c2ln"),
        ("result", "c1", "f", '{"rain":true}'),
        ("result", "c2", None, "no"),
        ("text", "Rain."),
        ("text", "thanks"),
    ]
    roles = [m.role for m in decoded.messages]
    assert roles == ["system", "user", "assistant", "assistant", "tool", "tool", "assistant", "user"]
    assert [(t.name, t.kind) for t in decoded.tools] == [("f", "function"), ("google_search", "server")]
    assert decoded.settings == {"generation_config": {"thinking_level": "low"}, "store": False}


@pytest.mark.parametrize("given", ["Hi", {"type": "text", "text": "Hi"}, [{"type": "text", "text": "Hi"}], ["Hi"]])
def test_input_in_every_shape(given: Any) -> None:
    decoded = request({"agent": "deep-research", "input": given, "previous_interaction_id": "v1_a"})
    assert (blocks(decoded.messages), decoded.messages[0].role) == ([("text", "Hi")], "user")
    assert (decoded.model, decoded.previous_response_id) == ("deep-research", "v1_a")


def test_turns_of_an_earlier_version() -> None:
    decoded = request({"model": "m", "input": [{"role": "model", "content": [{"type": "text", "text": "Hi"}]}]})
    assert (blocks(decoded.messages), decoded.messages[0].role) == ([("text", "Hi")], "assistant")


def test_recognized_by_body_or_response_but_not_by_the_path_alone() -> None:
    url = "https://gateway.example.com/x"
    assert decode(exchange(url, None, request={**ASKED, "system_instruction": "x"})).format == "gemini.interactions"
    told = {"id": "v1_a", "status": "completed", "steps": [{"type": "model_output"}]}
    assert decode(exchange(url, JsonBody(told), request={"q": 1})).format == "gemini.interactions"
    assert decode(exchange(url, stream([created(), *OUTPUT]), request={"q": 1})).format == "gemini.interactions"
    bot = exchange("https://chat.example.com/api/interactions", JsonBody({"ok": 1}), request={"type": 2, "data": {}})
    assert REGISTRY.recognise(bot) is None


def fetched(body: Any, number: int, query: str = "") -> Exchange:
    return exchange(f"{URL}/v1_a{query}", body, method="GET", request={}, number=number, at=number * 1000)


def test_a_background_interaction_is_one_call() -> None:
    running = JsonBody({"id": "v1_a", "status": "in_progress", "steps": []})
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "Done"}]}]
    done = JsonBody({"id": "v1_a", "status": "completed", "steps": steps, "usage": USAGE})
    asked = exchange(URL, running, request={**ASKED, "background": True})
    (call,) = decode_all([asked, fetched(running, 2), fetched(done, 3), fetched(done, 4)], REGISTRY)
    assert call.response is not None
    assert (said(call.response), call.response.finish, call.ended_at) == ([("text", "Done")], "stop", 3500)
    assert counts(call.response) == (151, 7, None, 1222, 249)


def test_a_resumed_stream_is_complete() -> None:
    asked = exchange(URL, stream([created(), *THOUGHT]), request=ASKED, ended=Ended.UPSTREAM_CLOSED)
    rest = stream([*OUTPUT, *completed()])
    (call,) = decode_all([asked, fetched(rest, 2, "?stream=true&last_event_id=e4")], REGISTRY)
    assert call.response is not None
    assert said(call.response) == [("reasoning", "I think", "c2ln"), ("text", "Hello")]
    assert (call.response.complete, call.response.finish) == (True, "stop")
