"""Play a recorded WebSocket: a server message is sent when the client messages before it have arrived.

Each client message must match a pending recorded one; differences that the tier allows are drift. The
first client message chooses among several recorded connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from wiretape.compare.canonical import same
from wiretape.compare.difference import Tier
from wiretape.matching.faults.apply import Fault, error_response
from wiretape.matching.recorded import RecordedExchange, SocketCall
from wiretape.matching.sockets.positions import AmbiguousPosition, MessagePositions, PendingMessage
from wiretape.matching.sockets.recorded_sockets import MessageMatch, RecordedSockets
from wiretape.matching.sockets.sequence import MessageSequence, SocketFrame, answer_of, messages_after
from wiretape.matching.values import Miss, Outcome, Reference
from wiretape.model.faults import Cut, Effect, ErrorStatus, Reset, Stall
from wiretape.model.http import Close, Ended, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.wire.openai.responses_socket import error_event, lane_of


@dataclass(frozen=True, slots=True)
class _Option:
    """A recorded client message that may match. `sequence`: where it is pending; None: it has arrived."""

    recorded: RecordedExchange
    place: int
    sequence: MessageSequence | None = None

    @property
    def call(self) -> SocketCall | None:
        """The call that the message begins."""
        return self.recorded.begins.get(self.place)


FoundMessage = tuple[_Option, MessageMatch]


class SocketPlay:
    """One live WebSocket. The adapter sends `due` frames and `close`, and passes client messages to `receive`.

    `cut`: the connection breaks off; by a TCP reset if `reset`. `silent`: it sends no more frames or pongs.
    """

    def __init__(self, sockets: RecordedSockets, candidates: Sequence[RecordedExchange], number: int) -> None:
        self._sockets = sockets
        self._candidates = list(candidates)
        self._number = number
        self._recorded: RecordedExchange | None = None
        self._main: MessageSequence | None = None  # of the recorded connection
        self._single_calls: list[MessageSequence] = []  # calls that are repeated, or played after a fault
        self._extra_frames: list[SocketFrame] = []  # also due: frames before a fault, and errors
        self._broken: Effect | None = None  # the fault that ended it
        self._places: dict[Reference, int] = {}  # indexes of its answers among the session's outcomes
        self._place: int | None = None  # index of the outcome of the client's last message
        self._new_outcomes: list[int] = []
        self._last: Json = None  # the client's last message
        self.miss: Miss | None = None
        first = self._candidates[0]
        if not first.exchange.messages or first.exchange.messages[0].sender == "server":
            self._greet(first)

    def _greet(self, first: RecordedExchange) -> None:
        """Choose the connection before the client's first message, since the server sends first."""
        left = self._sockets.sequence_of(first)
        if left is not None:
            self._extra_frames += self._sockets.greeting(first)
            self._choose(_Option(first, 0, left))
        else:
            self._choose(_Option(first, 0, self._sockets.open(first)))
            self._answered(first, first.reference_at(0), MessageMatch(Tier.EXACT))

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of the response to the handshake."""
        response = (self._recorded or self._candidates[0]).exchange.response
        return response.headers.pairs() if response is not None else []

    # -- server messages

    def due(self) -> list[SocketFrame]:
        """The frames that the server sends now."""
        frames, self._extra_frames = self._extra_frames, []
        return frames if self.miss is not None or self._broken is not None else frames + self._drained()

    def _drained(self) -> list[SocketFrame]:
        frames: list[SocketFrame] = []
        for sequence in self._sequences:
            due = sequence.due()
            for one in due:
                call = sequence.recorded.begins.get(one.place)
                if call is not None:  # the server began this call
                    self._answered(sequence.recorded, sequence.recorded.reference_of(call), MessageMatch(Tier.EXACT))
            frames += self._sockets.frames(sequence.recorded, due) if due else []
        return frames

    @property
    def _sequences(self) -> list[MessageSequence]:
        """The sequences that this connection sends."""
        main = [self._main] if self._main is not None and self._main.holder is self else []
        return [*main, *self._single_calls]

    @property
    def close(self) -> Close | None:
        """The server's close frame, if everything is sent; None: it does not close."""
        if self._recorded is None or self._broken is not None or not self._is_over:
            return None
        close = self._recorded.exchange.close
        return close if close is not None and close.sender != "client" else None

    @property
    def cut(self) -> bool:
        """Whether the connection breaks off now."""
        if self._broken is not None:
            return not self.silent
        if self._recorded is None or not self._is_over:
            return False
        exchange = self._recorded.exchange
        return exchange.close is None and exchange.ended in (Ended.UPSTREAM_CLOSED, Ended.TIMEOUT)

    @property
    def reset(self) -> bool:
        return isinstance(self._broken, Reset)

    @property
    def silent(self) -> bool:
        return isinstance(self._broken, Stall)

    @property
    def _is_over(self) -> bool:
        """Whether all of the recorded connection is sent."""
        if self._recorded is None or self._main is None or self._main.holder is not self:
            return False
        return (
            all(sequence.over for sequence in self._sequences)
            and not self._extra_frames
            and not self._sockets.owed(self._recorded)
        )

    # -- client messages

    def receive(self, data: str | bytes) -> None:
        """Process a client message. `miss` is set if no recorded message matches."""
        if self.miss is not None or self._broken is not None:
            return
        try:
            self._receive(self._sockets.back(data))
        except Exception as error:  # fail closed, as for a request
            self._missed(self._sockets.fault(self._candidates[0], self._number, error))

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the client's last message: a call, a fault or a miss; None before the first one."""
        return self._sockets.at_place(self._place) if self._place is not None else None

    def new_outcomes(self) -> list[Outcome]:
        """The new outcomes of this connection: each call and each miss once."""
        new_outcomes, self._new_outcomes = self._new_outcomes, []
        return [self._sockets.at_place(place) for place in new_outcomes]

    def _receive(self, live: Json) -> None:
        found = self._find(live)
        self._last = live
        if isinstance(found, Miss):
            self._missed(found)
            return
        option, matched = found
        if self._recorded is None:
            option = self._choose(option)
        call = option.call
        faults = self._sockets.next_faults(option.recorded, call) if call is not None else ()
        breaking = faults[0] if faults and faults[0].breaks else None
        if call is not None and breaking is not None and not self._ends_whole(option.recorded, call, breaking):
            self._break(option.recorded, call, breaking, live)
            return
        sequence = option.sequence or self._again(option)
        sequence.holder = self
        sequence.take(option.place)
        if call is not None and faults:
            self._sockets.mark_faulted(option.recorded)
            sequence.delay(call, faults)
        self._answered(option.recorded, option.recorded.reference_at(option.place), matched, faults)
        if breaking is not None:
            self._extra_frames += self._drained()
            self._end(breaking.effect)

    def _choose(self, option: _Option) -> _Option:
        """Choose the recorded connection to play, and the place in it."""
        recorded = self._recorded = option.recorded
        left = self._sockets.sequence_of(recorded)
        begins = self._sockets.is_free(recorded) or option.place == _first_of_client(recorded)
        if option.sequence is None and left is None and begins:
            option = replace(option, sequence=self._sockets.open(recorded))
        self._main = left or option.sequence
        if self._main is not None:
            self._main.holder = self
        return option

    def _again(self, option: _Option) -> MessageSequence:
        """The sequence of a single call, which a fault left or which is repeated."""
        call = option.call
        sequence = MessageSequence(
            option.recorded, call.messages if call else messages_after(option.recorded, option.place), call
        )
        self._single_calls = [*(one for one in self._single_calls if not one.over), sequence]
        self._places.pop(option.recorded.reference_at(option.place), None)
        if call is not None:
            self._sockets.settle(option.recorded, call)
        return sequence

    def _answered(
        self, recorded: RecordedExchange, reference: Reference, matched: MessageMatch, faults: tuple[Fault, ...] = ()
    ) -> None:
        if reference in self._places:
            self._sockets.add_message(self._places[reference], matched)
        else:
            self._places[reference] = self._sockets.answered(recorded, reference, self._number, matched, faults)
            self._new_outcomes.append(self._places[reference])
        self._place = self._places[reference]

    # -- faults

    def _break(self, recorded: RecordedExchange, call: SocketCall, one: Fault, live: Json) -> None:
        """Inject the fault instead of the answer, which the next attempt gets."""
        self._extra_frames += self._drained()
        self._last = None  # so that the same message again counts as the next attempt
        self._sockets.owe(recorded, call)
        for sequence in self._sequences:
            if sequence.recorded is recorded:
                sequence.drop(call)
        self._sockets.inject(recorded, call, one, self._number)
        self._note_outcome()
        match one.effect:
            case ErrorStatus():
                body = body_bytes(error_response(recorded.probe.format, one.effect, one.named, 0).body)
                frame = error_event(one.effect.status, body, one.effect.headers, lane_of(live))
                self._extra_frames.append(SocketFrame(0, frame))
            case Cut(event=event) | Reset(event=event) | Stall(event=event):
                half = len(answer_of(recorded, call)) // 2 if isinstance(one.effect, Cut) else 0
                self._extra_frames += self._sockets.begun(recorded, call, half if event is None else event)
                self._end(one.effect)

    def _ends_whole(self, recorded: RecordedExchange, call: SocketCall, one: Fault) -> bool:
        """Whether a fault comes after the last message of an answer, which is then played as a whole."""
        match one.effect:
            case Cut(event=event) | Reset(event=event) | Stall(event=event):
                return bool(event) and event == len(answer_of(recorded, call))
        return False

    def _end(self, effect: Effect) -> None:
        """End the connection. Other calls under way are left for the next attempt, too."""
        self._broken = effect
        for sequence in self._sequences:
            for other in sequence.under_way:
                self._sockets.owe(sequence.recorded, other)

    def _note_outcome(self) -> None:
        self._place = self._sockets.last_place
        self._new_outcomes.append(self._place)

    # -- matching

    def _find(self, live: Json) -> FoundMessage | Miss:
        sockets = self._sockets
        free = list(dict.fromkeys([*sockets.playable(self._candidates), *sockets.owing(self._candidates[0])]))
        if self._recorded is None and not free:  # other connections may have played them
            return sockets.already_played(self._candidates[0], live)
        found = _best(self._compared(self._waiting(free), live))
        if found is not None:
            return found
        waiting = list(self._waiting(free))
        try:
            found = self._places_of(live, waiting)
        except AmbiguousPosition as several:
            return sockets.unclear(waiting[0].recorded, live, str(several))
        if found is not None:
            return found
        arrived = list(self._arrived(free))
        found = _best(self._compared(arrived, live))
        if found is not None and sockets.may_repeat(found[0].recorded, found[0].call):
            return found
        return self._nothing(live, waiting, found)

    def _compared(self, options: Iterable[_Option], live: Json) -> Iterator[tuple[_Option, MessageMatch | None]]:
        """Compare the first option, which is the likeliest, and those whose cores are equal."""
        for number, option in enumerate(options):
            if not number or self._sockets.may_match(option.recorded, option.place, live):
                yield option, self._sockets.compare(option.recorded, option.place, live)

    def _waiting(self, others: Sequence[RecordedExchange]) -> Iterator[_Option]:
        """The pending messages of this connection, and those that a fault left of others."""
        own = [self._recorded] if self._recorded is not None else []
        for recorded in dict.fromkeys([*own, *others]):
            options = [_Option(recorded, call.messages[0]) for call in self._sockets.owed(recorded)]
            if self._recorded is None:
                options += self._first_messages(recorded)
            for sequence in [*([self._main] if self._main else []), *self._single_calls]:
                if sequence.recorded is recorded:
                    options += [_Option(recorded, place, sequence) for place in sequence.waiting]
            yield from sorted(options, key=lambda one: one.place)

    def _first_messages(self, recorded: RecordedExchange) -> list[_Option]:
        """The messages with which a connection may begin."""
        sequence = self._sockets.sequence_of(recorded)
        if sequence is not None:
            return [_Option(recorded, place, sequence) for place in sequence.waiting]
        first = _first_of_client(recorded)  # the first message identifies a connection
        return [_Option(recorded, first)] if first is not None and self._sockets.is_free(recorded) else []

    def _arrived(self, free: Sequence[RecordedExchange]) -> Iterator[_Option]:
        """The messages that have arrived once."""
        for recorded in [self._recorded] if self._recorded is not None else free:
            sequence = self._main if self._recorded is not None else self._sockets.sequence_of(recorded)
            left = {
                *(sequence.waiting if sequence is not None else ()),
                *(c.messages[0] for c in self._sockets.owed(recorded)),
            }
            if self._sockets.is_free(recorded):
                continue
            places = [n for n, one in enumerate(recorded.exchange.messages) if one.sender == "client" and n not in left]
            # An open connection repeats the last one; a new connection begins like the recorded one.
            yield from (_Option(recorded, n) for n in (places if self._recorded is None else places[::-1]))

    def _places_of(self, live: Json, waiting: Sequence[_Option]) -> FoundMessage | None:
        """The match by the history in the message, or by position."""
        value = self._sockets.value
        stand = [PendingMessage(one.recorded, one.place, one.call, value(one.recorded, one.place)) for one in waiting]
        places = MessagePositions(self._sockets, stand)
        again = self._last is not None and same(self._last, live)  # the same message again
        found = places.with_history(live) or (None if again else places.next(live, self._recorded))
        return (waiting[found[0]], found[1]) if found is not None else None

    def _nothing(self, live: Json, waiting: Sequence[_Option], arrived: FoundMessage | None) -> Miss:
        sockets = self._sockets
        if arrived is not None:
            return sockets.already_played(arrived[0].recorded, live, arrived[0].place)
        if waiting:
            return sockets.miss(waiting[0].recorded, live, waiting[0].place)
        return sockets.miss(self._recorded or self._candidates[0], live, None)

    def _missed(self, miss: Miss) -> None:
        self._extra_frames += self._drained()
        self.miss = miss
        self._note_outcome()


def _best(compared: Iterable[tuple[_Option, MessageMatch | None]]) -> FoundMessage | None:
    """The match of the strictest tier; the first of several."""
    best: FoundMessage | None = None
    for option, matched in compared:
        if matched is not None and (best is None or matched.tier < best[1].tier):
            best = option, matched
            if matched.tier is Tier.EXACT:
                break
    return best


def _first_of_client(recorded: RecordedExchange) -> int | None:
    return next((n for n, one in enumerate(recorded.exchange.messages) if one.sender == "client"), None)


def miss_message(miss: Miss) -> str:
    """A miss as an error event for the client."""
    return error_event(miss.status, miss.body)
