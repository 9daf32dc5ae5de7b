"""The values of expressions: members of a call's decoded values, and the same values as JSON.

Members are read from the values themselves, so a path into a long history copies nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any

from wiretape.errors import UsageError
from wiretape.model.call import (
    Block,
    CallRequest,
    CallResponse,
    Control,
    Media,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from wiretape.model.http import Body, BytesBody, Exchange, JsonBody, StreamBody, TextBody, body_bytes
from wiretape.model.jsonvalue import Json, JsonObject

_TYPES: dict[type, str] = {
    Text: "text",
    Reasoning: "reasoning",
    ToolCall: "tool_call",
    ToolResult: "tool_result",
    Media: "media",
    Control: "control",
    Unknown: "unknown",
}


def block_text(block: Block) -> str:
    """The content of a block as text."""
    match block:
        case Text(text=text) | Reasoning(text=text) | ToolResult(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name}({arguments})"
        case Media(kind=kind) | Control(kind=kind):
            return f"[{kind}]"
        case Unknown(type=kind):
            return f"[{kind}]"


def messages_text(messages: Sequence[Message]) -> str:
    """The content of messages as text, one line for each block."""
    return "\n".join(block_text(block) for message in messages for block in message.blocks)


def _blocks(messages: Sequence[Message]) -> list[Block]:
    return [block for message in messages for block in message.blocks]


# Computed members, by type. Every other public field of a value is a member with its own name.
_COMPUTED: dict[type, dict[str, Callable[[Any], Any]]] = {
    CallRequest: {
        "blocks": lambda value: _blocks(value.messages),
        "system": lambda value: messages_text([m for m in value.messages if m.role == "system"]),
    },
    CallResponse: {
        "blocks": lambda value: _blocks(value.messages),
        "text": lambda value: messages_text(value.messages),
    },
    Message: {"text": lambda value: messages_text([value])},
}
_HIDDEN: dict[type, frozenset[str]] = {
    CallRequest: frozenset({"segments", "scalars", "held"}),
    Message: frozenset({"block_paths"}),
    Unknown: frozenset({"type"}),
}


def members(value: object) -> list[str]:
    """The names that can follow a dot."""
    if isinstance(value, Mapping):
        return [name for name in value if isinstance(name, str)]
    if is_dataclass(value) and not isinstance(value, type):
        hidden = _HIDDEN.get(type(value), frozenset())
        own = [f.name for f in fields(value) if f.name not in hidden]
        computed = [name for name in _COMPUTED.get(type(value), {}) if name not in own]
        return [*(["type"] if type(value) in _TYPES else []), *own, *computed]
    return []


def member(value: object, name: str, path: str) -> Any:
    """Return `value.name`; a text is parsed as JSON first (a tool's arguments). Raises UsageError."""
    if value is None:
        raise UsageError(f"{path} is unknown or absent here, so it has no {name!r}")
    if name == "length" and isinstance(value, str | Sequence):
        return len(value)
    looked = _parsed(value, path) if isinstance(value, str) else value
    known = members(looked)
    if name not in known:
        raise UsageError(_no_member(path, name, looked, known))
    if isinstance(looked, Mapping):
        return looked[name]
    if name == "type" and type(looked) in _TYPES and not (isinstance(looked, Unknown)):
        return _TYPES[type(looked)]
    computed = _COMPUTED.get(type(looked), {}).get(name)
    return computed(looked) if computed is not None else getattr(looked, name)


def _parsed(value: str, path: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is a text that is not JSON: print {path} shows it") from None


def _no_member(path: str, name: str, value: object, known: Sequence[str]) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            f"{path} is a list of {len(value)}: use {path}[-1] for one element, or JSONPath for all: $.{path}[*].{name}"
        )
    if not known:
        return f"{path} is {json.dumps(to_json(value), ensure_ascii=False)[:40]} and has no member {name!r}"
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {path}.{near[0]}?" if near else ""
    if path == "request" and not near:
        hint = f"; in the request body: body.{name}"
    return f"{path} has no {name!r}; it has {', '.join(known[:20])}{hint}"


def element(value: object, index: int | str | slice, path: str) -> Any:
    """Return `value[index]`. Raises UsageError if it does not exist."""
    if isinstance(index, str):
        return member(value, index, path)
    if isinstance(value, str) and isinstance(index, int):
        value = _parsed(value, path)
    if not isinstance(value, Sequence):
        known = members(value)
        has = f"; it has {', '.join(known)}" if known else ""
        raise UsageError(f"{path} is not a list{has or f'; in the request body: body.{path}'}")
    if isinstance(index, slice):
        return value[index]
    if not -len(value) <= index < len(value):
        has = f"has {len(value)}: 0 to {len(value) - 1}, or -1 for the last" if value else "is empty"
        raise UsageError(f"{path} has no element {index}: it {has}")
    return value[index]


def to_json(value: object) -> Json:
    """The value as JSON, for `print` and JSONPath. Raw parts are the tape's own objects: never change them."""
    if isinstance(value, Mapping):
        return {str(name): to_json(one) for name, one in value.items()}
    if isinstance(value, tuple) and type(value) is tuple and value and all(_is_pair(one) for one in value):
        return dict(value)
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if is_dataclass(value) and not isinstance(value, type):
        hidden = _HIDDEN.get(type(value), frozenset())
        typed = {"type": _TYPES[type(value)]} if type(value) in _TYPES else {}
        if isinstance(value, Usage) and not value.raw:
            hidden |= {"raw"}
        return typed | {f.name: to_json(getattr(value, f.name)) for f in fields(value) if f.name not in hidden}
    return value


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def wire_json(exchange: Exchange) -> JsonObject:
    """The exchange as it crossed the wire, for `print wire.…`."""
    request, response = exchange.request, exchange.response
    wire: JsonObject = {
        "request": {
            "method": request.method,
            "url": request.url,
            "headers": dict(request.headers),
            "body": _body(request.body),
        }
    }
    if response is not None:
        wire["response"] = {
            "status": response.status,
            "headers": dict(response.headers),
            "body": _body(response.body),
        }
    if exchange.messages:
        wire["messages"] = [{"from": m.sender, "at": m.at, "body": _body(m.body)} for m in exchange.messages]
    return wire


def _body(body: Body | None) -> Json:
    match body:
        case None:
            return None
        case JsonBody(value=value):
            return value
        case TextBody(text=text):
            return text
        case StreamBody() | BytesBody():
            return body_bytes(body).decode(errors="replace")
