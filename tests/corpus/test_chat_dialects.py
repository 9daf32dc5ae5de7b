"""Chat Completions and its dialects: one small exchange for each case, whole, byte by byte, truncated."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import (
    CHAT,
    DONE,
    answer,
    blocks,
    check_chunking,
    check_paths,
    chunk,
    counts,
    decode,
    exchange,
    frame,
    said,
    stream,
)

from wiretape.model.call import Media, Reasoning, ToolCall
from wiretape.model.http import Ended


def calls(*deltas: dict[str, Any], **more: Any) -> bytes:
    return chunk({"tool_calls": list(deltas)}, **more)


def piece(index: int | None = 0, arguments: Any = None, name: Any = None, call_id: Any = None, **more: Any) -> Any:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    delta = {"index": index, "id": call_id, "function": function, **more}
    return {k: v for k, v in delta.items() if v is not None}


END = [chunk({}, "tool_calls"), DONE]
CALL_STREAMS: dict[str, tuple[list[bytes], list[Any]]] = {
    "in_pieces": (
        [calls(piece(0, "", "f", "c1")), calls(piece(0, '{"a"')), calls(piece(0, ":1}")), *END],
        [("call", "c1", "f", '{"a":1}')],
    ),
    "whole_in_one_delta": (
        [calls(piece(0, '{"a":1}', "f", "c1"), piece(1, "{}", "g", "c2"), finish="tool_calls"), DONE],
        [("call", "c1", "f", '{"a":1}'), ("call", "c2", "g", "{}")],
    ),
    "mistral_without_indexes": (
        [
            calls(
                piece(None, '{"a":1}', "f", "abcdefghi"), piece(None, '{"a":2}', "f", "jklmnopqr"), finish="tool_calls"
            )
        ],
        [("call", "abcdefghi", "f", '{"a":1}'), ("call", "jklmnopqr", "f", '{"a":2}')],
    ),
    "without_indexes_in_pieces": (
        [
            calls(piece(None, "", "f", "c1")),
            calls(piece(None, "{}")),
            calls(piece(None, "", "g", "c2")),
            calls(piece(None, '{"b":'), piece(None, "2}")),
            *END,
        ],
        [("call", "c1", "f", "{}"), ("call", "c2", "g", '{"b":2}')],
    ),
    "without_index_and_id_a_name_begins_a_call": (
        [calls(piece(None, '{"a":1}', "f")), calls(piece(None, '{"b":2}', "g")), *END],
        [("call", None, "f", '{"a":1}'), ("call", None, "g", '{"b":2}')],
    ),
    "anthropic_compatible_index_gap": (
        [
            chunk({"content": "I look."}),
            calls(piece(1, "", "f", "toolu_1")),
            calls(piece(1, "{}")),
            calls(piece(7, "", "g", "toolu_2")),
            calls(piece(7, '{"b":2}')),
            *END,
        ],
        [("text", "I look."), ("call", "toolu_1", "f", "{}"), ("call", "toolu_2", "g", '{"b":2}')],
    ),
    "all_share_index_0": (
        [
            calls(piece(0, "", "f", "c1")),
            calls(piece(0, "{}", None, "c1")),
            calls(piece(0, "", "g", "c2")),
            calls(piece(0, "{}", None, "c2")),
            *END,
        ],
        [("call", "c1", "f", "{}"), ("call", "c2", "g", "{}")],
    ),
    "shared_index_pieces_follow_the_latest": (
        [
            calls(piece(0, "", "f", "c1")),
            calls(piece(0, "{}")),
            calls(piece(0, "", "g", "c2")),
            calls(piece(0, "{}")),
            *END,
        ],
        [("call", "c1", "f", "{}"), ("call", "c2", "g", "{}")],
    ),
    "id_repeated_on_every_delta": (
        [calls(piece(0, "", "f", "c1")), calls(piece(0, '{"a"', None, "c1")), calls(piece(0, ":1}", None, "c1")), *END],
        [("call", "c1", "f", '{"a":1}')],
    ),
    "qwen_empty_ids_and_vllm_empty_names_later": (
        [
            calls(piece(0, "", "f", "c1", type="function")),
            calls(piece(0, "{", "", "", type="function")),
            calls(piece(0, "}", "", "")),
            *END,
        ],
        [("call", "c1", "f", "{}")],
    ),
    "name_arrives_late": (
        [calls(piece(0, "", None, "c1")), calls(piece(0, '{"a":1}', "f")), *END],
        [("call", "c1", "f", '{"a":1}')],
    ),
    "name_repeated_in_full": (
        [calls(piece(0, "", "get", "c1")), calls(piece(0, "{", "get")), calls(piece(0, "}", "get")), *END],
        [("call", "c1", "get", "{}")],
    ),
    "arguments_as_object": (
        [calls(piece(0, {"a": 1}, "f", "c1"), finish="tool_calls"), DONE],
        [("call", "c1", "f", '{"a":1}')],
    ),
    "arguments_null": ([calls(piece(0, None, "f", "c1")), *END], [("call", "c1", "f", "{}")]),
    "arguments_empty": (
        [calls(piece(0, "", "f", "c1")), calls(piece(0, "")), *END],
        [("call", "c1", "f", "{}")],
    ),
    "interleaved_by_index": (
        [
            calls(piece(0, "", "f", "c1"), piece(1, "", "g", "c2")),
            calls(piece(1, '{"b"'), piece(0, '{"a"')),
            calls(piece(0, ":1}"), piece(1, ":2}")),
            *END,
        ],
        [("call", "c1", "f", '{"a":1}'), ("call", "c2", "g", '{"b":2}')],
    ),
    "gemini_compatible_empty_ids": (
        [calls(piece(0, '{"a":1}', "f", "")), calls(piece(0, '{"a":2}', "f", "")), *END],
        [("call", None, "f", '{"a":1}'), ("call", None, "f", '{"a":2}')],
    ),
    "kimi_ids": (
        [calls(piece(0, "{}", "add", "functions.add:0")), *END],
        [("call", "functions.add:0", "add", "{}")],
    ),
    "parallel_wrapper_is_one_call": (
        [calls(piece(0, '{"tool_uses":[]}', "multi_tool_use.parallel", "c1")), *END],
        [("call", "c1", "multi_tool_use.parallel", '{"tool_uses":[]}')],
    ),
    "invalid_arguments_stay_as_they_are": (
        [calls(piece(0, '{"a": "unfinished', "f", "c1")), chunk({}, "length"), DONE],
        [("call", "c1", "f", '{"a": "unfinished')],
    ),
    "custom_tool": (
        [
            calls({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sh", "input": ""}}),
            calls({"index": 0, "custom": {"input": "ls -l"}}),
            *END,
        ],
        [("call", "c1", "sh", "ls -l", "custom")],
    ),
    "legacy_function_call": (
        [
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": "{}"}}),
            chunk({}, "function_call"),
            DONE,
        ],
        [("call", None, "f", "{}")],
    ),
}


@pytest.mark.parametrize("name", CALL_STREAMS)
def test_tool_call_deltas(name: str) -> None:
    frames, expected = CALL_STREAMS[name]
    response = check_chunking(CHAT, frames)
    assert said(response) == expected
    assert response.finish == ("length" if name.startswith("invalid") else "tool_calls")
    assert response.complete


REASONING_STREAMS: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "reasoning_content": (
        [{"reasoning_content": "I "}, {"reasoning_content": "think"}, {"reasoning_content": None, "content": "Yes"}],
        [("reasoning", "I think"), ("text", "Yes")],
    ),
    "reasoning": (
        [{"role": "assistant", "content": "", "reasoning": "I "}, {"reasoning": "think"}, {"content": "Yes"}],
        [("reasoning", "I think"), ("text", "Yes")],
    ),
    "both_names_are_one": (
        [{"reasoning": "I think", "reasoning_content": "I think"}, {"content": "Yes"}],
        [("reasoning", "I think"), ("text", "Yes")],
    ),
    "groq_channel": (
        [{"reasoning": "I think", "channel": "analysis"}, {"content": "Yes", "channel": "final"}],
        [("reasoning", "I think"), ("text", "Yes")],
    ),
    "openrouter_details_merge_and_are_not_shown_twice": (
        [
            {"reasoning": "I ", "reasoning_details": [{"type": "reasoning.text", "text": "I ", "index": 0}]},
            {"reasoning": "think", "reasoning_details": [{"type": "reasoning.text", "text": "think", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.text", "signature": "", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]},
            {"content": "Yes"},
        ],
        [("reasoning", "I think", "sig"), ("text", "Yes")],
    ),
    "openrouter_encrypted_beside_text": (
        [
            {"reasoning": "I think"},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "opaque", "index": 1}]},
            {"content": "Yes"},
        ],
        [("reasoning", "I think"), ("reasoning", "", "opaque"), ("text", "Yes")],
    ),
    "mistral_thinking_parts": (
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "I "}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "think"}]}]},
            {"content": "Y"},
            {"content": "es"},
        ],
        [("reasoning", "I think"), ("text", "Yes")],
    ),
    "think_tag": (
        [{"content": "<think>I "}, {"content": "think</think>\n\n"}, {"content": "Yes"}],
        [("reasoning", "I think"), ("text", "Yes")],
    ),
}


@pytest.mark.parametrize("name", REASONING_STREAMS)
def test_reasoning_under_every_name(name: str) -> None:
    deltas, expected = REASONING_STREAMS[name]
    response = check_chunking(CHAT, [*map(chunk, deltas), chunk({}, "stop"), DONE])
    assert said(response) == expected
    assert response.finish == "stop"


def test_summaries_are_marked() -> None:
    detail = {"type": "reasoning.summary", "summary": "In short", "index": 0}
    response = answer(CHAT, [chunk({"reasoning_details": [detail]}), chunk({"content": "Yes"}, "stop"), DONE])
    assert response.messages[0].blocks[0] == Reasoning("In short", None, summary=True)


def with_usage(**usage: Any) -> dict[str, Any]:
    return {"usage": usage}


PLAIN = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
GROWING = {"prompt_tokens": 10, "completion_tokens": None, "total_tokens": None}
USAGE_STREAMS: dict[str, tuple[list[bytes], tuple[int | None, ...] | None, bool]] = {
    "extra_chunk": (
        [chunk({"content": "a"}, usage=None), chunk({}, "stop", usage=None), chunk(None, usage=PLAIN), DONE],
        (10, None, None, 4, None),
        True,
    ),
    "on_the_finish_chunk": (
        [chunk({"content": "a"}), chunk({}, "stop", usage=PLAIN), DONE],
        (10, None, None, 4, None),
        True,
    ),
    "groq_twice": (
        [
            chunk({"content": "a"}, x_groq={"id": "req_1"}),
            chunk({}, "stop", usage=PLAIN, x_groq={"id": "req_1", "usage": PLAIN}),
            chunk(None, usage=PLAIN),
            DONE,
        ],
        (10, None, None, 4, None),
        True,
    ),
    "groq_only_its_own": (
        [chunk({"content": "a"}), chunk({}, "stop", x_groq={"usage": PLAIN}), DONE],
        (10, None, None, 4, None),
        True,
    ),
    "databricks_cumulative": (
        [
            chunk({"content": "a"}, usage=GROWING),
            chunk({"content": "b"}, usage={**GROWING, "completion_tokens": 2}),
            chunk({}, "stop", usage={"prompt_tokens": None, "completion_tokens": 4, "total_tokens": 14}),
            DONE,
        ],
        (10, None, None, 4, None),
        True,
    ),
    "moonshot_in_the_choice": (
        [
            chunk({"content": "a"}),
            frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": PLAIN}]}),
            DONE,
        ],
        (10, None, None, 4, None),
        True,
    ),
    "gpustack_without_done": (
        [chunk({"content": "a"}), chunk({}, "stop", usage=PLAIN)],
        (10, None, None, 4, None),
        True,
    ),
    "huggingface_without_finish_and_done": (
        [chunk({"content": "a"}), chunk(None, usage=PLAIN)],
        (10, None, None, 4, None),
        True,
    ),
    "finish_chunk_sent_twice": (
        [chunk({"content": "a"}), chunk({"content": ""}, "stop"), chunk({"content": ""}, "stop", usage=PLAIN), DONE],
        (10, None, None, 4, None),
        True,
    ),
    "cut": ([chunk({"content": "a"}), chunk({"content": "b"})], None, False),
    "cut_with_cumulative_usage": ([chunk({"content": "a"}, usage=GROWING)], (10, None, None, None, None), False),
}


@pytest.mark.parametrize("name", USAGE_STREAMS)
def test_where_usage_arrives(name: str) -> None:
    frames, expected, complete = USAGE_STREAMS[name]
    response = check_chunking(CHAT, frames)
    assert counts(response) == expected
    assert response.complete is complete
    assert said(response)[0][1].startswith("a")


def test_perplexity_sends_everything_twice_and_ends_with_its_own_object() -> None:
    def both(delta: str, so_far: str, **more: Any) -> bytes:
        choice = {"index": 0, "delta": {"content": delta}, "message": {"role": "assistant", "content": so_far}}
        return frame({"id": "p", "object": "chat.completion.chunk", "choices": [choice], "usage": PLAIN, **more})

    end = {"index": 0, "delta": {"content": ""}, "message": {"content": "Hello"}, "finish_reason": "stop"}
    frames = [both("Hel", "Hel"), both("lo", "Hello")]
    frames.append(frame({"id": "p", "object": "chat.completion.done", "choices": [end], "usage": PLAIN}))
    response = check_chunking(CHAT, frames)
    assert said(response) == [("text", "Hello")]
    assert (response.complete, response.finish) == (True, "stop")


def test_azure_begins_with_an_empty_chunk() -> None:
    empty = {"id": "", "model": "", "object": "", "created": 0, "choices": [], "prompt_filter_results": [{"a": 1}]}
    frames = [frame(empty), chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}, "stop"), DONE]
    response = check_chunking(CHAT, frames)
    assert (response.id, response.model, said(response)) == ("chatcmpl-1", "m-1", [("text", "Hi")])


def test_openrouter_comments_and_the_finish_on_many_chunks() -> None:
    frames = [b": OPENROUTER PROCESSING\n\n", chunk({"role": "assistant", "content": "a"}, "length")]
    frames += [b": OPENROUTER PROCESSING\n\n", chunk({"role": "assistant", "content": "b"}, "length"), DONE]
    response = check_chunking(CHAT, frames)
    assert (said(response), response.finish) == ([("text", "ab")], "length")


def test_content_on_the_finish_chunk_counts() -> None:
    response = check_chunking(CHAT, [chunk({"content": "a"}), chunk({"content": "b"}, "stop"), DONE])
    assert said(response) == [("text", "ab")]


def test_choices_are_interleaved_by_index() -> None:
    def choice(index: int, text: str, finish: str | None = None) -> bytes:
        return frame({"id": "x", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]})

    frames = [choice(1, "b1"), choice(0, "a1"), choice(1, "b2", "stop"), choice(0, "a2", "length"), DONE]
    response = check_chunking(CHAT, frames)
    assert [(blocks([m]), m.extra) for m in response.messages] == [
        ([("text", "a1a2")], ()),
        ([("text", "b1b2")], (("choice", 1),)),
    ]
    assert response.finish == "length"


def test_refusal_and_audio() -> None:
    frames = [chunk({"refusal": "I "}), chunk({"refusal": "can't"}), chunk({}, "stop"), DONE]
    assert said(check_chunking(CHAT, frames)) == [("refusal", "I can't")]
    frames = [chunk({"audio": {"id": "au", "transcript": "He"}}), chunk({"audio": {"transcript": "llo", "data": "QQ"}})]
    response = check_chunking(CHAT, [*frames, chunk({}, "stop"), DONE])
    assert response.messages[0].blocks == (Media("audio", {"id": "au", "transcript": "Hello", "data": "QQ"}),)


def test_padding_is_dropped() -> None:
    response = check_chunking(CHAT, [chunk({"content": "a", "obfuscation": "xyz", "p": "abc"}, "stop"), DONE])
    assert said(response) == [("text", "a")]
    assert response.messages[0].extra == ()


# Errors


def test_error_in_the_middle_then_the_connection_closes() -> None:
    error = {"error": {"message": "The server had an error", "type": "server_error", "code": None}}
    response = check_chunking(CHAT, [chunk({"content": "a"}), frame(error)])
    assert response.error is not None
    assert (response.error.phase, response.error.type, response.error.retryable) == ("mid_stream", "server_error", True)
    assert (said(response), response.complete) == ([("text", "a")], False)


def test_errors_of_other_shapes_in_a_stream() -> None:
    for error in ({"object": "error", "message": "m", "type": "e", "code": 500}, {"type": "error", "message": "m"}):
        response = check_chunking(CHAT, [chunk({"content": "a"}), frame(error), DONE])
        assert response.error is not None
        assert (response.error.message, response.error.phase) == ("m", "mid_stream")
        assert said(response) == [("text", "a")]


def test_groq_names_the_error_event() -> None:
    error = {
        "error": {"message": "no tool", "type": "invalid_request_error", "code": "tool_use_failed", "status_code": 400}
    }
    response = check_chunking(CHAT, [chunk({"content": "a"}), frame(error, "error")])
    assert response.error is not None
    assert (response.error.status, response.error.code, response.error.phase) == (400, "tool_use_failed", "mid_stream")


def test_openrouter_error_chunk_with_choices_and_usage() -> None:
    error = {"code": 502, "message": "Provider disconnected"}
    frames = [chunk({"content": "a"}), chunk({"content": ""}, "error", error=error, usage=PLAIN), DONE]
    response = check_chunking(CHAT, frames)
    assert response.error is not None
    assert (response.error.status, response.error.message, response.error.retryable) == (
        502,
        "Provider disconnected",
        True,
    )
    assert (response.finish, counts(response), response.complete) == ("error", (10, None, None, 4, None), True)


def test_a_null_error_is_no_error() -> None:
    response = check_chunking(CHAT, [chunk({"content": "a"}, "stop", error=None), DONE])
    assert response.error is None


def test_a_stream_request_may_get_a_plain_error() -> None:
    response = answer(CHAT, {"error": {"message": "slow down", "type": "rate_limit_error", "code": None}}, status=429)
    assert response.error is not None
    assert (response.error.phase, response.error.retryable, response.streamed) == ("before_stream", True, False)


def test_deepseek_labels_its_error_as_octets() -> None:
    headers = [("content-type", "application/octet-stream")]
    body = b'{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}'
    response = answer(CHAT, body, status=402, headers=headers)
    assert response.error is not None
    assert response.error.message == "Insufficient Balance"


# Answers without a stream


def completion(message: dict[str, Any], finish: Any = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": PLAIN, **more}


def test_blanks_before_json_are_skipped() -> None:
    import json

    response = answer(CHAT, "\n         \n\n         \n" + json.dumps(completion({"content": "Hi"})))
    assert (said(response), counts(response)) == ([("text", "Hi")], (10, None, None, 4, None))


def test_the_response_decides_whether_it_is_a_stream() -> None:
    plain = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
    assert answer(CHAT, [chunk({"content": "Hi"}, "stop"), DONE], request=plain).streamed
    assert said(answer(CHAT, completion({"content": "Hi"}))) == [("text", "Hi")]
    mislabelled = [("content-type", "application/json")]
    assert said(answer(CHAT, [chunk({"content": "Hi"}, "stop"), DONE], headers=mislabelled)) == [("text", "Hi")]


def test_snowflakes_zero_values_are_absent() -> None:
    call = {
        "custom": {"input": "", "name": ""},
        "function": {"arguments": '{"a":1}', "name": "f"},
        "id": "c1",
        "type": "function",
    }
    message = {
        "content": "",
        "refusal": "",
        "function_call": {"arguments": "", "name": ""},
        "annotations": [],
        "audio": {"data": "", "id": ""},
        "tool_calls": [call],
    }
    response = answer(CHAT, completion(message, finish=""))
    assert said(response) == [("call", "c1", "f", '{"a":1}')]
    assert (response.finish, response.raw_finish, response.messages[0].extra) == ("tool_calls", None, ())


def test_stop_with_tool_calls_means_tool_calls() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert answer(CHAT, completion({"content": None, "tool_calls": [call]}, "stop")).finish == "tool_calls"


def test_usage_chunk_like_bodies_without_choices_are_still_completions() -> None:
    for choices in (None, []):
        response = answer(CHAT, {"id": "c", "object": "chat.completion", "choices": choices, "usage": PLAIN})
        assert (response.messages, counts(response)) == ((), (10, None, None, 4, None))


def test_groq_compound_runs_tools_itself() -> None:
    tool = {"index": 0, "type": "search", "arguments": '{"query":"x"}', "output": "found", "search_results": {}}
    response = answer(CHAT, completion({"content": "Hi", "executed_tools": [tool]}))
    assert said(response) == [
        ("text", "Hi"),
        ("call", None, "search", '{"query":"x"}', "server"),
        ("result", None, "search", "found", "server"),
    ]
    assert response.finish == "stop"


# The dialect of the customer-service agent: `model_meta`, `stop_reason`, no ids


META = {"api_mode": 0, "max_tokens": 4096, "stream": True, "temperature": 0.8}
WEATHER = {"function": {"arguments": '{"city":"成都市"}', "name": "mojitianqi-DayWeather"}}
DOUBAO = {
    "messages": [
        {"content": "今天是 2026年02月28日 15时05分30秒 星期六 。# 角色\n", "role": "system"},
        {"content": "我在成都，今天天气如何", "role": "user"},
        {"content": "", "role": "assistant", "tool_calls": [WEATHER]},
        {"content": '{"temp_high":18}', "name": "mojitianqi-DayWeather", "role": "tool"},
    ],
    "model": "豆包·1.6·极致速度·250828",
    "model_meta": META,
    "tools": [
        {"function": {"description": "天气", "name": "mojitianqi-DayWeather", "parameters": {}}, "type": "function"}
    ],
}
DOUBAO_USAGE = {
    "completion_tokens": 48,
    "completion_tokens_details": {"reasoning_tokens": 0},
    "prompt_tokens": 906,
    "prompt_tokens_details": {"cached_tokens": 0},
    "total_tokens": 954,
}


def test_calls_without_ids_and_stop_reason() -> None:
    message = {"content": "", "role": "assistant", "tool_calls": [WEATHER]}
    body = {
        "choices": [{"index": 0, "message": message, "stop_reason": "tool_calls"}],
        "model": "豆包",
        "usage": DOUBAO_USAGE,
    }
    call = decode(exchange("https://agent.example.com/v1/infer", stream([]), request=DOUBAO))
    assert (call.format, call.dialect) == ("openai.chat", "doubao")
    assert call.request.stream
    assert blocks(call.request.messages)[2:] == [
        ("call", None, "mojitianqi-DayWeather", '{"city":"成都市"}'),
        ("result", None, "mojitianqi-DayWeather", '{"temp_high":18}'),
    ]
    assert check_paths(call, DOUBAO) == 4
    response = answer("https://agent.example.com/v1/infer", body, request=DOUBAO)
    assert said(response) == [("call", None, "mojitianqi-DayWeather", '{"city":"成都市"}')]
    assert (response.finish, response.raw_finish) == ("tool_calls", "tool_calls")
    assert counts(response) == (906, 0, None, 48, 0)


def test_the_model_may_be_named_in_model_meta_only() -> None:
    for name in ("model_name", "name", "id"):
        request = {"messages": DOUBAO["messages"], "model_meta": {**META, name: "豆包"}}
        assert decode(exchange(CHAT, None, request=request)).request.model == "豆包"


def test_azure_names_the_model_in_the_path() -> None:
    url = "https://r.example.com/openai/deployments/gpt-x/chat/completions?api-version=2024-10-21"
    request = {"messages": [{"role": "user", "content": "Hi"}]}
    assert decode(exchange(url, None, request=request)).request.model == "gpt-x"
    assert decode(exchange(url, None, request={**request, "model": "named"})).request.model == "named"


def test_unknown_events_are_kept() -> None:
    response = check_chunking(
        CHAT, [chunk({"content": "a"}), frame({"type": "vendor_news", "x": 1}), chunk({}, "stop")]
    )
    assert said(response) == [("text", "a"), ("unknown", "event")]
    assert [m.role for m in response.messages] == ["assistant", "system"]


def test_vllm_stop_reason_is_not_the_finish_reason() -> None:
    body = completion({"content": "a"})
    body["choices"][0]["stop_reason"] = 128009
    assert answer(CHAT, body).raw_finish == "stop"
    body["choices"][0]["stop_reason"] = "</end>"
    assert answer(CHAT, body).finish == "stop"


# DeepSeek's thinking mode


def test_deepseeks_empty_reasoning_is_kept_in_the_history() -> None:
    call = {"index": 0, "id": "call_00_a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    request = {
        "model": "deepseek-v4-pro",
        "messages": [
            {"role": "user", "content": "time?"},
            {"role": "assistant", "content": "", "reasoning_content": "I need the clock", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_00_a", "content": "12:00"},
            {"role": "assistant", "content": None, "reasoning_content": "", "tool_calls": [call]},
            {"role": "assistant", "content": "ok", "reasoning_content": None},
        ],
    }
    decoded = decode(exchange("https://api.deepseek.com/chat/completions", None, request=request))
    assert decoded.dialect == "deepseek"
    assert [blocks([m]) for m in decoded.request.messages] == [
        [("text", "time?")],
        [("reasoning", "I need the clock"), ("call", "call_00_a", "now", "{}")],
        [("result", "call_00_a", None, "12:00")],
        [("reasoning", ""), ("call", "call_00_a", "now", "{}")],
        [("text", "ok")],
    ]
    assert all(m.extra == () for m in decoded.request.messages)
    check_paths(decoded, request)


def test_deepseek_clock_tool_usage() -> None:
    usage = {
        "prompt_tokens": 316,
        "completion_tokens": 86,
        "total_tokens": 402,
        "prompt_tokens_details": {"cached_tokens": 256},
        "completion_tokens_details": {"reasoning_tokens": 37},
        "prompt_cache_hit_tokens": 256,
        "prompt_cache_miss_tokens": 60,
    }
    assert counts(answer(CHAT, completion({"content": "12:00"}, usage=usage))) == (316, 256, None, 86, 37)


# Time to first token


def test_first_token_is_the_first_event_with_content() -> None:
    frames = [
        b": ping\n\n",
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "I"}),
        chunk({"content": "a"}),
    ]
    response = answer(CHAT, stream(frames, [0, 3, 40, 90]))
    assert response.first_token_at == 100 + 40
    assert answer(CHAT, stream(frames[:2], [0, 3])).first_token_at is None


def test_a_tool_call_is_content_too() -> None:
    response = answer(
        CHAT, stream([chunk({"role": "assistant", "content": None}), calls(piece(0, "", "f", "c"))], [1, 7])
    )
    assert response.first_token_at == 107


# Truncated streams


def test_a_truncated_stream_keeps_the_received_part() -> None:
    frames = [
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        calls(piece(0, "", "f", "c1")),
        calls(piece(0, '{"a')),
    ]
    response = answer(CHAT, frames, ended=Ended.CLIENT_CLOSED)
    assert said(response) == [("text", "Hello"), ("call", "c1", "f", '{"a')]
    assert (response.complete, response.finish, response.usage) == (False, None, None)


def test_a_call_truncated_before_its_arguments_has_none() -> None:
    response = answer(CHAT, [calls(piece(0, "", "f", "c1"))], ended=Ended.UPSTREAM_CLOSED)
    assert response.messages[0].blocks == (ToolCall("c1", "f", ""),)


def test_a_call_without_a_response() -> None:
    from dataclasses import replace

    one = replace(exchange(CHAT, None), response=None, ended=Ended.UPSTREAM_UNREACHABLE)
    call = decode(one)
    assert (call.response, call.ended) == (None, Ended.UPSTREAM_UNREACHABLE)
    assert blocks(call.request.messages) == [("text", "go")]


def test_an_html_error_page() -> None:
    response = answer(CHAT, "<html>502 Bad Gateway</html>", status=502)
    assert response.error is not None
    assert (response.error.message, response.error.retryable) == ("<html>502 Bad Gateway</html>", True)


def test_truncated_json_is_kept_as_text() -> None:
    response = answer(CHAT, '{"id":"c","choices":[{"mess', ended=Ended.UPSTREAM_CLOSED)
    assert (said(response), response.complete) == ([("unknown", "text")], False)
