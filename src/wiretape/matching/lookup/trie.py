"""A trie of the recorded conversations: following a live conversation costs only its new part.

Each node is a prefix of recorded conversations. A live conversation is followed until it diverges from all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from wiretape.model.common_prefix import common_run, common_start

NOWHERE: Final = -1
_RECENT: Final = 8  # remembered paths: so many agents may take turns

# The class of an item, and the ids that it mentions, in order.
Classify: TypeAlias = Callable[[object], tuple[Hashable, Sequence[str]]]
# The length of the common prefix of two conversations, compared by identity.
Common: TypeAlias = Callable[[Sequence[object], Sequence[object]], int]


@dataclass(slots=True, eq=False)
class TriePath:
    """The path of a conversation. `nodes[i]` is the node before item i; NOWHERE is last if it diverges."""

    root: int
    items: Sequence[object]
    nodes: list[int]
    names: dict[str, int]  # ids, numbered by first appearance
    seen: list[int]  # the number of ids before item i

    @property
    def end(self) -> int:
        """The node of the whole conversation, or NOWHERE."""
        return self.nodes[-1]

    @property
    def depth(self) -> int:
        """The number of items before the divergence."""
        return len(self.nodes) - 1 - (self.nodes[-1] == NOWHERE)

    @property
    def last(self) -> int:
        """The last node before the divergence."""
        return self.nodes[self.depth]


class Trie:
    """Recorded conversations are added with `grow`; live ones are looked up with `follow`."""

    __slots__ = ("_children", "_common", "_next", "_owners", "_recent")

    def __init__(self, common: Common = common_start) -> None:
        self._common = common
        self._next: dict[tuple[int, Hashable], int] = {}
        self._children: dict[int, list[int]] | None = None
        self._owners: list[int] = []  # by node: its first recorded call
        self._recent: deque[TriePath] = deque(maxlen=_RECENT)

    def owner(self, node: int) -> int:
        return self._owners[node]

    def children(self, node: int) -> list[int]:
        """The child nodes of a node. Only misses need them, when all conversations are added."""
        if self._children is None:
            self._children = {}
            for (before, _), after in self._next.items():
                self._children.setdefault(before, []).append(after)
        return self._children.get(node, [])

    def grow(self, name: Hashable, items: Sequence[object], classify: Classify, owner: int) -> TriePath:
        """Add a recorded conversation. Conversations with another `name` (a wire format, say) have another root."""

        def step(node: int, key: Hashable) -> int:
            found = self._next.get((node, key))
            if found is None:
                found = self._next[node, key] = len(self._owners)
                self._owners.append(owner)
            return found

        return self._walk(step(NOWHERE, name), items, classify, step)

    def follow(self, name: Hashable, items: Sequence[object], classify: Classify) -> TriePath:
        """The path of a live conversation."""
        return self._walk(self._step(NOWHERE, name), items, classify, self._step)

    def _step(self, node: int, key: Hashable) -> int:
        return self._next.get((node, key), NOWHERE)

    def forget_recent(self) -> None:
        """Forget the paths of recorded conversations, when all are added."""
        self._recent.clear()

    def _walk(
        self, root: int, items: Sequence[object], classify: Classify, step: Callable[[int, Hashable], int]
    ) -> TriePath:
        base, common = self._nearest(root, items)
        if base is not None and common == len(items) == len(base.items):
            return base
        path = _begun(root, items, base, common)
        nodes, seen, names = path.nodes, path.seen, path.names
        while nodes[-1] != NOWHERE and len(nodes) <= len(items):
            item = items[len(nodes) - 1]
            kind, ids = classify(item)
            ordinals = tuple([names.setdefault(name, len(names)) for name in ids]) if ids else ()
            nodes.append(step(nodes[-1], (kind, ordinals)))
            seen.append(len(names))
            if base is not None:
                self._rejoin(path, base)
        if base is not None and common == len(base.items):
            self._recent.remove(base)
        self._recent.append(path)
        return path

    def _rejoin(self, path: TriePath, base: TriePath) -> None:
        """Reuse the path after an item that another conversation has with another text: a prompt with a clock, say."""
        at = len(path.nodes) - 1
        if at >= min(len(path.items), len(base.nodes) - 1) or path.items[at] is not base.items[at]:
            return
        known = base.seen[at]
        if path.nodes[at] != base.nodes[at] or list(path.names) != list(islice(base.names, known)):
            return
        until = at + min(_run(path.items, base.items, at), len(base.nodes) - 1 - at)
        path.nodes.extend(base.nodes[at + 1 : until + 1])
        path.names.update(islice(base.names.items(), known, base.seen[until]))
        path.seen.extend(base.seen[at + 1 : until + 1])

    def _nearest(self, root: int, items: Sequence[object]) -> tuple[TriePath | None, int]:
        """The remembered path with the longest common prefix, so that its items are not classified again.

        If none has a common prefix, the latest of the same length.
        """
        best: TriePath | None = None
        longest, most = 0, len(items)
        for path in reversed(self._recent) if most else ():
            if path.root != root:
                continue
            if best is None:
                best = path
            theirs = path.items
            if longest < most and longest < len(theirs) and theirs[longest] is items[longest]:
                common = self._common(theirs, items)
                if common > longest:
                    best, longest = path, common
        return best, longest


def _run(one: Sequence[object], other: Sequence[object], start: int) -> int:
    if isinstance(one, tuple) and isinstance(other, tuple):  # messages are compared by identity
        return common_run(one, other, start)
    return common_start(one[start:], other[start:])


def _begun(root: int, items: Sequence[object], base: TriePath | None, common: int) -> TriePath:
    """A path with the first items of another one."""
    if base is None or not common:
        return TriePath(root, items, [root], {}, [0])
    known = min(common, len(base.nodes) - 1)
    nodes, seen = base.nodes[: known + 1], base.seen[: known + 1]
    # A path that is continued from its end is reused instead of copied, and is no longer remembered.
    names = base.names if common == len(base.items) else dict(islice(base.names.items(), seen[-1]))
    return TriePath(root, items, nodes, names, seen)
