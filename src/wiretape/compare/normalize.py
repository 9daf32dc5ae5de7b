"""Normalize requests: remove what legitimately changes between two equal runs.

A message becomes a JSON *template* without ids, cache markers and opaque provider state, and the list of its ids, in
order. Of the ids only the order of their first appearance is compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, assert_never

import orjson

from wiretape.model.call import (
    Block,
    CallRequest,
    Control,
    Media,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unknown,
)
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import rebuilt
from wiretape.model.volatile_text import BILLING_HEADER
from wiretape.wire.base import Volatile

# Members of wire blocks that are not compared: cache markers and opaque provider state.
_DROPPED: Final = frozenset(
    {
        "cache_control",
        "cachePoint",
        "signature",
        "thoughtSignature",
        "thought_signature",
        "encrypted_content",
        "encrypted_index",
        "continuation_token",
        "obfuscation",
    }
)
_STRAY_MEMBERS: Final = frozenset({"index", "status"})  # clients copy them from a stream into the history
# Members with an id that a later request mentions again.
_IDS: Final = frozenset(
    {"id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "item_id", "approval_request_id", "message_id"}
)
LEFT_OUT: Final = _DROPPED | _IDS


@dataclass(frozen=True, slots=True, eq=False)
class NormalizedMessage:
    """A message without what may change between runs. `ids`: the ids that it mentions, in order."""

    template: Json
    ids: tuple[str, ...]


def normalized_message(message: Message) -> NormalizedMessage:
    ids: list[str] = []
    blocks = [block_template(block, ids) for block in message.blocks if not is_opaque(block)]
    return NormalizedMessage([message.role, blocks, extra_template(message.extra, ids)], tuple(ids))


def extra_template(members: Iterable[tuple[str, Json]], ids: list[str]) -> JsonObject:
    """The normalized members of a message that no block has; their ids are added to `ids`."""
    extra: JsonObject = {}
    for key, value in members:
        name = key.rpartition(".")[2]
        if name not in _DROPPED and name not in _STRAY_MEMBERS and not _is_id(name, value, ids):
            extra[key] = _strip(value, ids)
    return extra


def tool_template(tool: ToolSpec) -> Json:
    return [tool.name, tool.kind, tool_definition(tool)]


def tool_definition(tool: ToolSpec) -> JsonObject:
    """A tool definition of the request, without cache markers."""
    return {key: value for key, value in tool.raw.items() if key not in _DROPPED and value is not None}


def settings_template(request: CallRequest, volatile: Volatile) -> JsonObject:
    """The settings without the volatile ones."""
    kept: JsonObject = {
        key: value for key, value in request.settings.items() if key not in volatile.settings and key not in _DROPPED
    }
    for path in volatile.nested:
        if path and path[0] in kept:
            kept[path[0]] = _without(kept[path[0]], path[1:])
    return {key: loose(value) for key, value in kept.items() if value is not None and value != {}}


def loose(value: Json) -> Json:
    """A JSON value without cache markers, with the JSON in its strings parsed."""
    return rebuilt(value, _read, _without_marks)


def _without_marks(members: JsonObject) -> JsonObject:
    if "cache_control" not in members:
        return members
    return {key: item for key, item in members.items() if key != "cache_control"}


def _read(name: str | None, value: Json) -> Json:
    return text_template(value) if isinstance(value, str) else value


def counts(where: str, volatile: Volatile) -> bool:
    """Whether values at this path of a body are compared."""
    names = [part.partition("[")[0] for part in where.split(".")]
    if names[0] in volatile.settings or tuple(names) in volatile.nested:
        return False
    return names[-1] not in _DROPPED and names[-1] not in _IDS


def text_template(text: str) -> Json:
    """The text, or its value if it is JSON: clients spell the same arguments differently."""
    if text.startswith(BILLING_HEADER):
        return BILLING_HEADER
    bare = text.strip()
    if bare[:1] in ("{", "[") and bare[-1:] in ("}", "]"):
        try:
            return {"json": orjson.loads(bare)}
        except ValueError:
            return text
    return text


def block_template(block: Block, ids: list[str]) -> Json:
    """The template of a block; its ids are added to `ids`."""
    match block:
        case Text(text=text, refusal=refusal):
            return ["text", text_template(text), refusal]
        case Reasoning(text=text, summary=summary):
            return ["reasoning", text, summary]
        case ToolCall(id=name, name=tool, arguments=arguments, kind=kind):
            _mention(name, ids)
            return ["call", name is not None, tool, text_template(arguments), kind]
        case ToolResult(id=name, name=tool, text=text, is_error=is_error, parts=parts, kind=kind):
            _mention(name, ids)
            return [
                "result",
                name is not None,
                tool,
                text_template(text),
                bool(is_error),
                _strip(list(parts), ids),
                kind,
            ]
        case Media(kind=kind, raw=raw):
            return ["media", kind, _strip(raw, ids)]
        case Control(kind=kind, raw=raw):
            return ["control", kind, _strip(raw, ids)]
        case Unknown(type=kind, raw=raw):
            return ["unknown", kind, _strip(raw, ids)]
        case _:
            assert_never(block)


def is_opaque(block: Block) -> bool:
    """Whether a block is only a signature or encrypted state. Such blocks may be missing."""
    return isinstance(block, Reasoning) and not block.text


def _mention(name: str | None, ids: list[str]) -> None:
    if name:
        ids.append(name)


def _is_id(key: str, value: Json, ids: list[str]) -> bool:
    if key in _IDS and isinstance(value, str):
        ids.append(value)
        return True
    return False


def _strip(value: Json, ids: list[str]) -> Json:
    """The normalized JSON value; its ids are added to `ids`."""

    def kept(members: JsonObject) -> JsonObject:
        if LEFT_OUT.isdisjoint(members):
            return members
        return {key: item for key, item in members.items() if key not in _DROPPED and not _is_id(key, item, ids)}

    return rebuilt(value, _read, kept)


def _without(value: Json, path: tuple[str, ...]) -> Json:
    if not isinstance(value, dict) or not path or path[0] not in value:
        return value
    if len(path) == 1:
        return {key: item for key, item in value.items() if key != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}
