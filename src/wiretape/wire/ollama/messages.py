"""Ollama's messages, in requests and responses alike: plain text, images in base64, arguments as objects."""

from __future__ import annotations

from wiretape.model.call import Media, Message, Reasoning, ToolCall, ToolResult, Unknown
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.call_frame import unknown_message
from wiretape.wire.content import MessageBuilder
from wiretape.wire.lenient import dumps, is_empty, items, obj, string

_CARRIED = ("role", "content", "thinking", "images", "tool_calls")
_RESULT_CARRIED = ("role", "content", "tool_name", "name", "tool_call_id")


def request_message(raw: Json) -> Message:
    """One entry of `messages`."""
    if not isinstance(raw, dict):
        return unknown_message("message", raw, "unknown")
    role = raw.get("role")
    return ollama_message(raw, role if isinstance(role, str) and role else "unknown")


def ollama_message(raw: JsonObject, role: str, cut: bool = False) -> Message:
    """Blocks stand in the order reasoning, text, images, tool calls."""
    into = MessageBuilder()
    if role == "tool":
        _add_result(into, raw)
        return into.build(role)
    thinking = string(raw.get("thinking"))
    if thinking:
        into.add(Reasoning(thinking), ".thinking")
    content = raw.get("content")
    into.text(content, ".content")
    if content is not None and not isinstance(content, str):
        into.add(Unknown("content", content), ".content")
    for n, image in enumerate(items(raw.get("images"))):
        into.add(Media("image", image if isinstance(image, dict) else {"image": image}), f".images[{n}]")
    for n, call in enumerate(items(raw.get("tool_calls"))):
        _add_call(into, call, f".tool_calls[{n}]", cut)
    into.rest(raw, _CARRIED)
    return into.build("system" if role == "developer" else role)


def _add_result(into: MessageBuilder, raw: JsonObject) -> None:
    content = raw.get("content")
    text = content if isinstance(content, str) else "" if content is None else dumps(content)
    name = string(raw.get("tool_name")) or string(raw.get("name"))
    into.add(ToolResult(string(raw.get("tool_call_id")), name, text), ".content")
    into.rest(raw, _RESULT_CARRIED)


def _add_call(into: MessageBuilder, raw: Json, path: str, cut: bool) -> None:
    call = obj(raw)
    function = obj(call.get("function"))
    if not string(function.get("name")):
        if not is_empty(raw):
            into.add(Unknown("tool_call", raw), path)
        return
    given = function.get("arguments")
    arguments = given if isinstance(given, str) else ("" if cut else "{}") if given is None else dumps(given)
    call_id = string(call.get("id")) or string(function.get("id"))
    into.add(ToolCall(call_id, function["name"], arguments), f"{path}.function.arguments")
    into.rest(call, ("id", "type", "function"), f"{path[1:]}.")
    into.rest(function, ("id", "index", "name", "arguments", "description"), f"{path[1:]}.function.")
