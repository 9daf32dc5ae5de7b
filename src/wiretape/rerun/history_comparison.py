"""Compares two histories item by item: the built one and the recorded one.

Items are compared without what clients may spell differently: ids, tool names of results, how texts are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from wiretape.compare.canonical import canonical
from wiretape.compare.difference import ABSENT, Difference, Tier, differences
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import normalized_message
from wiretape.model.call import Message, Reasoning
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import rebuilt

ChoiceKind: TypeAlias = Literal[
    "message",  # a whole item: the user's text, a reminder
    "beside",  # blocks added to those that the format implies, such as a text after tool results
    "prompt",  # another system prompt
    "tools",  # another list of tools
    "setting",  # another value of any other member
    "left out",  # the program does not send back a part of the answer, such as its reasoning
    "member",  # a member of an item that only this program writes
]
_CLIENT_ROLES: Final = frozenset({"user", "system", "tool"})  # programs add to items of these roles


@dataclass(frozen=True, slots=True)
class ProgramChoice:
    """A decision of the program that no format implies. `where` is its place in the recorded request."""

    kind: ChoiceKind
    where: str
    value: Json


@dataclass(frozen=True, slots=True)
class ComparableMessage:
    """A message without its variable parts. `spans[n]` are the message's blocks that became `blocks[n]`."""

    blocks: list[Json]
    spans: list[tuple[int, ...]]
    extra: JsonObject
    ids: tuple[str, ...]


class HistoryItem:
    """One item of a history: its message, its place, and its JSON value."""

    def __init__(self, message: Message, where: str, raw: Json) -> None:
        self.message = message
        self.where = where
        self.raw = raw

    @cached_property
    def comparable(self) -> ComparableMessage:
        shape = normalized_message(self.message)
        _, blocks, extra = shape.template
        # Opaque reasoning without text has no block in the template.
        numbers = [n for n, b in enumerate(self.message.blocks) if not (isinstance(b, Reasoning) and not b.text)]
        joined, spans = _join_texts([_comparable_block(block) for block in blocks], numbers)
        return ComparableMessage(joined, spans, extra, shape.ids)

    @property
    def role(self) -> str:
        return self.message.role

    @property
    def blocks(self) -> list[Json]:
        return self.comparable.blocks

    @property
    def optional(self) -> bool:
        """Whether it holds only reasoning or provider-run tools, which clients need not send back."""
        return all(block[0] == "reasoning" or block[-1] == "server" for block in self.blocks)


def _comparable_block(block: Json) -> Json:
    """Return a call or result without its id, a result without its tool's name, and a text without outer blanks."""
    if block[0] == "call":
        return [block[0], *block[2:]]
    if block[0] == "text" and isinstance(block[1], str):
        return [block[0], block[1].strip(), *block[2:]]  # clients trim answers: some providers require it
    return _without_nulls([block[0], *block[3:]] if block[0] == "result" else block)


def _without_nulls(value: Json) -> Json:
    def kept(members: JsonObject) -> JsonObject:
        return {key: item for key, item in members.items() if item is not None}

    return rebuilt(value, lambda _, leaf: leaf, kept)


def _join_texts(blocks: Sequence[Json], numbers: Sequence[int]) -> tuple[list[Json], list[tuple[int, ...]]]:
    """Join neighbouring texts, because clients join and split them. Also return the numbers behind each block."""
    joined: list[Json] = []
    spans: list[tuple[int, ...]] = []
    for block, number in zip(blocks, numbers, strict=True):
        if block[0] == "text" and not block[1]:
            continue  # some clients send a blank if the answer has no text
        if joined and _both_text(joined[-1], block):
            joined[-1] = ["text", joined[-1][1] + block[1], block[2]]
            spans[-1] = (*spans[-1], number)
        else:
            joined.append(block)
            spans.append((number,))
    return joined, spans


def _both_text(one: Json, other: Json) -> bool:
    if one[0] != "text" or other[0] != "text" or one[2] != other[2]:
        return False
    return isinstance(one[1], str) and isinstance(other[1], str)


class HistoryComparison:
    """The result of comparing two histories; `compare` fills it."""

    def __init__(self, masker: Masker) -> None:
        self.tier = Tier.EXACT
        self.differences: list[Difference] = []
        self.given: list[ProgramChoice] = []
        self.items: list[Json] = []  # items that the program added
        self.parts: list[Json] = []  # parts that it added to items
        self._masker = masker
        self._ids: dict[str, str] = {}  # id in the built history -> id in the recorded one

    def compare(self, built: Sequence[HistoryItem], recorded: Sequence[HistoryItem]) -> None:
        """Compare the built items with the recorded ones."""
        i = j = 0
        while i < len(built) and j < len(recorded):
            if self._matches(built[i], recorded[j]):
                i, j = i + 1, j + 1
            elif (ends := self._answers_match(built, i, recorded, j)) is not None:
                i, j = ends
            elif (ahead := self._find_ahead(built[i], recorded, j)) is not None:
                for item in recorded[j:ahead]:
                    self._add(item)
                j = ahead
            elif self._is_left_out(built, i, recorded[j]):
                self.given.append(ProgramChoice("left out", recorded[j].where, built[i].raw))
                i += 1
            else:
                self._differ(built[i], recorded[j])
                i, j = i + 1, j + 1
        for item in built[i:]:
            if item.optional:
                self.given.append(ProgramChoice("left out", item.where, item.raw))
            else:
                self.differences.append(Difference(item.where, ABSENT, item.raw))
        for item in recorded[j:]:
            self._add(item)

    def _add(self, item: HistoryItem) -> None:
        self.given.append(ProgramChoice("message", item.where, item.raw))
        self.items.append(item.raw)

    def _matches(self, one: HistoryItem, other: HistoryItem, note: bool = True) -> bool:
        """Return whether two items have the same content. With `note`, choices and ids are noted."""
        if one.raw is other.raw or canonical(one.raw) == canonical(other.raw):
            return True
        if one.role != other.role or not self._same_ids(one, other):
            return False
        dropped = self._dropped_reasoning(one, other)
        if dropped is None:
            return self._has_additions(one, other, note)
        if note:
            self._note(one, other, dropped)
        return True

    def _dropped_reasoning(self, one: HistoryItem, other: HistoryItem) -> list[Json] | None:
        """Return the reasoning that the recorded item omits if the rest matches, else None."""
        tier = self._match_tier(one.blocks, other.blocks)
        dropped: list[Json] = []
        if tier is None and not any(block[0] == "reasoning" for block in other.blocks):
            kept = [block for block in one.blocks if block[0] != "reasoning"]
            dropped = [block for block in one.blocks if block[0] == "reasoning"]
            tier = self._match_tier(_join_texts(kept, range(len(kept)))[0], other.blocks) if dropped else None
        if tier is None:
            return None
        self.tier = max(self.tier, tier)
        return dropped

    def _note(self, one: HistoryItem, other: HistoryItem, dropped: Sequence[Json]) -> None:
        self.tier = max(self.tier, Tier.NORMALIZED)
        if dropped:
            self.given.append(ProgramChoice("left out", other.where, [block[1] for block in dropped]))
        built, recorded = one.comparable.extra, other.comparable.extra
        for name in {**built, **recorded}:
            where = f"{other.where}.{name.lstrip('.')}"
            if name not in recorded:
                self.given.append(ProgramChoice("left out", where, built[name]))
            elif self._match_tier(built.get(name, ABSENT), recorded[name]) is None:
                self.given.append(ProgramChoice("member", where, recorded[name]))
        self._ids.update(zip(one.comparable.ids, other.comparable.ids, strict=False))

    def _has_additions(self, one: HistoryItem, other: HistoryItem, note: bool) -> bool:
        """Return whether the recorded item has all blocks of built, and blocks that the client added."""
        if other.role not in _CLIENT_ROLES or len(other.blocks) <= len(one.blocks):
            return False
        left, added = list(one.blocks), []
        for position, block in enumerate(other.blocks):
            if left and self._match_tier([left[0]], [block]) is not None:
                left.pop(0)
            elif block[0] in ("result", "call"):
                return False
            else:
                added.append(position)
        if left:
            return False
        if note:
            self._note(one, other, ())
            for number in (number for position in added for number in other.comparable.spans[position]):
                where, raw = _raw_block(other, number)
                self.given.append(ProgramChoice("beside", where, raw))
                self.parts.append(raw)
        return True

    def _answers_match(
        self, built: Sequence[HistoryItem], i: int, recorded: Sequence[HistoryItem], j: int
    ) -> tuple[int, int] | None:
        """Return the ends of an answer that both have in different items, such as a text and its calls apart."""
        one, other = _assistant_items(built, i), _assistant_items(recorded, j)
        if not one or not other or len(one) == len(other) == 1:
            return None
        tier = self._match_tier(_client_blocks(one), _client_blocks(other))
        if tier is None:
            return None
        self.tier = max(self.tier, tier)
        return i + len(one), j + len(other)

    def _find_ahead(self, item: HistoryItem, recorded: Sequence[HistoryItem], j: int) -> int | None:
        """Return the later position of our item; the program added the items before it."""
        ahead = range(j + 1, len(recorded))
        return next((position for position in ahead if self._matches(item, recorded[position], note=False)), None)

    def _is_left_out(self, built: Sequence[HistoryItem], i: int, other: HistoryItem) -> bool:
        item = built[i]
        if not item.optional or item.role != "assistant":
            return False
        following = next((later for later in built[i + 1 :] if not later.optional), None)
        return following is None or following.role != other.role or self._matches(following, other, note=False)

    def _differ(self, one: HistoryItem, other: HistoryItem) -> None:
        found = [
            d for d in differences(other.raw, one.raw, other.where) if self._match_tier(d.recorded, d.live) is None
        ]
        self.differences += found or [Difference(other.where, other.raw, one.raw)]

    def _same_ids(self, one: HistoryItem, other: HistoryItem) -> bool:
        built, recorded = one.comparable.ids, other.comparable.ids
        if len(built) != len(recorded):
            return True  # the blocks show which id is missing
        return all(
            self._ids.get(one_id, other_id) == other_id for one_id, other_id in zip(built, recorded, strict=True)
        )

    def _match_tier(self, one: Json, other: Json) -> Tier | None:
        """Return the tier in which two values are equal, or None."""
        if one is ABSENT or other is ABSENT:
            return None
        if one == other:
            return Tier.NORMALIZED
        return Tier.MASKED if self._masker.value(one) == self._masker.value(other) else None


def _assistant_items(items: Sequence[HistoryItem], start: int) -> list[HistoryItem]:
    """Return the consecutive items of an answer."""
    end = start
    while end < len(items) and items[end].role == "assistant":
        end += 1
    return list(items[start:end])


def _client_blocks(items: Sequence[HistoryItem]) -> list[Json]:
    """Return the blocks of several items, without reasoning and without tools that the provider ran."""
    blocks = [b for item in items for b in item.blocks if b[0] != "reasoning" and b[-1] != "server"]
    return _join_texts(blocks, range(len(blocks)))[0]


def _raw_block(item: HistoryItem, position: int) -> tuple[str, Json]:
    """Return the place and the JSON value of the part behind a block."""
    paths = item.message.block_paths
    path = paths[position] if position < len(paths) else ""
    value, where = item.raw, ""
    for step in path.replace("[", ".[").split("."):
        if not step:
            continue
        inner: Json = None
        if step.startswith("["):
            index = int(step[1:-1])
            inner = value[index] if isinstance(value, list) and index < len(value) else None
        else:
            inner = value.get(step) if isinstance(value, dict) else None
        if not isinstance(inner, dict | list):
            break
        value, where = inner, where + (step if step.startswith("[") else f".{step}")
        if step.startswith("["):
            break
    return item.where + where, value
