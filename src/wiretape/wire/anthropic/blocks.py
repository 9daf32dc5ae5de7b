"""Decodes Anthropic's content blocks, messages and tools, in requests and responses.

Tools that the provider runs (`server_tool_use`, `mcp_tool_use` and their results in the same message) are of kind
`server` and need no answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from wiretape.model.call import Message, Reasoning, ToolCall, ToolKind, ToolResult, ToolSpec, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import MARKERS, MessageBuilder, kept_block, result_text
from wiretape.wire.decoding import unknown_message
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

_CALLS: dict[str, ToolKind] = {"tool_use": "function", "server_tool_use": "server", "mcp_tool_use": "server"}
_CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "computer_", "memory_")
_ROLES = {"developer": "system"}


def request_message(raw: Json) -> Message:
    """Decode one entry of `messages`."""
    if not isinstance(raw, dict):
        return unknown_message("message", raw, "unknown")
    role = raw.get("role")
    role = role if isinstance(role, str) and role else "unknown"
    into = MessageBuilder()
    content = raw.get("content")
    if isinstance(content, str):
        into.text(content, ".content")
    elif isinstance(content, list):
        add_blocks(into, content, ".content")
    elif isinstance(content, dict):
        add_block(into, content, ".content")
    elif content is not None:
        into.add(Unknown("content", content), ".content")
    into.rest(raw, ("role", "content"))
    return into.build(_ROLES.get(role, role))


def system_block(raw: Json) -> Message:
    """Decode one block of a `system` list."""
    into = MessageBuilder()
    add_block(into, raw, "")
    return into.build("system")


def add_blocks(into: MessageBuilder, blocks: Iterable[Json], path: str, truncated: bool = False) -> None:
    for n, block in enumerate(blocks):
        add_block(into, block, f"{path}[{n}]", truncated)


def add_block(into: MessageBuilder, raw: Json, path: str, truncated: bool = False) -> None:
    """Add one content block. `truncated`: its stream was, and so its arguments."""
    if isinstance(raw, str):
        into.text(raw, path)
        return
    if not isinstance(raw, dict):
        into.add(Unknown(type(raw).__name__, raw), path)
        return
    kind = raw.get("type")
    kind = kind if isinstance(kind, str) else "text" if isinstance(raw.get("text"), str) else ""
    if kind == "text" and isinstance(raw.get("text"), str):
        into.text(raw["text"], f"{path}.text")
        into.rest(raw, ("type", "text"), f"{path[1:]}." if path else "")
    elif kind == "thinking":
        text, opaque = raw.get("thinking"), string(raw.get("signature"))
        into.add(Reasoning(text if isinstance(text, str) else "", opaque), f"{path}.thinking")
    elif kind == "redacted_thinking":
        into.add(Reasoning("", string(raw.get("data"))), f"{path}.data")
    elif kind in _CALLS:
        _add_call(into, raw, _CALLS[kind], path, truncated)
    elif kind == "tool_result" or kind.endswith("_tool_result"):
        _add_result(into, raw, kind, path)
    else:
        into.marked = into.marked or any(not is_empty(raw.get(m)) for m in MARKERS)
        into.add(kept_block(kind, raw), path)


def _add_call(into: MessageBuilder, raw: JsonObject, kind: ToolKind, path: str, truncated: bool) -> None:
    given = raw.get("input")
    # A string is JSON that could not be parsed: truncated or broken.
    arguments = given if isinstance(given, str) else ("" if truncated else "{}") if given is None else dumps(given)
    into.add(ToolCall(string(raw.get("id")), string(raw.get("name")) or "", arguments, kind), f"{path}.input")
    prefix = f"{path[1:]}." if path else ""
    direct = obj(raw.get("caller")).get("type") == "direct"
    into.rest(raw, ("type", "id", "name", "input", *(("caller",) if direct else ())), prefix)


def _add_result(into: MessageBuilder, raw: JsonObject, kind: str, path: str) -> None:
    content = raw.get("content")
    failed = raw.get("is_error")
    failed = failed if isinstance(failed, bool) else None
    name = None if kind in ("tool_result", "mcp_tool_result") else kind.removesuffix("_tool_result")
    if isinstance(content, dict):  # the shape of a hosted tool's result, or its error
        text = string(content.get("text")) or string(content.get("stdout")) or string(content.get("error_code")) or ""
        failed = failed or (True if str(content.get("type", "")).endswith("_error") else None)
        parts, where = (content,), f"{path}.content"
    else:
        text, parts, where = result_text(content, f"{path}.content")
    tool_kind: ToolKind = "function" if kind == "tool_result" else "server"
    into.add(ToolResult(string(raw.get("tool_use_id")), name, text, failed, tuple(parts), tool_kind), where)
    into.marked = into.marked or any(not is_empty(obj(p).get(m)) for p in items(content) for m in MARKERS)
    prefix = f"{path[1:]}." if path else ""
    direct = obj(raw.get("caller")).get("type") == "direct"
    known = ("type", "tool_use_id", "content", "is_error", *(("caller",) if direct else ()))
    into.rest(raw, known, prefix)


def tool_specs(raw: Json) -> tuple[ToolSpec, ...]:
    return tuple(_tool(tool) for tool in items(raw))


def _tool(raw: Json) -> ToolSpec:
    tool = obj(raw)
    kind = string(tool.get("type")) or "custom"
    name = string(tool.get("name")) or string(tool.get("mcp_server_name")) or kind
    kind_of_tool: ToolKind = "function" if kind.startswith(_CLIENT_TOOLS) else "server"
    return ToolSpec(name, string(tool.get("description")), tool.get("input_schema"), kind_of_tool, tool)
