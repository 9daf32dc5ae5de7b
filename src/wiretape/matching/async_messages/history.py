"""Histories without their asynchronous messages: the parts whose order must be the same in both runs.

Each part of a request is kept, or it is asynchronous (and only counted), or it belongs to a passing answer. The kept
parts form a trie: equal histories end at one node.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from wiretape.compare.normalize import block_template, extra_template, is_opaque
from wiretape.matching.lookup.trie import NOWHERE
from wiretape.model.call import Block, Message, Text, ToolCall, ToolResult
from wiretape.model.common_prefix import common_run
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.runs.user_text import taken_apart


@dataclass(frozen=True, slots=True, eq=False)
class HistoryPart:
    """One block of a message, or a part of its text.

    `template` and `ids` are as in a `NormalizedMessage`; `path` is its path in its item.
    """

    role: str
    template: Json
    ids: tuple[str, ...]
    path: str
    text: str | None  # None if it is not text
    tool: bool  # a tool call or a tool result
    part: bool = False  # the text is only a part of the value at the path


class HistoryParts:
    """Splits messages into parts, and caches the parts by identity."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, tuple[HistoryPart, ...]]] = {}

    def of(self, message: Message) -> tuple[HistoryPart, ...]:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, tuple(_pieces(message)))
        return known[1]


def _pieces(message: Message) -> Iterator[HistoryPart]:
    extras = _extras(message)
    for n, block in enumerate(message.blocks):
        if is_opaque(block) and not extras.get(n):
            continue
        path = message.block_paths[n] if n < len(message.block_paths) else ""
        for one in _parts(message, block):
            ids: list[str] = []
            made = block_template(one, ids)
            template = [message.role, made, extra_template(extras.get(n, []), ids)]
            text = one.text if isinstance(one, Text) else None
            tool = isinstance(one, ToolCall | ToolResult)
            yield HistoryPart(message.role, template, tuple(ids), path, text, tool, one is not block)
    if not message.blocks and extras.get(0):
        ids = []
        yield HistoryPart(
            message.role, [message.role, None, extra_template(extras[0], ids)], tuple(ids), "", None, False
        )


def _parts(message: Message, block: Block) -> tuple[Block, ...]:
    """The block, or several texts if a harness inserted some into it. A model's text is not split."""
    if not isinstance(block, Text) or message.role == "assistant":
        return (block,)
    parts = taken_apart(block.text)
    return (block,) if parts == [block.text] else tuple([Text(part, block.refusal) for part in parts])


def _extras(message: Message) -> dict[int, list[tuple[str, Json]]]:
    """The members that no block has, by the block that they belong to; those of the whole item by its first block."""
    found: dict[int, list[tuple[str, Json]]] = {}
    for key, value in message.extra:
        inside = "." + key.rpartition(".")[0] if "." in key else None
        owner = next((n for n, path in enumerate(message.block_paths) if inside and path.startswith(inside)), 0)
        found.setdefault(owner, []).append((key.rpartition(".")[2] if inside else key, value))
    return found


def at_path(value: Json, path: str) -> Json:
    """The value at a path such as `messages[3].content[0].text`; None if the path does not exist."""
    for name in path.replace("[", ".[").split("."):
        if not name:
            continue
        if name[0] == "[" and isinstance(value, list):
            index = int(name[1:-1])
            value = value[index] if index < len(value) else None
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


def without_members(value: Json, names: frozenset[str]) -> Json:
    """A body without these members."""
    if not isinstance(value, dict):
        return value
    kept: JsonObject = {key: item for key, item in value.items() if key not in names}
    return kept


_RECENT: Final = 4

Number = Callable[[Json, bool], int]


@dataclass(frozen=True, slots=True)
class AsyncMessage:
    """A part that is not kept: its class, its ordinal in that class, and its position."""

    kind: int
    nth: int
    piece: HistoryPart
    message: int
    after: int  # the number of kept parts before it
    joined: bool  # it is not the first part of its message

    @property
    def key(self) -> tuple[int, int]:
        return self.kind, self.nth


@dataclass(frozen=True, slots=True, eq=False)
class ThreadHistory:
    """A request's history. A list `x_to` has, for each message i, the length of the list `x` before it."""

    messages: Sequence[Message]
    nodes: list[int]  # before message i
    kept: list[HistoryPart]
    kept_in: list[int]  # the message index of each
    kept_to: list[int]
    async_parts: list[AsyncMessage]
    async_to: list[int]
    passing: list[AsyncMessage]  # parts of answers that another run may have fewer or more of
    passing_to: list[int]
    names: dict[str, int]  # ids, numbered by first appearance
    names_to: list[int]

    @property
    def end(self) -> int:
        return self.nodes[-1]

    @property
    def depth(self) -> int:
        """The number of messages before the divergence, asynchronous ones included."""
        return next((n for n, node in enumerate(self.nodes) if node == NOWHERE), len(self.nodes)) - 1

    @property
    def counts(self) -> Counter[int]:
        return Counter(part.kind for part in self.async_parts)


@dataclass(slots=True, eq=False)
class _Steps:
    """A history while it is being followed."""

    node: int
    kept: list[HistoryPart]
    kept_in: list[int]
    async_parts: list[AsyncMessage]
    passing: list[AsyncMessage]
    seen: Counter[int]
    names: dict[str, int]


class ThreadHistories:
    """The histories of one recorded thread: recorded ones are added with `grow`, live ones looked up with `follow`."""

    def __init__(self, pieces: HistoryParts, opening: int, movable: Counter[int], passing: frozenset[int]) -> None:
        """`opening`: the number of messages in the first call; `movable`: the asynchronous parts of each class."""
        self._pieces = pieces
        self._opening = opening
        self._movable = movable
        self._passing = passing
        self._next: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._recent: deque[ThreadHistory] = deque(maxlen=_RECENT)

    def grow(self, messages: Sequence[Message], number: Number) -> ThreadHistory:
        return self._walk(messages, number, grow=True)

    def follow(self, messages: Sequence[Message], number: Number) -> ThreadHistory:
        return self._walk(messages, number, grow=False)

    def forget_recent(self) -> None:
        self._recent.clear()

    def _walk(self, messages: Sequence[Message], number: Number, grow: bool) -> ThreadHistory:
        base, common = self._nearest(messages)
        history = _begun(messages, base, common)
        steps = _Steps(
            history.nodes[-1],
            history.kept,
            history.kept_in,
            history.async_parts,
            history.passing,
            Counter(part.kind for part in (*history.async_parts, *history.passing)),
            history.names,
        )
        for n in range(common, len(messages)):
            for place, piece in enumerate(self._pieces.of(messages[n])):
                self._take(steps, n, piece, place > 0, number, grow)
            history.nodes.append(steps.node)
            history.kept_to.append(len(steps.kept))
            history.async_to.append(len(steps.async_parts))
            history.passing_to.append(len(steps.passing))
            history.names_to.append(len(steps.names))
        self._recent.append(history)
        return history

    def _take(self, steps: _Steps, n: int, piece: HistoryPart, joined: bool, number: Number, grow: bool) -> None:
        kind = number(piece.template, True)
        if n >= self._opening:
            aside = self._aside(steps, piece, kind)
            if aside is not None:
                aside.append(AsyncMessage(kind, steps.seen[kind], piece, n, len(steps.kept), joined))
                steps.seen[kind] += 1
                return
        ordinals = tuple([steps.names.setdefault(name, len(steps.names)) for name in piece.ids])
        steps.kept.append(piece)
        steps.kept_in.append(n)
        key = (steps.node, kind, ordinals)
        if grow:
            steps.node = self._next.setdefault(key, len(self._next) + 1)
        else:
            steps.node = self._next.get(key, NOWHERE) if steps.node != NOWHERE else NOWHERE

    def _aside(self, steps: _Steps, piece: HistoryPart, kind: int) -> list[AsyncMessage] | None:
        """The list for a part that is not kept."""
        if piece.tool:
            return None
        if piece.role == "assistant":
            return steps.passing if kind in self._passing else None
        return steps.async_parts if steps.seen[kind] < self._movable[kind] else None

    def _nearest(self, messages: Sequence[Message]) -> tuple[ThreadHistory | None, int]:
        best: ThreadHistory | None = None
        longest = 0
        for history in reversed(self._recent):
            common = common_run(history.messages, messages)
            if common > longest:
                best, longest = history, common
        return best, longest


def _begun(messages: Sequence[Message], base: ThreadHistory | None, common: int) -> ThreadHistory:
    """A history with the first `common` messages of another one."""
    if base is None:
        return ThreadHistory(messages, [0], [], [], [0], [], [0], [], [0], {}, [0])
    kept, async_parts, passing = base.kept_to[common], base.async_to[common], base.passing_to[common]
    return ThreadHistory(
        messages,
        base.nodes[: common + 1],
        base.kept[:kept],
        base.kept_in[:kept],
        base.kept_to[: common + 1],
        base.async_parts[:async_parts],
        base.async_to[: common + 1],
        base.passing[:passing],
        base.passing_to[: common + 1],
        dict(islice(base.names.items(), base.names_to[common])),
        base.names_to[: common + 1],
    )
