"""What every format does alike with an answer: a bid by its looks, text that is no JSON, what is left of a stream."""

from __future__ import annotations

from wiretape.model.call import CallResponse, Message, Unknown
from wiretape.model.http import Exchange, Response
from wiretape.model.jsonvalue import Json
from wiretape.wire import recognition
from wiretape.wire.base import Claim
from wiretape.wire.call_frame import unknown_message
from wiretape.wire.failures import call_error
from wiretape.wire.payload import EventPayload, JsonPayload, read_payload


def response_claim(exchange: Exchange, name: str, ours: bool = False) -> Claim:
    """A bid by what the answer looks like, for requests that nobody recognised. `ours`: the path is the format's."""
    if exchange.response is None or not recognition.is_post(exchange.request):
        return Claim.NO
    if not ours and recognition.is_other(exchange.request):
        return Claim.NO
    payload = read_payload(exchange.response)
    if isinstance(payload, JsonPayload):
        shown = recognition.response_format(payload.value)
    elif isinstance(payload, EventPayload):
        shown = next(filter(None, (recognition.response_format(e.value) for e in payload.events[:8])), None)
    else:
        shown = None
    return Claim.RESPONSE if shown == name else Claim.NO


def text_response(response: Response, text: str, whole: bool) -> CallResponse:
    """A body that is neither JSON nor events: an error page, something cut short, or nothing."""
    failed = response.status >= 400
    error = call_error(response.status, None, response.headers, text=text) if failed else None
    messages = (unknown_message("text", text),) if text.strip() and not failed else ()
    return CallResponse(response.status, messages=messages, error=error, complete=whole)


def leftovers(payload: EventPayload, strange: list[Json]) -> tuple[Message, ...]:
    """Events that are no part of the format, and data that is no JSON, kept whole.

    Their message is the system's: the model did not say it, and no later request repeats it.
    """
    blocks = [Unknown("event", value) for value in strange]
    blocks += [Unknown("unreadable_event", text) for text in payload.unreadable]
    return (Message("system", tuple(blocks), ("",) * len(blocks)),) if blocks else ()


def token_time(response: Response, ms: int | None) -> int | None:
    return None if ms is None else response.headers_at + ms
