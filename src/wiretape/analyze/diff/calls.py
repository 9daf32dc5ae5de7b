"""Differences between two paired calls: in the request and in the answer.

Ids are compared as links: equal ids in one run must be equal ids in the other. Tool arguments and results are compared
as JSON, texts without volatile text. After the runs have diverged, only the new part of a history is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from wiretape.analyze.prefix_breaks import compact_json, text_break, value_break
from wiretape.model.call import (
    Block,
    CallRequest,
    Media,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wiretape.model.common_prefix import common_prefix
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.run import Step
from wiretape.model.wording import window
from wiretape.runs.agent_identity import system_of
from wiretape.wire.base import Volatile

_NEVER = frozenset({"cache_control", "cachePoint", "signature", "thoughtSignature", "thought_signature"})
_IDS = frozenset(
    {"id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "item_id", "message_id", "status", "index"}
)
_SHORT, _BEFORE = 160, 40  # characters
_TRANSPORT = frozenset({"stream", "stream_options"})  # settings that do not change the answer's content


@dataclass(frozen=True, slots=True)
class Spot:
    """A difference. `volatile`: the values differ in every run, such as clocks and ids."""

    path: str
    a: str | None
    b: str | None
    what: str
    volatile: bool = False


Spots: TypeAlias = Iterator[Spot]


class Ids:
    """Pairs the ids of two runs."""

    def __init__(self) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def same(self, a: str | None, b: str | None) -> bool:
        """True if two ids are a pair. Ids are paired when they are first compared, one to one."""
        if a is None or b is None:
            return True  # some clients omit ids
        return self._there.setdefault(a, b) == b and self._back.setdefault(b, a) == a


class CallComparer:
    """Compares pairs of calls in order."""

    def __init__(self, settle: Callable[[str], str]) -> None:
        self._settle = settle
        self._ids = Ids()
        self._before: dict[tuple[int, int], tuple[tuple[Message, ...], tuple[Message, ...]]] = {}
        self._equal: dict[tuple[int, int], tuple[Message, Message]] = {}

    def spots(self, a: Step, b: Step, volatile: Volatile, diverged: bool) -> Spots:
        """Yield every difference of the requests, then of the answers. `diverged`: their histories already differ."""
        yield from self._request(a, b, volatile, diverged)
        yield from self._answer(a.call, b.call)

    def _request(self, a: Step, b: Step, volatile: Volatile, diverged: bool) -> Spots:
        one, other = a.call.request, b.call.request
        if one.model != other.model:
            yield Spot("model", one.model, other.model, "model")
        yield from self._tools(one, other)
        yield from self._settings(one, other, volatile)
        yield from self._messages(a, b, diverged)

    def _tools(self, a: CallRequest, b: CallRequest) -> Spots:
        names_a, names_b = [tool.name for tool in a.tools], [tool.name for tool in b.tools]
        if names_a != names_b:
            gone = [name for name in names_a if name not in names_b]
            new = [name for name in names_b if name not in names_a]
            if gone or new:
                yield Spot("tools", ", ".join(gone) or None, ", ".join(new) or None, "tools")
            else:
                yield Spot("tools", ", ".join(names_a), ", ".join(names_b), "order of tools")
            return
        for index, (one, other) in enumerate(zip(a.tools, b.tools, strict=True)):
            if one.raw is not other.raw and compact_json(one.raw) != compact_json(other.raw):
                yield from self._values(f"tools[{index}]", one.raw, other.raw, "tools")

    def _settings(self, a: CallRequest, b: CallRequest, volatile: Volatile) -> Spots:
        one, other = _settings(a, volatile), _settings(b, volatile)
        for name in dict.fromkeys((*one, *other)):
            yield from self._values(name, one.get(name), other.get(name), "settings")

    def _messages(self, a: Step, b: Step, diverged: bool) -> Spots:
        """Compare the whole history; after the runs have diverged, only the system texts and the new messages."""
        ones, others = a.call.request.messages, b.call.request.messages
        if diverged:
            mine, theirs = _new(a), _new(b)
        else:
            start = self._known(a, b)
            mine, theirs = list(range(start, len(ones))), list(range(start, len(others)))
        path_a, path_b = a.call.request.path, b.call.request.path
        for i, j in zip(mine, theirs, strict=False):
            yield from self._message(path_a(i), ones[i], others[j])
        if len(mine) > len(theirs):
            yield Spot(path_a(mine[len(theirs)]), _said(ones[mine[len(theirs)]]), None, "history")
        elif len(theirs) > len(mine):
            yield Spot(path_b(theirs[len(mine)]), None, _said(others[theirs[len(mine)]]), "history")

    def _known(self, a: Step, b: Step) -> int:
        """Return how many messages are the same objects as in the pair before, which were compared there."""
        ones, others = a.call.request.messages, b.call.request.messages
        before_a, before_b = self._before.get((a.thread, b.thread), ((), ()))
        self._before[a.thread, b.thread] = (ones, others)
        length = min(len(before_a), len(before_b))
        same = ones[:length] == before_a[:length] and others[:length] == before_b[:length]  # by identity
        return length if same else 0

    def _message(self, path: str, a: Message, b: Message) -> Spots:
        if a is b or (id(a), id(b)) in self._equal:
            return
        spots = list(self._compared(path, a, b))
        if all(spot.volatile for spot in spots):
            self._equal[id(a), id(b)] = (a, b)  # keeps the objects, so that their id() stays unique
        yield from spots

    def _compared(self, path: str, a: Message, b: Message) -> Spots:
        what = "system" if a.role == b.role == "system" else "history"
        if a.role != b.role:
            yield Spot(path, f"{a.role}: {_said(a)}", f"{b.role}: {_said(b)}", what)
            return
        yield from self._blocks(path, a, b, what)

    def _blocks(self, path: str, a: Message, b: Message, what: str) -> Spots:
        ones, others = _content_blocks(a), _content_blocks(b)
        for (place, one), (_, other) in zip(ones, others, strict=False):
            yield from self._block(path + place, one, other, what)
        if len(ones) > len(others):
            place, extra = ones[len(others)]
            yield Spot(path + place, _text(extra), None, what)
        elif len(others) > len(ones):
            place, extra = others[len(ones)]
            yield Spot(path + place, None, _text(extra), what)

    def _block(self, path: str, a: Block, b: Block, what: str) -> Spots:
        if type(a) is not type(b):
            yield Spot(path, _text(a), _text(b), what)
        elif isinstance(a, Text | Reasoning) and isinstance(b, Text | Reasoning):
            yield from self._texts(path, a.text, b.text, what)
        elif isinstance(a, ToolCall) and isinstance(b, ToolCall):
            yield from self._tool_calls(path, a, b, what)
        elif isinstance(a, ToolResult) and isinstance(b, ToolResult):
            yield from self._results(path, a, b, what)
        else:
            raw_a, raw_b = getattr(a, "raw", None), getattr(b, "raw", None)
            yield from self._values(path, raw_a, raw_b, what)

    def _tool_calls(self, path: str, a: ToolCall, b: ToolCall, what: str) -> Spots:
        if a.name != b.name:
            yield Spot(path, _text(a), _text(b), what)
            return
        if not self._ids.same(a.id, b.id):
            yield Spot(path, a.id, b.id, f"{what}: an id that links something else")
        yield from self._json_texts(path, a.arguments, b.arguments, what)

    def _results(self, path: str, a: ToolResult, b: ToolResult, what: str) -> Spots:
        if not self._ids.same(a.id, b.id):
            yield Spot(path, a.id, b.id, f"{what}: an id that links something else")
        if bool(a.is_error) != bool(b.is_error):
            yield Spot(path, f"is_error: {a.is_error}", f"is_error: {b.is_error}", what)
        yield from self._json_texts(path, a.text, b.text, what)
        if a.parts or b.parts:
            yield from self._values(path, list(a.parts), list(b.parts), what)

    def _json_texts(self, path: str, a: str, b: str, what: str) -> Spots:
        if a == b:
            return
        one, other = _json(a), _json(b)
        if one is None or other is None:
            yield from self._texts(path, a, b, what)
        else:
            yield from self._values(path, one, other, what)

    def _texts(self, path: str, a: str, b: str, what: str) -> Spots:
        if a.strip() == b.strip():
            return
        one, other = self._settle(a).strip(), self._settle(b).strip()
        if one == other:
            change = text_break(path, a, b)
            yield Spot(path, change.before, change.after, what, volatile=True)
            return
        yield Spot(path, *_shown(a, b, one, other), what)

    def _values(self, path: str, a: Json, b: Json, what: str) -> Spots:
        """Yield the first difference of two JSON values that is not volatile, else the first volatile one."""
        spots = list(self._walked(path, a, b, what))
        real = [spot for spot in spots if not spot.volatile]
        yield from real[:1] or spots[:1]

    def _walked(self, path: str, a: Json, b: Json, what: str) -> Spots:
        if isinstance(a, dict) and isinstance(b, dict):
            for name in dict.fromkeys((*a, *b)):
                if name in _NEVER:
                    continue
                if name in _IDS and isinstance(a.get(name), str | int) and isinstance(b.get(name), str | int):
                    continue
                yield from self._walked(f"{path}.{name}", a.get(name), b.get(name), what)
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for index, (one, other) in enumerate(zip(a, b, strict=True)):
                yield from self._walked(f"{path}[{index}]", one, other, what)
        elif isinstance(a, str) and isinstance(b, str):
            yield from self._texts(path, a, b, what)
        elif not _same(a, b):
            found = value_break(path, a, b) if isinstance(a, list) and isinstance(b, list) else None
            where = found.path if found is not None else path
            one, other = (found.before, found.after) if found is not None else (_value(a), _value(b))
            yield Spot(where, one, other, what)

    def _answer(self, a: ModelCall, b: ModelCall) -> Spots:
        one, other = _outcome(a), _outcome(b)
        if one != other:
            yield Spot("answer", one, other, "outcome")
            return
        if a.response is None or b.response is None:
            return
        mine, theirs = _merged(a.response.messages), _merged(b.response.messages)
        yield from self._blocks("answer", mine, theirs, "answer")
        if a.response.finish != b.response.finish:
            yield Spot("answer.finish", a.response.finish, b.response.finish, "answer")


def _new(step: Step) -> list[int]:
    """Return the indices of a request's system messages and of its new messages."""
    opening, messages = len(system_of(step.call.request)), step.call.request.messages
    return [*range(opening), *range(max(opening, step.new_from), len(messages))]


def _settings(request: CallRequest, volatile: Volatile) -> JsonObject:
    kept = {
        name: value
        for name, value in request.settings.items()
        if name not in volatile.settings and name not in _TRANSPORT and value is not None
    }
    for first, *rest in volatile.nested:
        kept = _without(kept, [first, *rest])
    return kept


def _without(value: JsonObject, path: Sequence[str]) -> JsonObject:
    name, *rest = path
    if name not in value:
        return value
    if not rest:
        return {key: member for key, member in value.items() if key != name}
    inner = value[name]
    return {**value, name: _without(inner, rest)} if isinstance(inner, dict) else value


def _content_blocks(message: Message) -> list[tuple[str, Block]]:
    """Return the blocks with text or tools, each with its path. Opaque provider state is left out."""
    found = []
    for place, block in enumerate(message.blocks):
        if isinstance(block, Reasoning) and not block.text:
            continue
        if isinstance(block, Text) and not block.text.strip():
            continue
        found.append((message.block_paths[place] if place < len(message.block_paths) else "", block))
    return found


def _merged(messages: Sequence[Message]) -> Message:
    """Return an answer as one message, with numbered tool calls."""
    blocks: list[Block] = []
    paths: list[str] = []
    tools = 0
    for message in messages:
        for block in message.blocks:
            blocks.append(block)
            if isinstance(block, ToolCall):
                paths.append(f".tool_calls[{tools}].arguments")
                tools += 1
            else:
                paths.append(
                    {Text: ".text", Reasoning: ".reasoning"}.get(type(block), f".{type(block).__name__.lower()}")
                )
    return Message("assistant", tuple(blocks), tuple(paths))


def _outcome(call: ModelCall) -> str:
    """Return the outcome of a call without its content."""
    response = call.response
    if response is None:
        return f"no answer ({call.ended})" if call.ended is not None else "no answer"
    if response.status >= 400:
        return f"status {response.status}"
    if response.error is not None:
        return f"an error: {response.error.code or response.error.type or 'unnamed'}"
    return "an answer" if response.complete else "an answer that was cut"


def _shown(a: str, b: str, one: str, other: str) -> tuple[str, str]:
    """Return both texts whole if they are short, else masked excerpts around the first difference."""
    if len(a) <= _SHORT and len(b) <= _SHORT:
        return a, b
    start = max(0, common_prefix(one, other) - _BEFORE)
    return window(one, start, _SHORT), window(other, start, _SHORT)


def _json(text: str) -> Any:
    """Parse a text that is a JSON object or list; None for other texts."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _same(a: Json, b: Json) -> bool:
    """True if two values are equal as JSON: 1 equals 1.0, and not true."""
    return (a == b and isinstance(a, bool) == isinstance(b, bool)) or compact_json(a) == compact_json(b)


def _value(value: Json) -> str | None:
    return None if value is None else value if isinstance(value, str) else compact_json(value)


def _said(message: Message) -> str:
    return " ".join(_text(block) for block in message.blocks)


def _text(block: Block) -> str:
    match block:
        case Text() | Reasoning() | ToolResult():
            return block.text
        case ToolCall():
            return f"{block.name}({block.arguments})"
        case Media():
            return f"({block.kind})"
        case _:
            return compact_json(block.raw)
