"""Messages taken apart: what moves in a history is a block, or what a harness put into one.

A notification stands in a message of its own in one format, and beside a tool's result in another. Several that come
at once are one text in some harnesses, and in the next run they come one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wiretape.compare.normalize import block_template, extra_template, is_opaque
from wiretape.model.call import Block, Message, Text, ToolCall, ToolResult
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.runs.words import taken_apart


@dataclass(frozen=True, slots=True, eq=False)
class HistoryPart:
    """One block of a message, or a part of its text.

    `template` and `ids` are as those of a `Shape`; `path` is where it stands in its item.
    """

    role: str
    template: Json
    ids: tuple[str, ...]
    path: str
    text: str | None  # what it says, if it is text
    tool: bool  # a tool call, or a tool's result
    part: bool = False  # the text is not all that stands at the path


class HistoryParts:
    """Remembers what messages are taken apart into, by identity."""

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
    """A block, or several texts where a harness put something into it; what a model says stays whole."""
    if not isinstance(block, Text) or message.role == "assistant":
        return (block,)
    parts = taken_apart(block.text)
    return (block,) if parts == [block.text] else tuple([Text(part, block.refusal) for part in parts])


def _extras(message: Message) -> dict[int, list[tuple[str, Json]]]:
    """The members that no block carries, by the block they belong to; those of the whole item go with its first."""
    found: dict[int, list[tuple[str, Json]]] = {}
    for key, value in message.extra:
        inside = "." + key.rpartition(".")[0] if "." in key else None
        owner = next((n for n, path in enumerate(message.block_paths) if inside and path.startswith(inside)), 0)
        found.setdefault(owner, []).append((key.rpartition(".")[2] if inside else key, value))
    return found


def at_path(value: Json, path: str) -> Json:
    """What stands at a path such as `messages[3].content[0].text`; None where nothing does."""
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
