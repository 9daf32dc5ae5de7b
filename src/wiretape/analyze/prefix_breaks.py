"""The first difference between the request of a call and the one before it in its thread: there a prompt cache ends.

Decoded requests are compared in the order of the body: tools, then messages. Cache markers are ignored.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import orjson

from wiretape.model.call import Block, CallRequest, Message, ModelCall, Reasoning, Text, ToolCall, ToolResult
from wiretape.model.common_prefix import common_prefix
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.run import Run
from wiretape.model.volatile_text import KINDS
from wiretape.model.wording import clip

REORDERED = "another order of the tools"
ANOTHER_TOOL = "another tool"
_TOOL = "a tool's definition"
_MARKERS = frozenset({"cache_control", "cachePoint"})
_SHOWN = 60  # characters of a value
_SHOWN_TEXT = 40  # characters of a text from its difference on
_NEAR = 120  # characters around a difference that are searched for volatile text


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """The first difference between two requests.

    `before` and `after` are both values; None: that request has nothing there. `character` counts from 0.
    """

    path: str
    what: str  # the kind of thing that changed: "a clock", "a uuid", "another tool", …
    before: str | None
    after: str | None
    character: int | None = None  # the first character that differs; None: the values are not texts
    around: tuple[str, str] | None = None  # both texts near the difference
    place: int = 0  # where the difference is in `around`

    def __str__(self) -> str:
        where = self.path if self.character is None else f"{self.path}, character {self.character}"
        if self.before is None:
            return f"{where}: {self.what}: {self.after!r} is new" if self.after is not None else f"{where}: {self.what}"
        if self.after is None:
            return f"{where}: {self.what}: {self.before!r} is gone"
        return f"{where}: {self.what}: {self.before!r} became {self.after!r}"


def consecutive(run: Run) -> Iterator[tuple[ModelCall, ModelCall]]:
    """Yield each call of a thread with the one before it."""
    calls = {step.call.number: step.call for step in run.steps}
    for thread in run.threads:
        for before, after in zip(thread.calls, thread.calls[1:], strict=False):
            yield calls[before], calls[after]


def breaks(before: CallRequest, after: CallRequest) -> list[PrefixBreak]:
    """Return where `after` does not continue `before`: the first place in tools, and the first in messages."""
    if provider_holds_history(after):
        return []
    return [found for found in (tools_break(before, after), messages_break(before, after)) if found is not None]


def provider_holds_history(request: CallRequest) -> bool:
    """True if only the provider has the earlier messages of the conversation."""
    chained = request.previous_response_id is not None and not request.held
    return chained or bool(request.settings.get("conversation") or request.settings.get("thread"))


# -- messages ----------------------------------------------------------------------------------------------------------


def messages_break(before: CallRequest, after: CallRequest) -> PrefixBreak | None:
    """Return the first difference between two histories. Messages that follow the older one are not a difference."""
    old, new = before.messages, after.messages
    common = min(len(old), len(new))
    if old[:common] != new[:common]:  # compares by identity: unchanged messages are the same objects
        for index, same in enumerate(map(operator.is_, old, new)):
            if not same and not _equal(old[index], new[index]):
                return _message_break(after.path(index), old[index], new[index])
    if len(new) < len(old):
        return PrefixBreak(before.path(common), "the history ends earlier", _shown(old[common]), None)
    return None


def _equal(a: Message, b: Message) -> bool:
    return a.role == b.role and a.blocks == b.blocks and a.extra == b.extra


def _message_break(path: str, old: Message, new: Message) -> PrefixBreak:
    if old.role != new.role:
        return PrefixBreak(path, "another message", f"{old.role}: {_shown(old)}", f"{new.role}: {_shown(new)}")
    for place, (one, other) in enumerate(zip(old.blocks, new.blocks, strict=False)):
        if one != other:
            return _block_break(path + _block_path(new, place), one, other)
    shorter = min(len(old.blocks), len(new.blocks))
    for longer in (old, new):
        if len(longer.blocks) > shorter:
            extra = longer.blocks[shorter]
            kind = "reasoning" if isinstance(extra, Reasoning) else "a block"
            text = clip(_content(extra), _SHOWN)
            values = (text, None) if longer is old else (None, text)
            return PrefixBreak(path + _block_path(longer, shorter), kind, *values)
    return PrefixBreak(path, "other members changed", compact_json(dict(old.extra)), compact_json(dict(new.extra)))


def _block_path(message: Message, place: int) -> str:
    return message.block_paths[place] if place < len(message.block_paths) else ""


def _block_break(path: str, old: Block, new: Block) -> PrefixBreak:
    if isinstance(old, Reasoning) and not isinstance(new, Reasoning):
        return PrefixBreak(path, "reasoning", clip(old.text or "(opaque)", _SHOWN), None)
    if type(old) is not type(new):
        return PrefixBreak(path, "another block", clip(_content(old), _SHOWN), clip(_content(new), _SHOWN))
    if isinstance(old, ToolCall | ToolResult) and isinstance(new, ToolCall | ToolResult) and old.id != new.id:
        same = replace(old, id=new.id) == new
        if same:
            return PrefixBreak(path, "another id", str(old.id), str(new.id))
    if _content(old) == _content(new):
        return PrefixBreak(path, "other members changed", None, None)
    return text_break(path, _content(old), _content(new))


def _content(block: Block) -> str:
    """The content of a block as one text."""
    match block:
        case Text() | Reasoning() | ToolResult():
            return block.text
        case ToolCall():
            return f"{block.name}({block.arguments})"
        case _:
            return compact_json(block.raw)


def _shown(message: Message) -> str:
    return clip(" ".join(_content(block) for block in message.blocks), _SHOWN)


# -- tools: their order and the order of their keys count, because a cache compares bytes ------------------------------


def tools_break(before: CallRequest, after: CallRequest) -> PrefixBreak | None:
    """Return the first difference between two lists of tools."""
    if before.tools == after.tools:  # usually the same objects
        return None
    for index, (old, new) in enumerate(zip(before.tools, after.tools, strict=False)):
        if old is new:
            continue
        one, other = without_markers(old.raw), without_markers(new.raw)
        if compact_json(one) != compact_json(other):
            if old.name != new.name:
                return _other_tools(f"tools[{index}]", before, after, index)
            return value_break(f"tools[{index}]", one, other)
    shorter = min(len(before.tools), len(after.tools))
    if len(before.tools) == len(after.tools):
        return None
    return _other_tools(f"tools[{shorter}]", before, after, shorter)


def _other_tools(path: str, before: CallRequest, after: CallRequest, index: int) -> PrefixBreak:
    """From `index` on, the tools are in another order, or some were added or removed."""
    old, new = [tool.name for tool in before.tools], [tool.name for tool in after.tools]
    if sorted(old) == sorted(new):
        return PrefixBreak(path, REORDERED, ", ".join(old[index:]), ", ".join(new[index:]))
    removed = [name for name in old[index:] if name not in new]
    added = [name for name in new[index:] if name not in old]
    return PrefixBreak(path, ANOTHER_TOOL, ", ".join(removed) or None, ", ".join(added) or None)


def without_markers(raw: Json) -> Json:
    """A tool's definition without its cache markers; the same object if it has none."""
    if isinstance(raw, dict) and not _MARKERS.isdisjoint(raw):
        return {key: value for key, value in raw.items() if key not in _MARKERS}
    return raw


# -- values and texts --------------------------------------------------------------------------------------------------


def value_break(path: str, old: Json, new: Json) -> PrefixBreak:
    """Return the first difference between two JSON values that differ as compact text."""
    if isinstance(old, dict) and isinstance(new, dict):
        return _object_break(path, old, new)
    if isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            if compact_json(one) != compact_json(other):
                return value_break(f"{path}[{index}]", one, other)
        where = f"{path}[{min(len(old), len(new))}]"
        return PrefixBreak(where, _TOOL, f"{len(old)} elements", f"{len(new)} elements")
    if isinstance(old, str) and isinstance(new, str):
        return replace(text_break(path, old, new), what=_TOOL)
    return PrefixBreak(path, _TOOL, compact_json(old), compact_json(new))


def _object_break(path: str, old: JsonObject, new: JsonObject) -> PrefixBreak:
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            return PrefixBreak(f"{path}.{name}", _TOOL, compact_json(old[name]), None)
        if name not in old:
            return PrefixBreak(f"{path}.{name}", _TOOL, None, compact_json(new[name]))
        if compact_json(old[name]) != compact_json(new[name]):
            return value_break(f"{path}.{name}", old[name], new[name])
    return PrefixBreak(path, f"{_TOOL}, in the order of its keys", ", ".join(old), ", ".join(new))


def compact_json(value: Json) -> str:
    """A JSON value as compact text, keys in their own order."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):  # integers beyond 64 bits
        return repr(value)


def text_break(path: str, old: str, new: str) -> PrefixBreak:
    """Return the first difference between two different texts, and its kind if it is volatile text.

    `before` and `after` are the whole clock, id or number that changed: they may begin before `character`.
    """
    at = common_prefix(old, new)
    start = max(0, at - _NEAR)
    one, other = old[start : at + _NEAR], new[start : at + _NEAR]
    for kind, pattern in KINDS:
        before, after = _match_at(pattern, one, at - start), _match_at(pattern, other, at - start)
        if before is not None and after is not None and before != after:
            return PrefixBreak(path, kind, before, after, at, (one, other), at - start)
    return PrefixBreak(path, "other text", _excerpt(old, at), _excerpt(new, at), at, (one, other), at - start)


def _match_at(pattern: re.Pattern[str], text: str, place: int) -> str | None:
    """Return the match that covers a place, or ends right before it."""
    for match in pattern.finditer(text):
        if match.start() <= place <= match.end():
            return match.group()
    return None


def _excerpt(text: str, at: int) -> str:
    """Return a short part of a text, from the start of the word at a place."""
    start = at
    while start > 0 and at - start < _SHOWN_TEXT // 4 and text[start - 1].isalnum() and text[start - 1].isascii():
        start -= 1
    return text[start : start + _SHOWN_TEXT] + ("…" if len(text) > start + _SHOWN_TEXT else "")
