"""Responses that go on in the background: asked for once, fetched until they are done. Many exchanges, one call.

The call gets the answer of the first fetch that ends it (and its usage, so that it is counted once).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange
from wiretape.wire.call_frame import came_whole
from wiretape.wire.openai_responses import OpenAIResponses, decode_response
from wiretape.wire.recognition import path_of

_FETCH = re.compile(r"/responses/([^/]+)$")


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
    if call.format != OpenAIResponses.name or response is None or response.id is None:
        return False
    return response.raw_finish in ("queued", "in_progress") or (response.streamed and not response.complete)


def _settled(call: ModelCall, fetches: dict[str, list[Exchange]]) -> ModelCall:
    assert call.response is not None
    for exchange in fetches.get(call.response.id or "", ()):
        if exchange.response is None or exchange.at < call.at:
            continue
        fetched = decode_response(exchange.response, came_whole(exchange))
        if fetched.complete and fetched.id == call.response.id and fetched.finish != "pause":
            seen = call.response.first_token_at
            first = seen if seen is not None else fetched.first_token_at
            return replace(call, response=replace(fetched, first_token_at=first), ended_at=exchange.ended_at)
    return call
