"""Text of an answer is in its blocks, or in an unknown block, whatever shape a server gives to the answer."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import wire_binary
from tests.support.wire import DONE, REGISTRY, answer, chunk, exchange, frame, said

from wiretape.model.call import Text, Unknown
from wiretape.model.http import JsonBody

TEXT = "a text of more than twenty characters"
USER = {"role": "user", "content": "q"}
CHAT = "https://api.openai.com/v1/chat/completions"
COMPLETIONS = "https://api.openai.com/v1/completions"
RESPONSES = "https://api.openai.com/v1/responses"
MESSAGES = "https://api.anthropic.com/v1/messages"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"
GEMINI_STREAM = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m"
REQUESTS: dict[str, Any] = {
    CHAT: {"messages": [USER]},
    COMPLETIONS: {"prompt": "q"},
    RESPONSES: {"input": "q"},
    MESSAGES: {"messages": [USER], "max_tokens": 9},
    GEMINI: {"contents": [{"parts": [{"text": "q"}]}]},
    GEMINI_STREAM: {"contents": [{"parts": [{"text": "q"}]}]},
    f"{BEDROCK}/converse": {"messages": [{"role": "user", "content": [{"text": "q"}]}]},
    f"{BEDROCK}/invoke": {"inputText": "q"},
    "http://localhost:11434/api/chat": {"model": "m", "messages": [USER]},
    "http://localhost:11434/api/generate": {"model": "m", "prompt": "q"},
    "https://api.cohere.com/v2/chat": {"model": "m", "messages": [USER]},
    "https://generativelanguage.googleapis.com/v1beta/interactions": {"model": "m", "input": "q"},
}
PART = {"type": "text", "text": TEXT}
ANSWERS: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"object": "chat.completion", "choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]}),
    (COMPLETIONS, {"object": "text_completion", "choices": [{"text": TEXT, "finish_reason": "stop"}]}),
    (
        RESPONSES,
        {
            "object": "response",
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": TEXT}]}],
        },
    ),
    (MESSAGES, {"type": "message", "role": "assistant", "content": [PART], "stop_reason": "end_turn"}),
    (GEMINI, {"candidates": [{"content": {"parts": [{"text": TEXT}]}, "finishReason": "STOP"}]}),
    (f"{BEDROCK}/converse", {"output": {"message": {"content": [{"text": TEXT}]}}, "stopReason": "end_turn"}),
    (f"{BEDROCK}/invoke", {"results": [{"outputText": TEXT, "completionReason": "FINISH"}]}),
    ("http://localhost:11434/api/chat", {"message": {"content": TEXT}, "done": True, "done_reason": "stop"}),
    ("http://localhost:11434/api/generate", {"response": TEXT, "done": True, "done_reason": "stop"}),
    ("https://api.cohere.com/v2/chat", {"message": {"content": [PART]}, "finish_reason": "COMPLETE"}),
    (
        "https://generativelanguage.googleapis.com/v1beta/interactions",
        {"status": "completed", "steps": [{"type": "model_output", "content": [PART]}]},
    ),
]
STREAMS: list[tuple[str, list[dict[str, Any]]]] = [
    (
        CHAT,
        [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": t}}]} for t in ("a", TEXT)],
    ),
    (COMPLETIONS, [{"object": "text_completion", "choices": [{"index": 0, "text": t}]} for t in ("a", TEXT)]),
    (
        MESSAGES,
        [
            {"type": "message_start", "message": {"content": []}},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
                for text in ("a", TEXT)
            ),
        ],
    ),
    (
        RESPONSES,
        [{"type": "response.output_text.delta", "output_index": 0, "delta": text} for text in ("a", TEXT)],
    ),
    (GEMINI_STREAM, [{"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in ("a", TEXT)]),
    (
        "https://api.cohere.com/v2/chat",
        [
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}
            for text in ("a", TEXT)
        ],
    ),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to the text."""
    if value == TEXT:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else []):
        yield from places(inner, (*path, key))


def changed(body: Any, least: int) -> Iterator[tuple[str, Any]]:
    """The body with another shape at each step of the path to its text, from step `least` on."""
    [place] = places(body)
    for end in range(least + 1, len(place) + 1):
        *path, last = place[:end]
        shapes = ("renamed", "object", "list", "text", "text object")
        for shape in shapes if isinstance(last, str) else shapes[1:]:
            one = copy.deepcopy(body)
            holder = one
            for key in path:
                holder = holder[key]
            old = holder[last]
            if shape == "renamed":
                holder["strange"] = holder.pop(last)
            else:
                holder[last] = {"object": {"x": old}, "list": [old], "text": TEXT, "text object": {"text": TEXT}}[shape]
            yield f"{'.'.join(map(str, place[:end]))}: {shape}", one


@pytest.mark.parametrize(("url", "body"), ANSWERS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_answer_of_another_shape(url: str, body: dict[str, Any]) -> None:
    for name, one in [("unchanged", body), *changed(body, 0)]:
        assert TEXT in repr(answer(url, JsonBody(one), request=REQUESTS[url])), name


@pytest.mark.parametrize(("url", "events"), STREAMS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_stream_that_changes_its_shape(url: str, events: list[dict[str, Any]]) -> None:
    for name, one in [("unchanged", events), *changed(events, 1)]:
        response = answer(url, [frame(event) for event in one], request=REQUESTS[url])
        assert TEXT in repr(response), name
        assert any(isinstance(b, Text) for m in response.messages for b in m.blocks), name


def test_a_completions_stream_whose_last_chunk_is_a_chats() -> None:
    pieces = [frame({"object": "text_completion", "choices": [{"index": 0, "text": text}]}) for text in ("Why", " not")]
    end = frame({"object": "text_completion", "choices": [{"delta": {}, "finish_reason": "stop"}]})
    response = answer(COMPLETIONS, [*pieces, end, DONE])
    assert (said(response), response.finish, response.complete) == ([("text", "Why not")], "stop", True)


def test_a_chat_stream_with_the_chunks_of_completions() -> None:
    pieces = [frame({"object": "text_completion", "choices": [{"index": 0, "text": text}]}) for text in ("Why", " not")]
    response = answer(CHAT, [*pieces, chunk({}, "stop"), DONE])
    assert (said(response), response.finish) == ([("text", "Why not")], "stop")


def test_writers_stream_has_no_last_event() -> None:
    response = answer(COMPLETIONS, [frame({"value": "Sure"}), frame({"value": "!"})], request=REQUESTS[COMPLETIONS])
    assert (said(response), response.finish, response.complete) == ([("text", "Sure!")], None, True)


def test_a_structured_output_that_the_server_parsed() -> None:
    response = answer(CHAT, {"choices": [{"message": {"content": {"title": "Apples"}}, "finish_reason": "stop"}]})
    assert said(response) == [("text", '{"title":"Apples"}')]


def test_an_error_line_in_a_stream() -> None:
    error = b'error: {"detail":"failed to decode","error":{"message":"failed to decode"}}\n\n'
    response = answer(CHAT, [chunk({"content": "a"}), error])
    assert said(response) == [("text", "a")]
    assert response.error is not None
    assert (response.error.message, response.error.phase) == ("failed to decode", "mid_stream")


@pytest.mark.parametrize("url", [CHAT, MESSAGES, RESPONSES, GEMINI, COMPLETIONS])
def test_json_that_breaks_off_is_cut(url: str) -> None:
    response = answer(url, json.dumps(dict(ANSWERS)[url])[:-20], request=REQUESTS[url])
    assert (response.complete, response.finish) == (False, None)
    assert any(isinstance(b, Unknown) for m in response.messages for b in m.blocks)


def test_an_event_that_is_not_utf8_keeps_the_finish_of_its_stream() -> None:
    broken = chunk({"content": "b?"}, "stop").replace(b"?", b"\xff")
    response = answer(CHAT, [chunk({"content": "a"}), broken, DONE])
    assert (said(response), response.finish, response.complete) == ([("text", "ab\ufffd")], "stop", True)


def guarded(**members: Any) -> dict[str, Any]:
    return {**members, "amazon-bedrock-guardrailAction": "INTERVENED"}


def test_a_guardrail_ends_the_answer_of_any_vendor_on_bedrock() -> None:
    url = f"{BEDROCK}/invoke"
    titan = guarded(outputText="Input blocked", index=0, totalOutputTextTokenCount=3.0, inputTextTokenCount=6.0)
    stream = answer(f"{url}-with-response-stream", [frame(titan)], request=REQUESTS[url])
    assert (stream.finish, stream.complete, said(stream)) == ("content_filter", True, [("text", "Input blocked")])
    assert stream.usage is not None
    assert (stream.usage.input, stream.usage.output) == (6, 3)
    for body in (
        guarded(results=[{"outputText": "no", "completionReason": None}]),
        guarded(type="message", content=[{"type": "text", "text": "no"}], stop_reason="end_turn"),
        guarded(choices=[{"message": {"content": "no"}, "finish_reason": "stop"}]),
    ):
        response = answer(url, body, request=REQUESTS[url])
        assert (response.finish, said(response)) == ("content_filter", [("text", "no")])


@pytest.mark.parametrize(
    "path",
    [
        "/agents/A1/agentAliases/B1/sessions/s1/text",
        "/flows/F1/aliases/B1",
        "/agents/session-1",
        "/retrieveAndGenerateStream",
    ],
)
def test_bedrocks_agents_are_no_model_calls(path: str) -> None:
    url = f"https://bedrock-agent-runtime.us-east-1.amazonaws.com{path}"
    for inner in (b"George Eru", {"completion": "George Eru"}):
        body = wire_binary.binary([wire_binary.chunk(inner)])
        one = exchange(url, body, request={"inputText": "who?"}, headers=wire_binary.AWS)
        assert REGISTRY.recognise(one) is None


def test_a_stream_of_bedrock_is_recognized_by_the_vendors_events_alone() -> None:
    url = "https://proxy.example.com/some/path"
    for inner, claimed in (({"outputText": "hi"}, True), (b"George Eru", False), ({"strange": "hi"}, False)):
        body = wire_binary.binary([wire_binary.chunk(inner)])
        found = REGISTRY.recognise(exchange(url, body, request={"inputText": "who?"}, headers=wire_binary.AWS))
        assert (found is not None) == claimed


def test_deltas_with_a_boolean_index_continue_the_block_with_that_index() -> None:
    start = {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}}
    block = {"type": "content_block_start", "index": True, "content_block": {"type": "text", "text": ""}}
    deltas = [
        {"type": "content_block_delta", "index": True, "delta": {"type": "text_delta", "text": text}}
        for text in ("It ", "rains.")
    ]
    frames = [frame(event) for event in (start, block, *deltas, {"type": "message_stop"})]
    assert said(answer(MESSAGES, frames, request=REQUESTS[MESSAGES])) == [("text", "It rains.")]


def test_the_explanation_of_a_refusal_is_its_text() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "This request is against the policy."}
    body = {"type": "message", "content": [], "stop_reason": "refusal", "stop_details": details}
    assert said(answer(MESSAGES, body)) == [("refusal", "This request is against the policy.")]
