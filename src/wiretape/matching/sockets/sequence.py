"""The messages of a recorded WebSocket in their order, while they are played: of a whole connection, or of one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wiretape.matching.faults.apply import Fault, paced, slowed
from wiretape.matching.recorded import RecordedExchange, SocketCall
from wiretape.model.faults import Slow, Stall


@dataclass(frozen=True, slots=True)
class SocketFrame:
    """A server message after a recorded pause in milliseconds. `data` None: only the pause.

    `faults`: the faults that slow it. `late`: extra milliseconds that the pace does not change.
    """

    pause: float
    data: str | bytes | None
    faults: tuple[Fault, ...] = ()
    late: float = 0

    def wait(self, pace: float) -> float:
        """The milliseconds to wait before it is sent."""
        return paced(self.pause, slowed(pace, self.faults)) + self.late


@dataclass(frozen=True, slots=True)
class DueMessage:
    """A recorded server message that is due, and its pause after the message before it."""

    place: int
    pause: float
    faults: tuple[Fault, ...]
    late: float


class MessageSequence:
    """`places`: message indexes in the exchange. `holder`: the live connection that sends the due messages."""

    def __init__(self, recorded: RecordedExchange, places: Iterable[int], call: SocketCall | None = None) -> None:
        self.recorded = recorded
        self.call = call  # None: a connection
        self.holder: object = None
        self._places = list(places)
        self._at = 0
        messages = recorded.exchange.messages
        self._awaited = dict.fromkeys(n for n in self._places if messages[n].sender == "client")
        self._arrived: set[int] = set()
        self._slow: dict[int, tuple[Fault, ...]] = {}
        self._late: dict[int, float] = {}

    @property
    def over(self) -> bool:
        return self._at >= len(self._places)

    @property
    def waiting(self) -> list[int]:
        """The client messages that have not arrived yet."""
        return list(self._awaited)

    def take(self, place: int) -> None:
        """Note that a client message has arrived."""
        self._arrived.add(place)
        self._awaited.pop(place, None)

    def drop(self, call: SocketCall) -> None:
        """Remove the rest of a call: it is left for the next attempt."""
        gone = set(call.messages)
        self._places[self._at :] = [n for n in self._places[self._at :] if n not in gone]
        for place in gone:
            self._awaited.pop(place, None)

    @property
    def under_way(self) -> list[SocketCall]:
        """The calls that have begun and are not completely sent."""
        left = set(self._places[self._at :])
        begun = [call for place, call in self.recorded.begins.items() if place in self._arrived]
        return [call for call in begun if not left.isdisjoint(call.messages)]

    def delay(self, call: SocketCall, faults: Sequence[Fault]) -> None:
        """Apply the faults that delay a call's answer."""
        answer = answer_of(self.recorded, call)
        slow = tuple(fault for fault in faults if isinstance(fault.effect, Slow))
        for place in answer if slow else ():
            self._slow[place] = slow
        for fault in faults:
            effect = fault.effect
            if isinstance(effect, Stall) and effect.ms is not None and answer:
                place = answer[min(effect.event or 0, len(answer) - 1)]
                self._late[place] = self._late.get(place, 0) + effect.ms

    def due(self) -> list[DueMessage]:
        """The server messages up to the next pending client message."""
        messages = self.recorded.exchange.messages
        found: list[DueMessage] = []
        while not self.over:
            place = self._places[self._at]
            message = messages[place]
            if message.sender == "client" and place not in self._arrived:
                break
            if message.sender == "server":
                before = messages[self._places[self._at - 1]].at if self._at else self.recorded.exchange.at
                late = self._late.get(place, 0)
                found.append(DueMessage(place, max(0, message.at - before), self._slow.get(place, ()), late))
            self._at += 1
        return found


def answer_of(recorded: RecordedExchange, call: SocketCall) -> list[int]:
    """The server messages of a call."""
    return [place for place in call.messages if recorded.exchange.messages[place].sender == "server"]


def messages_after(recorded: RecordedExchange, place: int) -> list[int]:
    """A client message that begins no call, and the server messages before the next client message."""
    messages = recorded.exchange.messages
    after = (n for n in range(place + 1, len(messages)) if messages[n].sender == "client")
    return list(range(place, next(after, len(messages))))
