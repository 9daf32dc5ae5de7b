"""The items of two histories as they are compared: without what clients may spell otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wiretape.compare.normalize import normalized_message
from wiretape.model.call import Message, Reasoning
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import rebuilt


class Item:
    """One item of a history: decoded, where it stands, as it stands there; without what may change, if asked for."""

    __slots__ = ("_shape", "message", "raw", "where")

    def __init__(self, message: Message, where: str, raw: Json) -> None:
        self.message = message
        self.where = where
        self.raw = raw
        self._shape: Shape | None = None

    @property
    def shape(self) -> Shape:
        if self._shape is None:
            self._shape = shape_of(self.message)
        return self._shape

    @property
    def role(self) -> str:
        return self.message.role

    @property
    def blocks(self) -> list[Json]:
        return self.shape.blocks

    @property
    def only_aside(self) -> bool:
        """Nothing but thoughts, or what the provider ran itself: clients need not hand it back."""
        return all(block[0] == "reasoning" or block[-1] == "server" for block in self.blocks)


def _comparable(block: Json) -> Json:
    """A call or result without its id, which some clients make up, and a result without its tool's name."""
    if block[0] == "call":
        return [block[0], *block[2:]]
    if block[0] == "text" and isinstance(block[1], str):
        return [block[0], block[1].strip(), *block[2:]]  # clients trim answers: some providers ask for it
    return _without_nulls([block[0], *block[3:]] if block[0] == "result" else block)


def _without_nulls(value: Json) -> Json:
    def kept(members: JsonObject) -> JsonObject:
        return {key: item for key, item in members.items() if item is not None}

    return rebuilt(value, lambda _, leaf: leaf, kept)


@dataclass(frozen=True, slots=True)
class Shape:
    """A message without what may change. `spans`: which of its blocks each of these is made of."""

    blocks: list[Json]
    spans: list[tuple[int, ...]]
    extra: JsonObject
    ids: tuple[str, ...]


def shape_of(message: Message) -> Shape:
    shape = normalized_message(message)
    _, blocks, extra = shape.template
    together, spans = joined([_comparable(block) for block in blocks], _shown(message))
    return Shape(together, spans, extra, shape.ids)


def _shown(message: Message) -> list[int]:
    """Which of a message's blocks have a place in its shape: opaque state that stands alone has none."""
    return [n for n, b in enumerate(message.blocks) if not (isinstance(b, Reasoning) and not b.text)]


def joined(blocks: Sequence[Json], numbers: Sequence[int]) -> tuple[list[Json], list[tuple[int, ...]]]:
    """Neighbouring texts as one: clients join what a stream gave in pieces, and split what they say themselves."""
    made: list[Json] = []
    spans: list[tuple[int, ...]] = []
    for block, number in zip(blocks, numbers, strict=True):
        if block[0] == "text" and not block[1]:
            continue  # some clients put a blank where a model said nothing
        if made and _both_text(made[-1], block):
            made[-1] = ["text", made[-1][1] + block[1], block[2]]
            spans[-1] = (*spans[-1], number)
        else:
            made.append(block)
            spans.append((number,))
    return made, spans


def _both_text(one: Json, other: Json) -> bool:
    if one[0] != "text" or other[0] != "text" or one[2] != other[2]:
        return False
    return isinstance(one[1], str) and isinstance(other[1], str)


def run_of(items: Sequence[Item], start: int) -> list[Item]:
    """The neighbouring items of an answer."""
    end = start
    while end < len(items) and items[end].role == "assistant":
        end += 1
    return list(items[start:end])


def spoken(items: Sequence[Item]) -> list[Json]:
    """What several items say together, without thoughts and without what the provider ran."""
    blocks = [b for item in items for b in item.blocks if b[0] != "reasoning" and b[-1] != "server"]
    return joined(blocks, range(len(blocks)))[0]


def part_of(item: Item, position: int) -> tuple[str, Json]:
    """A block's place, and the part of the item that it was made of."""
    paths = item.message.block_paths
    path = paths[position] if position < len(paths) else ""
    value, where = item.raw, ""
    for step in path.replace("[", ".[").split("."):
        inner: Json = None
        if step.startswith("["):
            index = int(step[1:-1])
            inner = value[index] if isinstance(value, list) and index < len(value) else None
        elif step:
            inner = value.get(step) if isinstance(value, dict) else None
        else:
            continue
        if not isinstance(inner, dict | list):
            break
        value, where = inner, where + (step if step.startswith("[") else f".{step}")
        if step.startswith("["):
            break
    return item.where + where, value
