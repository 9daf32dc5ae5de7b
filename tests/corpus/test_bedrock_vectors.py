"""Bedrock's Converse and Invoke: one small exchange for each case."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.support.wire import answer, at_path, blocks, check_chunking, check_paths, counts, decode, exchange, said
from tests.support.wire_binary import (
    ANTHROPIC_EVENTS,
    ASKED,
    AWS,
    CONVERSE,
    CONVERSE_FRAMES,
    CONVERSE_STREAM,
    INVOKE,
    INVOKE_FRAMES,
    INVOKE_STREAM,
    METRICS,
    NOVA_FRAMES,
    binary,
    chunk,
    delta,
    event,
    exception,
    message,
)

from wiretape.model.call import CallResponse, Reasoning, ToolResult, Unknown
from wiretape.model.http import Ended, TextBody

WHOLE = [("reasoning", "想 🙂", "sig"), ("text", "你好"), ("call", "t1", "f", '{"城市":"成都"}')]


def streamed(url: str, frames: list[bytes], **more: Any) -> CallResponse:
    return answer(url, binary(frames), request=ASKED[url], headers=AWS, **more)


def asked(body: dict[str, Any], url: str = CONVERSE) -> Any:
    return decode(exchange(url, None, request=body)).request


@pytest.mark.parametrize(("url", "frames"), [(CONVERSE_STREAM, CONVERSE_FRAMES), (INVOKE_STREAM, NOVA_FRAMES)])
def test_a_whole_stream(url: str, frames: list[bytes]) -> None:
    response = check_chunking(url, frames, request=ASKED[url])
    assert said(response) == WHOLE
    assert (response.finish, response.raw_finish) == ("tool_calls", "tool_use")
    assert counts(response) == (115, 100, 5, 7, None)
    assert (response.complete, response.streamed, response.error) == (True, True, None)


def test_the_stream_and_the_plain_answer_are_the_same() -> None:
    content = [
        {"reasoningContent": {"reasoningText": {"text": "想 🙂", "signature": "sig"}}},
        {"text": "你好"},
        {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"城市": "成都"}, "type": "tool_use"}},
    ]
    usage = {
        "inputTokens": 10,
        "outputTokens": 7,
        "totalTokens": 122,
        "cacheReadInputTokens": 100,
        "cacheReadInputTokenCount": 100,
        "cacheWriteInputTokens": 5,
        "cacheWriteInputTokenCount": 5,
        "serverToolUsage": {},
    }
    body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use", "usage": usage}
    for url in (CONVERSE, INVOKE):
        response = answer(url, {**body, "metrics": {"latencyMs": 3}}, request=ASKED[url])
        assert said(response) == WHOLE
        assert (response.finish, counts(response), response.streamed) == ("tool_calls", (115, 100, 5, 7, None), False)
        assert response.messages[0].extra == ()


def test_usage_comes_after_the_stop_and_is_unknown_without_it() -> None:
    response = streamed(CONVERSE_STREAM, CONVERSE_FRAMES[:-1])
    assert (response.complete, response.usage, response.finish) == (True, None, "tool_calls")


def test_a_truncated_stream_keeps_the_received_part() -> None:
    response = streamed(CONVERSE_STREAM, CONVERSE_FRAMES[:11], ended=Ended.UPSTREAM_CLOSED)
    assert said(response)[:2] == WHOLE[:2]
    assert said(response)[2] == ("call", "t1", "f", '{"城市":')
    assert (response.complete, response.finish, response.usage) == (False, None, None)


def test_the_first_token_is_the_first_content() -> None:
    assert streamed(CONVERSE_STREAM, CONVERSE_FRAMES).first_token_at == 101
    assert streamed(INVOKE_STREAM, INVOKE_FRAMES).first_token_at == 102
    opened = [event(*delta(0, {"text": ""})), event(*delta(0, {"text": "x"}))]
    assert streamed(CONVERSE_STREAM, opened).first_token_at == 101


def test_a_tool_call_without_arguments() -> None:
    start = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t", "name": "now"}}}
    frames = [event("contentBlockStart", start), event("messageStop", {"stopReason": "end_turn"})]
    response = streamed(CONVERSE_STREAM, frames)
    assert (said(response), response.finish) == ([("call", "t", "now", "{}")], "tool_calls")


def test_redacted_reasoning_and_citations() -> None:
    frames = [
        event(*delta(0, {"reasoningContent": {"redactedContent": "b3Bh"}})),
        event(*delta(1, {"text": "see"})),
        event(*delta(1, {"citation": {"title": "T"}})),
        event("messageStop", {"stopReason": "end_turn"}),
    ]
    response = streamed(CONVERSE_STREAM, frames)
    assert response.messages[0].blocks[0] == Reasoning("", "b3Bh")
    assert said(response)[1] == ("text", "see")
    assert response.messages[0].extra == (("content[1].citationsContent.citations", [{"title": "T"}]),)


def test_tools_that_the_provider_runs_need_no_answer() -> None:
    content = [
        {"toolUse": {"toolUseId": "t", "name": "code", "input": {"x": 1}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "t", "content": [{"json": {"stdOut": "1"}}], "status": "success", "type": "r"}},
        {"text": "One."},
    ]
    body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}
    response = answer(CONVERSE, body, request=ASKED[CONVERSE])
    assert said(response) == [
        ("call", "t", "code", '{"x":1}', "server"),
        ("result", "t", None, '{"stdOut":"1"}', "server"),
        ("text", "One."),
    ]
    assert response.finish == "stop"


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_tool_use", "error"),
        ("malformed_model_output", "error"),
        ("brand_new", None),
    ],
)
def test_stop_reasons(raw: str, finish: str | None) -> None:
    body = {"output": {"message": {"role": "assistant", "content": [{"text": "x"}]}}, "stopReason": raw}
    response = answer(CONVERSE, body, request=ASKED[CONVERSE])
    assert (response.finish, response.raw_finish) == (finish, raw)


REQUEST = {
    "system": [{"text": "You help."}, {"cachePoint": {"type": "default"}}],
    "messages": [
        {"role": "user", "content": [{"text": "Hi"}, {"image": {"format": "png", "source": {"bytes": "AA=="}}}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "20°"}, {"image": {}}], "status": "error"}},
                {"toolResult": {"toolUseId": "t2", "content": [{"json": {"b": 2}}]}},
                {"cachePoint": {"type": "default"}},
                {"guardContent": {"text": {"text": "guarded", "qualifiers": ["query"]}}},
                {"brandNew": {"x": 1}},
            ],
        },
    ],
    "toolConfig": {
        "tools": [
            {"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}},
            {"systemTool": {"name": "nova_code_interpreter"}},
            {"cachePoint": {"type": "default"}},
        ],
        "toolChoice": {"auto": {}},
    },
    "inferenceConfig": {"maxTokens": 10},
}


def test_a_request() -> None:
    request = asked(REQUEST)
    assert request.model == "us.anthropic.m:0"
    assert blocks(request.messages) == [
        ("text", "You help."),
        ("text", "Hi"),
        ("media", "image"),
        ("reasoning", "hm", "s"),
        ("call", "t1", "f", '{"a":1}'),
        ("result", "t1", None, "20°"),
        ("result", "t2", None, '{"b":2}'),
        ("text", "guarded"),
        ("unknown", "brandNew"),
    ]
    failed, fine = request.messages[4].blocks[:2]
    assert isinstance(failed, ToolResult)
    assert isinstance(fine, ToolResult)
    assert (failed.is_error, failed.parts, fine.is_error) == (True, ({"image": {}},), None)
    assert [m.cache_marked for m in request.messages] == [False, True, False, False, True]
    assert request.messages[4].extra == (("content[3].guardContent.text.qualifiers", ["query"]),)
    assert [(tool.name, tool.kind, tool.schema) for tool in request.tools] == [
        ("f", "function", {"type": "object"}),
        ("nova_code_interpreter", "server", None),
    ]
    assert request.settings == {"inferenceConfig": {"maxTokens": 10}, "toolConfig": {"toolChoice": {"auto": {}}}}
    assert (request.path(1), request.path(4)) == ("system[1]", "messages[2]")


def test_paths_point_to_the_texts() -> None:
    assert check_paths(decode(exchange(CONVERSE, None, request=REQUEST)), REQUEST) == 9
    counted = {"input": {"converse": REQUEST}}
    url = CONVERSE.replace("converse", "count-tokens")
    call = decode(exchange(url, None, request=counted))
    assert (check_paths(call, counted), call.kind, call.request.path(2)) == (
        9,
        "token_count",
        "input.converse.messages[0]",
    )


def test_a_token_count_is_not_usage() -> None:
    url = INVOKE.replace("invoke", "count-tokens")
    body = base64.b64encode(json.dumps(ASKED[INVOKE]).encode()).decode()
    request = {"input": {"invokeModel": {"body": body}}}
    call = decode(exchange(url, TextBody('{"inputTokens": 18}'), request=request))
    assert (call.format, call.kind, call.usage, blocks(call.request.messages)) == (
        "bedrock.invoke",
        "token_count",
        None,
        [("text", "go")],
    )
    assert at_path(request, call.request.path(0) + call.request.messages[0].block_paths[0]) == body


# -- failing and corrupt streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "retryable"),
    [
        ("throttlingException", 429, True),
        ("serviceUnavailableException", 503, True),
        ("internalServerException", 500, True),
        ("modelTimeoutException", 408, True),
        ("validationException", 400, False),
    ],
)
def test_an_exception_in_the_middle_of_a_stream(name: str, status: int, retryable: bool) -> None:
    failed = exception(name, {"message": "No more."})
    for url, frames in ((CONVERSE_STREAM, CONVERSE_FRAMES[:7]), (INVOKE_STREAM, INVOKE_FRAMES[:3])):
        response = check_chunking(url, [*frames, failed], request=ASKED[url])
        error = response.error
        assert error is not None
        assert (error.type, error.message, error.phase) == (name, "No more.", "mid_stream")
        assert (error.status, error.retryable, response.complete) == (status, retryable, False)
        assert ("text", "你好" if url == CONVERSE_STREAM else "你好 🙂") in said(response)


def test_the_original_status_is_used() -> None:
    failed = exception("modelStreamErrorException", {"message": "x", "originalStatusCode": 529, "originalMessage": "y"})
    error = streamed(INVOKE_STREAM, [failed]).error
    assert error is not None
    assert (error.type, error.status, error.retryable) == ("modelStreamErrorException", 529, True)


def test_an_error_message_in_a_stream() -> None:
    failed = message(b"", message_type="error", error_code="InternalFailure", error_message="Broken.")
    for url in (CONVERSE_STREAM, INVOKE_STREAM):
        error = streamed(url, [failed]).error
        assert error is not None
        assert (error.type, error.message, error.phase) == ("InternalFailure", "Broken.", "mid_stream")


def test_an_error_before_the_stream() -> None:
    headers = [("x-amzn-errortype", "ValidationException:http://internal.example.com/coral/")]
    for url in (CONVERSE_STREAM, INVOKE_STREAM, CONVERSE, INVOKE):
        response = answer(
            url, {"message": "The provided model identifier is invalid."}, status=400, headers=headers, request={}
        )
        error = response.error
        assert error is not None
        assert (error.type, error.status, error.phase) == ("ValidationException", 400, "before_stream")
        assert (error.message, response.messages) == ("The provided model identifier is invalid.", ())


@pytest.mark.parametrize(("url", "frames"), [(CONVERSE_STREAM, CONVERSE_FRAMES), (INVOKE_STREAM, INVOKE_FRAMES)])
def test_a_stream_stored_as_text_is_reported_and_kept(url: str, frames: list[bytes]) -> None:
    destroyed = b"".join(frames).decode("utf-8", "replace")
    response = answer(url, destroyed, request=ASKED[url], headers=AWS)
    [block] = response.messages[-1].blocks
    assert isinstance(block, Unknown)
    assert block.type == "corrupt_event_stream"
    assert "not the bytes that were sent" in block.raw["problem"]
    assert base64.b64decode(block.raw["base64"]).decode() == destroyed
    assert (response.complete, response.messages[-1].role) == (False, "system")


def test_one_altered_message_loses_only_itself() -> None:
    frames = list(CONVERSE_FRAMES)
    frames[5] = frames[5].replace("你".encode(), "他".encode())
    response = streamed(CONVERSE_STREAM, frames)
    assert said(response) == [WHOLE[0], ("text", "好"), WHOLE[2], ("unknown", "corrupt_event_stream")]
    assert (response.complete, counts(response)) == (True, (115, 100, 5, 7, None))


def test_events_of_unknown_types_are_kept_whole() -> None:
    frames = [*CONVERSE_FRAMES[:8], event("brandNew", {"x": 1}), *CONVERSE_FRAMES[8:]]
    response = streamed(CONVERSE_STREAM, frames)
    assert response.messages[-1].blocks == (Unknown("event", {"brandNew": {"x": 1}}),)
    assert said(response)[:3] == WHOLE


def test_json_instead_of_a_stream() -> None:
    body = {"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}, "stopReason": "end_turn"}
    response = answer(CONVERSE_STREAM, body, request=ASKED[CONVERSE], headers=AWS)
    assert (said(response), response.streamed) == ([("text", "Hi")], False)


# -- Invoke: one format per vendor ---------------------------------------------------------------------------------


def test_anthropic_events_inside_chunks() -> None:
    response = check_chunking(INVOKE_STREAM, INVOKE_FRAMES, request=ASKED[INVOKE])
    assert (said(response), response.id, response.model) == ([("text", "你好 🙂")], "msg_bdrk_1", "claude-x")
    assert (response.finish, counts(response), response.complete) == ("stop", (3, None, None, 2, None), True)


def test_metrics_add_missing_usage() -> None:
    start: dict[str, Any] = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    last: dict[str, Any] = {
        "type": "message_stop",
        METRICS: {"inputTokenCount": 8, "outputTokenCount": 9, "cacheReadInputTokenCount": 90},
    }
    frames = [chunk(e) for e in (start, *ANTHROPIC_EVENTS[1:4], last)]
    assert counts(streamed(INVOKE_STREAM, frames)) == (98, 90, None, 9, None)


def test_chat_completions_inside_chunks() -> None:
    choices: list[dict[str, Any]] = [
        {"delta": {"role": "assistant", "content": "Hel"}},
        {"delta": {"content": "lo"}},
        {"delta": {}, "finish_reason": "stop"},
    ]
    frames = [chunk({"choices": [{"index": 0, **c}]}) for c in choices]
    frames.append(chunk({"choices": [], METRICS: {"inputTokenCount": 4, "outputTokenCount": 2}}))
    url = INVOKE_STREAM
    response = answer(url, binary(frames), request={"messages": [{"role": "user", "content": "Hi"}]})
    assert (said(response), response.finish, counts(response)) == (
        [("text", "Hello")],
        "stop",
        (4, None, None, 2, None),
    )


TOKENS = [("x-amzn-bedrock-input-token-count", "5"), ("x-amzn-bedrock-output-token-count", "10")]
ANSWERS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (
        {"prompt": "go", "max_gen_len": 10},
        {"generation": "said", "prompt_token_count": 5, "generation_token_count": 10, "stop_reason": "length"},
        "length",
        ".generation",
    ),
    (
        {"inputText": "go"},
        {
            "inputTextTokenCount": 5,
            "results": [{"tokenCount": 10, "outputText": "said", "completionReason": "LENGTH"}],
        },
        "length",
        ".results[0].outputText",
    ),
    ({"prompt": "go"}, {"outputs": [{"text": "said", "stop_reason": "stop"}]}, "stop", ".outputs[0].text"),
    (
        {"prompt": "go"},
        {"generations": [{"id": "g", "text": "said", "finish_reason": "MAX_TOKENS"}], "prompt": "go"},
        "length",
        ".generations[0].text",
    ),
    (
        {"message": "go", "chat_history": []},
        {"text": "said", "finish_reason": "COMPLETE", "generation_id": "g", "chat_history": [{"role": "USER"}]},
        "stop",
        ".text",
    ),
    (
        {"prompt": "go"},
        {"completions": [{"data": {"text": "said"}, "finishReason": {"reason": "endoftext"}}]},
        "stop",
        ".completions[0].data.text",
    ),
    ({"prompt": "\n\nHuman: go"}, {"completion": "said", "stop_reason": "stop_sequence"}, "stop", ".completion"),
    ({"prompt": "go"}, {"choices": [{"text": "said", "stop_reason": "stop"}]}, "stop", ".choices[0].text"),
]


@pytest.mark.parametrize(("request_body", "body", "finish", "path"), ANSWERS)
def test_answers_of_other_vendors(request_body: dict[str, Any], body: dict[str, Any], finish: str, path: str) -> None:
    call = decode(exchange(INVOKE, TextBody(json.dumps(body)), request=request_body, headers=TOKENS))
    response = call.response
    assert response is not None
    assert "go" in blocks(call.request.messages)[0][1]
    assert check_paths(call, request_body) == 1
    assert (said(response), response.finish) == ([("text", "said")], finish)
    assert counts(response) == (5, None, None, 10, None)
    assert (response.messages[0].block_paths, at_path(body, path)) == ((path,), "said")


STREAMED: list[tuple[list[dict[str, Any]], str]] = [
    (
        [
            {"generation": "sa", "prompt_token_count": 5, "generation_token_count": 1, "stop_reason": None},
            {"generation": "id", "prompt_token_count": None, "generation_token_count": 10, "stop_reason": "stop"},
        ],
        "stop",
    ),
    (
        [
            {"outputText": "sa", "index": 0, "completionReason": None, "inputTextTokenCount": 5},
            {"outputText": "id", "index": 0, "completionReason": "FINISH", "totalOutputTextTokenCount": 10},
        ],
        "stop",
    ),
    (
        [
            {"outputs": [{"text": "sa", "stop_reason": None}]},
            {"outputs": [{"text": "id", "stop_reason": "length"}]},
        ],
        "length",
    ),
    (
        [
            {"is_finished": False, "event_type": "stream-start", "generation_id": "g"},
            {"is_finished": False, "event_type": "text-generation", "text": "sa"},
            {"is_finished": False, "event_type": "text-generation", "text": "id"},
            {
                "is_finished": True,
                "event_type": "stream-end",
                "response": {"text": "said"},
                "finish_reason": "COMPLETE",
            },
        ],
        "stop",
    ),
    ([{"completion": "sa", "stop_reason": None}, {"completion": "id", "stop_reason": "stop_sequence"}], "stop"),
]


@pytest.mark.parametrize(("events", "finish"), STREAMED)
def test_streams_of_other_vendors(events: list[dict[str, Any]], finish: str) -> None:
    last = {**events[-1], METRICS: {"inputTokenCount": 5, "outputTokenCount": 10}}
    frames = [chunk(e) for e in (*events[:-1], last)]
    response = check_chunking(INVOKE_STREAM, frames, request={"prompt": "go"})
    assert (said(response), response.finish, response.complete) == ([("text", "said")], finish, True)
    assert counts(response) == (5, None, None, 10, None)
    cut = answer(INVOKE_STREAM, binary(frames[:-1]), request={"prompt": "go"}, ended=Ended.UPSTREAM_CLOSED)
    assert (cut.complete, cut.finish) == (False, None)


def test_command_r_calls_tools_and_has_a_history() -> None:
    request = {
        "message": "go",
        "preamble": "You help.",
        "chat_history": [{"role": "USER", "message": "Hi"}, {"role": "CHATBOT", "message": "Hello"}, {"role": "TOOL"}],
    }
    body = {"text": "", "finish_reason": "COMPLETE", "tool_calls": [{"name": "f", "parameters": {"a": 1}}]}
    call = decode(exchange(INVOKE, TextBody(json.dumps(body)), request=request))
    assert [m.role for m in call.request.messages] == ["system", "user", "assistant", "unknown", "user"]
    assert check_paths(call, request) == 5
    assert call.response is not None
    assert (said(call.response), call.response.finish) == ([("call", None, "f", '{"a":1}')], "tool_calls")


@pytest.mark.parametrize(
    ("model", "request_body", "body"),
    [
        ("amazon.titan-embed-text-v2:0", {"inputText": "go"}, {"embedding": [0.1], "inputTextTokenCount": 5}),
        ("arn:aws:bedrock:profile%2Fx", {"inputText": "go"}, {"embedding": [0.1], "inputTextTokenCount": 5}),
        ("cohere.embed-v4:0", {"texts": ["go"], "input_type": "search_query"}, {"embeddings": {"float": [[0.1]]}}),
        (
            "amazon.nova-2-multimodal-embeddings-v1:0",
            {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": {"text": {"value": "go"}}},
            {"embeddings": [{"embedding": [0.1]}]},
        ),
    ],
)
def test_embeddings_have_their_own_kind(model: str, request_body: Any, body: Any) -> None:
    url = f"https://bedrock.example.com/model/{model}/invoke"
    call = decode(exchange(url, TextBody(json.dumps(body)), request=request_body, headers=TOKENS[:1]))
    assert (call.kind, blocks(call.request.messages)) == ("embedding", [("text", "go")])
    assert check_paths(call, request_body) == 1
    assert call.response is not None
    assert (said(call.response), counts(call.response)) == ([("media", "embedding")], (5, None, None, None, None))


def test_images_and_unknown_answers_are_kept() -> None:
    pictures = answer(INVOKE, {"images": ["AA==", "BB=="]}, request={"taskType": "TEXT_IMAGE", "p": {}})
    assert said(pictures) == [("media", "image"), ("media", "image")]
    assert said(answer(INVOKE, {"brand": "new"}, request={"x": 1})) == [("unknown", "response")]
    call = decode(exchange(INVOKE, None, request={"x": 1}))
    assert call.request.messages[0].blocks == (Unknown("request", {"x": 1}),)
