"""Decodes items of the Responses API in `input` and `output`: one item is one message.

A call that the provider runs contains its result: it becomes a tool call and a tool result of kind `server`, which need
no answer. Items of unknown types are kept whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wiretape.model.call import Media, Message, Reasoning, ToolCall, ToolKind, ToolResult, ToolSpec, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import MARKERS, MessageBuilder, add_part, kept_block, result_text
from wiretape.wire.decoding import unknown_message
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

_IDENTITY = ("type", "id", "status", "role", "object", "created_by")
_ROLES = {"developer": "system"}

# Calls with one request member: item type -> (tool name, members, kind).
_PLAIN_CALLS: dict[str, tuple[str, tuple[str, ...], ToolKind]] = {
    "local_shell_call": ("local_shell", ("action",), "function"),
    "shell_call": ("shell", ("action",), "function"),
    "apply_patch_call": ("apply_patch", ("operation",), "function"),
    "computer_call": ("computer", ("action", "actions"), "function"),
    "program": ("program", ("code",), "server"),
}
# Calls that the provider runs: item type -> (tool name, request members, result members).
_SERVER_CALLS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "web_search_call": ("web_search", ("action",), ("results",)),
    "x_search_call": ("x_search", ("action",), ("results",)),
    "file_search_call": ("file_search", ("queries",), ("results",)),
    "code_interpreter_call": ("code_interpreter", ("code",), ("outputs",)),
}
_RESULTS: dict[str, ToolKind] = {
    "function_call_output": "function",
    "custom_tool_call_output": "custom",
    "local_shell_call_output": "function",
    "shell_call_output": "function",
    "apply_patch_call_output": "function",
    "computer_call_output": "function",
    "tool_search_output": "function",
    "program_output": "server",
}
_CONTROL = {"configuration_update": "system", "additional_tools": "system", "compaction_trigger": "system"}
_CLIENT_SAYS = {"mcp_approval_response": "user"}


def input_item(raw: Json) -> Message:
    """Decode one item of `input`."""
    if isinstance(raw, str):
        into = MessageBuilder()
        into.text(raw, "")
        return into.build("user")
    return item_message(raw) if isinstance(raw, dict) else unknown_message("item", raw, "unknown")


def output_messages(output: Iterable[Json], tools: Json = None, truncated: bool = False) -> tuple[Message, ...]:
    """Decode the items of a response.

    Calls that the provider ran are of kind `server`: those whose output is in the same response, and the calls of xAI's
    `x_search`, which look like custom tools of the client. `tools` is the list in the response.
    """
    listed = list(output)
    with_output = {
        string(obj(i).get("call_id"))
        for i in listed
        if isinstance(obj(i).get("type"), str) and i["type"].endswith("_output")
    }
    searches = any(obj(tool).get("type") == "x_search" for tool in items(tools))
    declared = {string(obj(tool).get("name")) for tool in items(tools)}

    def hosted(item: JsonObject) -> bool:
        if searches and item.get("type") == "custom_tool_call":
            return string(item.get("name")) not in declared
        call_id = string(item.get("call_id"))
        return call_id is not None and call_id in with_output

    return tuple(
        item_message(i, hosted(i), truncated) if isinstance(i, dict) else unknown_message("item", i) for i in listed
    )


def item_message(raw: JsonObject, hosted: bool = False, truncated: bool = False) -> Message:
    """Decode one item. `hosted`: the provider ran it. `truncated`: its stream was, and so its arguments."""
    kind = raw.get("type")
    kind = kind if isinstance(kind, str) else ""
    into = MessageBuilder()
    if kind == "message" or (not kind and "role" in raw):
        return _role_message(into, raw)
    if kind == "agent_message":  # a message between Codex's agents, from neither user nor model
        return _role_message(into, {**raw, "role": "agent"})
    if kind in _RESULTS:
        return _result(into, raw, "server" if hosted else _RESULTS[kind])
    if kind == "reasoning":
        _add_reasoning(into, raw)
    elif kind in _READERS:
        _READERS[kind](into, raw, truncated)
        into.host(hosted)
    elif kind in _PLAIN_CALLS:
        _add_plain_call(into, raw, *_PLAIN_CALLS[kind], hosted)
    elif kind in _SERVER_CALLS:
        _add_server_call(into, raw, *_SERVER_CALLS[kind])
    else:
        return _kept(into, raw, kind)
    if raw.get("status") not in (None, "completed"):
        into.extra("status", raw["status"])
    return into.build("assistant")


def _kept(into: MessageBuilder, raw: JsonObject, kind: str) -> Message:
    into.marked = any(not is_empty(raw.get(m)) for m in MARKERS)
    into.add(kept_block(kind or ("item_reference" if "id" in raw else ""), raw), "")
    role = _CONTROL.get(kind) or _CLIENT_SAYS.get(kind) or "assistant"
    return into.build(role)


def _role_message(into: MessageBuilder, raw: JsonObject) -> Message:
    role = raw.get("role")
    role = role if isinstance(role, str) and role else "assistant"
    content = raw.get("content")
    if isinstance(content, str):
        into.text(content, ".content")
    elif isinstance(content, list):
        for n, part in enumerate(content):
            add_part(into, part, f".content[{n}]")
    elif content is not None:
        into.add(Unknown("content", content), ".content")
    into.rest(raw, (*_IDENTITY, "content"))
    if raw.get("status") not in (None, "completed"):
        into.extra("status", raw["status"])
    return into.build(_ROLES.get(role, role))


def _add_reasoning(into: MessageBuilder, raw: JsonObject) -> None:
    """Add readable parts, the summary first. The item's opaque state belongs to its first block."""
    opaque = string(raw.get("encrypted_content"))
    found = False
    for member in ("summary", "content"):
        parts = raw.get(member)
        for n, part in enumerate([parts] if isinstance(parts, str) else items(parts)):
            text = part if isinstance(part, str) else obj(part).get("text")
            if not isinstance(text, str):
                into.add(Unknown(str(obj(part).get("type", member)), part), f".{member}[{n}]")
                continue
            if not text:
                continue
            path = f".{member}" if isinstance(parts, str) else f".{member}[{n}]"
            path = path if isinstance(part, str) else f"{path}.text"
            into.add(Reasoning(text, None if found else opaque, summary=member == "summary"), path)
            found = True
    if not found:
        into.add(Reasoning("", opaque), ".encrypted_content" if opaque else "")
    into.rest(raw, (*_IDENTITY, "summary", "content", "encrypted_content", "format"))


def _text_of(value: Json, truncated: bool = False) -> str:
    if isinstance(value, str):
        return value
    return ("" if truncated else "{}") if value is None else dumps(value)


def _add_function(into: MessageBuilder, raw: JsonObject, truncated: bool) -> None:
    name, space = string(raw.get("name")) or "", string(raw.get("namespace"))
    arguments = _text_of(raw.get("arguments"), truncated) or ("" if truncated else "{}")
    call = ToolCall(string(raw.get("call_id")), f"{space}.{name}" if space else name, arguments)
    into.add(call, ".arguments")
    into.rest(raw, (*_IDENTITY, "call_id", "name", "namespace", "arguments"))


def _add_custom(into: MessageBuilder, raw: JsonObject, truncated: bool) -> None:
    text = "" if raw.get("input") is None else _text_of(raw["input"])
    name, space = string(raw.get("name")) or "", string(raw.get("namespace"))
    into.add(ToolCall(string(raw.get("call_id")), f"{space}.{name}" if space else name, text, "custom"), ".input")
    into.rest(raw, (*_IDENTITY, "call_id", "name", "namespace", "input"))


def _add_tool_search(into: MessageBuilder, raw: JsonObject, truncated: bool) -> None:
    kind: ToolKind = "function" if raw.get("execution") == "client" else "server"
    call_id = string(raw.get("call_id")) or string(raw.get("id"))
    into.add(ToolCall(call_id, "tool_search", _text_of(raw.get("arguments"), truncated), kind), ".arguments")
    into.rest(raw, (*_IDENTITY, "call_id", "arguments", "execution"))


def _add_mcp(into: MessageBuilder, raw: JsonObject, truncated: bool) -> None:
    call_id, name = string(raw.get("id")), string(raw.get("name")) or ""
    into.add(ToolCall(call_id, name, _text_of(raw.get("arguments"), truncated), "server"), ".arguments")
    failed = not is_empty(raw.get("error"))
    if failed or raw.get("output") is not None:
        member = "error" if failed else "output"
        text, parts, path = result_text(raw[member], f".{member}")
        into.add(ToolResult(call_id, name, text, is_error=failed, parts=parts, kind="server"), path)
    into.rest(raw, (*_IDENTITY, "name", "arguments", "output", "error", "approval_request_id"))


def _add_image(into: MessageBuilder, raw: JsonObject, truncated: bool) -> None:
    """Add an image generation; the raw item keeps its other members."""
    prompt = string(raw.get("revised_prompt"))
    request_members = dumps({"prompt": prompt}) if prompt else "{}"
    into.add(
        ToolCall(string(raw.get("id")), "image_generation", request_members, "server"),
        ".revised_prompt" if prompt else "",
    )
    if string(raw.get("result")):
        into.add(Media("image", raw), ".result")


_READERS: dict[str, Callable[[MessageBuilder, JsonObject, bool], None]] = {
    "function_call": _add_function,
    "custom_tool_call": _add_custom,
    "tool_search_call": _add_tool_search,
    "mcp_call": _add_mcp,
    "image_generation_call": _add_image,
}


def _add_plain_call(
    into: MessageBuilder, raw: JsonObject, name: str, names: tuple[str, ...], kind: ToolKind, hosted: bool
) -> None:
    member = next((m for m in names if raw.get(m) is not None), names[0])
    call_id = string(raw.get("call_id")) or string(raw.get("id"))
    into.add(ToolCall(call_id, name, _text_of(raw.get(member)), "server" if hosted else kind), f".{member}")
    into.rest(raw, (*_IDENTITY, "call_id", member))


def _add_server_call(
    into: MessageBuilder, raw: JsonObject, name: str, request_members: tuple[str, ...], result_members: tuple[str, ...]
) -> None:
    call_id = string(raw.get("id")) or string(raw.get("call_id"))
    member = (
        request_members[0] if raw.get(request_members[0]) is not None or raw.get("arguments") is None else "arguments"
    )
    into.add(ToolCall(call_id, name, _text_of(raw.get(member)), "server"), f".{member}")
    for result in result_members:
        if not is_empty(raw.get(result)):
            text, parts, path = _outputs(raw[result], f".{result}")
            into.add(ToolResult(call_id, name, text, parts=parts, kind="server"), path)
    into.rest(raw, (*_IDENTITY, *request_members, *result_members, "call_id", "arguments", "name"))


def _outputs(value: Json, path: str) -> tuple[str, tuple[Json, ...], str]:
    """Return the result of a hosted tool: `logs` of a code interpreter, `text` of a search, else JSON."""
    if not isinstance(value, list):
        return result_text(value, path)
    texts = [string(obj(part).get("logs")) or string(obj(part).get("text")) for part in value]
    return "\n".join(text for text in texts if text), tuple(value), path


def _result(into: MessageBuilder, raw: JsonObject, kind: ToolKind) -> Message:
    call_id = string(raw.get("call_id")) or string(raw.get("id"))
    output = raw.get("output")
    name = string(raw.get("name"))
    member = "tools" if raw.get("type") == "tool_search_output" else "result" if "result" in raw else "output"
    if member != "output":
        output = raw.get(member)
    text, parts, path = _result_output(output, f".{member}")
    failed = True if raw.get("status") == "failed" else None
    into.add(ToolResult(call_id, name, text, is_error=failed, parts=parts, kind=kind), path)
    into.marked = any(not is_empty(obj(p).get(m)) for p in items(output) for m in MARKERS)
    into.rest(raw, (*_IDENTITY, "call_id", "name", "execution", member))
    return into.build("tool")


def _result_output(output: Json, path: str) -> tuple[str, tuple[Json, ...], str]:
    if isinstance(output, list) and any("stdout" in obj(part) for part in output):
        texts = [string(obj(part).get(stream)) for part in output for stream in ("stdout", "stderr")]
        return "\n".join(text for text in texts if text), tuple(output), path
    if isinstance(output, dict):  # a screenshot
        return "", (output,), path
    return result_text(output, path)


def response_tools(raw: Json) -> tuple[ToolSpec, ...]:
    """Decode `tools`; a tool in a namespace is named `namespace.name`."""
    found: list[ToolSpec] = []
    for tool in items(raw):
        inner = items(obj(tool).get("tools"))
        if obj(tool).get("type") == "namespace" and inner:
            space = string(tool.get("name"))
            found += [_tool(t, space) for t in inner]
        else:
            found.append(_tool(tool, None))
    return tuple(found)


def _tool(raw: Json, space: str | None) -> ToolSpec:
    tool = obj(raw)
    kind = string(tool.get("type")) or "function"
    nested = tool.get("function")
    inner = nested if isinstance(nested, dict) else tool  # the spelling of Chat Completions
    name = string(inner.get("name")) or string(tool.get("server_label")) or kind
    name = f"{space}.{name}" if space else name
    if kind == "custom":
        return ToolSpec(name, string(inner.get("description")), inner.get("format"), "custom", tool)
    tool_kind: ToolKind = "function" if kind in _CLIENT_TOOLS or kind.startswith("computer") else "server"
    return ToolSpec(name, string(inner.get("description")), inner.get("parameters"), tool_kind, tool)


_CLIENT_TOOLS = frozenset({"function", "local_shell", "shell", "apply_patch"})
