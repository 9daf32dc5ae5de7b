"""Decodes messages and tools of Chat Completions and its dialects, in requests and responses.

Blocks are in the order reasoning, text, tool calls, independent of the order of the members.
"""

from __future__ import annotations

from wiretape.model.call import Media, Message, Reasoning, ToolCall, ToolResult, ToolSpec, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import MARKERS, MessageBuilder, add_part, result_text
from wiretape.wire.decoding import unknown_message
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

_CARRIED = (
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "executed_tools",
    "audio",
    "images",
    "index",
)
_PART_MEMBERS = frozenset({"type", "text"})
_RESULT_CARRIED = ("role", "content", "tool_call_id", "name")
_ROLES = {"developer": "system", "function": "tool"}


def request_message(raw: Json) -> Message:
    """Decode one entry of `messages`."""
    if not isinstance(raw, dict):
        return unknown_message("message", raw, "unknown")
    return chat_message(raw, history=True)


def chat_message(raw: JsonObject, history: bool = False, truncated: bool = False, choice: int = 0) -> Message:
    """Decode a message. `history`: it is part of a request. `truncated`: its stream was, and so its arguments."""
    role = raw.get("role")
    role = role if isinstance(role, str) and role else "unknown" if history else "assistant"
    role = _ROLES.get(role, role)
    if role == "tool":
        return _result_message(raw)
    into = MessageBuilder()
    _add_reasoning(into, raw, history)
    _add_content(into, raw.get("content"), role)
    into.text(raw.get("refusal"), ".refusal", refusal=True)
    _add_media(into, raw)
    _add_executed(into, raw)
    _add_calls(into, raw, truncated)
    into.rest(raw, _CARRIED + tuple(flag for flag in ("prefix", "partial") if raw.get(flag) is False))
    if choice:
        into.extra("choice", choice)
    return into.build(role)


def _result_message(raw: JsonObject) -> Message:
    into = MessageBuilder()
    text, parts, path = result_text(raw.get("content"), ".content")
    into.marked = any(not is_empty(obj(p).get(m)) for p in items(raw.get("content")) for m in MARKERS)
    into.add(ToolResult(string(raw.get("tool_call_id")), string(raw.get("name")), text, parts=parts), path)
    into.rest(raw, _RESULT_CARRIED)
    return into.build("tool")


def _add_reasoning(into: MessageBuilder, raw: JsonObject, history: bool) -> None:
    """Add readable text from the first member that has some, since clients repeat it, and opaque state."""
    name = next((k for k in ("reasoning_content", "reasoning") if string(raw.get(k))), None)
    details = [d for d in items(raw.get("reasoning_details")) if isinstance(d, dict)]
    if details and (name is None or any(string(d.get("text")) or string(d.get("summary")) for d in details)):
        for n, detail in enumerate(details):
            _add_detail(into, detail, f".reasoning_details[{n}]")
        return
    if name is not None:
        into.add(Reasoning(raw[name]), f".{name}")
    elif history and raw.get("reasoning_content") == "":
        into.add(Reasoning(""), ".reasoning_content")  # thinking mode requires the member, even an empty one
    elif not is_empty(raw.get("reasoning")) and not isinstance(raw["reasoning"], str):
        into.add(Unknown("reasoning", raw["reasoning"]), ".reasoning")
    for n, detail in enumerate(details):
        _add_detail(into, detail, f".reasoning_details[{n}]")


def _add_detail(into: MessageBuilder, detail: JsonObject, path: str) -> None:
    opaque = string(detail.get("data")) or string(detail.get("signature"))
    for member in ("text", "summary"):
        text = string(detail.get(member))
        if text:
            into.add(Reasoning(text, opaque, summary=member == "summary"), f"{path}.{member}")
            return
    if opaque:
        into.add(Reasoning("", opaque), path)
    elif not str(detail.get("type", "")).startswith("reasoning."):
        into.add(Unknown(str(detail.get("type", "reasoning")), detail), path)


def _add_content(into: MessageBuilder, content: Json, role: str) -> None:
    if isinstance(content, str):
        if role == "assistant" and content.lstrip().startswith("<think>"):
            _add_think_tag(into, content)
        else:
            into.text(content, ".content")
    elif isinstance(content, list):
        for n, part in enumerate(content):
            add_part(into, part, f".content[{n}]")
    elif isinstance(content, dict) and role == "assistant" and content and not _PART_MEMBERS & content.keys():
        into.text(dumps(content), ".content")  # a structured output that the server has parsed (Cloudflare)
    elif isinstance(content, dict):
        add_part(into, content, ".content")
    elif content is not None:
        into.add(Unknown("content", content), ".content")


def _add_think_tag(into: MessageBuilder, content: str) -> None:
    """Add reasoning that a server without a reasoning parser leaves in the text, between tags."""
    thought, _, text = content.lstrip().removeprefix("<think>").partition("</think>")
    if thought.strip():
        into.add(Reasoning(thought.strip("\n")), ".content")
    into.text(text.lstrip("\n"), ".content")


def _add_media(into: MessageBuilder, raw: JsonObject) -> None:
    audio = raw.get("audio")
    if isinstance(audio, dict) and not is_empty(audio):
        into.add(Media("audio", audio), ".audio")
    for n, image in enumerate(items(raw.get("images"))):
        if isinstance(image, dict):
            into.add(Media("image", image), f".images[{n}]")
        elif image is not None:
            into.add(Unknown("image", image), f".images[{n}]")


def _add_executed(into: MessageBuilder, raw: JsonObject) -> None:
    """Add the tools that Groq's compound models run themselves: call and result are one entry."""
    for n, entry in enumerate(items(raw.get("executed_tools"))):
        tool, path = obj(entry), f".executed_tools[{n}]"
        name = string(tool.get("type")) or "tool"
        arguments = _arguments(tool.get("arguments"), truncated=False)
        into.add(ToolCall(string(tool.get("id")), name, arguments, "server"), f"{path}.arguments")
        if not is_empty(tool.get("output")):
            text, parts, where = result_text(tool["output"], f"{path}.output")
            into.add(ToolResult(string(tool.get("id")), name, text, parts=parts, kind="server"), where)


def _add_calls(into: MessageBuilder, raw: JsonObject, truncated: bool) -> None:
    calls = raw.get("tool_calls")
    for n, entry in enumerate([calls] if isinstance(calls, dict) and calls else items(calls)):
        where = "" if isinstance(calls, dict) else f"[{n}]"
        _add_call(into, entry, f".tool_calls{where}", truncated)
    legacy = obj(raw.get("function_call"))
    if string(legacy.get("name")) or string(legacy.get("arguments")):
        arguments = _arguments(legacy.get("arguments"), truncated)
        into.add(ToolCall(None, string(legacy.get("name")) or "", arguments), ".function_call.arguments")


def _add_call(into: MessageBuilder, entry: Json, path: str, truncated: bool) -> None:
    call = obj(entry)
    function, custom = obj(call.get("function")), obj(call.get("custom"))
    call_id = string(call.get("id"))
    if not is_empty(custom) and is_empty(function):
        body = custom.get("input")
        text = body if isinstance(body, str) else "" if body is None else dumps(body)
        into.add(ToolCall(call_id, string(custom.get("name")) or "", text, "custom"), f"{path}.custom.input")
    elif function:
        arguments = _arguments(function.get("arguments"), truncated)
        into.add(ToolCall(call_id, string(function.get("name")) or "", arguments), f"{path}.function.arguments")
    elif string(call.get("name")):  # flat, from misconfigured clients
        arguments = _arguments(call.get("arguments"), truncated)
        into.add(ToolCall(call_id, call["name"], arguments), f"{path}.arguments")
    elif not is_empty(entry):
        into.add(Unknown("tool_call", entry), path)
        return
    into.rest(call, ("id", "type", "function", "custom", "index", "name", "arguments"), f"{path[1:]}.")


def _arguments(value: Json, truncated: bool) -> str:
    """Return arguments as a string; some servers send an object. Without arguments, "{}"."""
    if isinstance(value, str):
        return value or ("" if truncated else "{}")
    return ("" if truncated else "{}") if value is None else dumps(value)


def chat_tools(raw: Json) -> tuple[ToolSpec, ...]:
    """Decode `tools`, or the legacy `functions`."""
    return tuple(chat_tool(tool) for tool in items(raw))


def chat_tool(raw: Json) -> ToolSpec:
    tool = obj(raw)
    kind = tool.get("type")
    inner = next((tool[k] for k in ("function", "custom") if isinstance(tool.get(k), dict)), tool)
    name = string(inner.get("name")) or string(kind) or ""
    schema = inner.get("parameters", inner.get("input_schema"))
    if kind == "custom":
        return ToolSpec(name, string(inner.get("description")), inner.get("format"), "custom", tool)
    known = kind in ("function", None) or inner is not tool
    return ToolSpec(name, string(inner.get("description")), schema, "function" if known else "server", tool)
