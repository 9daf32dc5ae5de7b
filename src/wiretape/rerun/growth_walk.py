"""Goes along two histories at once, the grown one and the recorded: what fits, what differs, what is the program's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wiretape.compare.canonical import canonical
from wiretape.compare.difference import ABSENT, Difference, Tier, differences
from wiretape.compare.mask import Masker
from wiretape.model.jsonvalue import Json
from wiretape.rerun.growth_items import Item, joined, part_of, run_of, spoken

GivenKind: TypeAlias = Literal[
    "message",  # a whole item: the user's words, a reminder
    "beside",  # blocks beside those that the format implies, such as a text after tool results
    "prompt",  # the system prompt is another one
    "tools",  # other tools are offered
    "setting",  # any other member of the request
    "left out",  # the program does not hand back what the model said (its thoughts, say)
    "member",  # a member of an item that only this program writes
]
_CLIENT: Final = frozenset({"user", "system", "tool"})  # whose items a program adds to


@dataclass(frozen=True, slots=True)
class Given:
    """Something that the program decided. `where` is its place in the recorded request."""

    kind: GivenKind
    where: str
    value: Json


class Walk:
    """Goes along two histories at once."""

    def __init__(self, masker: Masker) -> None:
        self.tier = Tier.EXACT
        self.differences: list[Difference] = []
        self.given: list[Given] = []
        self.tail: list[Json] = []
        self.beside: list[Json] = []
        self._masker = masker
        self._names: dict[str, str] = {}  # our id -> theirs

    def along(self, ours: Sequence[Item], theirs: Sequence[Item]) -> None:
        i = j = 0
        while i < len(ours) and j < len(theirs):
            if self._fit(ours[i], theirs[j]):
                i, j = i + 1, j + 1
            elif (run := self._runs_fit(ours, i, theirs, j)) is not None:
                i, j = run
            elif (ahead := self._ahead(ours[i], theirs, j)) is not None:
                for item in theirs[j:ahead]:
                    self._add(item)
                j = ahead
            elif self._is_left_out(ours, i, theirs[j]):
                self.given.append(Given("left out", theirs[j].where, ours[i].raw))
                i += 1
            else:
                self._apart(ours[i], theirs[j])
                i, j = i + 1, j + 1
        for item in ours[i:]:
            if item.only_aside:
                self.given.append(Given("left out", item.where, item.raw))
            else:
                self.differences.append(Difference(item.where, ABSENT, item.raw))
        for item in theirs[j:]:
            self._add(item)

    def _add(self, item: Item) -> None:
        self.given.append(Given("message", item.where, item.raw))
        self.tail.append(item.raw)

    def _fit(self, one: Item, other: Item, look: bool = False) -> bool:
        """Whether two items say the same. `look`: only ask, note nothing."""
        if one.raw is other.raw or canonical(one.raw) == canonical(other.raw):
            return True
        if one.role != other.role or not self._same_ids(one, other):
            return False
        thoughts = self._blocks_fit(one, other)
        if thoughts is None:
            return self._has_more(one, other, look)
        if not look:
            self._note(one, other, thoughts)
        return True

    def _blocks_fit(self, one: Item, other: Item) -> list[Json] | None:
        """The thoughts that the recorded item leaves out, where the rest is alike; None where it is not."""
        tier = self._alike(one.blocks, other.blocks)
        left: list[Json] = []
        if tier is None and not any(block[0] == "reasoning" for block in other.blocks):
            kept = [block for block in one.blocks if block[0] != "reasoning"]
            said, _ = joined(kept, range(len(kept)))
            left = [block for block in one.blocks if block[0] == "reasoning"]
            tier = self._alike(said, other.blocks) if left else None
        if tier is None:
            return None
        self.tier = max(self.tier, tier)
        return left

    def _note(self, one: Item, other: Item, thoughts: Sequence[Json]) -> None:
        self.tier = max(self.tier, Tier.NORMALIZED)
        if thoughts:
            self.given.append(Given("left out", other.where, [block[1] for block in thoughts]))
        for name in one.shape.extra.keys() | other.shape.extra.keys():
            if name not in other.shape.extra:
                self.given.append(Given("left out", f"{other.where}.{name.lstrip('.')}", one.shape.extra[name]))
            elif self._alike(one.shape.extra.get(name, ABSENT), other.shape.extra[name]) is None:
                self.given.append(Given("member", f"{other.where}.{name.lstrip('.')}", other.shape.extra[name]))
        self._names.update(zip(one.shape.ids, other.shape.ids, strict=False))

    def _has_more(self, one: Item, other: Item, look: bool) -> bool:
        """Whether the recorded item has all that ours has, and more that the client added."""
        if other.role not in _CLIENT or len(other.blocks) <= len(one.blocks):
            return False
        left, extra = list(one.blocks), []
        for position, block in enumerate(other.blocks):
            if left and self._alike([left[0]], [block]) is not None:
                left.pop(0)
            elif block[0] in ("result", "call"):
                return False
            else:
                extra.append(position)
        if left:
            return False
        if not look:
            self._note(one, other, ())
            for number in (number for position in extra for number in other.shape.spans[position]):
                where, raw = part_of(other, number)
                self.given.append(Given("beside", where, raw))
                self.beside.append(raw)
        return True

    def _runs_fit(self, ours: Sequence[Item], i: int, theirs: Sequence[Item], j: int) -> tuple[int, int] | None:
        """Where both go on after one answer that is put into items differently: a text and its calls apart, say."""
        if ours[i].role != "assistant" or theirs[j].role != "assistant":
            return None
        one, other = run_of(ours, i), run_of(theirs, j)
        if len(one) == len(other) == 1:
            return None
        said = [spoken(items) for items in (one, other)]
        tier = self._alike(*said)
        if tier is None:
            return None
        self.tier = max(self.tier, tier)
        return i + len(one), j + len(other)

    def _ahead(self, item: Item, theirs: Sequence[Item], j: int) -> int | None:
        """Where our item stands further on: what stands before it is the program's own."""
        for ahead in range(j, len(theirs)):
            if ahead > j and self._fit(item, theirs[ahead], look=True):
                return ahead
        return None

    def _is_left_out(self, ours: Sequence[Item], i: int, other: Item) -> bool:
        item = ours[i]
        if not item.only_aside or item.role != "assistant":
            return False
        following = next((later for later in ours[i + 1 :] if not later.only_aside), None)
        return following is None or following.role != other.role or self._fit(following, other, look=True)

    def _apart(self, one: Item, other: Item) -> None:
        found = [d for d in differences(other.raw, one.raw, other.where) if not self._is_minor(d)]
        self.differences += found or [Difference(other.where, other.raw, one.raw)]

    def _is_minor(self, apart: Difference) -> bool:
        if apart.recorded is ABSENT or apart.live is ABSENT:
            return False
        return self._alike(apart.recorded, apart.live) is not None

    def _same_ids(self, one: Item, other: Item) -> bool:
        if len(one.shape.ids) != len(other.shape.ids):
            return True  # an id more or less is told by what carries it
        return all(
            self._names.get(ours, theirs) == theirs for ours, theirs in zip(one.shape.ids, other.shape.ids, strict=True)
        )

    def _alike(self, one: Json, other: Json) -> Tier | None:
        if one is ABSENT or other is ABSENT:
            return None
        if one == other:
            return Tier.NORMALIZED
        return Tier.MASKED if self._masker.value(one) == self._masker.value(other) else None
