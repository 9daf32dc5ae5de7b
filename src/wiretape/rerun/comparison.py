"""Compares a built request with the recorded one.

A program adds to a conversation what no wire format implies: the user's text, reminders, another prompt. Such an
addition is *given*: it is taken from the recorded request and reported. A format does imply the history, the answer
and the tool results; if these differ in the recorded request, that is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from wiretape.compare.difference import ABSENT, Difference, Tier, differences
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import normalized_message, settings_template, tool_template
from wiretape.model.call import CallRequest, Message
from wiretape.model.common_prefix import common_start
from wiretape.model.http import JsonBody, Request
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.rerun.history_comparison import HistoryComparison, HistoryItem, ProgramChoice
from wiretape.rerun.next_request.base import RequestBuilder, value_at, with_value_at
from wiretape.rerun.plan import RequestBasis
from wiretape.wire.base import Memo, WireFormat
from wiretape.wire.lenient import items


@dataclass(frozen=True, slots=True)
class RequestComparison:
    """A built request compared with the recorded one. `tier` holds if there are no differences."""

    tier: Tier
    differences: tuple[Difference, ...] = ()
    given: tuple[ProgramChoice, ...] = ()
    added_items: tuple[Json, ...] = ()  # items that the program added
    added_parts: tuple[Json, ...] = ()  # parts that it added to the last item


class RequestComparer:
    """Compares built requests with recorded ones of the same format."""

    def __init__(self, form: WireFormat, builder: RequestBuilder, masker: Masker, memo: Memo) -> None:
        self._form = form
        self._builder = builder
        self._masker = masker
        self._memo = memo

    def compare(self, built: JsonObject, recorded: JsonObject, request: Request) -> RequestComparison:
        """Compare two bodies. `request` is the recorded request, for its URL and headers."""
        built_call = self._form.decode_request(replace(request, body=JsonBody(built)), self._memo)
        recorded_call = self._form.decode_request(replace(request, body=JsonBody(recorded)), self._memo)
        path = self._builder.history_path(recorded)
        # Most items of both histories are the same objects.
        shared = common_start(items(value_at(built, path)), items(value_at(recorded, path)))
        histories = HistoryComparison(self._masker)
        histories.compare(self._items(built, built_call, shared), self._items(recorded, recorded_call, shared))
        given = (*histories.given, *self._outside_history(built_call, recorded_call, ".".join(path)))
        found = tuple(histories.differences)
        return RequestComparison(histories.tier, found, given, tuple(histories.items), tuple(histories.parts))

    def _items(self, body: JsonObject, call: CallRequest, shared: int) -> list[HistoryItem]:
        """Return the items of a history after the first `shared` ones."""
        path = self._builder.history_path(body)
        value = value_at(body, path)
        raw = items(value)
        start = next((start for start, segment in call.segments if segment == ".".join(path)), None)
        if start is None:
            return []
        end = min((later for later, _ in call.segments if later > start), default=len(call.messages))
        return [
            HistoryItem(call.messages[n], call.path(n), raw[n - start] if n - start < len(raw) else value)
            for n in range(start + shared, end)
        ]

    def _outside_history(
        self, built_call: CallRequest, recorded_call: CallRequest, history: str
    ) -> Iterator[ProgramChoice]:
        """Yield other prompts, tools and settings, which every request states again."""
        one, other = (
            [normalized_message(m).template for m in _prompts(call, history)] for call in (built_call, recorded_call)
        )
        if not self._equal(one, other):
            yield ProgramChoice("prompt", next((s for _, s in recorded_call.segments if s != history), "system"), None)
        if built_call.tools is not recorded_call.tools and not _same_tools(built_call, recorded_call):
            yield ProgramChoice("tools", "tools", [tool.name for tool in recorded_call.tools])
        if built_call.model != recorded_call.model:
            yield ProgramChoice("setting", "model", recorded_call.model)
        before = settings_template(built_call, self._form.volatile)
        after = settings_template(recorded_call, self._form.volatile)
        for difference in differences(after, before):
            if not self._equal(difference.recorded, difference.live):
                value = None if difference.recorded is ABSENT else difference.recorded
                yield ProgramChoice("setting", difference.where, value)

    def _equal(self, one: Json, other: Json) -> bool:
        if one is ABSENT or other is ABSENT:
            return False
        return one == other or bool(self._masker.value(one) == self._masker.value(other))


def _same_tools(built_call: CallRequest, recorded_call: CallRequest) -> bool:
    return list(map(tool_template, built_call.tools)) == list(map(tool_template, recorded_call.tools))


def _prompts(call: CallRequest, history: str) -> list[Message]:
    """Return the messages outside the history."""
    found: list[Message] = []
    bounds = [start for start, _ in call.segments] + [len(call.messages)]
    for (start, segment), end in zip(call.segments, bounds[1:], strict=True):
        if segment != history:
            found += call.messages[start:end]
    return found


def with_program_choices(body: JsonObject, basis: RequestBasis, recorded: RequestComparison) -> JsonObject:
    """Return `body` with the program's additions to its recorded history; other members are the recorded ones."""
    path = basis.builder.history_path(body)
    history = [*items(value_at(body, path))]
    last = history[-1] if history else None
    if recorded.added_parts and isinstance(last, dict):
        for member in ("content", "parts"):
            if isinstance(last.get(member), list):
                history[-1] = {**last, member: [*last[member], *recorded.added_parts]}
    built = with_value_at(basis.body, path, [*history, *recorded.added_items])
    return {**built, **basis.builder.stored_history(body)}
