"""Responses: one small exchange for each case."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.wire import (
    RESPONSES,
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

from wiretape.model.call import Media, Message, Reasoning, ToolResult
from wiretape.model.http import Ended, Headers, Response
from wiretape.wire.base import Memo
from wiretape.wire.openai.responses import from_events, responses_request
from wiretape.wire.payload import Event, EventPayload

USAGE = {
    "input_tokens": 347,
    "output_tokens": 75,
    "output_tokens_details": {"reasoning_tokens": 18},
    "input_tokens_details": {"cached_tokens": 256, "cache_write_tokens": 64},
    "total_tokens": 422,
}
CREATED = {
    "type": "response.created",
    "response": {"id": "resp_1", "status": "in_progress", "model": "m-1", "output": []},
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, index: int, text: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **more}


def ended(status: str = "completed", **more: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "status": status, "model": "m-1", "usage": USAGE, **more}
    return {"type": f"response.{status}", "response": response}


FULL: list[dict[str, Any]] = [
    CREATED,
    {"type": "response.in_progress", "response": CREATED["response"]},
    added(0, {**REASONING, "encrypted_content": "partial"}),
    delta("reasoning_summary_text", 0, "In short", summary_index=0),
    done(0, {**REASONING, "summary": [{"type": "summary_text", "text": "In short"}]}),
    added(1, {**MESSAGE, "content": [], "status": "in_progress"}),
    {"type": "response.content_part.added", "output_index": 1, "content_index": 0, "part": {"type": "output_text"}},
    delta("output_text", 1, "Hel", content_index=0, obfuscation="xyz"),
    delta("output_text", 1, "lo", content_index=0, obfuscation="a"),
    {"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "Hello"},
    done(1, MESSAGE),
    added(2, {**CALL, "arguments": "", "status": "in_progress"}),
    delta("function_call_arguments", 2, '{"a"'),
    delta("function_call_arguments", 2, ":1}"),
    {"type": "response.function_call_arguments.done", "output_index": 2, "arguments": '{"a":1}'},
    done(2, CALL),
    ended(output=[]),
]
SAID = [("reasoning", "In short", "opaque"), ("text", "Hello"), ("call", "call_1", "f", '{"a":1}')]


def test_a_whole_stream() -> None:
    response = check_chunking(RESPONSES, named(FULL))
    assert said(response) == SAID
    assert (response.id, response.model, response.finish, response.raw_finish) == (
        "resp_1",
        "m-1",
        "tool_calls",
        "completed",
    )
    assert counts(response) == (347, 256, 64, 75, 18)
    assert (response.complete, response.streamed, response.error) == (True, True, None)
    assert response.messages[1].extra == (("phase", "final_answer"),)
    assert response.messages[0].blocks == (Reasoning("In short", "opaque", summary=True),)


def test_the_stream_and_the_plain_answer_are_the_same() -> None:
    output = [{**REASONING, "summary": [{"type": "summary_text", "text": "In short"}]}, MESSAGE, CALL]
    plain = answer(RESPONSES, {"object": "response", **ended()["response"], "output": output})
    assert (said(plain), counts(plain), plain.finish) == (SAID, (347, 256, 64, 75, 18), "tool_calls")


def test_events_without_names() -> None:
    assert said(check_chunking(RESPONSES, [frame(e) for e in FULL])) == SAID


def test_openrouter_ends_with_done() -> None:
    response = check_chunking(RESPONSES, [*[frame(e) for e in FULL], b"data: [DONE]\n\n"])
    assert (said(response), response.complete) == (SAID, True)


def test_done_alone_does_not_end_a_response() -> None:
    assert answer(RESPONSES, [*[frame(e) for e in FULL[:-1]], b"data: [DONE]\n\n"]).complete is False


def test_copilot_changes_the_ids_in_every_event() -> None:
    rotating = []
    for n, event in enumerate(FULL):
        event = {**event, "item_id": f"id_{n}"}
        if "item" in event:
            event["item"] = {**event["item"], "id": f"other_{n}"}
        rotating.append(event)
    assert said(check_chunking(RESPONSES, named(rotating))) == SAID


def test_keepalives_and_reasoning_parts_are_not_content() -> None:
    part = {"type": "response.reasoning_part.added", "output_index": 0, "content_index": 0, "part": {"text": ""}}
    events = [
        {"type": "keepalive", "sequence_number": 3},
        *FULL[:3],
        part,
        {**part, "type": "response.reasoning_part.done"},
    ]
    assert said(check_chunking(RESPONSES, named([*events, *FULL[3:]]))) == SAID


def test_deepseek_reasoning_text() -> None:
    item = {"type": "reasoning", "id": "713dda7a", "summary": [], "status": "in_progress"}
    text = {"type": "reasoning_text", "text": "The user wants"}
    events = [CREATED, added(0, item), delta("reasoning_text", 0, "The user ", content_index=0)]
    events += [delta("reasoning_text", 0, "wants", content_index=0)]
    closing = [done(0, {**item, "content": [text], "encrypted_content": "713dda7a-0", "status": "completed"}), ended()]
    assert said(check_chunking(RESPONSES, named([*events, *closing]))) == [
        ("reasoning", "The user wants", "713dda7a-0")
    ]
    assert said(answer(RESPONSES, named(events))) == [("reasoning", "The user wants")]


def test_a_truncated_stream_uses_its_deltas() -> None:
    response = answer(RESPONSES, named(FULL[:8]), ended=Ended.UPSTREAM_CLOSED)
    assert said(response) == [("reasoning", "In short", "opaque"), ("text", "Hel")]
    assert (response.complete, response.finish, response.usage) == (False, None, None)
    assert dict(response.messages[1].extra)["status"] == "incomplete"
    response = answer(RESPONSES, named(FULL[:13]))
    assert said(response)[-1] == ("call", "call_1", "f", '{"a"')
    assert said(answer(RESPONSES, named(FULL[:12])))[-1] == ("call", "call_1", "f", "")


def test_deltas_of_unannounced_items() -> None:
    events = [
        CREATED,
        delta("output_text", 0, "Hi", content_index=0),
        delta("function_call_arguments", 1, "{}", item_id="x"),
    ]
    assert said(check_chunking(RESPONSES, named([*events, ended()]))) == [("text", "Hi"), ("call", None, "", "{}")]


def test_items_only_in_the_terminal_event() -> None:
    assert said(check_chunking(RESPONSES, named([CREATED, ended(output=[MESSAGE, CALL])]))) == SAID[1:]


def test_incomplete_failed_and_cancelled() -> None:
    response = check_chunking(
        RESPONSES, named([CREATED, ended("incomplete", incomplete_details={"reason": "max_output_tokens"})])
    )
    assert (response.finish, response.raw_finish, response.complete) == ("length", "max_output_tokens", True)
    response = answer(RESPONSES, named([ended("incomplete", incomplete_details={"reason": "content_filter"})]))
    assert response.finish == "content_filter"
    failure = {"code": "server_error", "message": "Sorry, try again in 1.5s"}
    response = check_chunking(RESPONSES, named([CREATED, ended("failed", error=failure)]))
    assert response.error is not None
    assert (response.error.phase, response.error.code, response.error.retryable) == (
        "terminal_event",
        "server_error",
        True,
    )
    assert (response.error.retry_after_ms, response.finish, response.complete) == (1500, "error", True)
    assert answer(RESPONSES, {"object": "response", "status": "cancelled", "output": []}).finish == "error"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None},
        {
            "type": "error",
            "status": 429,
            "error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "slow down"},
        },
        {"error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "slow down"}},
    ],
)
def test_error_events_flat_and_nested(event: dict[str, Any]) -> None:
    response = check_chunking(RESPONSES, [*named(FULL[:8]), frame(event)])
    assert response.error is not None
    assert (response.error.message, response.error.code, response.error.phase) == (
        "slow down",
        "rate_limit_exceeded",
        "mid_stream",
    )
    assert response.error.retryable
    assert ("text", "Hel") in said(response)


def test_background_answers_are_a_pause() -> None:
    response = answer(RESPONSES, {"object": "response", "id": "resp_1", "status": "queued", "output": []})
    assert (response.finish, response.raw_finish) == ("pause", "queued")


SERVER_ITEMS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "web_search": (
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        [("call", "ws_1", "web_search", '{"type":"search","query":"x"}', "server")],
    ),
    "file_search": (
        {"type": "file_search_call", "id": "fs_1", "queries": ["x"], "results": [{"text": "found", "score": 1}]},
        [("call", "fs_1", "file_search", '["x"]', "server"), ("result", "fs_1", "file_search", "found", "server")],
    ),
    "code_interpreter": (
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "1+1",
            "container_id": "c",
            "outputs": [{"type": "logs", "logs": "2"}],
        },
        [("call", "ci_1", "code_interpreter", "1+1", "server"), ("result", "ci_1", "code_interpreter", "2", "server")],
    ),
    "mcp": (
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "s",
            "name": "ask",
            "arguments": '{"q":1}',
            "output": "yes",
        },
        [("call", "mcp_1", "ask", '{"q":1}', "server"), ("result", "mcp_1", "ask", "yes", "server")],
    ),
    "image": (
        {"type": "image_generation_call", "id": "ig_1", "revised_prompt": "a cat", "result": "QUJD"},
        [("call", "ig_1", "image_generation", '{"prompt":"a cat"}', "server"), ("media", "image")],
    ),
    "tool_search": (
        {"type": "tool_search_call", "id": "ts_1", "call_id": None, "execution": "server", "arguments": {"q": "x"}},
        [("call", "ts_1", "tool_search", '{"q":"x"}', "server")],
    ),
    "program": (
        {"type": "program", "id": "p_1", "call_id": "call_p", "code": "f()"},
        [("call", "call_p", "program", "f()", "server")],
    ),
    "mcp_list_tools": ({"type": "mcp_list_tools", "id": "l", "tools": []}, [("control", "mcp_list_tools")]),
    "compaction": ({"type": "compaction", "encrypted_content": "x"}, [("control", "compaction")]),
    "of_the_future": ({"type": "telepathy_call", "thought": 1}, [("unknown", "telepathy_call")]),
}


@pytest.mark.parametrize("name", SERVER_ITEMS)
def test_hosted_tools_need_no_answer(name: str) -> None:
    item, expected = SERVER_ITEMS[name]
    response = check_chunking(RESPONSES, named([CREATED, added(0, item), done(0, item), done(1, MESSAGE), ended()]))
    assert said(response) == [*expected, ("text", "Hello")]
    assert response.finish == "stop"


CLIENT_ITEMS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "namespace": ({**CALL, "namespace": "collaboration"}, [("call", "call_1", "collaboration.f", '{"a":1}')]),
    "custom": (
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
        [("call", "c", "sh", "ls", "custom")],
    ),
    "local_shell": (
        {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
        [("call", "c", "local_shell", '{"command":["ls"]}')],
    ),
    "shell": (
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        [("call", "c", "shell", '{"commands":["ls"]}')],
    ),
    "apply_patch": (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
        [("call", "c", "apply_patch", '{"type":"delete_file","path":"a"}')],
    ),
    "computer": (
        {"type": "computer_call", "call_id": "c", "actions": [{"type": "click"}]},
        [("call", "c", "computer", '[{"type":"click"}]')],
    ),
    "tool_search": (
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"q": "x"}},
        [("call", "c", "tool_search", '{"q":"x"}')],
    ),
    "without_arguments": ({**CALL, "arguments": ""}, [("call", "call_1", "f", "{}")]),
}


@pytest.mark.parametrize("name", CLIENT_ITEMS)
def test_client_tools_finish_with_tool_calls(name: str) -> None:
    item, expected = CLIENT_ITEMS[name]
    response = check_chunking(RESPONSES, named([CREATED, done(0, item), ended()]))
    assert (said(response), response.finish) == (expected, "tool_calls")


@pytest.mark.parametrize("index", [-7, 2**40])
def test_impossible_indexes_lose_no_text(index: int) -> None:
    broken = [CREATED, added(0, {**MESSAGE, "content": []}), delta("output_text", 0, "Hi", content_index=index)]
    assert ("text", "Hi") in said(check_chunking(RESPONSES, named(broken)))
    call = {"type": "shell_call", "call_id": "c", "action": {"commands": []}}
    typed = {"type": "response.shell_call_command.delta", "output_index": 0, "command_index": index, "delta": "ls -l"}
    (told,) = said(check_chunking(RESPONSES, named([CREATED, added(0, call), typed])))
    assert "ls -l" in str(told)


def test_a_hosted_shell_call_has_its_output_in_the_response() -> None:
    call = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    output = [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    result = {"type": "shell_call_output", "call_id": "c", "output": output}
    response = answer(RESPONSES, {"object": "response", "status": "completed", "output": [call, result, MESSAGE]})
    assert said(response)[:2] == [
        ("call", "c", "shell", '{"commands":["ls"]}', "server"),
        ("result", "c", None, "a.txt", "server"),
    ]
    assert response.finish == "stop"


def test_calls_of_xais_search_are_hosted() -> None:
    search = {"type": "custom_tool_call", "call_id": "xs_call_1", "name": "x_keyword_search", "input": "{}"}
    ours = {**search, "call_id": "c", "name": "sh"}
    tools = [{"type": "x_search"}, {"type": "custom", "name": "sh"}]
    body = {"object": "response", "status": "completed", "output": [search, ours], "tools": tools}
    assert [b[4] for b in said(answer(RESPONSES, body))] == ["server", "custom"]


def test_a_command_split_over_events() -> None:
    events = [CREATED, added(0, {"type": "shell_call", "call_id": "c", "action": {"commands": []}})]
    for piece in ("ls", " -l"):
        events.append(
            {"type": "response.shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": piece}
        )
    assert said(answer(RESPONSES, named(events))) == [("call", "c", "shell", '{"commands":["ls -l"]}')]


INPUT: list[Any] = [
    {"type": "message", "role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": "data:"}],
    },
    {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "In short"}],
        "encrypted_content": "op",
    },
    {
        "type": "message",
        "role": "assistant",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "I look"}],
    },
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}', "id": "fc"},
    {"type": "function_call_output", "call_id": "c1", "output": "42"},
    {
        "type": "function_call_output",
        "call_id": "c2",
        "output": [{"type": "input_text", "text": "seen"}, {"type": "input_image"}],
    },
    {"type": "custom_tool_call_output", "call_id": "c3", "output": "done"},
    {"type": "local_shell_call_output", "id": "c4", "output": "{}"},
    {"type": "apply_patch_call_output", "call_id": "c5", "status": "failed", "output": "no such file"},
    {"type": "computer_call_output", "call_id": "c6", "output": {"type": "computer_screenshot", "image_url": "data:"}},
    {"id": "msg_9"},
    {"type": "compaction_trigger"},
    {"type": "additional_tools", "role": "developer", "tools": []},
    {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
]


def test_every_kind_of_input_item() -> None:
    request = {
        "model": "m",
        "instructions": "You help.",
        "input": INPUT,
        "tools": [],
        "store": False,
        "temperature": None,
    }
    call = decode(exchange(RESPONSES, None, request=request))
    found = [(m.role, blocks([m])) for m in call.request.messages]
    assert found == [
        ("system", [("text", "You help.")]),
        ("system", [("text", "Be brief.")]),
        ("user", [("text", "Look"), ("media", "image")]),
        ("assistant", [("reasoning", "In short", "op")]),
        ("assistant", [("text", "I look")]),
        ("assistant", [("call", "c1", "f", '{"a": 1}')]),
        ("tool", [("result", "c1", None, "42")]),
        ("tool", [("result", "c2", None, "seen")]),
        ("tool", [("result", "c3", None, "done", "custom")]),
        ("tool", [("result", "c4", None, "{}")]),
        ("tool", [("result", "c5", None, "no such file")]),
        ("tool", [("result", "c6", None, "")]),
        ("assistant", [("control", "item_reference")]),
        ("system", [("control", "compaction_trigger")]),
        ("system", [("control", "additional_tools")]),
        ("user", [("control", "mcp_approval_response")]),
    ]
    assert check_paths(call, request) == 17
    assert [call.request.path(n) for n in (0, 1, 15)] == ["instructions", "input[0]", "input[14]"]
    assert call.request.settings == {"store": False}
    assert call.request.messages[4].extra == (("phase", "commentary"),)
    failed = call.request.messages[10].blocks[0]
    assert isinstance(failed, ToolResult)
    assert failed.is_error is True


def test_input_as_a_string() -> None:
    request = {"model": "m", "input": "Hello", "previous_response_id": "resp_0"}
    call = decode(exchange(RESPONSES, None, request=request))
    assert (blocks(call.request.messages), call.request.path(0)) == ([("text", "Hello")], "input")
    assert call.request.previous_response_id == "resp_0"
    assert check_paths(call, request) == 1


def test_tools_are_flat_and_namespaces_join_their_names() -> None:
    inner = {"type": "function", "name": "spawn_agent", "parameters": {"type": "object"}, "description": "Start"}
    tools = [
        {"type": "namespace", "name": "collaboration", "tools": [inner]},
        {"type": "custom", "name": "sh", "format": {"type": "text"}},
        {"type": "web_search"},
        {"type": "local_shell"},
        {"type": "mcp", "server_label": "wiki"},
    ]
    specs = decode(exchange(RESPONSES, None, request={"model": "m", "input": "x", "tools": tools})).request.tools
    assert [(t.name, t.kind) for t in specs] == [
        ("collaboration.spawn_agent", "function"),
        ("sh", "custom"),
        ("web_search", "server"),
        ("local_shell", "function"),
        ("wiki", "server"),
    ]
    assert (specs[0].description, specs[0].schema) == ("Start", {"type": "object"})


def test_token_counts_and_prewarms_are_not_inferences() -> None:
    counted = decode(exchange(RESPONSES + "/input_tokens", None, request={"model": "m", "input": "x"}))
    assert counted.kind == "token_count"
    response = answer(
        RESPONSES + "/input_tokens",
        {"object": "response.input_tokens", "input_tokens": 11},
        request={"model": "m", "input": "x"},
    )
    assert (response.usage, said(response)) == (None, [("media", "token_count")])
    warmed = decode(
        exchange(RESPONSES, None, request={"model": "m", "input": "x", "prompt_cache_options": {"prewarm": True}})
    )
    assert warmed.kind == "prewarm"


def test_compaction_answers_with_its_output() -> None:
    compacted = {
        "id": "resp_c",
        "object": "response.compaction",
        "output": [{"type": "compaction", "encrypted_content": "x"}],
    }
    response = answer(RESPONSES + "/compact", {**compacted, "usage": USAGE}, request={"model": "m", "input": INPUT})
    assert (said(response), counts(response)) == ([("control", "compaction")], (347, 256, 64, 75, 18))


def test_first_token_is_the_first_delta() -> None:
    frames = named(FULL[:9])
    response = answer(RESPONSES, stream(frames, [1, 2, 3, 44, 50, 60, 61, 70, 80]))
    assert response.first_token_at == 144
    assert answer(RESPONSES, stream(frames[:3], [1, 2, 3])).first_token_at is None


def test_events_may_come_from_a_websocket() -> None:
    """A WebSocket carries the same JSON, one event per message."""
    payload = EventPayload([Event("", event, n) for n, event in enumerate(FULL)])
    response = from_events(Response(101, Headers(), 0, None), payload)
    assert [b for m in response.messages for b in blocks([m])] == SAID
    request = responses_request({"type": "response.create", "model": "m", "input": "Hi", "generate": False}, Memo())
    assert (request.model, request.settings) == ("m", {"generate": False})


def test_images_in_answers_are_media() -> None:
    item = SERVER_ITEMS["image"][0]
    response = answer(RESPONSES, {"object": "response", "status": "completed", "output": [item]})
    assert response.messages[0].blocks[1] == Media("image", item)
    assert isinstance(response.messages[0], Message)
