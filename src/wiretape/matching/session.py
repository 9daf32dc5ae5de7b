"""Which recorded answer does a live request get? One session stands behind every door; it never waits or connects.

Tiers are tried strictest first. The indexes of looser tiers are built when they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from wiretape.compare.address import address
from wiretape.compare.difference import Difference, Differences, Tier, differences_of_addresses
from wiretape.compare.mask import Masker
from wiretape.matching.async_messages.alignment import Alignment
from wiretape.matching.async_messages.match import AsyncMatch
from wiretape.matching.faults.apply import Fault
from wiretape.matching.faults.targets import resolve_targets
from wiretape.matching.id_map import IdMap
from wiretape.matching.ledger import Drifts, PlayedCalls
from wiretape.matching.live import LiveReader
from wiretape.matching.lookup.index import Probe
from wiretape.matching.lookup.tie_break import TieBreak
from wiretape.matching.misses.explainer import MissExplainer
from wiretape.matching.misses.miss import MissFix, fault, miss_fix, provider_error
from wiretape.matching.misses.nearest import Nearest, is_minor
from wiretape.matching.playback import lost_body
from wiretape.matching.recorded import RecordedExchange, ReplaySource, restored
from wiretape.matching.redacted_differences import shown_differences, without_secrets
from wiretape.matching.report import ReplayReport, build_report
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.sockets.recorded_sockets import RecordedSockets
from wiretape.matching.tiers import TierIndexes
from wiretape.matching.tool_replay import ToolPlayback, ToolReplay
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss, MissReason, Outcome, ReplayOptions, Stray
from wiretape.model.call import ModelCall
from wiretape.model.faults import ErrorStatus
from wiretape.model.http import BytesBody, Ended, Exchange, Headers, Response, bracketed
from wiretape.model.jsonvalue import Json
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.wire.mcp.tool_exchange import ToolAnswer, is_tool_exchange
from wiretape.wire.registry import Registry, default_registry

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

Kept = TypeVar("Kept", Outcome, Miss, Stray)


class ReplaySession:
    """Answers live requests from tapes: each recorded answer once, in its order, to whoever asks what it answered."""

    def __init__(
        self,
        tapes: Sequence[Tape],
        options: ReplayOptions | None = None,
        registry: Registry | None = None,
        names: Sequence[str] = (),
        output: OutputRedactor | None = None,
    ) -> None:
        """`names`: what to call the tapes in messages, if not by their paths. `output`: redacts what is printed."""
        self.output = output or OutputRedactor()
        self.options = options or ReplayOptions()
        self.tapes = tuple(tapes)
        self._names = tuple(names or [str(tape.path or "the tape") for tape in tapes])
        self.names = ", ".join(self._names)
        recording = ReplaySource(self.tapes, registry or default_registry(), Masker(self.options.mask))
        sockets, beginnings = recording.sockets, recording.beginnings
        self._recorded, self._played, self._masker = recording.exchanges, recording.played, recording.masker
        self._shown = PlayedCalls(recording.registry, sockets)
        self._tiers = TierIndexes(recording, self.options.tier)
        self._number = 0
        self._outcomes: list[Outcome] = []
        self._differences = Differences(beginnings)
        self._continuity = TieBreak(self._recorded, recording.memo, lambda: self._tiers.runs)
        self._alignment = Alignment(self._differences, recording.memo)
        self._echoes = IdMap(beginnings)
        self._reader = LiveReader(recording.registry, self._echoes, beginnings)
        self.drifts = Drifts()
        self.passed: dict[str, int] = {}
        self.program = "…"  # as a person would type it, in the commands that mend a miss
        self.mend: Callable[[MissReason], str] | None = None  # what to do about a miss, if not wiretape's own command
        self._faults = resolve_targets(
            self.options.faults, self._recorded, sockets, self.names, lambda: self._tiers.runs
        )
        self._sockets = RecordedSockets(
            sockets,
            self.options,
            self._faults,
            self._masker,
            self._echoes,
            self.drifts,
            self._outcomes,
            self._socket_miss,
            self.output,
        )
        self._unanswered = MissExplainer(recording, self._tiers, self._sockets, self.names, self._mending, self.output)
        self._owed: set[int] = set()  # recorded calls whose answer a person withheld: the next attempt gets it
        self._tiers.exact  # noqa: B018  built now: it is asked by every request

    def answer(self, request: LiveRequest) -> Outcome:
        """The recorded answer to a live request, or why there is none."""
        self._number += 1
        try:
            self.output.learn_request(request.headers, request.url)
            outcome = self._answer(request)
        except Exception as error:  # replay fails closed, and where the person looks: as a miss, which nobody retries
            outcome = fault(self._number, f"{request.method} {request.url}", error)
        return self._kept(outcome)

    def _kept(self, outcome: Kept) -> Kept:
        """Redact an outcome, and remember it."""
        outcome = without_secrets(outcome, self.output)
        self._outcomes.append(outcome)
        return outcome

    def call_tool(self, name: str, arguments: Json, keep_miss: bool = True) -> ToolAnswer | Miss:
        """What a recorded tool came to, for a program that does not run it. `keep_miss`: a miss is told at the end."""
        played = self.play_tool(name, arguments, keep_miss=keep_miss)
        return played if isinstance(played, Miss) else played.answer

    def play_tool(self, name: str, arguments: Json, *, keep_miss: bool = True) -> ToolPlayback | Miss:
        """The same, with how it was found."""
        self._number += 1
        try:
            outcome = self._tools.call(self._number, name, arguments)
        except Exception as error:  # replay fails closed
            outcome = fault(self._number, f"tool {name}", error)
        if isinstance(outcome, Miss):
            return self._kept(outcome) if keep_miss else without_secrets(outcome, self.output)
        if outcome.own is not None:
            self._played[outcome.own.order] = True
            self._outcomes.append(outcome.shown)
        self.drifts.add(outcome.shown, [False] * len(outcome.shown.differences))
        return outcome

    def open_socket(self, request: LiveRequest) -> SocketPlay | Outcome:
        """The recorded WebSocket that a live one plays; without any, what the request gets as one of HTTP."""
        self.output.learn_request(request.headers, request.url)
        where = address(request.method, self._echoes.back_text(request.url))
        candidates = self._sockets.at(where.host, where.path)
        if not candidates:
            return self.answer(request)
        self._number += 1
        refused = self._sockets.refused(candidates, self._number)
        return SocketPlay(self._sockets, candidates, self._number) if refused is None else refused

    def refused(self, what: str, note: str) -> Stray:
        """A connection that the proxy port refused."""
        self._number += 1
        return self._kept(Stray(self._number, what, note))

    def not_opened(self, what: str, message: str) -> Miss:
        """A connection to a model that the proxy port could not open: a call that nobody could read or answer."""
        self._number += 1
        return self._kept(Miss(self._number, what, "not opened", message))

    def let_through(self, host: str) -> None:
        """A connection to a host that the person let through."""
        self.passed[host] = self.passed.get(host, 0) + 1

    def back_exchange(self, exchange: Exchange) -> Exchange:
        """A live exchange under the names that this tape has for what the program makes anew."""
        return self._echoes.back_exchange(exchange)

    def knows_host(self, host: str) -> bool:
        """Whether anything from this host (with or without its port) is on the tape."""
        return host in self._hosts or host in self._host_names

    def knows_place(self, host: str, port: int) -> bool:
        """Whether anything from this very port of a host is on the tape."""
        return any(
            address("GET", f"{scheme}://{bracketed(host)}:{port}/").host in self._hosts for scheme in ("http", "https")
        )

    def knows_plain(self, host: str, port: int) -> bool:
        """Whether anything was recorded from here in plain HTTP."""
        there = address("GET", f"http://{bracketed(host)}:{port}/").host
        return any(
            recorded.probe.address.host == there and recorded.exchange.request.url.startswith("http:")
            for recorded in [*self._recorded, *self._sockets.recorded]
        )

    @cached_property
    def _hosts(self) -> frozenset[str]:
        """The hosts on the tape, with their ports."""
        return frozenset(recorded.probe.address.host for recorded in [*self._recorded, *self._sockets.recorded])

    @cached_property
    def _host_names(self) -> frozenset[str]:
        return frozenset(recorded.probe.address.hostname for recorded in [*self._recorded, *self._sockets.recorded])

    @property
    def formats(self) -> set[str]:
        """The wire formats on the tape."""
        every = [*self._recorded, *self._sockets.recorded]
        return {recorded.probe.format.name for recorded in every if recorded.probe.format is not None}

    def call_of(self, answer: Answer) -> ModelCall | None:
        """The recorded model call that was played, for a person to see; None for other answers.

        May be asked on another thread than the session: it remembers apart from it.
        """
        return self._shown.call_of(answer)

    # -- where a person overrules it -----------------------------------------------------------------------------------

    def accept(self, request: LiveRequest, missed: Miss) -> Answer | None:
        """The nearest recorded answer to a request that missed, given all the same. None: nothing is near."""
        nearest = missed.nearest
        recorded = next((r for r in self._recorded if nearest is not None and r.reference == nearest), None)
        if recorded is None:
            return None
        probe = self._reader.probe(request)
        self._played[recorded.order] = True
        self._owed.discard(recorded.order)
        apart = self._apart(recorded, probe, None)
        self._continuity.note(recorded, probe)
        exchange = self._echoes.forward(recorded.exchange)
        answer = Answer(missed.number, recorded.reference, exchange, Tier.POSITION, self._shown_apart(apart, probe))
        self.drifts.add(answer, [is_minor(difference, probe) for difference in apart])
        self._instead(missed, answer)
        return answer

    def withhold(self, outcome: Outcome, instead: Kept, again: bool = True) -> Kept:
        """Note that something else was given in the place of an outcome, and return it without secrets.

        `again`: the recorded answer is left for the next attempt.
        """
        instead = self._instead(outcome, instead)
        reference = outcome.reference if isinstance(outcome, Answer) and again else None
        recorded = next((r for r in self._recorded if r.reference == reference), None)
        if recorded is not None:
            self._owed.add(recorded.order)
            self._played[recorded.order] = False
        return instead

    def refusal(self, request: LiveRequest, status: int, message: str) -> tuple[Headers, bytes]:
        """An error in the shape of who is asked."""
        return provider_error(self._reader.probe(request), status, message, "wiretape_fault")

    def _instead(self, outcome: Outcome, other: Kept) -> Kept:
        other = without_secrets(other, self.output)
        place = next((place for place, one in enumerate(self._outcomes) if one is outcome), None)
        if place is not None:
            self._outcomes[place] = other
        return other

    @property
    def misses(self) -> list[Miss]:
        return [outcome for outcome in self._outcomes if isinstance(outcome, Miss)]

    def report(self) -> ReplayReport:
        """What happened so far."""
        unplayed = [r for r in self._recorded if not self._played[r.order]]
        if "_tools" not in self.__dict__:  # a program that runs its tools itself leaves none of them over
            unplayed = [r for r in unplayed if not is_tool_exchange(r.exchange)]
        left = [r.reference for r in unplayed] + self._sockets.left_over
        never_came = self._faults.never_came
        return build_report(self.names, self._outcomes, self.drifts, self.passed, left, self._sockets.left, never_came)

    # -- matching -----------------------------------------------------------------------------------------------------

    def _answer(self, request: LiveRequest) -> Outcome:
        probe = self._reader.probe(request)
        for tier, index in self._tiers:
            place = index.place(probe)
            found = index.shelf.peek(place.key, probe.address.host, probe.strict)
            if found is not None:
                if probe.format is not None and index.shelf.has_several(place.key):
                    equal = index.shelf.waiting(place.key, probe.address.host)
                    found = self._continuity.choose(equal, probe) if len(equal) > 1 else found
                return self._give(self._recorded[found], probe, tier)
        moved = self._tiers.moved.find(probe) if self.options.tier >= Tier.MASKED else None
        if moved is not None and not moved.already:
            return self._give(moved.call.recorded, probe, Tier.MASKED, moved.again, moved)
        already = moved.call.recorded if moved is not None else None
        if self.options.tier is Tier.POSITION:
            return self._by_position(probe)
        return self._without_unplayed(probe, already)

    def _by_position(self, probe: Probe) -> Outcome:
        found = self._tiers.positions.find(probe)
        if found.recorded is not None:
            return self._give(found.recorded, probe, Tier.POSITION)
        outcome = self._without_unplayed(probe, found.already)
        return self._nothing(probe, note=found.note) if found.note and isinstance(outcome, Miss) else outcome

    def _without_unplayed(self, probe: Probe, already: RecordedExchange | None = None) -> Outcome:
        for tier, index in self._tiers:
            found = index.shelf.last_played(index.place(probe).key, probe.address.host, probe.strict)
            if found is not None:
                if self._may_repeat(found):
                    return self._give(self._recorded[found], probe, tier, repeated=True)
                return self._nothing(probe, already=self._recorded[found])
        if already is not None and self._may_repeat(already.order):
            return self._give(already, probe, Tier.MASKED, repeated=True)
        return self._nothing(probe, already)

    def _may_repeat(self, order: int) -> bool:
        return self.options.repeat or order in self._owed or self._faults.delayed(order)

    def _give(
        self,
        recorded: RecordedExchange,
        probe: Probe,
        tier: Tier,
        repeated: bool = False,
        moved: AsyncMatch | None = None,
    ) -> Outcome:
        lost = lost_body(recorded.exchange)
        if lost:
            note = f"{recorded.reference} would, but the tape has lost its answer's body ({lost} bytes)"
            return self._nothing(probe, note=note)
        faults = self._faults.next(recorded.order)
        if faults and faults[0].breaks:
            return self._inject(recorded, probe, faults[0])
        self._played[recorded.order] = True
        self._owed.discard(recorded.order)
        apart = self._apart(recorded, probe, moved) if tier is not Tier.EXACT else ()
        self._continuity.note(recorded, probe)
        self._unanswered.followed(probe)
        self._unanswered.note_redirect(recorded)
        if self.options.tier is Tier.POSITION:
            self._tiers.positions.note(recorded, probe)
        exchange = restored(self._echoes.forward(recorded.exchange), self._recorded, recorded.order)
        shown = self._shown_apart(apart, probe)
        answer = Answer(self._number, recorded.reference, exchange, tier, shown, repeated, faults)
        if apart:
            self.drifts.add(answer, [is_minor(difference, probe) for difference in apart])
        return answer

    def _apart(self, recorded: RecordedExchange, probe: Probe, moved: AsyncMatch | None) -> tuple[Difference, ...]:
        """What differs from the recorded request, where it was sent included; its names are learnt."""
        where = differences_of_addresses(recorded.probe.address, probe.address)
        if moved is None:
            apart = list(self._differences.between(recorded.probe.value, probe.value))
            self._echoes.learn(apart)
            return (*where, *apart)
        apart, elsewhere = self._alignment.apart(moved, probe)
        self._echoes.learn(apart)
        self._tiers.moved.note(moved)
        return (*where, *apart, *elsewhere)

    def _shown_apart(self, apart: tuple[Difference, ...], probe: Probe) -> tuple[Difference, ...]:
        return shown_differences(apart, probe.value, self.output)

    def _inject(self, recorded: RecordedExchange, probe: Probe, fault: Fault) -> Injected:
        """The fault instead of the answer, which stays unplayed."""
        exchange = self._echoes.forward(recorded.exchange)
        if isinstance(fault.effect, ErrorStatus):
            message = f"injected by wiretape ({fault.named})"
            headers, body = provider_error(probe, fault.effect.status, message, "wiretape_fault")
            made = Headers([*headers.pairs(), *fault.effect.headers])
            response = Response(fault.effect.status, made, exchange.at, BytesBody(body))
            exchange = replace(exchange, response=response, ended=Ended.COMPLETE)
        return Injected(self._number, recorded.reference, exchange, fault)

    def _nothing(self, probe: Probe, already: RecordedExchange | None = None, note: str = "") -> Miss | Stray:
        return self._unanswered.outcome(self._number, probe, already, note)

    def _socket_miss(
        self, recorded: RecordedExchange, live: Json, reason: MissReason, nearest: Nearest | None, note: str
    ) -> Miss:
        return self._unanswered.of_socket(self._number, recorded, live, reason, nearest, note)

    @cached_property
    def _tools(self) -> ToolReplay:
        """The tools of these tapes. Made when the first is called."""
        return ToolReplay(
            self._recorded,
            self._tiers.runs,
            self.names,
            self.options,
            self._masker,
            self._echoes,
            lambda reason: self._mending(reason).line,
            self.output,
        )

    def _mending(self, reason: MissReason) -> MissFix:
        return MissFix(self.mend(reason)) if self.mend is not None else miss_fix(reason, self._names, self.program)
