"""Decodes steps of Gemini's Interactions API in `input` and answers: one step is one message.

`input` may also be content without a step, a list of content, or the turns of an earlier version. Tools that the
provider runs are of kind `server`. A signature becomes opaque reasoning after the step's blocks.
"""

from __future__ import annotations

from wiretape.model.call import Message, Reasoning, ToolCall, ToolKind, ToolResult, ToolSpec, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import MessageBuilder, add_part, result_text
from wiretape.wire.decoding import unknown_message
from wiretape.wire.gemini.parts import ROLES
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

CONTENT_TYPES = frozenset({"text", "image", "audio", "video", "document", "file"})
_CALL_KNOWN = ("type", "id", "name", "arguments", "signature")
_RESULT_KNOWN = ("type", "call_id", "name", "result", "is_error", "signature")
_CLIENT_TOOLS = ("function", "computer_use")


def input_step(raw: Json) -> Message:
    """Decode one entry of `input`: a step, a turn, or content of the user."""
    return step_message(raw, "user")


def output_step(raw: Json) -> Message:
    return step_message(raw, "assistant")


def step_message(raw: Json, speaker: str) -> Message:
    """Decode one step. `speaker` is the role of content without a step."""
    into = MessageBuilder()
    if isinstance(raw, str):
        into.text(raw, "")
        return into.build(speaker)
    if not isinstance(raw, dict):
        return unknown_message("step", raw, speaker)
    kind = string(raw.get("type")) or ""
    if kind in ("user_input", "model_output") or (not kind and "content" in raw):
        return _content_step(into, raw, kind, speaker)
    if kind in CONTENT_TYPES:
        add_part(into, raw, "")
        return into.build(speaker)
    if kind == "thought":
        _add_thought(into, raw)
    elif kind.endswith("_call"):
        _add_call(into, raw, kind)
    elif kind.endswith("_result"):
        return _result(into, raw, kind)
    else:
        into.add(Unknown(kind, raw), "")
    return into.build("assistant")


def _content_step(into: MessageBuilder, raw: JsonObject, kind: str, speaker: str) -> Message:
    content = raw.get("content")
    if isinstance(content, list):
        for n, part in enumerate(content):
            add_part(into, part, f".content[{n}]")
    elif content is not None:
        add_part(into, content, ".content")
    into.rest(raw, ("type", "role", "content", "signature"))
    _add_signature(into, raw)
    role = {"user_input": "user", "model_output": "assistant"}.get(kind) or string(raw.get("role")) or speaker
    return into.build(ROLES.get(role, role))


def _add_thought(into: MessageBuilder, raw: JsonObject) -> None:
    """Add the parts of the summary; the signature belongs to the first."""
    opaque, summary = string(raw.get("signature")), raw.get("summary")
    found = False
    for n, part in enumerate([summary] if isinstance(summary, str | dict) else items(summary)):
        text = part if isinstance(part, str) else obj(part).get("text")
        path = f".summary[{n}]" if isinstance(summary, list) else ".summary"
        if isinstance(text, str) and text:
            path = path if isinstance(part, str) else f"{path}.text"
            into.add(Reasoning(text, None if found else opaque, summary=True), path)
            found = True
        elif not is_empty(part) and not isinstance(text, str):
            into.add(Unknown(string(obj(part).get("type")) or "summary", part), path)
    if opaque and not found:
        into.add(Reasoning("", opaque), ".signature")
    into.rest(raw, ("type", "summary", "signature"))


def _add_call(into: MessageBuilder, raw: JsonObject, kind: str) -> None:
    given = raw.get("arguments")
    # A string is JSON in pieces that was truncated or broken.
    arguments = given if isinstance(given, str) else "{}" if given is None else dumps(given)
    name = string(raw.get("name")) or kind.removesuffix("_call")
    tool_kind: ToolKind = "function" if kind == "function_call" else "server"
    into.add(ToolCall(string(raw.get("id")), name, arguments, tool_kind), ".arguments")
    into.rest(raw, _CALL_KNOWN)
    _add_signature(into, raw)


def _result(into: MessageBuilder, raw: JsonObject, kind: str) -> Message:
    text, parts, path = result_text(raw.get("result"), ".result")
    failed = raw.get("is_error")
    by_client = kind == "function_result"
    name = string(raw.get("name")) or (None if by_client else kind.removesuffix("_result"))
    result = ToolResult(
        string(raw.get("call_id")),
        name,
        text,
        failed if isinstance(failed, bool) else None,
        parts,
        "function" if by_client else "server",
    )
    into.add(result, path)
    into.rest(raw, _RESULT_KNOWN)
    _add_signature(into, raw)
    return into.build("tool" if by_client else "assistant")


def _add_signature(into: MessageBuilder, raw: JsonObject) -> None:
    opaque = string(raw.get("signature"))
    if opaque:
        into.add(Reasoning("", opaque), ".signature")


def tool_specs(raw: Json) -> tuple[ToolSpec, ...]:
    return tuple(_tool(obj(tool)) for tool in items(raw))


def _tool(raw: JsonObject) -> ToolSpec:
    kind = string(raw.get("type")) or "function"
    tool_kind: ToolKind = "function" if kind in _CLIENT_TOOLS else "server"
    name = string(raw.get("name")) or kind
    return ToolSpec(name, string(raw.get("description")), raw.get("parameters"), tool_kind, raw)
