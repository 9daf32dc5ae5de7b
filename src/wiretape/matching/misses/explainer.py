"""Explain why a live request gets no recorded answer: the nearest call, and how to fix the miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from wiretape.compare.address import address
from wiretape.compare.difference import Tier
from wiretape.compare.excerpt import excerpts
from wiretape.matching.lookup.index import Probe
from wiretape.matching.misses.miss_text import MissFix, miss
from wiretape.matching.misses.nearest import Nearest, nearest_at_address, nearest_call, nearest_moved
from wiretape.matching.recorded import RecordedExchange, ReplaySource
from wiretape.matching.redacted_differences import shown_differences
from wiretape.matching.sockets.recorded_sockets import RecordedSockets
from wiretape.matching.tier_indexes import TierIndexes
from wiretape.matching.values import Miss, MissReason, Stray
from wiretape.model.header_links import redirect_target, without_query
from wiretape.model.jsonvalue import Json
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.wire.recognition import is_media_inference


@dataclass(frozen=True, slots=True, eq=False)
class MissExplainer:
    """Makes the misses and strays of a session."""

    recording: ReplaySource
    tiers: TierIndexes
    sockets: RecordedSockets
    names: str
    mending: Callable[[MissReason], MissFix]
    output: OutputRedactor
    redirects: dict[tuple[str, str], str] = field(
        default_factory=dict
    )  # the notes of expected requests, by host and path

    def note_redirect(self, recorded: RecordedExchange) -> None:
        """Note that a recorded answer redirects its client, so that a request to the target is expected."""
        response = recorded.exchange.response
        target = redirect_target(recorded.exchange.request.url, response) if response is not None else None
        if target is not None:
            there = address("GET", target)
            self.redirects[there.host, there.path] = (
                f"{recorded.reference} redirects to {without_query(target)}, which is not on the tape"
            )

    def followed(self, probe: Probe) -> str | None:
        """The note of the redirect that the request follows, once; None if it follows none."""
        return self.redirects.pop((probe.address.host, probe.address.path), None)

    def outcome(
        self, number: int, probe: Probe, already: RecordedExchange | None = None, note: str = ""
    ) -> Miss | Stray:
        """The miss or stray. `already`: the call that matches, but was played. `note`: why none can be played."""
        redirected = self.followed(probe)
        if redirected is not None:
            return self._made(number, probe, "not playable", None, redirected)
        if probe.format is None:
            socket = self._socket_at(probe)
            if not socket:
                return self._without_format(number, probe, already, note)
            note = socket
        return self._miss(number, probe, already, note)

    def of_socket(
        self,
        number: int,
        recorded: RecordedExchange,
        live: Json,
        reason: MissReason,
        nearest: Nearest | None,
        note: str,
    ) -> Miss:
        """The miss of a WebSocket message."""
        return self._made(number, replace(recorded.probe, value=live), reason, nearest, note)

    def _made(self, number: int, probe: Probe, reason: MissReason, nearest: Nearest | None, note: str) -> Miss:
        label = self.tiers.label if probe.format is not None else _no_label
        nearest = self._shown(nearest, probe)
        return miss(number, probe, reason, nearest, self.names, label, note, self.mending(reason))

    def _shown(self, nearest: Nearest | None, probe: Probe) -> Nearest | None:
        """The nearest call with redacted differences."""
        if nearest is None:
            return None
        return replace(nearest, differences=shown_differences(nearest.differences, probe.value, self.output))

    def _without_format(self, number: int, probe: Probe, already: RecordedExchange | None, note: str) -> Miss | Stray:
        """A stray, with the nearest exchange in its note; a miss if the request went to a model."""
        nearest = nearest_at_address(probe, self.recording) if already is None else None
        if is_media_inference(probe.request):
            reason: MissReason = "diverged" if nearest is not None else "never recorded"
            if already is not None:
                reason, nearest = "already played", Nearest(already, (), True)
            return self._made(number, probe, "not playable" if note else reason, nearest, note)
        if already is not None:
            note = note or f"{already.reference} was already played"
        elif nearest is not None and nearest.differences:
            first = shown_differences(nearest.differences[:1], probe.value, self.output)[0]
            recorded, live = excerpts(first, 60)
            where = first.where
            note = note or f"{nearest.recorded.reference} differs at {where}: recorded {recorded}, live {live}"
        return Stray(number, probe.address.what_and_where, note)

    def _miss(self, number: int, probe: Probe, already: RecordedExchange | None, note: str) -> Miss:
        nearest = None
        reason: MissReason = "never recorded"
        if note:
            reason = "not playable"
        elif already is not None:
            reason, nearest = "already played", Nearest(already, (), True)
        else:
            loosest = self.tiers.loosest_index
            place = loosest.place(probe)
            nearest = nearest_call(probe, place, loosest, self.recording)
            if self.tiers.loosest >= Tier.MASKED and place.path is not None:
                memo, masker = self.recording.memo, self.recording.masker
                nearest = nearest_moved(self.tiers.moved, probe, place.path.depth, memo, masker) or nearest
            if nearest is not None and nearest.similar:
                reason = "diverged"
        return self._made(number, probe, reason, nearest, note)

    def _socket_at(self, probe: Probe) -> str:
        """Why a recorded WebSocket's handshake is not answered; empty if no WebSocket was recorded here."""
        if probe.address.method != "GET" or "upgrade" not in probe.request.headers:
            return ""
        number = self.sockets.number_at(probe.address.path)
        if not number or self.sockets.at(probe.address.host, probe.address.path):
            why = "and this request is not a WebSocket handshake"
            return f"x{number} was recorded as a WebSocket, {why}" if number else ""
        return f"x{number} was recorded as a WebSocket, and was already played"


def _no_label(recorded: RecordedExchange) -> str:
    return ""
