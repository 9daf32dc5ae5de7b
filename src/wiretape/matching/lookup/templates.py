"""Template tables of the tiers `normalized` and `masked`.

A table numbers templates (see `compare.normalize`). The masked table uses the normalized one: templates that are equal
there are equal here. So only templates that differ are masked, and each of them once.
"""

from __future__ import annotations

from collections.abc import Callable

from wiretape.compare.canonical import UNKNOWN, EqualityClasses
from wiretape.compare.normalize import NormalizedMessage, normalized_message, tool_template
from wiretape.model.call import Message, ToolSpec
from wiretape.model.jsonvalue import Json


class NormalizedMessages:
    """Caches normalized messages and tools by identity: unchanged parts are decoded to the same objects."""

    __slots__ = ("_messages", "_tools", "_toolsets")

    def __init__(self) -> None:
        self._messages: dict[int, tuple[Message, NormalizedMessage]] = {}
        self._tools: dict[int, tuple[ToolSpec, Json]] = {}
        self._toolsets: dict[int, tuple[tuple[ToolSpec, ...], list[Json]]] = {}

    def message(self, message: Message) -> NormalizedMessage:
        known = self._messages.get(id(message))
        if known is None:
            known = self._messages[id(message)] = (message, normalized_message(message))
        return known[1]

    def tools(self, tools: tuple[ToolSpec, ...]) -> list[Json]:
        """The templates of the tools: the same list for the same tuple."""
        known = self._toolsets.get(id(tools))
        if known is None:
            known = self._toolsets[id(tools)] = (tools, [self.tool(tool) for tool in tools])
        return known[1]

    def tool(self, tool: ToolSpec) -> Json:
        known = self._tools.get(id(tool))
        if known is None:
            known = self._tools[id(tool)] = (tool, tool_template(tool))
        return known[1]


class TemplateTable:
    """Gives equal templates the same number. With `mask` and `finer`, they are compared masked."""

    __slots__ = ("_classes", "_coarse", "_finer", "_mask", "_seen")

    def __init__(self, mask: Callable[[Json], Json] | None = None, finer: TemplateTable | None = None) -> None:
        self._classes = EqualityClasses()
        self._mask = mask
        self._finer = finer
        self._coarse: dict[int, int] = {}  # class in the finer table -> class here
        self._seen: dict[int, tuple[Json, int]] = {}  # live templates that are not in the finer table

    def learn(self, template: Json, keep: bool = True) -> int:
        if self._finer is None or self._mask is None:
            return self._classes.learn(template, keep)
        fine = self._finer.learn(template, keep)
        found = self._coarse.get(fine)
        if found is None:
            found = self._coarse[fine] = self._classes.learn(self._mask(template), keep=False)
        return found

    def find(self, template: Json, keep: bool = True) -> int:
        if self._finer is None or self._mask is None:
            return self._classes.find(template, keep)
        fine = self._finer.find(template, keep)
        if fine != UNKNOWN:
            return self._coarse.get(fine, UNKNOWN)
        known = self._seen.get(id(template))
        if known is not None and known[0] is template:
            return known[1]
        found = self._classes.find(self._mask(template), keep=False)
        if keep:
            self._seen[id(template)] = (template, found)
        return found
