"""Does a tape still tell how things are? Compares it with another recording of the same program, call by call.

Requests are compared as replay compares them, so that clocks and ids are no changes; of answers the shape counts, not
the words. Nothing is asked here: both tapes are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from wiretape.model.call import CallRequest, Message, ModelCall, ToolResult
from wiretape.model.http import Ended
from wiretape.model.jsonvalue import Json
from wiretape.replay.answer_shape import answer_differences, message_shape_of, usage_differences
from wiretape.replay.canonical import canonical
from wiretape.replay.compare import differences
from wiretape.replay.excerpt import excerpts
from wiretape.replay.loosen import message_shape, settings_template, tool_template
from wiretape.replay.mask import Masker
from wiretape.replay.pairing import Paired, paired
from wiretape.replay.values import ABSENT, Difference, ReplayOptions, address
from wiretape.tape.client_versions import versions_of
from wiretape.wire.registry import Registry, default_registry

if TYPE_CHECKING:
    from wiretape.tape.reader import Tape

TOLERANCE = 0.25  # of usage
Side = Literal["request", "answer", "usage", "model"]
Verdict = Literal["same", "changed", "new", "vanished"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Model):
    """What is another now, with excerpts of both values."""

    side: Side
    where: str
    recorded: str
    live: str


class CallFreshness(_Model):
    """One call. `tier`: how alike the requests are, as replay has it; null where they differ for good.

    `lost`: the tape's recorder lost the answer.
    """

    verdict: Verdict
    recorded: int | None
    live: int | None
    what: str
    tier: str | None = None
    lost: bool = False
    changes: tuple[Change, ...] = ()


class Version(_Model):
    """A header that tells a version of client or SDK. Other ones do not make a tape out of date: they explain."""

    header: str
    recorded: tuple[str, ...]
    live: tuple[str, ...]


class Freshness(_Model):
    tape: str
    live: str
    age_days: int
    calls: tuple[CallFreshness, ...]
    versions: tuple[Version, ...]
    drifted: bool
    kept: str | None = None  # where the live recording was kept

    def count(self, verdict: Verdict) -> int:
        return sum(1 for call in self.calls if call.verdict == verdict)

    @property
    def answered_otherwise(self) -> bool:
        """Whether a request that the tape answers has another answer now: to record only the rest is no help."""
        return any(call.tier is not None and call.changes and not call.lost for call in self.calls)

    def cut_short(self) -> Freshness:
        """What a run says that broke off: nothing about the calls that it did not come to."""
        calls = tuple(call for call in self.calls if call.verdict != "vanished")
        return self.model_copy(update={"calls": calls, "drifted": any(call.verdict != "same" for call in calls)})


def freshness(
    recorded: Tape, live: Tape, options: ReplayOptions | None = None, tolerance: float = TOLERANCE
) -> Freshness:
    """Compare a tape with a later recording. `tolerance`: by which part a call's usage may differ."""
    options = options or ReplayOptions()
    comparing = _Comparing(Masker(options.mask), tolerance)
    calls = tuple(comparing.compared(pair) for pair in paired(recorded, live, options))
    return Freshness(
        tape=str(recorded.path or "the tape"),
        live=str(live.path or "the live run"),
        age_days=max(0, (live.header.started - recorded.header.started).days),
        calls=calls,
        versions=tuple(_versions(_told(recorded), _told(live))),
        drifted=any(call.verdict != "same" for call in calls),
    )


@dataclass(slots=True)
class _Comparing:
    """Remembers what was told: what has changed once stands in the history of every later call."""

    masker: Masker
    tolerance: float
    registry: Registry = field(default_factory=default_registry)
    _told: set[tuple[bytes, bytes]] = field(default_factory=set)

    def compared(self, pair: Paired) -> CallFreshness:
        was, now = pair.recorded, pair.live
        call = now or was
        assert call is not None
        what = f"POST {address('POST', call.url).path}" if call.url else call.format
        if was is None or now is None:
            verdict: Verdict = "new" if was is None else "vanished"
            return CallFreshness(verdict=verdict, recorded=_number(was), live=_number(now), what=what)
        changes = tuple(self._changes(was, now, pair))
        return CallFreshness(
            verdict="changed" if changes else "same",
            recorded=was.number,
            live=now.number,
            what=what,
            tier=pair.tier.word if pair.tier is not None else None,
            lost=was.ended in (None, Ended.RECORDER_STOPPED),
            changes=changes,
        )

    def _changes(self, was: ModelCall, now: ModelCall, pair: Paired) -> Iterator[Change]:
        if pair.tier is None:
            yield from (_change("request", apart) for apart in self._request(was, now, pair.first))
        yield from (_change("answer", apart) for apart in answer_differences(was, now))
        answered = was.response is not None and now.response is not None
        models = [(call.response.model if call.response else None) for call in (was, now)]
        if None not in models and models[0] != models[1]:
            yield _change("model", Difference("model", models[0], models[1]))
        if answered and not _failed(was) and not _failed(now):
            yield from (_change("usage", one) for one in usage_differences(was.usage, now.usage, self.tolerance))

    # -- requests ----------------------------------------------------------------------------------------------------

    def _request(self, was: ModelCall, now: ModelCall, first: bool) -> Iterator[Difference]:
        if was.format != now.format:
            yield Difference("format", was.format, now.format)
            return
        one, other = was.request, now.request
        if one.model != other.model:
            yield Difference("model", one.model, other.model)
        tails = [address("POST", call.url).tail for call in (was, now)]
        if tails[0] != tails[1]:
            yield Difference("path", *tails)
        yield from self._settings(was, now)
        yield from self._tools(one, other)
        yield from self._messages(one, other, first)

    def _settings(self, was: ModelCall, now: ModelCall) -> Iterator[Difference]:
        wire = next((wire for wire in self.registry.formats if wire.name == was.format), None)
        if wire is None:
            return
        one, other = (settings_template(call.request, wire.volatile) for call in (was, now))
        yield from self._news(differences(self.masker.value(one), self.masker.value(other)))

    def _tools(self, one: CallRequest, other: CallRequest) -> Iterator[Difference]:
        was = {tool.name: tool_template(tool) for tool in one.tools}
        now = {tool.name: tool_template(tool) for tool in other.tools}
        for name in {**was, **now}:
            apart = differences(self.masker.value(was.get(name, {})), self.masker.value(now.get(name, {})))
            if name not in was or name not in now:
                apart = iter([Difference(f"tools {name}", *((ABSENT, name) if name not in was else (name, ABSENT)))])
            for difference in self._news(apart):
                where = difference.where if name not in was or name not in now else f"tools {name}{difference.where}"
                yield Difference(where, difference.recorded, difference.live)

    def _messages(self, one: CallRequest, other: CallRequest, first: bool) -> Iterator[Difference]:
        """What the program put there. What the model said is in the answers, and tools answer what was asked."""
        asked_alike = not first
        for index, (was, now) in enumerate(zip(one.messages, other.messages, strict=False)):
            if was is now:
                continue
            if was.role == now.role == "assistant" and not first:
                asked_alike = self._alike(was, now)
                if message_shape_of(was) == message_shape_of(now):
                    continue
            elif _is_of_tools(was) and _is_of_tools(now) and not first and not asked_alike:
                continue
            template, live = (self.masker.value(message_shape(message).template) for message in (was, now))
            if template != live:
                yield from self._news(_of_message(other.path(index), template, live, was, now))
        if len(one.messages) != len(other.messages):
            yield from self._news(iter([Difference("messages", len(one.messages), len(other.messages))]))

    def _alike(self, was: Message, now: Message) -> bool:
        mask = self.masker.value
        return bool(mask(message_shape(was).template) == mask(message_shape(now).template))

    def _news(self, found: Iterator[Difference]) -> Iterator[Difference]:
        for difference in found:
            key = (_key(difference.recorded), _key(difference.live))
            if key not in self._told:
                self._told.add(key)
                yield difference


def _of_message(path: str, was: Json, now: Json, one: Message, other: Message) -> Iterator[Difference]:
    """The leaves that differ, under the path of the message; the path inside it is the template's, and is not told."""
    if one.role != other.role:
        yield Difference(f"{path}.role", one.role, other.role)
        return
    for difference in differences(was, now):
        yield Difference(path, difference.recorded, difference.live)


def _is_of_tools(message: Message) -> bool:
    return any(isinstance(block, ToolResult) for block in message.blocks)


def _key(value: object) -> bytes:
    return b"\0" if value is ABSENT else canonical(value)


def _failed(call: ModelCall) -> bool:
    return call.response is None or call.response.error is not None or not call.response.complete


def _number(call: ModelCall | None) -> int | None:
    return call.number if call is not None else None


def _change(side: Side, difference: Difference) -> Change:
    values = [ABSENT if value is None else value for value in (difference.recorded, difference.live)]
    recorded, live = excerpts(Difference(difference.where, *values))
    return Change(side=side, where=difference.where, recorded=recorded, live=live)


def _told(tape: Tape) -> Mapping[str, str | list[str]]:
    return tape.header.client or versions_of(tape.exchanges) or {}


def _versions(was: Mapping[str, str | list[str]], now: Mapping[str, str | list[str]]) -> Iterator[Version]:
    for header in {**was, **now}:
        one, other = _listed(was.get(header)), _listed(now.get(header))
        if set(one) != set(other):
            yield Version(header=header, recorded=one, live=other)


def _listed(values: str | list[str] | None) -> tuple[str, ...]:
    return () if values is None else (values,) if isinstance(values, str) else tuple(values)
