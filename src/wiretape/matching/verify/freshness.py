"""Compare a tape with a later recording of the same program, call by call: is the tape still up to date?

Requests are compared as in a replay, so that clocks and ids do not count; of answers only the shape is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from wiretape.compare.address import address
from wiretape.compare.canonical import canonical
from wiretape.compare.difference import ABSENT, Absent, Difference, differences
from wiretape.compare.excerpt import excerpts
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import normalized_message, settings_template, tool_definition
from wiretape.matching.values import ReplayOptions
from wiretape.matching.verify.answer_shape import answer_differences, message_differences, usage_differences
from wiretape.matching.verify.pairing import Paired, failed_transiently, paired, tried_again
from wiretape.model.call import CallRequest, Message, ModelCall, ToolResult
from wiretape.model.http import Ended
from wiretape.model.jsonvalue import Json
from wiretape.tape.client_versions import versions_of
from wiretape.wire.registry import Registry, default_registry

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

TOLERANCE = 0.25  # fraction by which usage may differ
Side = Literal["request", "answer", "usage", "model"]
Verdict = Literal["same", "changed", "new", "vanished", "unanswered"]
_DRIFTS: frozenset[Verdict] = frozenset({"changed", "new", "vanished"})


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CallChange(_Model):
    """A difference, with excerpts of both values."""

    side: Side
    where: str
    recorded: str
    live: str


class CallFreshness(_Model):
    """One call. `tier`: the tier of the match of its request, as in a replay; null without a match.

    `again`: its request has a difference that is listed under an earlier call. `lost`: the tape's recorder lost the
    answer. The verdict `unanswered`: the same request got no answer, or a transient error.
    """

    verdict: Verdict
    recorded: int | None
    live: int | None
    what: str
    tier: str | None = None
    again: bool = False
    lost: bool = False
    changes: tuple[CallChange, ...] = ()


class Version(_Model):
    """A header with a version of a client or SDK. A changed version alone does not make a tape stale."""

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
    kept: str | None = None  # the path of the live recording, if it was kept
    tried_again: int = 0  # failed attempts of both runs that were retried: they are not compared
    not_reached: int = 0  # calls of the tape that a failed program did not reach

    @property
    def unanswered(self) -> tuple[CallFreshness, ...]:
        return tuple(call for call in self.calls if call.verdict == "unanswered")

    def count(self, verdict: Verdict) -> int:
        return sum(1 for call in self.calls if call.verdict == verdict)

    @property
    def answered_otherwise(self) -> bool:
        """Whether a request that the tape answers has another answer now: then an update is not enough."""
        return any(call.tier is not None and call.changes and not call.lost for call in self.calls)

    def cut_short(self) -> Freshness:
        """The result of a run that failed: it has no verdict on the calls that it did not reach."""
        calls = tuple(call for call in self.calls if call.verdict != "vanished")
        missing = len(self.calls) - len(calls)
        return self.model_copy(update={"calls": calls, "drifted": _drifted(calls), "not_reached": missing})


def _drifted(calls: Sequence[CallFreshness]) -> bool:
    return any(call.verdict in _DRIFTS for call in calls)


def freshness(
    recorded: Tape, live: Tape, options: ReplayOptions | None = None, tolerance: float = TOLERANCE
) -> Freshness:
    """Compare a tape with a later recording. `tolerance`: the fraction by which a call's usage may differ."""
    options = options or ReplayOptions()
    comparing = _Comparing(Masker(options.mask), tolerance)
    calls = tuple(comparing.compared(pair) for pair in paired(recorded, live, options))
    return Freshness(
        tape=str(recorded.path or "the tape"),
        live=str(live.path or "the live run"),
        age_days=max(0, (live.header.started - recorded.header.started).days),
        calls=calls,
        versions=tuple(_versions(_reported(recorded), _reported(live))),
        drifted=_drifted(calls),
        tried_again=len(tried_again(recorded)) + len(tried_again(live)),
    )


@dataclass(slots=True)
class _Walk:
    """The compared prefix of a thread's histories: the histories of its next call begin with it."""

    was: tuple[Message, ...] = ()
    now: tuple[Message, ...] = ()
    same_tool_calls: bool = True  # whether both models requested the same tools at the end
    differs: bool = False

    def goes_on(self, was: tuple[Message, ...], now: tuple[Message, ...]) -> bool:
        done = len(self.was)
        return was[:done] == self.was and now[:done] == self.now


@dataclass(slots=True)
class _Comparing:
    """Compares pairs of calls, and reports a difference once although every later history has it."""

    masker: Masker
    tolerance: float
    registry: Registry = field(default_factory=default_registry)
    _reported: set[tuple[bytes, bytes]] = field(default_factory=set)
    _of_answers: set[tuple[bytes, bytes]] = field(default_factory=set)
    _templates: dict[int, tuple[Message, Json]] = field(default_factory=dict)  # by identity of the message
    _walks: dict[int | None, _Walk] = field(default_factory=dict)  # by thread
    _again: bool = False  # a difference of the current call was reported before

    def compared(self, pair: Paired) -> CallFreshness:
        was, now = pair.recorded, pair.live
        call = now or was
        assert call is not None
        what = f"POST {address('POST', call.url).path}" if call.url else call.format
        if was is None or now is None:
            verdict: Verdict = "new" if was is None else "vanished"
            return CallFreshness(verdict=verdict, recorded=_number(was), live=_number(now), what=what)
        self._again = False
        changes = tuple(self._changes(was, now, pair))
        return CallFreshness(
            verdict=_verdict(was, now, changes, self._again),
            recorded=was.number,
            live=now.number,
            what=what,
            tier=pair.tier.word if pair.tier is not None else None,
            again=self._again,
            lost=was.ended in (None, Ended.RECORDER_STOPPED),
            changes=changes,
        )

    def _changes(self, was: ModelCall, now: ModelCall, pair: Paired) -> Iterator[CallChange]:
        if pair.tier is None:
            yield from (_change("request", differing) for differing in self._request(was, now, pair))
        for differing in answer_differences(was, now):
            self._of_answers.add(_key_of(differing))
            yield _change("answer", differing)
        answered = was.response is not None and now.response is not None
        models = [(call.response.model if call.response else None) for call in (was, now)]
        if None not in models and models[0] != models[1]:
            yield _change("model", Difference("model", models[0], models[1]))
        if answered and not _failed(was) and not _failed(now):
            yield from (_change("usage", one) for one in usage_differences(was.usage, now.usage, self.tolerance))

    # -- requests ----------------------------------------------------------------------------------------------------

    def _request(self, was: ModelCall, now: ModelCall, pair: Paired) -> Iterator[Difference]:
        if was.format != now.format:
            yield Difference("format", was.format, now.format)
            return
        one, other = was.request, now.request
        if one.model != other.model:
            yield from self._new(iter([Difference("model", one.model, other.model)]))
        tails = [address("POST", call.url).tail for call in (was, now)]
        if tails[0] != tails[1]:
            yield Difference("path", *tails)
        yield from self._settings(was, now)
        yield from self._tools(one, other)
        yield from self._messages(one, other, pair)

    def _settings(self, was: ModelCall, now: ModelCall) -> Iterator[Difference]:
        wire = next((wire for wire in self.registry.formats if wire.name == was.format), None)
        if wire is None:
            return
        one, other = (settings_template(call.request, wire.volatile) for call in (was, now))
        yield from self._new(differences(self.masker.value(one), self.masker.value(other)))

    def _tools(self, one: CallRequest, other: CallRequest) -> Iterator[Difference]:
        was = {tool.name: tool_definition(tool) for tool in one.tools}
        now = {tool.name: tool_definition(tool) for tool in other.tools}
        for name in {**was, **now}:
            where = f"tools {name}"
            if name in was and name in now:
                differing = differences(self.masker.value(was[name]), self.masker.value(now[name]), where)
            else:
                differing = iter([Difference(where, *((ABSENT, name) if name in now else (name, ABSENT)))])
            yield from self._new(differing)

    def _messages(self, one: CallRequest, other: CallRequest, pair: Paired) -> Iterator[Difference]:
        """Differences of the program's messages. Model messages are compared as answers; tool results follow them."""
        walk = self._walk_of(pair.thread, one.messages, other.messages)
        if walk.differs:
            self._again = True
        both = min(len(one.messages), len(other.messages))
        for index in range(len(walk.was), both):
            was, now = one.messages[index], other.messages[index]
            for differing in self._message(was, now, other.path(index), walk, pair.first) if was is not now else ():
                walk.differs = True
                yield from self._new(iter([differing]))
        walk.was, walk.now = one.messages[:both], other.messages[:both]
        if not pair.first:
            self._walks[pair.thread] = walk
        if len(one.messages) != len(other.messages):
            yield from self._new(iter([Difference("messages", len(one.messages), len(other.messages))]))

    def _walk_of(self, thread: int | None, was: tuple[Message, ...], now: tuple[Message, ...]) -> _Walk:
        """The compared prefix of the thread, if these histories continue it."""
        known = self._walks.get(thread)
        return known if known is not None and known.goes_on(was, now) else _Walk()

    def _message(self, was: Message, now: Message, path: str, walk: _Walk, first: bool) -> Iterator[Difference]:
        if was.role == now.role == "assistant" and not first:
            walk.same_tool_calls = self._masked(was) == self._masked(now)
            yield from self._model_message(was, now, path)
        elif first or walk.same_tool_calls or not (_is_of_tools(was) and _is_of_tools(now)):
            template, live = self._masked(was), self._masked(now)
            if template != live:
                yield from _of_message(path, template, live, was, now)

    def _model_message(self, was: Message, now: Message, path: str) -> Iterator[Difference]:
        """Differences of a model message that no answer had: the program may have changed it."""
        for differing in message_differences(was, now):
            if _key_of(differing) not in self._of_answers:
                yield Difference(f"{path} {differing.where}", differing.recorded, differing.live)

    def _masked(self, message: Message) -> Json:
        """The masked template of a message, cached: many histories have the message."""
        known = self._templates.get(id(message))
        if known is None:
            known = message, self.masker.value(normalized_message(message).template)
            self._templates[id(message)] = known
        return known[1]

    def _new(self, found: Iterator[Difference]) -> Iterator[Difference]:
        for difference in found:
            key = _key_of(difference)
            if key in self._reported:
                self._again = True
            else:
                self._reported.add(key)
                yield difference


def _verdict(was: ModelCall, now: ModelCall, changes: Sequence[CallChange], again: bool) -> Verdict:
    request_changed = again or any(change.side == "request" for change in changes)
    if not request_changed and changes and failed_transiently(now):
        return "unanswered"
    return "changed" if request_changed or changes else "same"


def _of_message(path: str, was: Any, now: Any, one: Message, other: Message) -> Iterator[Difference]:
    """The differences of two message templates, all at the message's path."""
    if one.role != other.role:
        yield Difference(f"{path}.role", one.role, other.role)
        return
    (_, old_blocks, old_extra), (_, new_blocks, new_extra) = was, now
    for old, new in zip_longest(old_blocks, new_blocks, fillvalue=ABSENT):
        if not isinstance(old, Absent) and not isinstance(new, Absent) and old[0] == new[0]:
            yield from (Difference(path, differing.recorded, differing.live) for differing in differences(old, new))
        else:
            yield Difference(path, _content(old), _content(new))
    yield from (Difference(path, differing.recorded, differing.live) for differing in differences(old_extra, new_extra))


_CONTENT = {"text": 1, "reasoning": 1, "call": 2, "result": 3}  # index of the content in a block's template


def _content(block: Any) -> Any:
    """The content of a block that only one side has."""
    if block is ABSENT:
        return ABSENT
    value = block[_CONTENT[block[0]]] if block[0] in _CONTENT else block[1:]
    return value["json"] if isinstance(value, dict) and value.keys() == {"json"} else value


def _is_of_tools(message: Message) -> bool:
    return any(isinstance(block, ToolResult) for block in message.blocks)


def _key_of(difference: Difference) -> tuple[bytes, bytes]:
    return _key(difference.recorded), _key(difference.live)


def _key(value: object) -> bytes:
    return b"\0" if value is ABSENT else canonical(value)


def _failed(call: ModelCall) -> bool:
    return call.response is None or call.response.error is not None or not call.response.complete


def _number(call: ModelCall | None) -> int | None:
    return call.number if call is not None else None


def _change(side: Side, difference: Difference) -> CallChange:
    values = [ABSENT if value is None else value for value in (difference.recorded, difference.live)]
    recorded, live = excerpts(Difference(difference.where, *values))
    return CallChange(side=side, where=difference.where, recorded=recorded, live=live)


def _reported(tape: Tape) -> Mapping[str, str | list[str]]:
    return tape.header.client or versions_of(tape.exchanges) or {}


def _versions(was: Mapping[str, str | list[str]], now: Mapping[str, str | list[str]]) -> Iterator[Version]:
    for header in {**was, **now}:
        one, other = _listed(was.get(header)), _listed(now.get(header))
        if set(one) != set(other):
            yield Version(header=header, recorded=one, live=other)


def _listed(values: str | list[str] | None) -> tuple[str, ...]:
    return () if values is None else (values,) if isinstance(values, str) else tuple(values)
