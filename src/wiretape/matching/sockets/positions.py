"""Match a WebSocket message that differs from the recorded one: by the history in it, or by its position.

A client that reconnects sends its whole history, where the recorded message names the previous response: that is the
same call. With tier `position` the position alone decides, if it is unambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wiretape.compare.canonical import same
from wiretape.compare.difference import ABSENT, Difference, Tier, differences
from wiretape.compare.normalize import settings_template
from wiretape.matching.lookup.position import ENOUGH, traits
from wiretape.matching.lookup.templates import NormalizedMessages
from wiretape.matching.recorded import RecordedExchange, SocketCall
from wiretape.matching.sockets.recorded_sockets import MessageMatch, RecordedSockets
from wiretape.model.call import CallRequest, Message
from wiretape.model.http import JsonBody
from wiretape.model.jsonvalue import Json
from wiretape.wire.base import Memo
from wiretape.wire.openai.responses_socket import NAMES_BEFORE, same_kind


class AmbiguousPosition(Exception):
    """Several recorded messages fit equally well; the text names them."""


@dataclass(frozen=True, slots=True)
class PendingMessage:
    """A client message that has not arrived yet. `call`: the call that it begins."""

    recorded: RecordedExchange
    place: int
    call: SocketCall | None
    value: Json


class MessagePositions:
    """The pending messages for one live message, in order."""

    def __init__(self, sockets: RecordedSockets, waiting: Sequence[PendingMessage]) -> None:
        self._sockets = sockets
        self._waiting = waiting
        self._shapes = NormalizedMessages()
        self._requests: dict[str, CallRequest] = {}  # the decoded live message, by wire format

    def with_history(self, live: Json) -> tuple[int, MessageMatch] | None:
        """The call whose recorded message names the previous response where the live one has the whole history."""
        if not isinstance(live, dict) or live.get(NAMES_BEFORE) is not None:
            return None
        found = [(n, self._history(one, live)) for n, one in enumerate(self._waiting)]
        matched = [(n, one) for n, one in found if one is not None and one.tier <= self._sockets.options.tier]
        return min(matched, key=lambda one: one[1].tier, default=None)

    def _history(self, one: PendingMessage, live: Json) -> MessageMatch | None:
        recorded = one.call.request if one.call is not None else None
        if recorded is None or not recorded.held:
            return None
        decoded = self._request(one.recorded, live)
        if decoded is None or recorded.model != decoded.model or len(recorded.messages) != len(decoded.messages):
            return None
        named = Difference(NAMES_BEFORE, recorded.previous_response_id, ABSENT)
        parts = list(self._parts(one, recorded, decoded))
        if all(same(there, here) for _, there, here in parts):
            return MessageMatch(Tier.NORMALIZED, (named,), (True,), live)
        mask = self._sockets.masker.value
        if not all(same(mask(there), mask(here)) for _, there, here in parts):
            return None
        differing = [differing for where, there, here in parts for differing in differences(there, here, where)]
        return MessageMatch(Tier.MASKED, (named, *differing), (True, *[False] * len(differing)), live)

    def _parts(self, one: PendingMessage, recorded: CallRequest, live: CallRequest) -> Iterator[tuple[str, Json, Json]]:
        """The normalized parts of two requests to compare: path and both values."""
        wire_format = one.recorded.probe.format
        assert wire_format is not None
        yield (
            "settings",
            settings_template(recorded, wire_format.volatile),
            settings_template(live, wire_format.volatile),
        )
        yield "tools", list(self._shapes.tools(recorded.tools)), list(self._shapes.tools(live.tools))
        pairs = zip(self._templates(recorded.messages), self._templates(live.messages), strict=True)
        yield from ((live.path(n), there, here) for n, (there, here) in enumerate(pairs))

    def _templates(self, messages: Sequence[Message]) -> Iterator[Json]:
        """The templates of messages, with their ids numbered by first appearance."""
        names: dict[str, int] = {}
        for message in messages:
            shape = self._shapes.message(message)
            yield [shape.template, [names.setdefault(name, len(names)) for name in shape.ids]]

    def _request(self, recorded: RecordedExchange, live: Json) -> CallRequest | None:
        """The live message, decoded as a request; None without a wire format."""
        wire_format = recorded.probe.format
        if wire_format is None or not isinstance(live, dict):
            return None
        if wire_format.name not in self._requests:
            made = replace(recorded.probe.request, body=JsonBody(live))
            self._requests[wire_format.name] = wire_format.decode_request(made, Memo())
        return self._requests[wire_format.name]

    # -- by position

    def next(self, live: Json, own: RecordedExchange | None) -> tuple[int, MessageMatch] | None:
        """The next pending message of the connection `own`; without one, of the connection that begins with it.

        Raises AmbiguousPosition if several fit.
        """
        if self._sockets.options.tier is not Tier.POSITION:
            return None
        like = [(n, one) for n, one in enumerate(self._waiting) if same_kind(one.value, live)]
        if own is not None:
            found = self._following([(n, one) for n, one in like if one.recorded is own], live)
        else:
            found = self._beginning(like, live)
        if found is None:
            return None
        one = self._waiting[found]
        differing, minor = self._sockets.differences_at(one.recorded, one.place, live)
        return found, MessageMatch(Tier.POSITION, differing, minor, live)

    def _following(self, like: Sequence[tuple[int, PendingMessage]], live: Json) -> int | None:
        """The next pending message; if the live message names an answer, the one after that answer."""
        named = live.get(NAMES_BEFORE) if isinstance(live, dict) else None
        if named is not None:
            after = [n for n, one in like if isinstance(one.value, dict) and one.value.get(NAMES_BEFORE) == named]
            return after[0] if after else None
        return like[0][0] if like else None

    def _beginning(self, like: Sequence[tuple[int, PendingMessage]], live: Json) -> int | None:
        """The connection with most traits in common, if it is the only one."""
        firsts = list({one.recorded.order: (n, one) for n, one in reversed(like)}.values())[::-1]
        if len(self._sockets.recorded) == len(firsts) == 1:
            return firsts[0][0]
        scored = [(self._likeness(one, live), n, one) for n, one in firsts]
        most = max((count for count, _, _ in scored), default=0)
        best = [(n, one) for count, n, one in scored if count == most and count >= ENOUGH]
        if len(best) > 1:
            names = ", ".join(str(one.recorded.reference_at(one.place)) for _, one in best[:3])
            raise AmbiguousPosition(
                f"by position it may be the first call of several connections: {names} fit equally well"
            )
        return best[0][0] if best else None

    def _likeness(self, one: PendingMessage, live: Json) -> int:
        decoded = self._request(one.recorded, live)
        if one.call is None or decoded is None:
            return 0
        mask, known, key = self._sockets.masker.value, self._sockets.traits, (one.recorded.order, one.place)
        if key not in known:
            known[key] = traits(one.call.request, mask)
        there, here = known[key], traits(decoded, mask)
        return sum(1 for own, other in zip(there, here, strict=True) if own == other)
