"""Next requests of each format: the answer and the results as the client sends them, and the model's place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.growing import FORMATS, Format
from tests.support.wire_binary import chunk

from wiretape.model.call import ToolResult
from wiretape.model.http import Headers, JsonBody, Response, StreamBody
from wiretape.rerun.next_request.base import TurnDelta
from wiretape.rerun.next_request.builders import builder_for
from wiretape.wire.registry import built_in

BY_NAME = {one.label: one for one in FORMATS}
CALL = ("call_1", "weather", {"city": "Bern"})


def grown(name: str, answer: dict[str, Any], *results: ToolResult, **more: Any) -> dict[str, Any]:
    return BY_NAME[name].builder.next_body(more.pop("body", BY_NAME[name].body), TurnDelta(answer, results, **more))


def test_other_formats_have_no_builder() -> None:
    without = {form.name for form in built_in() if builder_for(form) is None}
    assert {"ollama.generate", "openai.completions"} <= without
    assert not without & {one.name for one in FORMATS}


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.label)
def test_arguments_are_not_modified_and_unchanged_parts_are_shared(one: Format) -> None:
    before = repr(one.body)
    since = TurnDelta(one.answer("Let me see.", [CALL]), [ToolResult("call_1", "weather", "7")])
    body = one.builder.next_body(one.body, since)
    assert repr(one.body) == before
    path = one.builder.history_path(one.body)
    if isinstance(one.body[path[0]], list):
        assert body[path[0]][0] is one.body[path[0]][0]


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.label)
def test_the_model_can_be_replaced(one: Format) -> None:
    url, body = one.builder.with_model(one.url, one.body, "other-1")
    request = one.request(body)
    assert (
        one.form.decode_request(type(request)("POST", url, request.headers, request.body), _memo()).model == "other-1"
    )


def _spoiled(value: Any, strange: Any) -> Iterator[Any]:
    """The value with one string after the other replaced by an object or a list."""
    if isinstance(value, str):
        yield strange
    elif isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            for spoiled in _spoiled(value[key], strange):
                changed = copy.copy(value)
                changed[key] = spoiled
                yield changed


@pytest.mark.parametrize("strange", [{"a": 1}, ["a"], 3, None], ids=repr)
@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.label)
def test_a_value_of_any_type_where_a_text_is_expected_raises_no_internal_error(one: Format, strange: Any) -> None:
    answer = one.answer("Let me see.", [CALL])
    results = [ToolResult("call_1", "weather", "7")]
    body = one.builder.next_body(one.body, TurnDelta(answer, results))
    for spoiled in _spoiled(answer, strange):
        one.builder.next_body(one.body, TurnDelta(spoiled, results))
    for spoiled in _spoiled(one.body, strange):
        one.builder.next_body(spoiled, TurnDelta(answer, results))
    for spoiled in _spoiled(body, strange):
        one.builder.next_body(one.body, TurnDelta(answer, results, style_sample=spoiled))


def _memo() -> Any:
    from wiretape.wire.base import Memo

    return Memo()


# -- Chat Completions ------------------------------------------------------------------------------------------------


def chat_answer(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}}]}


TOOL_CALLS = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]


def test_chat_sends_the_answer_and_a_result_for_each_call() -> None:
    body = grown("openai.chat", chat_answer(content=None, tool_calls=TOOL_CALLS), ToolResult("call_1", None, "7"))
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "7"},
    ]


def test_chat_sends_reasoning_as_the_client_does() -> None:
    answer = chat_answer(content="", reasoning_content="Hm.", tool_calls=TOOL_CALLS)
    assert grown("openai.chat", answer)["messages"][1]["reasoning_content"] == "Hm."
    history = BY_NAME["openai.chat"].body["messages"]
    silent = {"messages": [*history, {"role": "assistant", "content": "", "tool_calls": []}]}
    assert "reasoning_content" not in grown("openai.chat", answer, style_sample=silent)["messages"][1]


def test_chat_names_reasoning_as_the_client_does() -> None:
    history = BY_NAME["openai.chat"].body["messages"]
    like = {"messages": [*history, {"role": "assistant", "content": "", "reasoning_content": "Hm."}]}
    answer = chat_answer(content="", reasoning="Hm.")
    assert grown("openai.chat", answer, style_sample=like)["messages"][1]["reasoning_content"] == "Hm."
    empty = {"messages": [*history, {"role": "assistant", "content": "", "reasoning_content": ""}]}
    assert (
        grown("openai.chat", chat_answer(content="Yes."), style_sample=empty)["messages"][1]["reasoning_content"] == ""
    )


def test_chat_results_have_a_name_in_dialects_without_ids() -> None:
    history = BY_NAME["openai.chat"].body["messages"]
    said = {"role": "assistant", "content": None, "tool_calls": TOOL_CALLS}
    like = {"messages": [*history, said, {"role": "tool", "name": "weather", "content": "7"}]}
    answer = chat_answer(content=None, tool_calls=TOOL_CALLS)
    body = grown("openai.chat", answer, ToolResult("call_1", None, "7"), style_sample=like)
    assert body["messages"][2] == {"role": "tool", "name": "weather", "content": "7"}


def test_chat_supports_the_legacy_function_call() -> None:
    answer = chat_answer(content=None, function_call={"name": "weather", "arguments": "{}"})
    body = grown("openai.chat", answer, ToolResult(None, None, "7"))
    assert body["messages"][2] == {"role": "function", "name": "weather", "content": "7"}


def test_chat_answers_are_joined_from_a_stream() -> None:
    frames = [
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Se"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"ven."},"finish_reason":"stop"}]}\n\n',
        b"data: [DONE]\n\n",
    ]
    response = Response(200, Headers([("content-type", "text/event-stream")]), 0, StreamBody(frames, [0, 1, 2]))
    answer = BY_NAME["openai.chat"].builder.read_answer(response)
    assert grown("openai.chat", answer, user="Thanks.")["messages"][1:] == [
        {"role": "assistant", "content": "Seven."},
        {"role": "user", "content": "Thanks."},
    ]


# -- Responses -------------------------------------------------------------------------------------------------------


def test_responses_sends_its_items_if_they_are_not_stored() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA", "status": None},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
    ]
    body = grown("openai.responses", {"id": "resp_1", "output": output}, ToolResult("c1", None, "7"))
    assert body["input"] == [
        {"role": "user", "content": "How warm is it?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "7"},
    ]
    assert "previous_response_id" not in body


def test_responses_sends_only_new_items_if_the_history_is_stored() -> None:
    like = {"previous_response_id": "resp_0", "input": []}
    answer = {"id": "resp_1", "output": [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}]}
    body = grown("openai.responses", answer, ToolResult("c1", None, "7"), style_sample=like)
    assert body["previous_response_id"] == "resp_1"
    assert body["input"] == [{"type": "function_call_output", "call_id": "c1", "output": "7"}]
    again = grown("openai.responses", {"id": "resp_2", "output": []}, user="Thanks.", body=body)  # its own style
    assert (again["previous_response_id"], again["input"]) == ("resp_2", [{"role": "user", "content": "Thanks."}])


@pytest.mark.parametrize(
    ("call", "result", "item"),
    [
        (
            {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"},
            ToolResult("c1", None, "7", kind="custom"),
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "7"},
        ),
        (
            {"type": "local_shell_call", "call_id": "c1", "id": "lsh_1", "action": {}},
            ToolResult("c1", None, "7"),
            {"type": "local_shell_call_output", "id": "c1", "output": "7"},
        ),
        (
            {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
            ToolResult("c1", None, "", parts=({"stdout": "a", "stderr": "", "outcome": {"type": "exit"}},)),
            {
                "type": "shell_call_output",
                "call_id": "c1",
                "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit"}}],
            },
        ),
        (
            {"type": "apply_patch_call", "call_id": "c1", "operation": {}},
            ToolResult("c1", None, "no", is_error=True),
            {"type": "apply_patch_call_output", "call_id": "c1", "output": "no", "status": "failed"},
        ),
    ],
    ids=["custom", "local shell", "shell", "apply patch"],
)
def test_responses_has_a_result_for_each_kind_of_call(
    call: dict[str, Any], result: ToolResult, item: dict[str, Any]
) -> None:
    assert grown("openai.responses", {"id": "resp_1", "output": [call]}, result)["input"][-1] == item


# -- Messages --------------------------------------------------------------------------------------------------------


def test_messages_send_signed_reasoning_and_results_first() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
        {"type": "redacted_thinking", "data": "EmwK"},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}, "caller": {"type": "direct"}},
    ]
    result = ToolResult("toolu_1", None, "no such city", is_error=True)
    body = grown("anthropic.messages", {"content": content}, result, user="Go on.")
    assert body["messages"][1]["content"] == [
        content[0],
        content[1],
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
    ]
    assert body["messages"][2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such city", "is_error": True},
            {"type": "text", "text": "Go on."},
        ],
    }


def test_messages_send_hosted_tools_and_a_pause_alone() -> None:
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result"}]},
    ]
    body = grown("anthropic.messages", {"content": content, "stop_reason": "pause_turn"})
    assert body["messages"][1:] == [{"role": "assistant", "content": content}]


# -- Gemini ----------------------------------------------------------------------------------------------------------


def gemini_answer(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}


def test_gemini_keeps_signatures_and_sends_results_as_objects() -> None:
    call = {"functionCall": {"name": "weather", "args": {}}, "thoughtSignature": "CiQB"}
    body = grown(
        "gemini.generate", gemini_answer({"text": "Hm.", "thought": True}, call), ToolResult(None, "weather", "7")
    )
    assert body["contents"][1:] == [
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}, call]},
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": "7"}}}]},
    ]


def test_gemini_spells_results_like_its_client() -> None:
    history = BY_NAME["gemini.generate"].body["contents"]
    given = {"functionResponse": {"id": "1", "name": "weather", "response": {"result": "7"}}}
    like = {"contents": [*history, {"role": "model", "parts": [{}]}, {"role": "function", "parts": [given]}]}
    call = {"functionCall": {"id": "1", "name": "weather", "args": {}}}
    body = grown("gemini.generate", gemini_answer(call), ToolResult("1", "weather", "8"), style_sample=like)
    changed = {"functionResponse": {"id": "1", "name": "weather", "response": {"result": "8"}}}
    assert body["contents"][2] == {"role": "function", "parts": [changed]}
    as_object = grown("gemini.generate", gemini_answer(call), ToolResult("1", "weather", '{"degrees": 7}'))
    assert as_object["contents"][2]["parts"][0]["functionResponse"]["response"] == {"degrees": 7}


def test_gemini_appends_inside_its_wrapper() -> None:
    wrapped = {"model": "m", "project": "p", "request": BY_NAME["gemini.generate"].body}
    body = grown("gemini.generate", gemini_answer({"text": "Seven."}), user="Thanks.", body=wrapped)
    assert body["project"] == "p"
    assert [content["role"] for content in body["request"]["contents"]] == ["user", "model", "user"]


# -- Converse, Ollama, Cohere ----------------------------------------------------------------------------------------


def test_converse_states_failed_tools_and_keeps_signatures() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "EqQB"}}}
    call = {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {}}}
    answer = {"output": {"message": {"role": "assistant", "content": [thought, call]}}}
    body = grown("bedrock.converse", answer, ToolResult("t1", None, "no", is_error=True))
    assert body["messages"][1]["content"] == [thought, call]
    assert body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "no"}], "status": "error"}}
    ]


def test_ollama_sends_arguments_as_objects_and_tool_names() -> None:
    message = {
        "role": "assistant",
        "content": "",
        "thinking": "Hm.",
        "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
    }
    body = grown("ollama.chat", {"message": message, "done": True}, ToolResult(None, "f", "7"))
    assert body["messages"][1:] == [message, {"role": "tool", "content": "7", "tool_name": "f"}]


def test_cohere_sends_the_plan_and_documents_like_its_client() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    answer = {"message": {"role": "assistant", "tool_plan": "Look it up.", "tool_calls": calls}}
    body = grown("cohere.chat", answer, ToolResult("c1", None, "7"))
    assert body["messages"][1:] == [
        {"role": "assistant", "tool_plan": "Look it up.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "7"},
    ]
    documents = [{"type": "document", "document": {"data": "7"}}]
    said = {"role": "assistant", "tool_plan": "", "tool_calls": calls}
    like = {"messages": [*BY_NAME["cohere.chat"].body["messages"], said, {"role": "tool", "content": documents}]}
    spelled = grown("cohere.chat", answer, ToolResult("c1", None, "8"), style_sample=like)
    assert spelled["messages"][2]["content"] == [{"type": "document", "document": {"data": "8"}}]


# -- Interactions ----------------------------------------------------------------------------------------------------


THOUGHT = {"type": "thought", "signature": "EqQB", "summary": [{"type": "text", "text": "Hm."}]}
FUNCTION_CALL = {"type": "function_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}
INTERACTION = {"id": "i1", "status": "requires_action", "steps": [THOUGHT, FUNCTION_CALL]}


def test_interactions_send_their_steps_if_they_are_not_stored() -> None:
    body = grown("gemini.interactions", INTERACTION, ToolResult("c1", None, "7", is_error=True), user="Go on.")
    assert body["input"] == [
        {"type": "user_input", "content": [{"type": "text", "text": "How warm is it?"}]},
        THOUGHT,
        FUNCTION_CALL,
        {"type": "function_result", "call_id": "c1", "name": "weather", "result": "7", "is_error": True},
        {"type": "user_input", "content": [{"type": "text", "text": "Go on."}]},
    ]
    assert "previous_interaction_id" not in body


def test_interactions_send_only_new_steps_if_the_history_is_stored() -> None:
    like = {"previous_interaction_id": "i0", "input": [{"type": "function_result", "call_id": "x", "result": [{}]}]}
    body = grown("gemini.interactions", INTERACTION, ToolResult("c1", "weather", "7"), style_sample=like)
    assert body["previous_interaction_id"] == "i1"
    assert body["input"] == [{"type": "function_result", "call_id": "c1", "result": [{"type": "text", "text": "7"}]}]
    assert BY_NAME["gemini.interactions"].builder.stored_history(body) == {"previous_interaction_id": "i1"}


def test_interactions_follow_their_client_in_results_and_thoughts() -> None:
    question = {"type": "user_input", "content": "How warm is it?"}
    given = {"type": "function_result", "call_id": "c1", "name": "weather", "result": {"degrees": 7}}
    like = {"model": "m", "input": [question, FUNCTION_CALL, given]}
    before = {"model": "m", "input": [question]}
    body = grown(
        "gemini.interactions", INTERACTION, ToolResult("c1", None, '{"degrees": 8}'), style_sample=like, body=before
    )
    assert body["input"] == [question, FUNCTION_CALL, {**given, "result": {"degrees": 8}}]


def test_interactions_wrap_content_without_a_step() -> None:
    image = {"type": "image", "uri": "gs://a/b.png"}
    before = {"model": "m", "input": ["What is this?", image]}
    body = grown("gemini.interactions", {"id": "i1", "outputs": [{"type": "text", "text": "A cat."}]}, body=before)
    assert body["input"] == [
        {"type": "user_input", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"type": "model_output", "content": [{"type": "text", "text": "A cat."}]},
    ]


def test_interactions_are_joined_from_a_stream() -> None:
    events = [
        {"event_type": "interaction.created", "interaction": {"id": "i1", "status": "in_progress"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Se"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "ven."}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {"id": "i1", "status": "completed"}},
    ]
    frames = [b"data: %s\n\n" % json.dumps(event).encode() for event in events]
    response = Response(200, Headers([("content-type", "text/event-stream")]), 0, StreamBody(frames, [0] * len(frames)))
    answer = BY_NAME["gemini.interactions"].builder.read_answer(response)
    assert answer["id"] == "i1"
    assert grown("gemini.interactions", answer)["input"][1:] == [
        {"type": "model_output", "content": [{"type": "text", "text": "Seven."}]}
    ]


# -- Invoke ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vendor", "events", "said"),
    [
        (
            "anthropic",
            [
                {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Seven."}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 9}},
            ],
            {"role": "assistant", "content": [{"type": "text", "text": "Seven."}]},
        ),
        (
            "nova",
            [
                {"messageStart": {"role": "assistant"}},
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Seven."}}},
                {"contentBlockStop": {"contentBlockIndex": 0}},
                {"messageStop": {"stopReason": "end_turn"}},
            ],
            {"role": "assistant", "content": [{"text": "Seven."}]},
        ),
        (
            "chat",
            [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Seven."}, "finish_reason": "stop"}]}],
            {"role": "assistant", "content": "Seven."},
        ),
    ],
    ids=["anthropic", "nova", "chat"],
)
def test_invoke_continues_in_its_vendors_format(
    vendor: str, events: list[dict[str, Any]], said: dict[str, Any]
) -> None:
    one = BY_NAME[f"bedrock.invoke {vendor}"]
    frames = [chunk(event) for event in events]
    headers = Headers([("content-type", "application/vnd.amazon.eventstream")])
    answer = one.builder.read_answer(Response(200, headers, 0, StreamBody(frames, [0] * len(frames))))
    assert one.builder.next_body(one.body, TurnDelta(answer))["messages"][1:] == [said]


def test_a_plain_prompt_has_no_history() -> None:
    builder = BY_NAME["bedrock.invoke anthropic"].builder
    body = {"prompt": "[INST] How warm is it? [/INST]", "max_gen_len": 9}
    assert builder.history_path(body) == ()
    assert builder.next_body(body, TurnDelta({"generation": "Seven."}, user="Thanks.")) is body
    embedding = {"inputText": "warm"}
    assert (builder.history_path(embedding), builder.stored_history(embedding)) == ((), {})


def test_an_answer_that_cannot_be_read_adds_nothing() -> None:
    for one in FORMATS:
        response = Response(500, Headers(), 0, JsonBody({"error": {"message": "overloaded"}}))
        body = one.builder.next_body(one.body, TurnDelta(one.builder.read_answer(response)))
        path = one.builder.history_path(body)
        assert len(body[path[0]]) == 1
