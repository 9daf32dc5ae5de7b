"""The recorded WebSockets of a session: which of them a live connection may play, and what came of their calls.

A connection is played once. A call that a fault broke is owed: whoever asks for it next gets it, on this connection or
another one, and what was recorded after it goes on wherever the client goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

import orjson

from wiretape.compare.canonical import canonical, has_placeholder
from wiretape.compare.difference import Difference, Tier, differences
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import LEFT_OUT, loose
from wiretape.matching.faults.apply import Fault, FaultPlan
from wiretape.matching.faults.targets import call_key, handshake_key
from wiretape.matching.id_map import IdMap
from wiretape.matching.ledger import Ledger
from wiretape.matching.misses.miss import fault
from wiretape.matching.misses.nearest import Nearest, is_minor
from wiretape.matching.recorded import RecordedExchange, SocketCall
from wiretape.matching.redacted_differences import shown_differences
from wiretape.matching.sockets.sequence import DueMessage, MessageSequence, SocketFrame, answer_of
from wiretape.matching.values import Answer, Injected, Miss, MissReason, Outcome, Reference, ReplayOptions
from wiretape.model.faults import ErrorStatus
from wiretape.model.http import BytesBody, Headers, Response, StreamBody, WsMessage, body_bytes
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import rebuilt
from wiretape.wire.base import Volatile

_NOTHING: Final = Volatile()

MakeMiss = Callable[[RecordedExchange, Json, MissReason, Nearest | None, str], Miss]


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """How alike a recorded message of the client and a live one are. `minor` says it of each difference."""

    tier: Tier
    apart: tuple[Difference, ...] = ()
    minor: tuple[bool, ...] = ()
    live: Json = None  # the live message


class RecordedSockets:
    """The recorded connections of a session, and what the session knows that they need."""

    def __init__(
        self,
        recorded: Sequence[RecordedExchange],
        options: ReplayOptions,
        faults: FaultPlan,
        masker: Masker,
        echoes: IdMap,
        ledger: Ledger,
        make_miss: MakeMiss,
    ) -> None:
        self.recorded = recorded
        self.options = options
        self.masker = masker
        self.faults = faults
        self._runs: dict[int, MessageSequence] = {}  # of each connection that was opened, by its order
        self._hit: set[int] = set()  # connections that a fault came to
        self._owed: dict[int, list[SocketCall]] = {}
        self._asked: set[Reference] = set()
        self._values: dict[tuple[int, int], Json] = {}  # of the client's messages, which are compared often
        self._cores: dict[tuple[int, int], bytes | None] = {}  # None: it may be like any
        self._live_core: tuple[Json, Volatile, bytes] | None = None  # of the message that was asked about last
        self.traits: dict[tuple[int, int], list[Json]] = {}  # of calls that begin a connection, by position
        self._echoes = echoes
        self._ledger = ledger
        self._make_miss = make_miss

    # -- what may be played

    @property
    def left(self) -> int:
        """How many nobody opened."""
        return len(self.recorded) - len(self._runs)

    def at(self, host: str, path: str) -> list[RecordedExchange]:
        """Those that a live connection may play: the same host first, then what is left, by time; the last again."""
        there = self.playable(r for r in self.recorded if r.probe.address.path == path)

        def rank(one: RecordedExchange) -> tuple[bool, bool, int]:
            again = not self.is_free(one) and self.run_of(one) is None
            return one.probe.address.host != host, again, -one.order if again else one.order

        return sorted(there, key=rank)

    def playable(self, recorded: Iterable[RecordedExchange]) -> list[RecordedExchange]:
        """Those that nobody opened, those that a fault left something of, and all where answers may be given again."""
        return [one for one in recorded if self.options.repeat or self.is_free(one) or self._has_more(one)]

    def _has_more(self, recorded: RecordedExchange) -> bool:
        """Whether a fault left something of it: messages that have not come, or a call that may be asked for again."""
        run = self.run_of(recorded)
        if run is None:
            return False
        late = (self.faults.delayed(call_key(recorded, call)) for call in recorded.calls)
        return bool(run.waiting or self.owed(recorded)) or any(late)

    def is_free(self, recorded: RecordedExchange) -> bool:
        return recorded.order not in self._runs

    def number_at(self, path: str) -> int:
        """The exchange of one that was recorded there, played or not; 0 if there is none."""
        return next((r.exchange.number for r in self.recorded if r.probe.address.path == path), 0)

    def open(self, recorded: RecordedExchange) -> MessageSequence:
        """Begin one from its start."""
        run = MessageSequence(recorded, range(len(recorded.exchange.messages)))
        self._runs.setdefault(recorded.order, run)
        return run

    def run_of(self, recorded: RecordedExchange) -> MessageSequence | None:
        """What goes on of a connection that a fault came to."""
        return self._runs.get(recorded.order) if recorded.order in self._hit else None

    def owed(self, recorded: RecordedExchange) -> list[SocketCall]:
        return self._owed.get(recorded.order, [])

    def owing(self, beside: RecordedExchange) -> list[RecordedExchange]:
        """The connections to the same address that still owe a call."""
        path = beside.probe.address.path
        return [
            r for order in sorted(self._owed) if self.owed(r := self.recorded[order]) and r.probe.address.path == path
        ]

    def may_repeat(self, recorded: RecordedExchange, call: SocketCall | None) -> bool:
        """Whether what was given may be given again: asked for by the person, or because a fault made it late."""
        return self.options.repeat or (call is not None and self.faults.delayed(call_key(recorded, call)))

    # -- what came of it

    def refused(self, candidates: Sequence[RecordedExchange], number: int) -> Injected | None:
        """The fault that refuses a handshake: which connection it would open, only its first message would say."""
        for recorded in candidates:
            for one in self.faults.next(handshake_key(recorded)):
                call = recorded.calls[0]
                return self.inject(recorded, call, one, number)
        return None

    def next_faults(self, recorded: RecordedExchange, call: SocketCall) -> tuple[Fault, ...]:
        return self.faults.next(call_key(recorded, call))

    def inject(self, recorded: RecordedExchange, call: SocketCall, one: Fault, number: int) -> Injected:
        exchange = recorded.exchange
        if isinstance(one.effect, ErrorStatus):
            headers, body = self.refusal(recorded, one, one.effect)
            made = Headers([*headers.pairs(), *one.effect.headers])
            exchange = replace(exchange, response=Response(one.effect.status, made, exchange.at, BytesBody(body)))
        made_of = Injected(number, recorded.reference_of(call), exchange, one)
        self._ledger.outcomes.append(made_of)
        return made_of

    def refusal(self, recorded: RecordedExchange, one: Fault, effect: ErrorStatus) -> tuple[Headers, bytes]:
        """An error in the shape of who is asked."""
        message = f"injected by wiretape ({one.named})"
        spoken = recorded.probe.format
        assert spoken is not None, "only calls have faults, and calls have a format"
        return spoken.error(effect.status, message, "wiretape_fault")

    def owe(self, recorded: RecordedExchange, call: SocketCall) -> None:
        """A fault stands in the place of this call's answer: the next attempt gets it."""
        self.came_to(recorded)
        owed = self._owed.setdefault(recorded.order, [])
        if call not in owed:
            owed.append(call)
        if recorded.order in self._runs:
            self._runs[recorded.order].drop(call)

    def came_to(self, recorded: RecordedExchange) -> None:
        """A fault came to one of its calls."""
        self._hit.add(recorded.order)

    def paid(self, recorded: RecordedExchange, call: SocketCall) -> None:
        """The answer that was owed is being given."""
        owed = self._owed.get(recorded.order, [])
        if call in owed:
            owed.remove(call)

    def answered(
        self,
        recorded: RecordedExchange,
        reference: Reference,
        number: int,
        alike: MessageMatch,
        faults: tuple[Fault, ...] = (),
    ) -> int:
        """A model call of a connection, or the connection itself; its place among the session's outcomes."""
        repeated = reference in self._asked
        answer = Answer(number, reference, recorded.exchange, alike.tier, self._shown(alike), repeated, faults)
        self._asked.add(reference)
        self._ledger.outcomes.append(answer)
        self._note(answer, alike)
        return self.last_place

    def also(self, place: int, alike: MessageMatch) -> None:
        """A later message of the same call: the loosest tier of all is the call's."""
        answer = self.at_place(place)
        assert isinstance(answer, Answer)
        self._ledger.outcomes[place] = replace(answer, tier=max(answer.tier, alike.tier))
        self._note(replace(answer, tier=alike.tier, differences=self._shown(alike)), alike)

    def _shown(self, alike: MessageMatch) -> tuple[Difference, ...]:
        return shown_differences(alike.apart, alike.live, self._ledger.output)

    @property
    def left_over(self) -> list[Reference]:
        """Calls of connections that were opened, for which nobody asked."""
        opened = (one for one in self.recorded if not self.is_free(one))
        every = (one.reference_of(call) for one in opened for call in one.calls)
        return [reference for reference in every if reference not in self._asked]

    @property
    def last_place(self) -> int:
        return len(self._ledger.outcomes) - 1

    def at_place(self, place: int) -> Outcome:
        return self._ledger.outcomes[place]

    def _note(self, answer: Answer, alike: MessageMatch) -> None:
        if alike.tier is not Tier.EXACT:
            self._echoes.learn(alike.apart)
        self._ledger.drifts.add(answer, alike.minor)

    # -- what is alike

    def compare(self, recorded: RecordedExchange, place: int, live: Json) -> MessageMatch | None:
        """How alike two messages of the client are; None: not alike enough."""
        tier, apart, minor = Tier.EXACT, [], []
        for difference in differences(self.value(recorded, place), live):
            small = is_minor(difference, recorded.probe)
            if not small and not self._is_masked(difference):
                return None
            tier = max(tier, Tier.NORMALIZED if small else Tier.MASKED)
            if tier > self.options.tier:
                return None
            apart.append(difference)
            minor.append(small)
        return MessageMatch(tier, tuple(apart), tuple(minor), live)

    def may_be_alike(self, recorded: RecordedExchange, place: int, live: Json) -> bool:
        """Whether `compare` may find two messages alike: quickly, and not always rightly where it is True."""
        volatile = recorded.probe.format.volatile if recorded.probe.format is not None else _NOTHING
        key = recorded.order, place
        if key not in self._cores:
            value = self.value(recorded, place)
            self._cores[key] = None if has_placeholder(value) else core(value, volatile, self.masker)
        last = self._live_core
        if last is None or last[0] is not live or last[1] is not volatile:
            last = self._live_core = live, volatile, core(live, volatile, self.masker)
        return self._cores[key] in (None, last[2])

    def apart(
        self, recorded: RecordedExchange, place: int, live: Json
    ) -> tuple[tuple[Difference, ...], tuple[bool, ...]]:
        """Where two messages differ, and whether each difference is minor."""
        apart = tuple(differences(self.value(recorded, place), live))
        return apart, tuple(is_minor(difference, recorded.probe) for difference in apart)

    def value(self, recorded: RecordedExchange, place: int) -> Json:
        """A recorded message of the client."""
        key = recorded.order, place
        if key not in self._values:
            self._values[key] = message_value(recorded.exchange.messages[place])
        return self._values[key]

    def _is_masked(self, apart: Difference) -> bool:
        return bool(self.masker.value(loose(apart.recorded)) == self.masker.value(loose(apart.live)))

    # -- what is said

    def back(self, data: str | bytes) -> Json:
        return self._echoes.back(value_of(data))

    def frames(self, recorded: RecordedExchange, due: Sequence[DueMessage]) -> list[SocketFrame]:
        """What the server sends in one go, under the live names: they may be split over its messages."""
        messages = [recorded.exchange.messages[one.place] for one in due]
        sent = [body_bytes(message.body) for message in messages]
        body = StreamBody(sent, [0] * len(sent))
        named = self._echoes.forward(replace(recorded.exchange, response=Response(200, Headers(), 0, body)))
        datas = named.response.body.frames  # type: ignore[union-attr]
        return [
            SocketFrame(
                one.pause,
                bytes(data) if isinstance(message.body, BytesBody) else bytes(data).decode("utf-8", "replace"),
                one.faults,
                one.late,
            )
            for one, message, data in zip(due, messages, datas, strict=True)
        ]

    def greeting(self, recorded: RecordedExchange) -> list[SocketFrame]:
        """What the server says before its client does."""
        messages = recorded.exchange.messages
        first = next((n for n, one in enumerate(messages) if one.sender == "client"), len(messages))
        return self.frames(recorded, MessageSequence(recorded, range(first)).due())

    def begun(self, recorded: RecordedExchange, call: SocketCall, events: int) -> list[SocketFrame]:
        """The first so many messages of an answer."""
        run = MessageSequence(recorded, answer_of(recorded, call)[:events])
        return self.frames(recorded, run.due())

    # -- misses

    def miss(self, recorded: RecordedExchange, live: Json, place: int | None) -> Miss:
        """`place`: of the client's message that was expected."""
        if place is None:
            note = f"x{recorded.exchange.number} has no further message of the client: its recording ends there"
            return self._missed(self._make_miss(recorded, live, "not playable", None, note))
        recorded = replace(recorded, reference=recorded.reference_at(place))
        apart, minor = self.apart(recorded, place, live)
        large = [difference for difference, small in zip(apart, minor, strict=True) if not small]
        firm = tuple(difference for difference in large if not self._is_masked(difference)) or tuple(large)
        return self._missed(self._make_miss(recorded, live, "diverged", Nearest(recorded, firm, alike=True), ""))

    def already_played(self, recorded: RecordedExchange, live: Json, place: int | None = None) -> Miss:
        if place is not None:
            recorded = replace(recorded, reference=recorded.reference_at(place))
        made = self._make_miss(recorded, live, "already played", Nearest(recorded, (), alike=True), "")
        return self._missed(made)

    def unclear(self, recorded: RecordedExchange, live: Json, note: str) -> Miss:
        return self._missed(self._make_miss(recorded, live, "not playable", None, note))

    def fault(self, recorded: RecordedExchange, number: int, error: Exception) -> Miss:
        return self._missed(fault(number, recorded.reference.what, error))

    def _missed(self, miss: Miss) -> Miss:
        return self._ledger.keep(miss)


def message_value(message: WsMessage) -> Json:
    body = message.body
    return value_of(body.data if isinstance(body, BytesBody) else body_bytes(body).decode("utf-8", "replace"))


def value_of(data: str | bytes) -> Json:
    """A message as JSON where it is text that is some; bytes under a name of their own."""
    if isinstance(data, bytes):
        return {"bytes": data.decode("utf-8", "surrogateescape")}
    try:
        return orjson.loads(data)
    except ValueError:
        return data


def core(value: Json, volatile: Volatile, masker: Masker) -> bytes:
    """Different for messages that no tier takes for alike; it says nothing of a recorded one with a placeholder."""
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name not in volatile.settings}
    bare = rebuilt(value, lambda _, leaf: leaf, _without({*LEFT_OUT, *(path[-1] for path in volatile.nested)}))
    return blake2b(canonical(masker.value(loose(bare))), digest_size=16).digest()


def _without(names: set[str]) -> Callable[[JsonObject], JsonObject]:
    def kept(members: JsonObject) -> JsonObject:
        return {name: item for name, item in members.items() if name not in names}

    return kept
