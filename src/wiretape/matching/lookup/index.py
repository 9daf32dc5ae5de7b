"""The recorded requests of one tier by key. Recorded and live requests (`Probe`) get their keys in the same way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from wiretape.compare.address import Address
from wiretape.compare.canonical import EqualityClasses
from wiretape.compare.normalize import loose, settings_template
from wiretape.matching.lookup.templates import NormalizedMessages, TemplateTable
from wiretape.matching.lookup.trie import NOWHERE, Trie, TriePath
from wiretape.model.call import CallRequest, Message, ToolSpec
from wiretape.model.common_prefix import CommonPrefixes, common_run
from wiretape.model.http import Request
from wiretape.model.jsonvalue import Json
from wiretape.wire.base import Memo, WireFormat

_MOST_EQUAL: Final = 32  # unplayed equal calls that a tie-break compares


class AnswerPool:
    """Recorded calls by key, given in recorded order: same host first. `played` is shared by all tiers."""

    __slots__ = ("_by_key", "_played")

    def __init__(self, played: bytearray) -> None:
        self._played = played
        self._by_key: dict[Hashable, dict[str, deque[int]]] = {}

    def put(self, key: Hashable, host: str, number: int) -> None:
        self._by_key.setdefault(key, {}).setdefault(host, deque()).append(number)

    def peek(self, key: Hashable, host: str, strict: bool = False) -> int | None:
        """The recorded call that answers next. `strict`: of this host only."""
        rows = self._by_key.get(key)
        if rows is None:
            return None
        own = self._first(rows.get(host))
        if own is not None or strict:
            return own
        heads = [head for row in rows.values() if (head := self._first(row)) is not None]
        return min(heads, default=None)

    def has_several(self, key: Hashable) -> bool:
        """Whether more than one recorded call has this key, played or not."""
        rows = self._by_key.get(key, {})
        return len(rows) > 1 or any(len(row) > 1 for row in rows.values())

    def waiting(self, key: Hashable, host: str) -> list[int]:
        """All unplayed calls of the key, earliest first: those of the same host if there are any."""
        rows = self._by_key.get(key, {})
        own = self._unplayed(rows.get(host))
        return own or sorted(number for row in rows.values() for number in self._unplayed(row))

    def _unplayed(self, row: deque[int] | None) -> list[int]:
        if row is None or (len(row) == 1 and self._played[row[0]]):
            return []
        return [number for number in islice(row, _MOST_EQUAL) if not self._played[number]]

    def last_played(self, key: Hashable, host: str, strict: bool = False) -> int | None:
        """The last call of the key, if all are played."""
        rows = self._by_key.get(key)
        if rows is None:
            return None
        row = rows.get(host)
        if row or strict:
            return row[-1] if row else None
        return max((row[-1] for row in rows.values() if row), default=None)

    def _first(self, row: deque[int] | None) -> int | None:
        # Calls that another tier's pool gave are dropped when they reach the front; the last one stays, for repeats.
        while row:
            if not self._played[row[0]]:
                return row[0]
            if len(row) == 1:
                return None
            row.popleft()
        return None


@dataclass(slots=True, eq=False)
class Probe:
    """A request in all forms that the tiers compare. It is decoded when the first tier needs that."""

    address: Address
    value: Json  # the body as JSON; see `recorded.plain`
    format: WireFormat | None
    request: Request  # with the parsed body, for the wire format
    decoded: CallRequest | None = None

    def call(self, memo: Memo) -> CallRequest | None:
        if self.decoded is None and self.format is not None:
            self.decoded = self.format.decode_request(self.request, memo)
        return self.decoded

    @property
    def strict(self) -> bool:
        """Whether only the same host answers: the request is not a model call, and its host is known."""
        return self.format is None and bool(self.address.host)


@dataclass(frozen=True, slots=True, eq=False)
class LookupKey:
    """A request's key in a tier, and the path of its conversation in the trie."""

    key: Hashable
    path: TriePath | None = None


class Index(Protocol):
    pool: AnswerPool
    trie: Trie

    def learn(self, probe: Probe, order: int) -> None: ...
    def place(self, probe: Probe) -> LookupKey: ...


def messages_in_common(one: Sequence[object], other: Sequence[object]) -> int:
    """The length of the common prefix of two message lists, compared by identity."""
    return common_run(one, other) if one is not other else len(one)


class ExactIndex:
    """The tier `exact`: method, path, query and body are equal as JSON values."""

    def __init__(self, played: bytearray, prefixes: CommonPrefixes) -> None:
        self.pool = AnswerPool(played)
        self.trie = Trie(prefixes.common)
        self.classes = EqualityClasses()

    def learn(self, probe: Probe, order: int) -> None:
        learn = self.classes.learn

        def follow(name: str, items: Sequence[object]) -> TriePath:
            return self.trie.grow(name, items, lambda item: (learn(item), ()), order)

        self.pool.put(self._key(probe, learn, follow), probe.address.host, order)

    def place(self, probe: Probe) -> LookupKey:
        return LookupKey(self._key(probe, self.classes.find, self._follow))

    def _follow(self, name: str, items: Sequence[object]) -> TriePath:
        return self.trie.follow(name, items, self._find)

    def _find(self, item: Json) -> tuple[int, tuple[str, ...]]:
        return self.classes.find(item), ()

    def _key(
        self, probe: Probe, number: Callable[[Json, bool], int], follow: Callable[[str, Sequence[object]], TriePath]
    ) -> Hashable:
        where = probe.address
        head = (where.method, where.path, number(where.query, False))
        if not isinstance(probe.value, dict):
            return (*head, number(probe.value, False))
        parts: list[tuple[str, str, int]] = []
        for name, value in probe.value.items():
            if isinstance(value, list) and value and isinstance(value[-1], dict):
                parts.append((name, "list", follow(name, value).end))
            else:
                parts.append((name, "value", number(value, True)))
        return (*head, tuple(sorted(parts)))


class CallIndex:
    """The tiers `normalized` and `masked`: calls by their templates, other requests by their normalized body."""

    def __init__(self, played: bytearray, level: TemplateTable, shapes: NormalizedMessages, memo: Memo) -> None:
        self.pool = AnswerPool(played)
        self.trie = Trie(messages_in_common)
        self._ends: dict[int, list[int]] = {}  # by node: the calls whose conversation ends there
        self._lengths: dict[int, int] = {}
        self._nearest: dict[int, list[int]] = {}  # by node: the result of `nearest`
        self._toolsets: dict[int, tuple[tuple[ToolSpec, ...], tuple[int, ...]]] = {}
        self.level = level
        self._shapes = shapes
        self._memo = memo

    def learn(self, probe: Probe, order: int) -> None:
        learn = self.level.learn

        def follow(name: Hashable, items: Sequence[Message]) -> TriePath:
            return self.trie.grow(name, items, self._classify(learn), order)

        self._nearest.clear()
        place = self._place(probe, learn, follow)
        self.pool.put(place.key, probe.address.host, order)
        if place.path is not None:
            self._ends.setdefault(place.path.end, []).append(order)
            self._lengths[order] = len(place.path.items)

    def length(self, order: int) -> int:
        """The number of messages in a recorded request."""
        return self._lengths.get(order, 0)

    def nearest(self, path: TriePath) -> list[int]:
        """The recorded calls with the longest common prefix."""
        if path.root == NOWHERE:
            return []
        if path.end != NOWHERE and path.end in self._ends:
            return self._ends[path.end]
        known = self._nearest.get(path.last)
        if known is None:
            onward = [self.trie.owner(child) for child in self.trie.children(path.last)]
            known = self._nearest[path.last] = sorted({*onward, *self._ends.get(path.last, ())})
        return known

    def place(self, probe: Probe) -> LookupKey:
        find = self.level.find

        def follow(name: Hashable, items: Sequence[Message]) -> TriePath:
            return self.trie.follow(name, items, self._classify(find))

        return self._place(probe, find, follow)

    def _classify(self, number: Callable[[Json, bool], int]) -> Callable[[object], tuple[Hashable, Sequence[str]]]:
        def classify(item: object) -> tuple[Hashable, Sequence[str]]:
            assert isinstance(item, Message)
            shape = self._shapes.message(item)
            return number(shape.template, True), shape.ids

        return classify

    def _tools(self, tools: tuple[ToolSpec, ...], number: Callable[[Json, bool], int]) -> tuple[int, ...]:
        """The classes of the tools, by identity: a loop sends the same tools with every call."""
        if not tools:
            return ()
        known = self._toolsets.get(id(tools))
        if known is None:
            found = tuple([number(template, True) for template in self._shapes.tools(tools)])
            known = self._toolsets[id(tools)] = (tools, found)
        return known[1]

    def _place(
        self,
        probe: Probe,
        number: Callable[[Json, bool], int],
        follow: Callable[[Hashable, Sequence[Message]], TriePath],
    ) -> LookupKey:
        where = probe.address
        call = probe.call(self._memo)
        if call is None or probe.format is None:
            query = number(["query", where.query], False)
            body = number(["body", loose(probe.value)], False)
            return LookupKey((where.method, number(["path", where.path], False), query, body))
        path = follow((probe.format.name, where.tail), call.messages)
        return LookupKey((self.head(probe, number), path.end), path)

    def head(self, probe: Probe, number: Callable[[Json, bool], int]) -> Hashable:
        """The key of everything in a model call's request except its conversation."""
        where, call = probe.address, probe.call(self._memo)
        assert call is not None
        assert probe.format is not None
        return (
            *(where.method, probe.format.name, where.tail, number(["query", where.query], False)),
            *(call.model, call.stream, call.previous_response_id is not None),
            self._tools(call.tools, number),
            number(["settings", settings_template(call, probe.format.volatile)], False),
        )
