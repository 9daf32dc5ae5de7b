"""Model calls whose content is in other exchanges: background responses that are polled, and stored histories.

A background response is requested once, then fetched until it is done: many exchanges, one call. Gemini's interactions
work in the same way. A request that names an earlier response sends only its new items: its history is that request's
messages without the instructions, then that response's messages. Messages are shared, not copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from wiretape.model.call import CallRequest, Message, ModelCall, Unknown
from wiretape.model.http import Exchange
from wiretape.wire.decoding import is_complete
from wiretape.wire.gemini import interactions as gemini_interactions
from wiretape.wire.openai import responses as openai_responses
from wiretape.wire.recognition import path_of

_FETCH = re.compile(r"/(?:responses|interactions)/([^/]+)$")
_DECODERS = {
    openai_responses.OpenAIResponses.name: openai_responses.decode_response,
    gemini_interactions.GeminiInteractions.name: gemini_interactions.decode_response,
}
_NO_ITEMS = frozenset({"event", "unreadable_event", "binary_message", "unreadable_message", "client_message"})


def with_background_answers(calls: list[ModelCall], exchanges: Sequence[Exchange]) -> list[ModelCall]:
    """Complete the background calls with their answers.

    A call gets the first fetched response that ends it, and its usage, so that it is counted once.
    """
    if not any(map(_runs_on, calls)):
        return calls
    fetches: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        found = _FETCH.search(path_of(exchange.request.url)) if exchange.request.method.upper() == "GET" else None
        if found and exchange.response is not None:
            fetches.setdefault(found[1], []).append(exchange)
    return [_settled(call, fetches) if _runs_on(call) else call for call in calls]


def _runs_on(call: ModelCall) -> bool:
    response = call.response
    if call.format not in _DECODERS or response is None or response.id is None:
        return False
    return response.raw_finish in ("queued", "in_progress") or (response.streamed and not response.complete)


def _settled(call: ModelCall, fetches: dict[str, list[Exchange]]) -> ModelCall:
    assert call.response is not None
    for exchange in fetches.get(call.response.id or "", ()):
        if exchange.response is None or exchange.at < call.at:
            continue
        fetched = _DECODERS[call.format](exchange.response, is_complete(exchange))
        if fetched.complete and fetched.id == call.response.id and fetched.finish != "pause":
            seen = call.response.first_token_at
            first = seen if seen is not None else fetched.first_token_at
            if fetched.streamed and call.format == gemini_interactions.GeminiInteractions.name:
                # The final event omits earlier steps: a resumed stream continues after them.
                fetched = replace(fetched, messages=call.response.messages + fetched.messages)
            return replace(call, response=replace(fetched, first_token_at=first), ended_at=exchange.ended_at)
    return call


def with_histories(calls: Iterable[ModelCall]) -> list[ModelCall]:
    """Return the calls, by start, each with as much of its history as the tape has."""
    by_response: dict[str, ModelCall] = {}
    made: list[ModelCall] = []
    for call in calls:
        if call.format == openai_responses.OpenAIResponses.name:
            before = by_response.get(call.request.previous_response_id or "")
            if before is not None:
                call = replace(call, request=_continued(call.request, before))
            if call.response is not None and call.response.id is not None:
                by_response[call.response.id] = call
        made.append(call)
    return made


def _continued(request: CallRequest, before: ModelCall) -> CallRequest:
    own = _instructions(request)
    history = before.request.messages[_instructions(before.request) :] + _answer(before)
    held = own + len(history)
    segments = [(at, name) if at < own else (at + len(history), name) for at, name in request.segments]
    segments.append((own, "previous_response"))
    return replace(
        request,
        messages=request.messages[:own] + history + request.messages[own:],
        segments=tuple(sorted(segments)),
        held=held,
    )


def _instructions(request: CallRequest) -> int:
    """Return the number of messages of the instructions, which belong to one request only."""
    return 1 if request.segments[:1] == ((0, "instructions"),) else 0


def _answer(call: ModelCall) -> tuple[Message, ...]:
    """Return the items of a response, without events and data that are not items."""
    return tuple(message for message in call.response.messages if not _is_beside(message)) if call.response else ()


def _is_beside(message: Message) -> bool:
    return message.role == "system" and all(isinstance(b, Unknown) and b.type in _NO_ITEMS for b in message.blocks)
