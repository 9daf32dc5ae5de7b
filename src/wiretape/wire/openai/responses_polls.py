"""Responses that go on in the background: asked for once, fetched until they are done. Many exchanges, one call.

Google's interactions do so in the same way.

The call gets the answer of the first fetch that ends it (and its usage, so that it is counted once).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange
from wiretape.wire.call_frame import came_whole
from wiretape.wire.gemini import interactions as gemini_interactions
from wiretape.wire.openai import responses as openai_responses
from wiretape.wire.recognition import path_of

_FETCH = re.compile(r"/(?:responses|interactions)/([^/]+)$")
_DECODERS = {
    openai_responses.OpenAIResponses.name: openai_responses.decode_response,
    gemini_interactions.GeminiInteractions.name: gemini_interactions.decode_response,
}


def settle(calls: list[ModelCall], exchanges: Sequence[Exchange]) -> list[ModelCall]:
    """The calls, those that were left running with the answer that was fetched later."""
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
        fetched = _DECODERS[call.format](exchange.response, came_whole(exchange))
        if fetched.complete and fetched.id == call.response.id and fetched.finish != "pause":
            seen = call.response.first_token_at
            first = seen if seen is not None else fetched.first_token_at
            if fetched.streamed and call.format == gemini_interactions.GeminiInteractions.name:
                # Its last event does not repeat what came: a stream taken up again goes on after that.
                fetched = replace(fetched, messages=call.response.messages + fetched.messages)
            return replace(call, response=replace(fetched, first_token_at=first), ended_at=exchange.ended_at)
    return call
