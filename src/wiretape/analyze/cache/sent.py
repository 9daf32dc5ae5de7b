"""What every request sent, as sequences, and how much of a new one an earlier one had sent before.

A request is its tools, then its messages, one number each; equal content has equal numbers. Sequences stand in a tree
whose edges are whole stretches, so a loop that only grows is one edge: a new call costs what is new in it. Cache
markers do not count, nor whether a text stands alone or as the only part of a list: no prompt shows them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from wiretape.analyze.cache.rules import CacheRule
from wiretape.analyze.prefix_breaks import compact_json, without_markers
from wiretape.model.call import Block, Message, ModelCall, Reasoning, Text, ToolCall, ToolResult, ToolSpec
from wiretape.runs.agent_identity import common_prefix
from wiretape.runs.keys import Atom

Numbers = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Sent:
    """What one call sent. `shared`: how many of its elements the call `base` had sent before it, in the same order."""

    call: ModelCall
    numbers: Numbers
    tools: int  # how many of the elements are tools
    base: Sent | None = None
    shared: int = 0

    @property
    def whole(self) -> bool:
        """Whether all that `base` sent stands at the start of this."""
        return self.base is not None and self.shared == len(self.base.numbers)


class Elements:
    """Numbers and sizes of tools and messages. Each object is read once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._seen: dict[int, tuple[object, int]] = {}
        self._tools: dict[int, tuple[tuple[ToolSpec, ...], Numbers]] = {}
        self._histories: dict[int, tuple[tuple[Message, ...], Numbers]] = {}
        self._sizes: list[int] = []

    def sent(self, call: ModelCall) -> Sent:
        offered = self._offered(call.request.tools)
        return Sent(call, offered + self._history(call.request.messages), len(offered))

    def size(self, numbers: Sequence[int]) -> int:
        """Bytes of text of some elements: what tokens are estimated by."""
        return sum(map(self._sizes.__getitem__, numbers))

    def _offered(self, tools: tuple[ToolSpec, ...]) -> Numbers:
        found = self._tools.get(id(tools))
        if found is None:
            found = self._tools[id(tools)] = (tools, tuple(map(self._tool, tools)))
        return found[1]

    def _history(self, messages: tuple[Message, ...]) -> Numbers:
        """Numbers of messages. The objects that the last history of the same beginning had are not looked at again."""
        own = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
        opening, said = tuple(map(self._message, messages[:own])), messages[own:]
        if not said:
            return opening
        before, known = self._histories.get(id(said[0]), ((), ()))
        same = common_prefix(before, said)  # by identity
        numbers = known[:same] + tuple(map(self._message, said[same:]))
        self._histories[id(said[0])] = (said, numbers)
        return opening + numbers

    def _tool(self, tool: ToolSpec) -> int:
        found = self._seen.get(id(tool))
        if found is None:
            text = compact_json(without_markers(tool.raw))
            found = self._seen[id(tool)] = (tool, self._number(("tool", text), len(text.encode())))
        return found[1]

    def _message(self, message: Message) -> int:
        found = self._seen.get(id(message))
        if found is None:
            blocks = tuple(map(_content, message.blocks))
            key = (message.role, *blocks, compact_json(dict(message.extra)) if message.extra else "")
            size = sum(_bytes(text) for block in blocks for text in block)
            found = self._seen[id(message)] = (message, self._number(key, size + 4))
        return found[1]

    def _number(self, key: Hashable, size: int) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self._sizes):
            self._sizes.append(size)
        return number


def _content(block: Block) -> Atom:
    """All that a block says, as texts."""
    match block:
        case Text():
            return ("text", block.text)
        case Reasoning():
            return ("reasoning", block.text, block.opaque or "")
        case ToolCall():
            return ("call", block.id or "", block.name, block.arguments)
        case ToolResult():
            return ("result", block.id or "", block.text, *map(compact_json, block.parts))
        case _:
            return (type(block).__name__, compact_json(block.raw))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


@dataclass(slots=True)
class _Node:
    """A stretch of elements, `start` to `end` of what `last` sent, and what went on from there."""

    last: Sent  # the latest call that sent it
    start: int
    end: int
    after: dict[int, _Node] = field(default_factory=dict)


class Prefixes:
    """All that was sent so far under one model and key."""

    def __init__(self) -> None:
        self._first: dict[int, _Node] = {}

    def add(self, sent: Sent) -> None:
        """Find the earlier call that shares the most with this one (the latest of equals), and remember this one."""
        numbers, at, level = sent.numbers, 0, self._first
        while at < len(numbers):
            node = level.get(numbers[at])
            if node is None:
                level[numbers[at]] = _Node(sent, at, len(numbers))
                break
            same = common_prefix(node.last.numbers[at : node.end], numbers[at:])
            sent.base, sent.shared = node.last, at + same
            at += same
            if at < node.end:
                self._split(node, at, sent)
            elif not node.after and at == len(node.last.numbers):  # it goes on from the very end: the stretch grows
                node.end = len(numbers)
                node.last = sent
                break
            node.last = sent
            level = node.after

    @staticmethod
    def _split(node: _Node, at: int, sent: Sent) -> None:
        rest = _Node(node.last, at, node.end, node.after)
        node.after = {node.last.numbers[at]: rest}
        node.end = at


_CHAIN = 64  # earlier requests looked at for a known point


@dataclass(frozen=True, slots=True)
class Tokens:
    count: int | None
    exact: bool = False  # the wire's own figure


UNKNOWN = Tokens(None)


def whole_tokens(sent: Sent) -> int | None:
    """The input of a whole request, as the wire gives it.

    Where the provider ran tools of its own, it read the request several times, and its figure is the sum.
    """
    if any(tool.kind == "server" for tool in sent.call.tool_calls):
        return None
    return sent.call.usage.input if sent.call.usage is not None else None


def tokens_at(sent: Sent, length: int, elements: Elements, more: int = 0) -> Tokens:
    """Tokens of a request's first `length` elements, and of `more` bytes of the next one."""
    known = _known_point(sent, length)
    if known is not None and len(known.numbers) == length and not more:
        return Tokens(whole_tokens(known), exact=True)
    start, before = (len(known.numbers), whole_tokens(known) or 0) if known is not None else (0, 0)
    size = elements.size(sent.numbers[start:length]) + more
    whole = whole_tokens(sent)
    if whole is not None and whole > before:
        all_of_it = elements.size(sent.numbers[start:])
        return Tokens(before + round((whole - before) * min(1.0, size / max(1, all_of_it))))
    if known is not None:
        density = before / max(1, elements.size(known.numbers))
        return Tokens(before + round(size * density))
    return UNKNOWN


def _known_point(sent: Sent, length: int) -> Sent | None:
    """The longest earlier request that is all in the first `length` elements, and whose tokens are known."""
    earlier, limit = sent.base, min(sent.shared, length)
    for _ in range(_CHAIN):
        if earlier is None:
            return None
        if len(earlier.numbers) <= limit and whole_tokens(earlier) is not None:
            return earlier
        limit = min(limit, earlier.shared)
        earlier = earlier.base
    return None


def servable(tokens: int | None, rule: CacheRule, model: str | None) -> int | None:
    """What a cache serves of so many tokens: none below the minimum, and whole steps."""
    if tokens is None:
        return None
    least = rule.least(model)
    if least is not None and tokens < least:
        return 0
    return tokens - tokens % rule.step
