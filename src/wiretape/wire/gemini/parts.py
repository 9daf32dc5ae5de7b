"""Decodes Gemini's contents, parts and tools, in requests and responses.

A signature belongs to its part: it is the opaque state of a thought, and a reasoning block after any other part. Tools
that the provider runs are of kind `server`.
"""

from __future__ import annotations

from collections.abc import Callable

from wiretape.model.call import Media, Message, Reasoning, Text, ToolCall, ToolKind, ToolResult, ToolSpec, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import MessageBuilder
from wiretape.wire.decoding import unknown_message
from wiretape.wire.gemini.payload import camel, enum, get, spelled
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

ROLES = {"model": "assistant", "function": "tool", "developer": "system"}
_SIGNATURE = ("thoughtSignature", "thought_signature")
# Members that hold the text of a tool's response.
_TEXT_MEMBERS = ("output", "result", "return_value", "content", "error")
_CLIENT_TOOLS = ("computerUse",)
_FINE = ("OUTCOME_OK", "1")
_UNSPECIFIED = ("OUTCOME_UNSPECIFIED", "0")


def request_content(raw: Json) -> Message:
    """Decode one entry of `contents`; without a role it is the user's."""
    return content_message(raw, "user")


def system_content(raw: Json) -> Message:
    """Decode `systemInstruction`, whose role is ignored."""
    message = content_message(raw, "system")
    return Message("system", message.blocks, message.block_paths, message.extra, message.cache_marked)


def content_message(raw: Json, speaker: str) -> Message:
    into = MessageBuilder()
    if isinstance(raw, str):
        into.text(raw, "")
        return into.build(speaker)
    if not isinstance(raw, dict):
        return unknown_message("content", raw, speaker)
    add_content(into, raw)
    role = string(raw.get("role")) or speaker
    return into.build(ROLES.get(role, role))


def add_content(into: MessageBuilder, raw: JsonObject) -> None:
    """Add the parts of a content object and its other members."""
    parts = raw.get("parts")
    if isinstance(parts, list):
        for n, part in enumerate(parts):
            add_part(into, part, f".parts[{n}]")
    elif parts is not None:
        add_part(into, parts, ".parts")
    into.rest(raw, ("parts", "role"))


def add_part(into: MessageBuilder, raw: Json, path: str) -> None:
    if isinstance(raw, str):
        into.text(raw, path)
        return
    if not isinstance(raw, dict):
        into.add(Unknown(type(raw).__name__, raw), path)
        return
    text = raw.get("text")
    if isinstance(text, str):
        _add_text(into, raw, text, path)
        return
    for name, add in _READERS.items():
        key = spelled(raw, name)
        if isinstance(raw.get(key), dict):
            add(into, raw, key, path)
            break
    else:
        rest = {k: v for k, v in raw.items() if k not in (*_SIGNATURE, "thought") and not is_empty(v)}
        if rest:
            into.add(Unknown(camel(next(iter(rest))), raw), path)
    _add_signature(into, raw, path)


def _add_text(into: MessageBuilder, raw: JsonObject, text: str, path: str) -> None:
    if raw.get("thought") is True:
        key = spelled(raw, "thoughtSignature")
        opaque = string(raw.get(key))
        if text or opaque:
            into.add(Reasoning(text, opaque, summary=True), f"{path}.text")
    else:
        into.text(text, f"{path}.text")
        _add_signature(into, raw, path)
    into.rest(raw, ("text", "thought", *_SIGNATURE), f"{path[1:]}.")


def _add_signature(into: MessageBuilder, raw: JsonObject, path: str) -> None:
    key = spelled(raw, "thoughtSignature")
    opaque = string(raw.get(key))
    if opaque:
        into.add(Reasoning("", opaque), f"{path}.{key}")


def _keep_others(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    """Keep the other members of a part."""
    into.rest(raw, (key, "thought", *_SIGNATURE), f"{path[1:]}.")


def _add_call(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    call = raw[key]
    # A string is an object in pieces that was truncated or broken.
    args = call.get("args")
    arguments = args if isinstance(args, str) else "{}" if args is None else dumps(args)
    into.add(ToolCall(string(call.get("id")), string(call.get("name")) or "", arguments), f"{path}.{key}.args")
    into.rest(call, ("id", "name", "args"), f"{path[1:]}.{key}.")
    _keep_others(into, raw, key, path)


def _add_result(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    result = raw[key]
    text, where = _response_text(result.get("response"), f"{path}.{key}.response")
    failed = True if not is_empty(obj(result.get("response")).get("error")) else None
    made = ToolResult(
        string(result.get("id")), string(result.get("name")), text, failed, tuple(items(result.get("parts")))
    )
    into.add(made, where)
    into.rest(result, ("id", "name", "response", "parts"), f"{path[1:]}.{key}.")
    _keep_others(into, raw, key, path)


def _response_text(response: Json, path: str) -> tuple[str, str]:
    """Return the text of a tool's response and its path: its only string, else all of it as JSON."""
    if isinstance(response, str):
        return response, path
    if isinstance(response, dict) and len(response) == 1:
        ((name, text),) = response.items()
        if name in _TEXT_MEMBERS and isinstance(text, str):
            return text, f"{path}.{name}"
    return ("" if response is None else dumps(response)), path


def _add_code(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    code = raw[key]
    arguments = dumps({k: v for k, v in code.items() if k != "id"})
    into.add(ToolCall(string(code.get("id")), "code_execution", arguments, "server"), f"{path}.{key}")
    _keep_others(into, raw, key, path)


def _add_code_result(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    result = raw[key]
    outcome = enum(result.get("outcome"))
    failed = None if outcome is None or outcome in _UNSPECIFIED else outcome not in _FINE
    output = string(result.get("output")) or ""
    made = ToolResult(string(result.get("id")), "code_execution", output, failed, kind="server")
    into.add(made, f"{path}.{key}.output" if output else f"{path}.{key}")
    if failed:
        into.extra(f"{path[1:]}.{key}.outcome", outcome)
    into.rest(result, ("id", "outcome", "output"), f"{path[1:]}.{key}.")
    _keep_others(into, raw, key, path)


def _add_server_call(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    call = raw[key]
    args = call.get("args")
    name = enum(get(call, "toolType")) or "tool"
    into.add(
        ToolCall(string(call.get("id")), name, "{}" if args is None else dumps(args), "server"), f"{path}.{key}.args"
    )
    into.rest(call, ("id", "toolType", "tool_type", "args"), f"{path[1:]}.{key}.")
    _keep_others(into, raw, key, path)


def _add_server_result(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    result = raw[key]
    response = result.get("response")
    text = response if isinstance(response, str) else "" if response is None else dumps(response)
    name = enum(get(result, "toolType")) or "tool"
    into.add(ToolResult(string(result.get("id")), name, text, kind="server"), f"{path}.{key}.response")
    into.rest(result, ("id", "toolType", "tool_type", "response"), f"{path[1:]}.{key}.")
    _keep_others(into, raw, key, path)


def _add_media(into: MessageBuilder, raw: JsonObject, key: str, path: str) -> None:
    kind = (string(get(raw[key], "mimeType")) or "").partition("/")[0]
    into.add(Media(kind if kind in ("image", "audio", "video") else "file", raw), path)


_READERS: dict[str, Callable[[MessageBuilder, JsonObject, str, str], None]] = {
    "functionCall": _add_call,
    "functionResponse": _add_result,
    "inlineData": _add_media,
    "fileData": _add_media,
    "executableCode": _add_code,
    "codeExecutionResult": _add_code_result,
    "toolCall": _add_server_call,
    "toolResponse": _add_server_result,
}


def refusal_message(reason: Json, path: str, extra: tuple[tuple[str, Json], ...] = ()) -> Message:
    """Return a message with the provider's reason for a refusal, if it gives one."""
    text = string(reason)
    blocks = (Text(text, refusal=True),) if text else ()
    return Message("assistant", blocks, (path,) * len(blocks), extra)


def tool_specs(raw: Json) -> tuple[ToolSpec, ...]:
    """Decode the declared functions and the provider's tools, in order."""
    return tuple(spec for tool in items(raw) for spec in _specs(tool))


def _specs(raw: Json) -> list[ToolSpec]:
    if not isinstance(raw, dict):  # malformed, the provider will refuse it
        return [ToolSpec(str(raw), None, None, "server", {"tool": raw})]
    found: list[ToolSpec] = []
    for key, value in raw.items():
        name = camel(key)
        if name == "functionDeclarations":
            found += [_declared(obj(declared)) for declared in items(value)]
        elif value is not None:
            kind: ToolKind = "function" if name in _CLIENT_TOOLS else "server"
            found.append(ToolSpec(name, None, None, kind, {key: value}))
    return found


def _declared(raw: JsonObject) -> ToolSpec:
    schema = get(raw, "parametersJsonSchema")
    schema = schema if schema is not None else raw.get("parameters")
    return ToolSpec(string(raw.get("name")) or "", string(raw.get("description")), schema, "function", raw)
