"""Decodes content parts, messages and tools of Converse and of Nova on Invoke, in requests and responses.

A part has no type: its only member identifies it.
"""

from __future__ import annotations

from wiretape.model.call import Media, Message, Reasoning, ToolCall, ToolKind, ToolResult, ToolSpec, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import MessageBuilder, kept_block
from wiretape.wire.decoding import unknown_message
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

_MEDIA = {
    "image": "image",
    "document": "document",
    "video": "video",
    "audio": "audio",
    "searchResult": "search_result",
}
_SERVER_CALL = "server_tool_use"


def request_message(raw: Json) -> Message:
    """Decode one entry of `messages`."""
    if not isinstance(raw, dict):
        return unknown_message("message", raw, "unknown")
    role = raw.get("role")
    role = role if isinstance(role, str) and role else "unknown"
    into = MessageBuilder()
    content = raw.get("content")
    if isinstance(content, list):
        add_parts(into, content, ".content", role)
    elif isinstance(content, str):
        into.text(content, ".content")
    elif content is not None:
        into.add(Unknown("content", content), ".content")
    into.rest(raw, ("role", "content"))
    return into.build(role)


def system_part(raw: Json) -> Message:
    """Decode one part of `system`."""
    into = MessageBuilder()
    _add_part(into, raw, "", "system", truncated=False)
    return into.build("system")


def add_parts(into: MessageBuilder, parts: list[Json], path: str, role: str, truncated: bool = False) -> None:
    """Add all parts. `truncated`: their stream was, and so their tool arguments."""
    for n, part in enumerate(parts):
        _add_part(into, part, f"{path}[{n}]", role, truncated)


def _add_part(into: MessageBuilder, raw: Json, path: str, role: str, truncated: bool) -> None:
    if isinstance(raw, str):
        into.text(raw, path)
        return
    if not isinstance(raw, dict):
        into.add(Unknown(type(raw).__name__, raw), path)
        return
    for key, value in raw.items():
        where = f"{path}.{key}"
        if key == "text" and isinstance(value, str):
            into.text(value, where)
        elif value is None or (key == "type" and len(raw) > 1):  # a superfluous `type` of some clients
            continue
        elif key == "cachePoint":
            into.marked = True
        elif key in _MEDIA and isinstance(value, dict):
            into.add(Media(_MEDIA[key], raw), path)
        elif not _add_wrapped(into, key, value, where, role, truncated):
            into.add(kept_block(key, raw), path)


def _add_wrapped(into: MessageBuilder, key: str, value: Json, where: str, role: str, truncated: bool) -> bool:
    """Add a part whose member is an object; return False for unknown members."""
    if not isinstance(value, dict):
        return False
    if key == "toolUse":
        _add_call(into, value, where, truncated)
    elif key == "toolResult":
        _add_result(into, value, where, role)
    elif key == "reasoningContent":
        return _add_reasoning(into, value, where)
    elif key == "guardContent" and isinstance(obj(value.get("text")).get("text"), str):
        into.text(value["text"]["text"], f"{where}.text.text")
        into.rest(value["text"], ("text",), f"{where}.text."[1:])
    elif key == "citationsContent":
        for n, part in enumerate(items(value.get("content"))):
            into.text(obj(part).get("text"), f"{where}.content[{n}].text")
        into.rest(value, ("content",), f"{where}."[1:])
    else:
        return False
    return True


def _add_call(into: MessageBuilder, raw: JsonObject, where: str, truncated: bool) -> None:
    given = raw.get("input")
    # A string is JSON that could not be parsed: truncated or broken.
    arguments = given if isinstance(given, str) else ("" if truncated else "{}") if given is None else dumps(given)
    kind: ToolKind = "server" if raw.get("type") == _SERVER_CALL else "function"
    call = ToolCall(string(raw.get("toolUseId")), string(raw.get("name")) or "", arguments, kind)
    into.add(call, f"{where}.input")
    into.rest(raw, ("toolUseId", "name", "input", "type"), f"{where}."[1:])


def _add_result(into: MessageBuilder, raw: JsonObject, where: str, role: str) -> None:
    """Add a tool result; in the model's own message, the provider ran the tool."""
    texts: list[str] = []
    paths: list[str] = []
    other_parts: list[Json] = []
    for n, part in enumerate(items(raw.get("content"))):
        content = obj(part)
        if isinstance(content.get("text"), str):
            texts.append(content["text"])
            paths.append(f"{where}.content[{n}].text")
        elif content.get("json") is not None:
            texts.append(dumps(content["json"]))
            paths.append(f"{where}.content[{n}].json")
        elif "cachePoint" in content:
            into.marked = True
        else:
            other_parts.append(part)
    status = raw.get("status")
    failed = None if status is None else status == "error"
    kind: ToolKind = "server" if role == "assistant" else "function"
    result = ToolResult(string(raw.get("toolUseId")), None, "\n".join(texts), failed, tuple(other_parts), kind)
    into.add(result, paths[0] if len(paths) == 1 else f"{where}.content")
    into.rest(raw, ("toolUseId", "content", "status", "type"), f"{where}."[1:])


def _add_reasoning(into: MessageBuilder, raw: JsonObject, where: str) -> bool:
    reasoning = raw.get("reasoningText")
    opaque = string(raw.get("redactedContent"))
    if isinstance(reasoning, dict):
        text = reasoning.get("text")
        shown = text if isinstance(text, str) else ""
        into.add(Reasoning(shown, string(reasoning.get("signature"))), f"{where}.reasoningText.text")
    elif opaque:
        into.add(Reasoning("", opaque), f"{where}.redactedContent")
    else:
        return False
    return True


def tool_specs(raw: Json) -> tuple[ToolSpec, ...]:
    """Decode `toolConfig.tools`, without cache markers."""
    tools = [obj(tool) for tool in items(raw)]
    return tuple(_tool(tool) for tool in tools if not (tool.keys() <= {"cachePoint"} and tool))


def _tool(tool: JsonObject) -> ToolSpec:
    spec, system = obj(tool.get("toolSpec")), obj(tool.get("systemTool"))
    if not is_empty(system):
        return ToolSpec(string(system.get("name")) or "", None, None, "server", tool)
    schema = obj(spec.get("inputSchema"))
    return ToolSpec(
        string(spec.get("name")) or "", string(spec.get("description")), schema.get("json", schema), "function", tool
    )
