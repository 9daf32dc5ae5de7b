"""Normalized requests."""

from __future__ import annotations

from wiretape.compare.normalize import (
    counts,
    loose,
    normalized_message,
    settings_template,
    text_template,
    tool_template,
)
from wiretape.model.call import CallRequest, Media, Message, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Unknown
from wiretape.wire.base import Volatile

VOLATILE = Volatile(frozenset({"user"}), frozenset({("metadata", "user_id")}))


def test_ids_are_taken_out_in_their_order() -> None:
    message = Message(
        "assistant",
        (ToolCall("c1", "a", '{"x": 1}'), ToolResult("c2", None, "ok"), Unknown("odd", {"call_id": "c3", "v": 1})),
        extra=(("id", "m1"), ("phase", "final")),
    )
    shape = normalized_message(message)
    assert shape.ids == ("c1", "c2", "c3", "m1")
    renamed = Message(
        "assistant",
        (ToolCall("d1", "a", '{"x":1.0}'), ToolResult("d2", None, "ok"), Unknown("odd", {"call_id": "d3", "v": 1})),
        extra=(("id", "n1"), ("phase", "final")),
    )
    assert normalized_message(renamed).template == shape.template


def test_opaque_state_and_cache_markers_are_taken_out() -> None:
    one = Message("user", (Reasoning("hm", "sig-a"), Media("image", {"url": "u", "cache_control": {"type": "e"}})))
    other = Message("user", (Reasoning("hm", "sig-b"), Media("image", {"url": "u"})))
    assert normalized_message(one).template == normalized_message(other).template


def test_what_is_content_stays() -> None:
    shapes = [
        normalized_message(Message(role, blocks)).template
        for role, blocks in [
            ("user", (Text("a"),)),
            ("assistant", (Text("a"),)),
            ("user", (Text("b"),)),
            ("user", (Text("a", refusal=True),)),
            ("user", (Reasoning("a"),)),
            ("user", (ToolCall(None, "a", "{}"),)),
            ("user", (ToolCall("id", "a", "{}"),)),
            ("user", (ToolResult(None, None, "a"),)),
            ("user", (ToolResult(None, None, "a", is_error=True),)),
        ]
    ]
    assert all(one != other for n, one in enumerate(shapes) for other in shapes[n + 1 :])


def test_json_inside_strings_is_read_and_broken_json_is_text() -> None:
    assert text_template('{"b": 1, "a": 2}') == text_template(' {"a":2,"b":1}')
    assert text_template("{broken}") == "{broken}"
    assert text_template("plain") == "plain"
    assert loose({"m": '{"a": 1}', "cache_control": 1}) == loose({"m": '{"a":1}'})


def test_a_billing_nonce_does_not_count() -> None:
    def system(nonce: str) -> Message:
        return Message("system", (Text(f"x-anthropic-billing-header: cc_version=2.1.{nonce}; cch={nonce};"),))

    assert normalized_message(system("a1b")).template == normalized_message(system("c2d")).template


def test_volatile_settings_do_not_count_at_any_depth() -> None:
    one = CallRequest("m", (), settings={"user": "u1", "metadata": {"user_id": "1", "kept": 2}, "temperature": 1})
    assert settings_template(one, VOLATILE) == {"metadata": {"kept": 2}, "temperature": 1}
    assert [counts(where, VOLATILE) for where in ("user", "metadata.user_id", "metadata.kept", "messages[1].id")] == [
        False,
        False,
        True,
        False,
    ]


def test_a_tools_schema_counts_whole() -> None:
    def tool(schema: dict[str, object]) -> ToolSpec:
        return ToolSpec("t", None, schema, "function", {"name": "t", "parameters": schema, "cache_control": {"a": 1}})

    one, other = {"properties": {"id": {"type": "string"}}}, {"properties": {"index": {"type": "string"}}}
    assert tool_template(tool(one)) != tool_template(tool(other))
    assert "cache_control" not in str(tool_template(tool(one)))
