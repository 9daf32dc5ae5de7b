"""Recorded WebSockets being played: what the server sent waits until the client's earlier messages have come.

Each message of the client must match one that was recorded and has not come yet; what differs only as much as the tier
allows is drift. Which of several recorded connections is played, the client's first message decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import orjson

from wiretape.model.http import BytesBody, Close, Ended, Headers, Response, StreamBody, WsMessage, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.replay.compare import differences
from wiretape.replay.drift import Drifts
from wiretape.replay.echo import Echoes
from wiretape.replay.loosen import loose
from wiretape.replay.mask import Masker
from wiretape.replay.miss import Nearest, fault, is_minor
from wiretape.replay.recorded import Recorded
from wiretape.replay.values import Answer, Difference, Miss, MissReason, Outcome, Reference, Tier

MakeMiss = Callable[[Recorded, Json, MissReason, Nearest | None, str], Miss]


@dataclass(frozen=True, slots=True)
class Frame:
    """A message of the server, after a pause of so many milliseconds (as recorded)."""

    pause: float
    data: str | bytes


@dataclass(frozen=True, slots=True)
class _Alike:
    tier: Tier
    apart: tuple[Difference, ...]
    minor: tuple[bool, ...]


class Sockets:
    """The recorded connections of a session, and what the session knows that they need."""

    def __init__(
        self,
        recorded: Sequence[Recorded],
        tier: Tier,
        masker: Masker,
        echoes: Echoes,
        drifts: Drifts,
        outcomes: list[Outcome],
        make_miss: MakeMiss,
    ) -> None:
        self.recorded = recorded
        self._played: set[int] = set()
        self._tier = tier
        self._masker = masker
        self._echoes = echoes
        self._drifts = drifts
        self._outcomes = outcomes
        self._make_miss = make_miss

    @property
    def left(self) -> int:
        """How many nobody opened."""
        return len(self.recorded) - len(self._played)

    def at(self, host: str, path: str) -> list[Recorded]:
        """Those that a live connection may play: the same host first, then by time."""
        there = self.unplayed(r for r in self.recorded if r.probe.address.path == path)
        return sorted(there, key=lambda r: r.probe.address.host != host)

    def unplayed(self, recorded: Iterable[Recorded]) -> list[Recorded]:
        return [one for one in recorded if one.order not in self._played]

    def number_at(self, path: str) -> int:
        """The exchange of one that was recorded there, played or not; 0 if there is none."""
        return next((r.exchange.number for r in self.recorded if r.probe.address.path == path), 0)

    def take(self, recorded: Recorded) -> None:
        self._played.add(recorded.order)

    def answered(self, recorded: Recorded, reference: Reference, number: int, alike: _Alike) -> int:
        """A model call of a connection, or the connection itself; its place among the session's outcomes."""
        answer = Answer(number, reference, recorded.exchange, alike.tier, alike.apart)
        self._outcomes.append(answer)
        self._note(answer, alike)
        return len(self._outcomes) - 1

    def also(self, place: int, alike: _Alike) -> None:
        """A later message of the same call: the loosest tier of all is the call's."""
        answer = self.answer_at(place)
        self._outcomes[place] = replace(answer, tier=max(answer.tier, alike.tier))
        self._note(replace(answer, tier=alike.tier, differences=alike.apart), alike)

    def numbers_at(self, reference: Reference) -> list[int | None]:
        """The numbers of all calls of the connection that a call belongs to, in their order."""
        same = (one for one in self.recorded if (one.reference.tape, one.reference.exchange) == reference.place)
        return [number for one in same for _, number in one.calls]

    @property
    def left_over(self) -> list[Reference]:
        """Calls of connections that were opened, for which nobody asked."""
        asked = {outcome.reference for outcome in self._outcomes if isinstance(outcome, Answer)}
        opened = (one for one in self.recorded if one.order in self._played)
        every = (replace(one.reference, call=number) for one in opened for _, number in one.calls)
        return [reference for reference in every if reference not in asked]

    def answer_at(self, place: int) -> Answer:
        answer = self._outcomes[place]
        assert isinstance(answer, Answer)
        return answer

    def _note(self, answer: Answer, alike: _Alike) -> None:
        if alike.tier is not Tier.EXACT:
            self._echoes.learn(alike.apart)
        self._drifts.add(answer, alike.minor)

    def compare(self, recorded: Recorded, message: WsMessage, live: Json) -> _Alike | None:
        """How alike two messages of the client are; None: not alike enough."""
        apart = tuple(differences(message_value(message), live))
        minor = tuple(is_minor(difference, recorded.probe) for difference in apart)
        if not apart:
            tier = Tier.EXACT
        elif all(minor):
            tier = Tier.NORMALIZED
        elif all(small or self._masked(difference) for difference, small in zip(apart, minor, strict=True)):
            tier = Tier.MASKED
        else:
            return None
        return _Alike(tier, apart, minor) if tier <= self._tier else None

    def _masked(self, apart: Difference) -> bool:
        return bool(self._masker.value(loose(apart.recorded)) == self._masker.value(loose(apart.live)))

    def back(self, data: str | bytes) -> Json:
        return self._echoes.back(_value(data))

    def forward(self, recorded: Recorded, messages: Sequence[WsMessage]) -> list[bytes]:
        """What the server sent in one go, under the live names: they may be split over its messages."""
        sent = [body_bytes(message.body) for message in messages]
        body = StreamBody(sent, [0] * len(sent))
        named = self._echoes.forward(replace(recorded.exchange, response=Response(200, Headers(), 0, body)))
        return [bytes(frame) for frame in named.response.body.frames]  # type: ignore[union-attr]

    def miss(self, recorded: Recorded, live: Json, index: int | None) -> Miss:
        """`index`: of the client's message that was expected."""
        if index is None:
            note = f"x{recorded.exchange.number} has no further message of the client: its recording ends there"
            made = self._make_miss(recorded, live, "not playable", None, note)
        else:
            recorded = replace(recorded, reference=recorded.reference_at(index))
            expected = message_value(recorded.exchange.messages[index])
            apart = [d for d in differences(expected, live) if not is_minor(d, recorded.probe)]
            firm = tuple(d for d in apart if not self._masked(d)) or tuple(apart)
            made = self._make_miss(recorded, live, "diverged", Nearest(recorded, firm, alike=True), "")
        self._outcomes.append(made)
        return made

    def already_played(self, recorded: Recorded, live: Json) -> Miss:
        made = self._make_miss(recorded, live, "already played", Nearest(recorded, (), alike=True), "")
        self._outcomes.append(made)
        return made

    def fault(self, recorded: Recorded, number: int, error: Exception) -> Miss:
        made = fault(number, recorded.reference.what, error)
        self._outcomes.append(made)
        return made


class SocketPlay:
    """One live WebSocket. A door asks what is `due`, tells what it `heard`, and closes as `close` says."""

    def __init__(self, sockets: Sockets, candidates: Sequence[Recorded], number: int) -> None:
        self._sockets = sockets
        self._candidates = list(candidates)
        self._number = number
        self._recorded: Recorded | None = None
        self._places: dict[Reference, int] = {}  # of its answers among the session's outcomes
        self._last: Reference | None = None  # what the client's last message belongs to
        self._next = 0  # messages before this one are over
        self._came: set[int] = set()
        self.miss: Miss | None = None
        first = self._candidates[0]
        if not first.exchange.messages or first.exchange.messages[0].sender == "server":
            self._choose(first)
            self._answered(0, _Alike(Tier.EXACT, (), ()))

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Of the answer to the handshake."""
        response = (self._recorded or self._candidates[0]).exchange.response
        return response.headers.pairs() if response is not None else []

    def due(self) -> list[Frame]:
        """What the server sends now."""
        if self._recorded is None or self.miss is not None:
            return []
        messages = self._recorded.exchange.messages
        run: list[tuple[float, WsMessage]] = []
        while self._next < len(messages):
            message = messages[self._next]
            if message.sender == "client" and self._next not in self._came:
                break
            if message.sender == "server":
                before = messages[self._next - 1].at if self._next else self._recorded.exchange.at
                run.append((max(0, message.at - before), message))
            self._next += 1
        named = self._sockets.forward(self._recorded, [message for _, message in run]) if run else []
        return [
            Frame(pause, data if isinstance(message.body, BytesBody) else data.decode("utf-8", "replace"))
            for (pause, message), data in zip(run, named, strict=True)
        ]

    def heard(self, data: str | bytes) -> None:
        """A message of the client. `miss` is set where it was not recorded."""
        if self.miss is not None:
            return
        try:
            self._hear(data)
        except Exception as error:  # as for a request: it fails closed, and where the person looks
            self.miss = self._sockets.fault(self._candidates[0], self._number, error)

    def _hear(self, data: str | bytes) -> None:
        live = self._sockets.back(data)
        best: tuple[Tier, int, Recorded, int, _Alike] | None = None
        # Another connection that was opened meanwhile may have taken one of them.
        free = self._sockets.unplayed(self._candidates)
        for rank, candidate in enumerate([self._recorded] if self._recorded is not None else free):
            for index in self._waiting(candidate):
                alike = self._sockets.compare(candidate, candidate.exchange.messages[index], live)
                if alike is not None and (best is None or (alike.tier, rank) < best[:2]):
                    best = (alike.tier, rank, candidate, index, alike)
                if self._recorded is None:
                    break  # a connection is known by its first message
        if best is None:
            self._missed(live)
            return
        _, _, chosen, index, alike = best
        if self._recorded is None:
            self._choose(chosen)
        self._answered(index, alike)
        self._came.add(index)

    @property
    def outcome(self) -> Answer | Miss | None:
        """What came of the client's last message: the call that is being played, or a miss; None before the first."""
        return self.miss or (self._sockets.answer_at(self._places[self._last]) if self._last is not None else None)

    @property
    def close(self) -> Close | None:
        """How the server closes, now that nothing more is to come; None: it does not."""
        if self._recorded is None or self._next < len(self._recorded.exchange.messages):
            return None
        close = self._recorded.exchange.close
        return close if close is not None and close.sender != "client" else None

    @property
    def cut(self) -> bool:
        """Nothing more is to come, and the connection just ended then."""
        if self._recorded is None or self._next < len(self._recorded.exchange.messages):
            return False
        exchange = self._recorded.exchange
        return exchange.close is None and exchange.ended in (Ended.UPSTREAM_CLOSED, Ended.TIMEOUT)

    def _waiting(self, recorded: Recorded) -> list[int]:
        messages = recorded.exchange.messages
        return [n for n, message in enumerate(messages) if message.sender == "client" and n not in self._came]

    def _choose(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._sockets.take(recorded)

    def _answered(self, index: int, alike: _Alike) -> None:
        assert self._recorded is not None
        self._last = self._recorded.reference_at(index)
        if self._last in self._places:
            self._sockets.also(self._places[self._last], alike)
        else:
            self._places[self._last] = self._sockets.answered(self._recorded, self._last, self._number, alike)

    def _missed(self, live: Json) -> None:
        nearest = self._recorded or next(iter(self._sockets.unplayed(self._candidates)), None)
        if nearest is None:
            self.miss = self._sockets.already_played(self._candidates[0], live)
            return
        waiting = self._waiting(nearest)
        self.miss = self._sockets.miss(nearest, live, waiting[0] if waiting else None)


def message_value(message: WsMessage) -> Json:
    body = message.body
    return _value(body.data if isinstance(body, BytesBody) else body_bytes(body).decode("utf-8", "replace"))


def _value(data: str | bytes) -> Json:
    """A message as JSON where it is text that is some; bytes under a name of their own."""
    if isinstance(data, bytes):
        return {"bytes": data.decode("utf-8", "surrogateescape")}
    try:
        return orjson.loads(data)
    except ValueError:
        return data


def miss_message(miss: Miss) -> str:
    """A miss as the event that tells a client of it."""
    try:
        body = orjson.loads(miss.body)
    except ValueError:
        body = {}
    event = {"type": "error", "status": miss.status, **(body if isinstance(body, dict) else {})}
    return orjson.dumps(event).decode()
