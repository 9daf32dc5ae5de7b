"""Is a recorded request what its format makes of the request before it? What is left over is the program's own.

A program adds to a conversation what no wire format implies: the user's words, reminders, another prompt. That is
*given*: taken from the recorded request and said so. What a format does imply (the history, the answer, the results
of tools) and the recorded request has otherwise is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wiretape.compare.common_prefix import common_start
from wiretape.compare.difference import ABSENT, Difference, Tier, differences
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import normalized_message, settings_template, tool_template
from wiretape.model.call import CallRequest, Message
from wiretape.model.http import JsonBody, Request
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.rerun.growth_items import Item
from wiretape.rerun.growth_walk import Given, Walk
from wiretape.rerun.plan import Grounds
from wiretape.wire.base import Memo, WireFormat
from wiretape.wire.next_request import Grower, named, replaced


@dataclass(frozen=True, slots=True)
class Grown:
    """A grown request beside the recorded one. `tier`: how alike they are where nothing differs."""

    tier: Tier
    differences: tuple[Difference, ...] = ()
    given: tuple[Given, ...] = ()
    tail: tuple[Json, ...] = ()  # items that the program added
    beside: tuple[Json, ...] = ()  # parts that it added to the last item


class Growth:
    """Compares grown requests with recorded ones of the same format."""

    def __init__(self, form: WireFormat, grower: Grower, masker: Masker, memo: Memo) -> None:
        self._form = form
        self._grower = grower
        self._masker = masker
        self._memo = memo

    def compare(self, grown: JsonObject, recorded: JsonObject, request: Request) -> Grown:
        """`request`: the recorded one, for what stands beside its body."""
        ours = self._form.decode_request(replace(request, body=JsonBody(grown)), self._memo)
        theirs = self._form.decode_request(replace(request, body=JsonBody(recorded)), self._memo)
        walk = Walk(self._masker)
        path = self._grower.history(recorded)
        alike = common_start(named(grown, path), named(recorded, path))  # as the same objects, and most are
        walk.along(self._items(grown, ours, alike), self._items(recorded, theirs, alike))
        walk.given += self._around(ours, theirs, recorded)
        tail, beside = tuple(walk.tail), tuple(walk.beside)
        return Grown(walk.tier, tuple(walk.differences), tuple(walk.given), tail, beside)

    def _items(self, body: JsonObject, call: CallRequest, alike: int) -> list[Item]:
        """The items of a history from the first that may differ on."""
        path = self._grower.history(body)
        name = ".".join(path)
        found = []
        raw = named(body, path)
        starts = [start for start, segment in call.segments if segment == name]
        if not starts:
            return []
        later = [start for start, _ in call.segments if start > starts[0]]
        for index in range(starts[0] + alike, min(later, default=len(call.messages))):
            message = call.messages[index]
            place = index - starts[0]
            found.append(Item(message, call.path(index), raw[place] if place < len(raw) else _scalar(body, path)))
        return found

    def _around(self, ours: CallRequest, theirs: CallRequest, recorded: JsonObject) -> Iterator[Given]:
        """What stands around the history: prompts, tools, settings. Every request states it anew."""
        name = ".".join(self._grower.history(recorded))
        one, other = _prompts(ours, name), _prompts(theirs, name)
        if not self._alike(
            [normalized_message(m).template for m in one], [normalized_message(m).template for m in other]
        ):
            yield Given("prompt", next((s for _, s in theirs.segments if s != name), "system"), None)
        if ours.tools is not theirs.tools and not _same_tools(ours, theirs):
            yield Given("tools", "tools", [tool.name for tool in theirs.tools])
        if ours.model != theirs.model:
            yield Given("setting", "model", theirs.model)
        before = settings_template(ours, self._form.volatile)
        after = settings_template(theirs, self._form.volatile)
        for apart in differences(after, before):
            if not self._alike(apart.recorded, apart.live):
                yield Given("setting", apart.where, None if apart.recorded is ABSENT else apart.recorded)

    def _alike(self, one: Json, other: Json) -> bool:
        if one is ABSENT or other is ABSENT:
            return False
        return one == other or bool(self._masker.value(one) == self._masker.value(other))


def _same_tools(ours: CallRequest, theirs: CallRequest) -> bool:
    return list(map(tool_template, ours.tools)) == list(map(tool_template, theirs.tools))


def _prompts(call: CallRequest, name: str) -> list[Message]:
    """The messages that stand outside of the history."""
    found: list[Message] = []
    bounds = [start for start, _ in call.segments] + [len(call.messages)]
    for (start, segment), end in zip(call.segments, bounds[1:], strict=True):
        if segment != name:
            found += call.messages[start:end]
    return found


def _scalar(body: JsonObject, path: Sequence[str]) -> Json:
    value: Json = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def with_given(body: JsonObject, ground: Grounds, grown: Grown) -> JsonObject:
    """Another history with what the program added to the recorded one; prompt, tools and settings are the recorded."""
    path = ground.grower.history(body)
    history = [*named(body, path)]
    last = history[-1] if history else None
    if grown.beside and isinstance(last, dict):
        for member in ("content", "parts"):
            if isinstance(last.get(member), list):
                history[-1] = {**last, member: [*last[member], *grown.beside]}
    return {**replaced(ground.body, path, [*history, *grown.tail]), **ground.grower.held(body)}
