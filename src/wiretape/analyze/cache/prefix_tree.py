"""Requests as sequences of numbers, the longest prefix that an earlier request shares, and the tokens of a prefix.

A request is its tools, then its messages, one number each; equal content has equal numbers. Sequences are in a radix
tree: a loop that only appends is one edge, and a new call costs only its new elements. Two spellings are ignored,
because the model does not see them: cache markers, and a text that is a string or the only part of a list.

Tokens of a prefix are exact where an earlier request ended there. Elsewhere they are interpolated by the length of the
texts between two known points: the longest earlier request inside the prefix, and the request itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from wiretape.analyze.cache.rules import CacheRule
from wiretape.analyze.prefix_breaks import compact_json, without_markers
from wiretape.model.call import Block, Message, ModelCall, Reasoning, Text, ToolCall, ToolResult, ToolSpec
from wiretape.model.common_prefix import common_prefix
from wiretape.runs.content_keys import Atom

Numbers = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Sent:
    """The elements of one request. `shared`: how many elements at its start the earlier call `base` had sent."""

    call: ModelCall
    numbers: Numbers
    tools: int  # number of elements that are tools
    base: Sent | None = None
    shared: int = 0

    @property
    def whole(self) -> bool:
        """True if this request starts with the whole request of `base`."""
        return self.base is not None and self.shared == len(self.base.numbers)


class Elements:
    """Assigns numbers and sizes to tools and messages. Each object is read once."""

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
        """Bytes of text of some elements. Token estimates use it."""
        return sum(map(self._sizes.__getitem__, numbers))

    def _offered(self, tools: tuple[ToolSpec, ...]) -> Numbers:
        found = self._tools.get(id(tools))
        if found is None:
            found = self._tools[id(tools)] = (tools, tuple(map(self._tool, tools)))
        return found[1]

    def _history(self, messages: tuple[Message, ...]) -> Numbers:
        """Return the numbers of messages. Objects of the last history with the same start are not read again."""
        own = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
        system, history = tuple(map(self._message, messages[:own])), messages[own:]
        if not history:
            return system
        before, known = self._histories.get(id(history[0]), ((), ()))
        same = common_prefix(before, history)  # by identity
        numbers = known[:same] + tuple(map(self._message, history[same:]))
        self._histories[id(history[0])] = (history, numbers)
        return system + numbers

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
    """The whole content of a block as texts."""
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
    """An edge of the tree: elements `start` to `end` of `last`, and the edges that continue it."""

    last: Sent  # the latest call that sent it
    start: int
    end: int
    after: dict[int, _Node] = field(default_factory=dict)


class Prefixes:
    """The requests so far of one model and cache key."""

    def __init__(self) -> None:
        self._first: dict[int, _Node] = {}

    def add(self, sent: Sent) -> None:
        """Find the earlier call with the longest common prefix (the latest of equals), and add this one to the tree."""
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
            elif not node.after and at == len(node.last.numbers):  # it continues the end: the edge grows
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


_CHAIN = 64  # earlier requests that are searched for a known point


@dataclass(frozen=True, slots=True)
class Tokens:
    """A number of tokens."""

    count: int | None
    exact: bool = False  # reported by the provider


UNKNOWN = Tokens(None)


def whole_tokens(sent: Sent) -> int | None:
    """Return the reported input of a request; None if it is unknown.

    If the provider ran tools itself, the reported number is the sum of several readings, and is not used.
    """
    if any(tool.kind == "server" for tool in sent.call.tool_calls):
        return None
    return sent.call.usage.input if sent.call.usage is not None else None


def tokens_at(sent: Sent, length: int, elements: Elements, more: int = 0) -> Tokens:
    """Return the tokens of a request's first `length` elements and of `more` bytes of the next one."""
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
    """Return the longest earlier request inside the first `length` elements whose tokens are known."""
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
    """Return how many of `tokens` a cache serves: none below the minimum, else whole steps."""
    if tokens is None:
        return None
    least = rule.least(model)
    if least is not None and tokens < least:
        return 0
    return tokens - tokens % rule.step
