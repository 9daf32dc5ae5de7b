"""Messages: one small exchange for each case."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import (
    MESSAGES,
    answer,
    blocks,
    check_chunking,
    check_paths,
    counts,
    decode,
    exchange,
    frame,
    named,
    said,
    stream,
)

from wiretape.model.call import Reasoning, ToolResult
from wiretape.model.http import Ended

USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}


def start(message_id: str = "msg_1", **usage: Any) -> dict[str, Any]:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "usage": {**USAGE, **usage}}}


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "content_block_start", "index": index, "content_block": content}]
    events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
    return [*events, {"type": "content_block_stop", "index": index}]


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces))


def tool(
    index: int, *pieces: str, name: str = "f", call_id: str = "toolu_1", kind: str = "tool_use"
) -> list[dict[str, Any]]:
    begun = {"type": kind, "id": call_id, "name": name, "input": {}}
    return block(index, begun, *({"type": "input_json_delta", "partial_json": p} for p in pieces))


def end(reason: str = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    changed = {"output_tokens": 42, **usage}
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": changed},
        {"type": "message_stop"},
    ]


THINKING = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "I "},
    {"type": "thinking_delta", "thinking": "think"},
    {"type": "signature_delta", "signature": "sig"},
)


def test_a_whole_stream() -> None:
    events = [
        start(),
        {"type": "ping"},
        *THINKING,
        *text(1, "Hel", "lo"),
        *tool(2, "", '{"a"', ": 1}"),
        *end("tool_use"),
    ]
    response = check_chunking(MESSAGES, named(events))
    assert said(response) == [("reasoning", "I think", "sig"), ("text", "Hello"), ("call", "toolu_1", "f", '{"a":1}')]
    assert (response.id, response.model, response.finish, response.raw_finish) == (
        "msg_1",
        "claude-x",
        "tool_calls",
        "tool_use",
    )
    assert counts(response) == (115, 100, 5, 42, None)
    assert (response.complete, response.streamed) == (True, True)
    assert len(response.messages) == 1


def test_the_stream_and_the_plain_answer_are_the_same() -> None:
    content = [
        {"type": "thinking", "thinking": "I think", "signature": "sig"},
        {"type": "text", "text": "Hello", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
    ]
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": content}
    response = answer(MESSAGES, {**body, "stop_reason": "tool_use", "usage": {**USAGE, "output_tokens": 42}})
    assert said(response) == [("reasoning", "I think", "sig"), ("text", "Hello"), ("call", "toolu_1", "f", '{"a":1}')]
    assert (counts(response), response.messages[0].extra) == ((115, 100, 5, 42, None), ())


def test_thinking_without_text_is_kept() -> None:
    thinking = block(0, {"type": "thinking", "thinking": ""}, {"type": "signature_delta", "signature": "sig"})
    redacted = block(1, {"type": "redacted_thinking", "data": "opaque"})
    response = check_chunking(MESSAGES, named([start(), *thinking, *redacted, *text(2, "Hi"), *end()]))
    assert response.messages[0].blocks[:2] == (Reasoning("", "sig"), Reasoning("", "opaque"))


def test_a_tool_call_without_arguments() -> None:
    response = check_chunking(MESSAGES, named([start(), *tool(0, ""), *end("tool_use")]))
    assert said(response) == [("call", "toolu_1", "f", "{}")]


def test_compatible_servers_may_send_the_whole_input_at_the_start() -> None:
    begun = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    assert said(check_chunking(MESSAGES, named([start(), *block(0, begun), *end("tool_use")]))) == [
        ("call", "t", "f", '{"a":1}')
    ]


def test_broken_arguments_are_kept_unchanged() -> None:
    response = check_chunking(MESSAGES, named([start(), *tool(0, '{"a": "unfin'), *end("max_tokens")]))
    assert (said(response), response.finish) == ([("call", "toolu_1", "f", '{"a": "unfin')], "length")


def test_the_last_usage_overwrites_and_is_never_added() -> None:
    grown = {"input_tokens": 404_500, "cache_creation_input_tokens": None, "cache_read_input_tokens": None}
    response = check_chunking(MESSAGES, named([start(input_tokens=2479), *text(0, "Hi"), *end(**grown)]))
    assert counts(response) == (404_605, 100, 5, 42, None)
    twice = [*end(output_tokens=7)[:1], *end(output_tokens=9)]
    assert counts(answer(MESSAGES, named([start(), *twice]))) == (115, 100, 5, 9, None)


def test_compatible_servers_may_report_the_input_at_the_end() -> None:
    begun = {
        "type": "message_start",
        "message": {"id": "m", "content": [], "usage": {"input_tokens": 0, "output_tokens": 0}},
    }
    response = answer(MESSAGES, named([begun, *text(0, "Hi"), *end(input_tokens=33)]))
    assert counts(response) == (33, None, None, 42, None)


def test_cache_writes_split_by_lifetime() -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
    }
    body = {"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage}
    assert counts(answer(MESSAGES, body)) == (8, None, 7, 2, None)


def test_passes_outside_the_top_level_are_counted() -> None:
    one = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 0}
    usage = {
        **one,
        "output_tokens_details": {"thinking_tokens": 2},
        "iterations": [
            {"type": "compaction", **one, "input_tokens": 99_195, "output_tokens": 900},
            {"type": "message", **one},
            {"type": "advisor_message", **one, "input_tokens": 2_518},
        ],
    }
    body = {"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage}
    assert counts(answer(MESSAGES, body)) == (99_195 + 10 + 2_518 + 9, 9, 0, 910, 2)
    only_messages = {**one, "iterations": [{"type": "message", **one}]}
    assert counts(answer(MESSAGES, {**body, "usage": only_messages})) == (13, 3, 0, 5, None)


def test_the_same_start_twice_is_one_message() -> None:
    response = check_chunking(MESSAGES, named([start(), start(), *text(0, "Hi"), *end()]))
    assert (said(response), response.messages[0].extra) == ([("text", "Hi")], ())


def test_a_message_spliced_in_after_a_retry_replaces_the_unfinished_one() -> None:
    events = [start("msg_first"), *text(0, "Lost")[:2], start("msg_second", input_tokens=1), *text(0, "Kept"), *end()]
    response = check_chunking(MESSAGES, named(events))
    assert (response.id, said(response), counts(response)) == (
        "msg_second",
        [("text", "Kept")],
        (106, 100, 5, 42, None),
    )
    abandoned = dict(response.messages[0].extra)["abandoned"]
    assert abandoned[0]["content"] == [{"type": "text", "text": "Lost"}]


def test_server_tools_need_no_answer() -> None:
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "title": "T"}],
    }
    citation = {"type": "citations_delta", "citation": {"cited_text": "c"}}
    cited = block(2, {"type": "text", "text": "", "citations": []}, {"type": "text_delta", "text": "So"}, citation)
    events = [start(), *tool(0, '{"query":"x"}', name="web_search", call_id="srvtoolu_1", kind="server_tool_use")]
    response = check_chunking(MESSAGES, named([*events, *block(1, found), *cited, *end()]))
    assert said(response) == [
        ("call", "srvtoolu_1", "web_search", '{"query":"x"}', "server"),
        ("result", "srvtoolu_1", "web_search", "", "server"),
        ("text", "So"),
    ]
    assert (response.finish, dict(response.messages[0].extra)) == (
        "stop",
        {"content[2].citations": [{"cited_text": "c"}]},
    )


def test_a_hosted_tool_that_failed() -> None:
    failed = {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"}
    raw = {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": failed}
    result = answer(MESSAGES, {"type": "message", "content": [raw], "stop_reason": "end_turn"}).messages[0].blocks[0]
    assert result == ToolResult("s", "web_fetch", "url_not_accessible", True, (failed,), "server")


def test_mcp_tools_run_by_the_provider() -> None:
    content = [
        {"type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "s", "input": {"a": 1}},
        {
            "type": "mcp_tool_result",
            "tool_use_id": "m1",
            "is_error": False,
            "content": [{"type": "text", "text": "hi"}],
        },
    ]
    response = answer(MESSAGES, {"type": "message", "content": content, "stop_reason": "end_turn"})
    assert said(response) == [("call", "m1", "echo", '{"a":1}', "server"), ("result", "m1", None, "hi", "server")]
    assert dict(response.messages[0].extra) == {"content[0].server_name": "s"}


def test_after_a_fallback_another_model_answers() -> None:
    fell = {"type": "fallback", "from": {"model": "claude-x"}, "to": {"model": "claude-y"}}
    response = check_chunking(MESSAGES, named([start(), *block(0, fell), *text(1, "Hi"), *end()]))
    assert (response.model, said(response)) == ("claude-y", [("control", "fallback"), ("text", "Hi")])


def test_compaction_is_replaced_not_appended() -> None:
    compaction = block(
        0,
        {"type": "compaction", "content": None},
        {"type": "compaction_delta", "content": "Summary", "encrypted_content": "e"},
    )
    response = check_chunking(MESSAGES, named([start(), *compaction, *end("compaction")]))
    assert response.messages[0].blocks[0].raw == {"type": "compaction", "content": "Summary", "encrypted_content": "e"}  # type: ignore[union-attr]
    assert response.finish == "pause"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop_sequence", "stop"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause"),
        ("model_context_window_exceeded", "length"),
        ("something_new", None),
    ],
)
def test_stop_reasons(reason: str, finish: str | None) -> None:
    response = answer(MESSAGES, named([start(), *text(0, "Hi"), *end(reason)]))
    assert (response.finish, response.raw_finish) == (finish, reason)


def test_an_error_in_the_middle() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
    response = check_chunking(MESSAGES, [*named([start(), *text(0, "Hel")[:2]]), frame(error, "error")])
    assert response.error is not None
    assert (response.error.type, response.error.phase, response.error.retryable) == (
        "overloaded_error",
        "mid_stream",
        True,
    )
    assert (said(response), response.complete) == ([("text", "Hel")], False)


def test_an_error_before_the_stream() -> None:
    error = {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "Slow", "details": {"error_code": "quota"}},
    }
    response = answer(MESSAGES, error, status=429, headers=[("retry-after", "7")])
    assert response.error is not None
    assert (response.error.type, response.error.code, response.error.retry_after_ms) == (
        "rate_limit_error",
        "quota",
        7000,
    )
    assert (response.error.retryable, response.error.phase, response.messages) == (True, "before_stream", ())


def test_a_message_delta_with_a_stop_reason_is_the_end_of_the_content() -> None:
    assert answer(MESSAGES, named([start(), *text(0, "Hi"), *end()[:1]])).complete
    assert not answer(MESSAGES, named([start(), *text(0, "Hi")]), ended=Ended.CLIENT_CLOSED).complete


def test_a_truncated_stream_keeps_the_received_part() -> None:
    response = answer(MESSAGES, named([start(), *text(0, "Hi"), *tool(1, '{"a"')[:-1]]), ended=Ended.CLIENT_CLOSED)
    assert said(response) == [("text", "Hi"), ("call", "toolu_1", "f", '{"a"')]
    assert (response.complete, response.finish, counts(response)) == (False, None, (115, 100, 5, None, None))


def test_padded_data_lines_and_events_without_names() -> None:
    padded = [frame(e).replace(b"}\n\n", b"}        \n\n") for e in [start(), *text(0, "Hi"), *end()]]
    assert said(check_chunking(MESSAGES, padded)) == [("text", "Hi")]


def test_pings_and_empty_deltas_are_not_the_first_token() -> None:
    events = [start(), {"type": "ping"}, *text(0, "", "Hi")]
    assert answer(MESSAGES, stream(named(events), [0, 1, 2, 3, 50, 60])).first_token_at == 150
    assert answer(MESSAGES, stream(named([start(), *tool(0, "")]), [0, 9, 20, 30])).first_token_at == 109


REQUEST: dict[str, Any] = {
    "model": "claude-x",
    "max_tokens": 100,
    "stream": True,
    "thinking": {"type": "adaptive"},
    "metadata": {"user_id": "u"},
    "temperature": None,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cch=abc;"},
        {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}},
    ],
    "tools": [
        {"name": "f", "description": "F", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "mcp_toolset", "mcp_server_name": "wiki"},
    ],
    "messages": [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "sig"},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "42"}, {"type": "image", "source": {}}],
                },
                {"type": "tool_result", "tool_use_id": "t2", "is_error": True, "content": "no"},
                {"type": "tool_result", "tool_use_id": "t3"},
                {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": {}, "cache_control": None},
            ],
        },
        {"role": "system", "content": [{"type": "text", "text": "Be brief"}], "clear_at": "next"},
    ],
}


def test_a_request() -> None:
    call = decode(exchange(MESSAGES + "?beta=true", None, request=REQUEST))
    assert [(m.role, blocks([m]), m.cache_marked) for m in call.request.messages] == [
        ("system", [("text", "x-anthropic-billing-header: cch=abc;")], False),
        ("system", [("text", "You help.")], True),
        ("user", [("text", "Hi")], False),
        ("assistant", [("reasoning", "", "sig"), ("text", "I look"), ("call", "t1", "f", '{"a":1}')], False),
        (
            "user",
            [
                ("result", "t1", None, "42"),
                ("result", "t2", None, "no"),
                ("result", "t3", None, ""),
                ("text", "go on"),
                ("media", "image"),
            ],
            True,
        ),
        ("system", [("text", "Be brief")], False),
    ]
    assert check_paths(call, {**REQUEST, "messages": with_content(REQUEST["messages"])}) == 12
    assert [call.request.path(n) for n in (0, 1, 2, 5)] == ["system[0]", "system[1]", "messages[0]", "messages[3]"]
    assert call.request.settings == {k: REQUEST[k] for k in ("max_tokens", "stream", "thinking", "metadata")}
    assert [(t.name, t.kind) for t in call.request.tools] == [
        ("f", "function"),
        ("web_search", "server"),
        ("bash", "function"),
        ("wiki", "server"),
    ]
    assert call.request.messages[5].extra == (("clear_at", "next"),)
    result = call.request.messages[4].blocks[0]
    assert isinstance(result, ToolResult)
    assert result.parts == ({"type": "image", "source": {}},)


def with_content(messages: list[Any]) -> list[Any]:
    """Return the messages with absent result contents added, so that their paths can be followed."""
    filled = [dict(m) for m in messages]
    filled[2]["content"] = [{"content": "", **b} for b in filled[2]["content"]]
    return filled


def test_system_as_a_string() -> None:
    request = {"model": "m", "max_tokens": 1, "system": "You help.", "messages": [{"role": "user", "content": "Hi"}]}
    call = decode(exchange(MESSAGES, None, request=request))
    assert [call.request.path(n) for n in (0, 1)] == ["system", "messages[0]"]
    assert check_paths(call, request) == 2


def test_a_token_count_is_not_an_inference() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    url = MESSAGES + "/count_tokens?beta=true"
    assert decode(exchange(url, None, request=request)).kind == "token_count"
    response = answer(url, {"input_tokens": 19}, request=request)
    assert (response.usage, said(response)) == (None, [("media", "token_count")])


def test_a_request_without_output_is_a_prewarm() -> None:
    assert decode(exchange(MESSAGES, None, request={**REQUEST, "max_tokens": 0})).kind == "prewarm"


def test_a_thread_continues_an_earlier_message() -> None:
    request = {**REQUEST, "thread": {"type": "continue", "previous_message_id": "msg_0"}}
    assert decode(exchange(MESSAGES, None, request=request)).request.previous_response_id == "msg_0"


def test_vertex_names_the_model_in_the_path() -> None:
    url = "https://x-aiplatform.example.com/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict"
    request = {
        "anthropic_version": "vertex-2023-10-16",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    call = decode(exchange(url, stream(named([start(), *text(0, "Hi"), *end()])), request=request))
    assert (call.format, call.request.model) == ("anthropic.messages", "claude-x")
