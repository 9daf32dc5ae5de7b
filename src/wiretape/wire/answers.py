"""What every format does alike with an answer: a bid by its looks, text that is no JSON, what is left of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from wiretape.model.call import CallResponse, Message, Unknown
from wiretape.model.http import Exchange, Response
from wiretape.model.jsonvalue import Json
from wiretape.wire import recognition
from wiretape.wire.base import Claim
from wiretape.wire.call_frame import unknown_message
from wiretape.wire.failures import call_error
from wiretape.wire.payload import Event, EventPayload, JsonPayload, TextPayload, read_payload


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


class Assembly(Protocol):
    """What a format gathers from a stream's events: `value` is the answer that an unstreamed call would have given."""

    first_ms: int | None  # when the first content came
    error: Json | None  # an error event, if one came
    strange: list[Json]  # events that are no part of the format

    def add(self, event: Event) -> None: ...

    def value(self) -> Json: ...


def read_answer(
    response: Response,
    whole: bool,
    answer: Callable[[Response, Json], CallResponse],
    stream: Callable[[Response, EventPayload], CallResponse],
) -> CallResponse:
    """Whatever came as an answer, decoded as what its bytes show it to be. `whole`: the exchange ended as it should."""
    payload = read_payload(response)
    match payload:
        case JsonPayload(value=value):
            return answer(response, value)
        case EventPayload():
            return stream(response, payload)
        case TextPayload(text=text):
            return text_response(response, text, whole)


def streamed(
    decoded: CallResponse, response: Response, payload: EventPayload, assembly: Assembly, complete: bool
) -> CallResponse:
    """What was decoded of an assembled stream, with what only a stream has: when, an error in the middle, leftovers."""
    error = decoded.error
    if assembly.error is not None:
        error = call_error(response.status, assembly.error, response.headers, "mid_stream")
    return replace(
        decoded,
        messages=decoded.messages + leftovers(payload, assembly.strange),
        error=error,
        complete=complete,
        streamed=True,
        first_token_at=token_time(response, assembly.first_ms),
    )


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
