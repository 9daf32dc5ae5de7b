"""The recorded WebSockets of a session: which of them a live connection may play, and the outcomes of their calls.

A connection is played once. A call that a fault broke is *owed*: the next request for it gets it, on any connection.
The rest of the recorded connection continues where the client continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from wiretape.compare.canonical import canonical, has_placeholder
from wiretape.compare.difference import Difference, Tier, differences
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import LEFT_OUT, loose
from wiretape.matching.faults.apply import Fault, FaultPlan, error_response
from wiretape.matching.faults.targets import call_key, handshake_key
from wiretape.matching.id_map import IdMap
from wiretape.matching.ledger import Ledger
from wiretape.matching.misses.miss_text import fault
from wiretape.matching.misses.nearest import Nearest, is_minor
from wiretape.matching.recorded import RecordedExchange, SocketCall
from wiretape.matching.redacted_differences import shown_differences
from wiretape.matching.sockets.sequence import DueMessage, MessageSequence, SocketFrame, answer_of
from wiretape.matching.values import Answer, Injected, Miss, MissReason, Outcome, Reference, ReplayOptions
from wiretape.model.faults import ErrorStatus
from wiretape.model.http import BytesBody, Headers, Response, StreamBody, WsMessage, body_bytes
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import parsed, rebuilt
from wiretape.wire.base import Volatile

_NOTHING: Final = Volatile()

MakeMiss = Callable[[RecordedExchange, Json, MissReason, Nearest | None, str], Miss]


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """How a live client message matches a recorded one. `minor`: whether each difference is minor."""

    tier: Tier
    differing: tuple[Difference, ...] = ()
    minor: tuple[bool, ...] = ()
    live: Json = None  # the live message


class RecordedSockets:
    """The recorded connections of a session, and which of them are played."""

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
        self._sequences: dict[int, MessageSequence] = {}  # of opened connections, by order
        self._faulted: set[int] = set()  # connections with an injected fault
        self._owed: dict[int, list[SocketCall]] = {}
        self._played: set[Reference] = set()
        self._values: dict[tuple[int, int], Json] = {}  # parsed client messages
        self._cores: dict[tuple[int, int], bytes | None] = {}  # None: it may match any message
        self._live_core: tuple[Json, Volatile, bytes] | None = None  # of the latest live message
        self.traits: dict[tuple[int, int], list[Json]] = {}  # traits of first calls, for the tier `position`
        self._echoes = echoes
        self._ledger = ledger
        self._make_miss = make_miss

    # -- playable connections

    @property
    def left(self) -> int:
        """The number of connections that were not opened."""
        return len(self.recorded) - len(self._sequences)

    def at(self, host: str, path: str) -> list[RecordedExchange]:
        """The connections that a live one may play: same host first, then unopened ones by time, then the latest."""
        there = self.playable(r for r in self.recorded if r.probe.address.path == path)

        def rank(one: RecordedExchange) -> tuple[bool, bool, int]:
            again = not self.is_free(one) and self.sequence_of(one) is None
            return one.probe.address.host != host, again, -one.order if again else one.order

        return sorted(there, key=rank)

    def playable(self, recorded: Iterable[RecordedExchange]) -> list[RecordedExchange]:
        """The unopened connections, those that a fault interrupted, and all if answers may be repeated."""
        return [one for one in recorded if self.options.repeat or self.is_free(one) or self._has_more(one)]

    def _has_more(self, recorded: RecordedExchange) -> bool:
        """Whether a fault left pending messages, or a call that may be repeated."""
        sequence = self.sequence_of(recorded)
        if sequence is None:
            return False
        late = (self.faults.delayed(call_key(recorded, call)) for call in recorded.calls)
        return bool(sequence.waiting or self.owed(recorded)) or any(late)

    def is_free(self, recorded: RecordedExchange) -> bool:
        return recorded.order not in self._sequences

    def number_at(self, path: str) -> int:
        """The exchange number of a WebSocket recorded at the path; 0 if there is none."""
        return next((r.exchange.number for r in self.recorded if r.probe.address.path == path), 0)

    def open(self, recorded: RecordedExchange) -> MessageSequence:
        """Begin to play a connection."""
        sequence = MessageSequence(recorded, range(len(recorded.exchange.messages)))
        self._sequences.setdefault(recorded.order, sequence)
        return sequence

    def sequence_of(self, recorded: RecordedExchange) -> MessageSequence | None:
        """The rest of a connection that a fault interrupted."""
        return self._sequences.get(recorded.order) if recorded.order in self._faulted else None

    def owed(self, recorded: RecordedExchange) -> list[SocketCall]:
        return self._owed.get(recorded.order, [])

    def owing(self, beside: RecordedExchange) -> list[RecordedExchange]:
        """The connections to the same path that still owe a call."""
        path = beside.probe.address.path
        return [
            r for order in sorted(self._owed) if self.owed(r := self.recorded[order]) and r.probe.address.path == path
        ]

    def may_repeat(self, recorded: RecordedExchange, call: SocketCall | None) -> bool:
        """Whether a played call may be repeated: by option, or because a fault delayed it."""
        return self.options.repeat or (call is not None and self.faults.delayed(call_key(recorded, call)))

    # -- outcomes

    def refused(self, candidates: Sequence[RecordedExchange], number: int) -> Injected | None:
        """The first fault that refuses the handshake of a candidate."""
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
            response = error_response(recorded.probe.format, one.effect, one.named, exchange.at)
            exchange = replace(exchange, response=response)
        made_of = Injected(number, recorded.reference_of(call), exchange, one)
        self._ledger.outcomes.append(made_of)
        return made_of

    def owe(self, recorded: RecordedExchange, call: SocketCall) -> None:
        """Leave this call for the next attempt: a fault replaced its answer."""
        self.mark_faulted(recorded)
        owed = self._owed.setdefault(recorded.order, [])
        if call not in owed:
            owed.append(call)
        if recorded.order in self._sequences:
            self._sequences[recorded.order].drop(call)

    def mark_faulted(self, recorded: RecordedExchange) -> None:
        """Note that a fault was injected into one of its calls."""
        self._faulted.add(recorded.order)

    def settle(self, recorded: RecordedExchange, call: SocketCall) -> None:
        """Note that an owed call is played."""
        owed = self._owed.get(recorded.order, [])
        if call in owed:
            owed.remove(call)

    def answered(
        self,
        recorded: RecordedExchange,
        reference: Reference,
        number: int,
        matched: MessageMatch,
        faults: tuple[Fault, ...] = (),
    ) -> int:
        """Note the answer of a call, or of the connection itself; return its index among the session's outcomes."""
        repeated = reference in self._played
        answer = Answer(number, reference, recorded.exchange, matched.tier, self._shown(matched), repeated, faults)
        self._played.add(reference)
        self._ledger.outcomes.append(answer)
        self._note(answer, matched)
        return self.last_place

    def add_message(self, place: int, matched: MessageMatch) -> None:
        """Note a later message of the same call: the call's tier is the loosest of its messages."""
        answer = self.at_place(place)
        assert isinstance(answer, Answer)
        self._ledger.outcomes[place] = replace(answer, tier=max(answer.tier, matched.tier))
        self._note(replace(answer, tier=matched.tier, differences=self._shown(matched)), matched)

    def _shown(self, matched: MessageMatch) -> tuple[Difference, ...]:
        return shown_differences(matched.differing, matched.live, self._ledger.output)

    @property
    def left_over(self) -> list[Reference]:
        """The unplayed calls of opened connections."""
        opened = (one for one in self.recorded if not self.is_free(one))
        every = (one.reference_of(call) for one in opened for call in one.calls)
        return [reference for reference in every if reference not in self._played]

    @property
    def last_place(self) -> int:
        return len(self._ledger.outcomes) - 1

    def at_place(self, place: int) -> Outcome:
        return self._ledger.outcomes[place]

    def _note(self, answer: Answer, matched: MessageMatch) -> None:
        if matched.tier is not Tier.EXACT:
            self._echoes.learn(matched.differing)
        self._ledger.drifts.add(answer, matched.minor)

    # -- comparison

    def compare(self, recorded: RecordedExchange, place: int, live: Json) -> MessageMatch | None:
        """The match of a live client message with a recorded one; None if the tier does not allow their differences."""
        tier, differing, minor = Tier.EXACT, [], []
        for difference in differences(self.value(recorded, place), live):
            small = is_minor(difference, recorded.probe)
            if not small and not self._is_masked(difference):
                return None
            tier = max(tier, Tier.NORMALIZED if small else Tier.MASKED)
            if tier > self.options.tier:
                return None
            differing.append(difference)
            minor.append(small)
        return MessageMatch(tier, tuple(differing), tuple(minor), live)

    def may_match(self, recorded: RecordedExchange, place: int, live: Json) -> bool:
        """A quick test before `compare`: False if two messages do not match."""
        volatile = recorded.probe.format.volatile if recorded.probe.format is not None else _NOTHING
        key = recorded.order, place
        if key not in self._cores:
            value = self.value(recorded, place)
            self._cores[key] = None if has_placeholder(value) else core(value, volatile, self.masker)
        last = self._live_core
        if last is None or last[0] is not live or last[1] is not volatile:
            last = self._live_core = live, volatile, core(live, volatile, self.masker)
        return self._cores[key] in (None, last[2])

    def differences_at(
        self, recorded: RecordedExchange, place: int, live: Json
    ) -> tuple[tuple[Difference, ...], tuple[bool, ...]]:
        """Where two messages differ, and whether each difference is minor."""
        differing = tuple(differences(self.value(recorded, place), live))
        return differing, tuple(is_minor(difference, recorded.probe) for difference in differing)

    def value(self, recorded: RecordedExchange, place: int) -> Json:
        """A recorded message of the client."""
        key = recorded.order, place
        if key not in self._values:
            self._values[key] = message_value(recorded.exchange.messages[place])
        return self._values[key]

    def _is_masked(self, differing: Difference) -> bool:
        return bool(self.masker.value(loose(differing.recorded)) == self.masker.value(loose(differing.live)))

    # -- frames

    def back(self, data: str | bytes) -> Json:
        return self._echoes.back(value_of(data))

    def frames(self, recorded: RecordedExchange, due: Sequence[DueMessage]) -> list[SocketFrame]:
        """The frames of due messages with live ids, which may be split over messages."""
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
        """The frames that the server sends before the first client message."""
        messages = recorded.exchange.messages
        first = next((n for n, one in enumerate(messages) if one.sender == "client"), len(messages))
        return self.frames(recorded, MessageSequence(recorded, range(first)).due())

    def begun(self, recorded: RecordedExchange, call: SocketCall, events: int) -> list[SocketFrame]:
        """The frames of the first messages of an answer."""
        sequence = MessageSequence(recorded, answer_of(recorded, call)[:events])
        return self.frames(recorded, sequence.due())

    # -- misses

    def miss(self, recorded: RecordedExchange, live: Json, place: int | None) -> Miss:
        """The miss of a client message. `place`: index of the expected message; None at the recording's end."""
        if place is None:
            note = f"x{recorded.exchange.number} has no further message of the client: its recording ends there"
            return self._missed(self._make_miss(recorded, live, "not playable", None, note))
        recorded = replace(recorded, reference=recorded.reference_at(place))
        differing, minor = self.differences_at(recorded, place, live)
        large = [difference for difference, small in zip(differing, minor, strict=True) if not small]
        firm = tuple(difference for difference in large if not self._is_masked(difference)) or tuple(large)
        return self._missed(self._make_miss(recorded, live, "diverged", Nearest(recorded, firm, similar=True), ""))

    def already_played(self, recorded: RecordedExchange, live: Json, place: int | None = None) -> Miss:
        if place is not None:
            recorded = replace(recorded, reference=recorded.reference_at(place))
        made = self._make_miss(recorded, live, "already played", Nearest(recorded, (), similar=True), "")
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
    """A message as JSON: parsed if it is JSON text; bytes as `{"bytes": …}`."""
    if isinstance(data, bytes):
        return {"bytes": data.decode("utf-8", "surrogateescape")}
    return parsed(data)


def core(value: Json, volatile: Volatile, masker: Masker) -> bytes:
    """A digest that is equal for messages that any tier but `position` matches, unless one has a placeholder."""
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name not in volatile.settings}
    bare = rebuilt(value, lambda _, leaf: leaf, _without({*LEFT_OUT, *(path[-1] for path in volatile.nested)}))
    return blake2b(canonical(masker.value(loose(bare))), digest_size=16).digest()


def _without(names: set[str]) -> Callable[[JsonObject], JsonObject]:
    def kept(members: JsonObject) -> JsonObject:
        return {name: item for name, item in members.items() if name not in names}

    return kept
