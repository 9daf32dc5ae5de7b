"""Numbers every beginning of every recorded conversation, so that following a live one costs its new part only.

A conversation is a row of steps. A node stands for one beginning; from a node, a step leads to the next. A live
conversation is followed as far as it was recorded: where that ends, it diverges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import is_
from typing import Final

NOWHERE: Final = -1
_RECENT: Final = 8  # conversations whose way is remembered: as many agents may take turns


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """How far a conversation could be followed. `nodes[i]` is the node before item i; `depth` counts items."""

    root: int
    items: Sequence[object]
    nodes: list[int]
    names: dict[str, int]  # ids seen so far, by first appearance
    seen: list[int]  # how many of them before item i

    @property
    def end(self) -> int:
        """The node of the whole conversation, or NOWHERE."""
        return self.nodes[-1]

    @property
    def depth(self) -> int:
        """How many items were recorded in this order."""
        return next((i for i, node in enumerate(self.nodes) if node == NOWHERE), len(self.nodes)) - 1

    @property
    def last(self) -> int:
        """The last node that was reached."""
        return self.nodes[self.depth]


# What an item is in this trie: its class, and the ids that it mentions, in order.
Classify = Callable[[object], tuple[Hashable, Sequence[str]]]


class Trie:
    """Recorded conversations are grown into it, live ones are followed."""

    __slots__ = ("_children", "_next", "_owners", "_recent")

    def __init__(self) -> None:
        self._next: dict[tuple[int, Hashable], int] = {}
        self._children: dict[int, list[int]] | None = None
        self._owners: list[int] = []  # the first recorded call that a node belongs to
        self._recent: deque[Way] = deque(maxlen=_RECENT)

    def owner(self, node: int) -> int:
        return self._owners[node]

    def children(self, node: int) -> list[int]:
        """How recorded conversations go on from a node. Asked for misses only, after all was grown."""
        if self._children is None:
            self._children = {}
            for (before, _), after in self._next.items():
                self._children.setdefault(before, []).append(after)
        return self._children.get(node, [])

    def grow(self, name: Hashable, items: Sequence[object], classify: Classify, owner: int) -> Way:
        """Learn a recorded conversation; `name` sets apart those that are never alike (another format, say)."""

        def step(node: int, key: Hashable) -> int:
            found = self._next.get((node, key))
            if found is None:
                found = self._next[node, key] = len(self._owners)
                self._owners.append(owner)
            return found

        return self._walk(step(NOWHERE, name), items, classify, step)

    def follow(self, name: Hashable, items: Sequence[object], classify: Classify) -> Way:
        """How far a live conversation goes along the recorded ones."""

        def step(node: int, key: Hashable) -> int:
            return self._next.get((node, key), NOWHERE) if node != NOWHERE else NOWHERE

        return self._walk(self._next.get((NOWHERE, name), NOWHERE), items, classify, step)

    def forget_recent(self) -> None:
        """Recorded ways are not live ones: called once all is grown."""
        self._recent.clear()

    def _walk(
        self, root: int, items: Sequence[object], classify: Classify, step: Callable[[int, Hashable], int]
    ) -> Way:
        base, common = self._nearest(root, items)
        nodes = base.nodes[: common + 1] if base else [root]
        seen = base.seen[: common + 1] if base else [0]
        names = dict(islice(base.names.items(), seen[-1])) if base else {}
        for item in items[common:]:
            kind, ids = classify(item)
            ordinals = tuple([names.setdefault(name, len(names)) for name in ids])
            nodes.append(step(nodes[-1], (kind, ordinals)))
            seen.append(len(names))
        way = Way(root, items, nodes, names, seen)
        if base is not None and common == len(base.items):
            self._recent.remove(base)
        self._recent.append(way)
        return way

    def _nearest(self, root: int, items: Sequence[object]) -> tuple[Way | None, int]:
        """The remembered way with most items in common at its start: the same objects are not looked at again."""
        best: Way | None = None
        longest = 0
        for way in reversed(self._recent):
            if way.root == root and longest < min(len(way.items), len(items)) and way.items[longest] is items[longest]:
                common = common_start(way.items, items)
                if common > longest:
                    best, longest = way, common
        return best, longest


def common_start(one: Sequence[object], other: Sequence[object]) -> int:
    """How many leading items are the same objects."""
    same = list(map(is_, one, other))
    return same.index(False) if False in same else len(same)
