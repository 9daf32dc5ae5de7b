"""A replay session: answers live requests from tapes. It never waits or connects; adapters do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from wiretape.compare.address import address
from wiretape.compare.difference import Tier
from wiretape.compare.mask import Masker
from wiretape.matching.faults.apply import Fault, error_response
from wiretape.matching.faults.targets import resolve_targets
from wiretape.matching.ledger import Kept, Ledger, PlayedCalls
from wiretape.matching.lookup.index import Probe
from wiretape.matching.matcher import Match, Matcher, NoMatch
from wiretape.matching.misses.explainer import MissExplainer
from wiretape.matching.misses.miss_text import MissFix, fault, miss_fix
from wiretape.matching.misses.nearest import Nearest, is_minor
from wiretape.matching.playback import lost_body
from wiretape.matching.recorded import RecordedExchange, ReplaySource
from wiretape.matching.redacted_differences import shown_differences, without_secrets
from wiretape.matching.report import ReplayReport, build_report
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.sockets.recorded_sockets import RecordedSockets
from wiretape.matching.tool_replay import ToolPlayback, ToolReplay
from wiretape.matching.values import (
    Answer,
    Injected,
    LiveRequest,
    Miss,
    MissReason,
    Outcome,
    Reference,
    ReplayOptions,
    Stray,
)
from wiretape.model.call import ModelCall
from wiretape.model.faults import ErrorStatus
from wiretape.model.http import Ended, Exchange
from wiretape.model.jsonvalue import Json
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.wire.mcp.tool_exchange import ToolAnswer, is_tool_exchange
from wiretape.wire.registry import default_registry

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape
    from wiretape.wire.base import WireFormat


class ReplaySession:
    """Answers live requests from tapes: each recorded answer once."""

    def __init__(self, tapes: Sequence[Tape], options: ReplayOptions | None = None) -> None:
        self.options = options or ReplayOptions()
        self.output = self.options.output or OutputRedactor()
        self.tapes = tuple(tapes)
        self._names = self.options.names or tuple(str(tape.path or "the tape") for tape in tapes)
        self.names = ", ".join(self._names)
        source = ReplaySource(self.tapes, default_registry(), Masker(self.options.mask))
        self._source = source
        self.ledger = Ledger(source.played, self.output)
        self._matcher = Matcher(source, self.options.tier, self._may_repeat)
        self._faults = resolve_targets(
            self.options.faults, source.exchanges, source.sockets, self.names, lambda: self._matcher.tiers.runs
        )
        self._played_calls = PlayedCalls(source.registry, source.sockets)
        self._sockets = RecordedSockets(
            source.sockets,
            self.options,
            self._faults,
            source.masker,
            self._matcher.ids,
            self.ledger,
            self._socket_miss,
        )
        self._explainer = MissExplainer(
            source, self._matcher.tiers, self._sockets, self.names, self._miss_fix, self.output
        )
        self._uses_tools = False  # whether the program left a tool to the session

    # -- requests, tools and WebSockets of the program

    def answer(self, request: LiveRequest) -> Outcome:
        """The recorded answer to a live request, or a miss or stray."""
        number = self.ledger.next_number()
        try:
            self.output.learn_request(request.headers, request.url)
            outcome = self._answer(request)
        except Exception as error:  # fail closed: a miss is reported, and clients do not retry it
            outcome = fault(number, f"{request.method} {request.url}", error)
        return self.ledger.keep(outcome)

    def _answer(self, request: LiveRequest) -> Outcome:
        probe = self._matcher.probe(request)
        found = self._matcher.find(probe)
        return self._play(found, probe) if isinstance(found, Match) else self._miss(probe, found)

    def _play(self, match: Match, probe: Probe) -> Outcome:
        recorded = match.recorded
        lost = lost_body(recorded.exchange)
        if lost:
            note = f"{recorded.reference} would, but the tape has lost its answer's body ({lost} bytes)"
            return self._miss(probe, NoMatch(note=note))
        faults = self._faults.next(recorded.order)
        if faults and faults[0].breaks:
            return self._inject(recorded, probe, faults[0])
        answer = self._give(self.ledger.number, match, probe, faults)
        self._explainer.followed(probe)
        self._explainer.note_redirect(recorded)
        return answer

    def _give(self, number: int, match: Match, probe: Probe, faults: tuple[Fault, ...] = ()) -> Answer:
        recorded = match.recorded
        self.ledger.play(recorded.order)
        differing = self._matcher.accept(match, probe)
        shown = shown_differences(differing, probe.value, self.output)
        exchange = self._matcher.answer_of(recorded)
        answer = Answer(number, recorded.reference, exchange, match.tier, shown, match.repeated, faults)
        if differing:
            self.ledger.drifts.add(answer, [is_minor(difference, probe) for difference in differing])
        return answer

    def _inject(self, recorded: RecordedExchange, probe: Probe, fault: Fault) -> Injected:
        """The fault instead of the answer, which stays unplayed."""
        exchange = self._matcher.ids.forward(recorded.exchange)
        if isinstance(fault.effect, ErrorStatus):
            response = error_response(probe.format, fault.effect, fault.named, exchange.at)
            exchange = replace(exchange, response=response, ended=Ended.COMPLETE)
        return Injected(self.ledger.number, recorded.reference, exchange, fault)

    def _may_repeat(self, order: int) -> bool:
        return self.options.repeat or self.ledger.owes(order) or self._faults.delayed(order)

    def _miss(self, probe: Probe, found: NoMatch) -> Miss | Stray:
        return self._explainer.outcome(self.ledger.number, probe, found.already, found.note)

    def call_tool(self, name: str, arguments: Json, keep_miss: bool = True) -> ToolAnswer | Miss:
        """The recorded result of a tool call. `keep_miss`: a miss counts in the report."""
        played = self.play_tool(name, arguments, keep_miss=keep_miss)
        return played if isinstance(played, Miss) else played.answer

    def play_tool(self, name: str, arguments: Json, *, keep_miss: bool = True) -> ToolPlayback | Miss:
        """The recorded result of a tool call, and how it was found."""
        number = self.ledger.next_number()
        self._uses_tools = True
        try:
            outcome = self._tools.call(number, name, arguments)
        except Exception as error:  # fail closed
            outcome = fault(number, f"tool {name}", error)
        if isinstance(outcome, Miss):
            return self.ledger.keep(outcome) if keep_miss else without_secrets(outcome, self.output)
        if outcome.own is not None:
            self.ledger.play(outcome.own.order)
            self.ledger.outcomes.append(outcome.shown)
        self.ledger.drifts.add(outcome.shown, [False] * len(outcome.shown.differences))
        return outcome

    @cached_property
    def _tools(self) -> ToolReplay:
        """The tools of the tapes, read when the first tool is called."""
        return ToolReplay(
            self._source,
            self._matcher.tiers.runs,
            self.names,
            self.options,
            self._matcher.ids,
            lambda reason: self._miss_fix(reason).line,
            self.output,
        )

    def open_socket(self, request: LiveRequest) -> SocketPlay | Outcome:
        """The recorded WebSocket that answers a live handshake; without one, the outcome of the handshake as HTTP."""
        self.output.learn_request(request.headers, request.url)
        where = address(request.method, self._matcher.ids.back_text(request.url))
        candidates = self._sockets.at(where.host, where.path)
        if not candidates:
            return self.answer(request)
        number = self.ledger.next_number()
        refused = self._sockets.refused(candidates, number)
        return SocketPlay(self._sockets, candidates, number) if refused is None else refused

    def _socket_miss(
        self, recorded: RecordedExchange, live: Json, reason: MissReason, nearest: Nearest | None, note: str
    ) -> Miss:
        return self._explainer.of_socket(self.ledger.number, recorded, live, reason, nearest, note)

    def _miss_fix(self, reason: MissReason) -> MissFix:
        if self.options.miss_fix is not None:
            return MissFix(self.options.miss_fix(reason))
        return miss_fix(reason, self._names, self.options.program)

    # -- connections that bypass the tapes

    def refused(self, what: str, note: str) -> Stray:
        """Note a connection that the forward proxy refused."""
        return self.ledger.keep(Stray(self.ledger.next_number(), what, note))

    def not_opened(self, what: str, message: str) -> Miss:
        """Note a connection to a model that the forward proxy could not open."""
        return self.ledger.keep(Miss(self.ledger.next_number(), what, "not opened", message))

    def let_through(self, host: str) -> None:
        """Note a connection to a host that a person allowed."""
        self.ledger.passed[host] = self.ledger.passed.get(host, 0) + 1

    def back_exchange(self, exchange: Exchange) -> Exchange:
        """A live exchange with recorded ids."""
        return self._matcher.ids.back_exchange(exchange)

    # -- hosts and formats of the tapes

    def knows_host(self, host: str) -> bool:
        """Whether the tapes have an exchange with this host, given with or without its port."""
        return self._source.knows_host(host)

    def knows_port(self, host: str, port: int) -> bool:
        """Whether the tapes have an exchange with this port of a host."""
        return self._source.knows_port(host, port)

    def knows_plain(self, host: str, port: int) -> bool:
        """Whether the tapes have an exchange with this port in plain HTTP."""
        return self._source.knows_plain(host, port)

    @property
    def formats(self) -> set[str]:
        """The names of the wire formats on the tapes."""
        return self._source.formats

    def call_of(self, answer: Answer) -> ModelCall | None:
        """The recorded model call that was played; None for other answers. Another thread may call this."""
        return self._played_calls.call_of(answer)

    # -- decisions of a person at the debugger

    def accept(self, request: LiveRequest, missed: Miss) -> Answer | None:
        """Answer a miss with its nearest recorded exchange, if there is one."""
        recorded = self._recorded_at(missed.nearest)
        if recorded is None:
            return None
        probe = self._matcher.probe(request)
        answer = self._give(missed.number, Match(recorded, Tier.POSITION), probe)
        self.ledger.replace(missed, answer)
        return answer

    def withhold(self, outcome: Outcome, instead: Kept, again: bool = True) -> Kept:
        """Note another outcome in the place of one, and return it redacted.

        `again`: the recorded answer is left for the next attempt.
        """
        instead = self.ledger.replace(outcome, instead)
        recorded = self._recorded_at(outcome.reference if isinstance(outcome, Answer) and again else None)
        if recorded is not None:
            self.ledger.withhold(recorded.order)
        return instead

    def _recorded_at(self, reference: Reference | None) -> RecordedExchange | None:
        return next((one for one in self._source.exchanges if one.reference == reference), None)

    def format_of(self, request: LiveRequest) -> WireFormat | None:
        """The wire format of a request; None if it is not known."""
        return self._matcher.probe(request).format

    # -- the report

    @property
    def misses(self) -> list[Miss]:
        return self.ledger.misses

    def report(self) -> ReplayReport:
        """What happened so far."""
        source = self._source
        unplayed = [one for one in source.exchanges if not source.played[one.order]]
        if not self._uses_tools:  # the program runs its tools itself
            unplayed = [one for one in unplayed if not is_tool_exchange(one.exchange)]
        left = [one.reference for one in unplayed] + self._sockets.left_over
        return build_report(self.names, self.ledger, left, self._sockets.left, self._faults.not_injected)
