"""The wire format `openai.responses`: the Responses API of OpenAI and of compatible servers, over HTTP.

`responses_request` and `from_events` decode parsed JSON, because a WebSocket carries the same events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    assemble,
    calls_client_tools,
    first_token_time,
    leftover_events,
    read_response,
    served_tier,
    settings_of,
    side_answer,
    text_message,
    tools_of,
    unknown_message,
)
from wiretape.wire.failures import Phase, call_error, has_error
from wiretape.wire.lenient import body_json, is_empty, items, obj, string
from wiretape.wire.openai.chat import openai_error
from wiretape.wire.openai.responses_items import input_item, output_messages, response_tools
from wiretape.wire.openai.responses_stream import ResponseAssembler
from wiretape.wire.openai.usage import openai_usage, responses_finish
from wiretape.wire.payload import EventPayload
from wiretape.wire.token_counts import without_final_output

_CARRIED = frozenset({"model", "instructions", "input", "tools", "previous_response_id", "type"})
_TAILS = ("/responses", "/responses/compact", "/responses/input_tokens")
_SHOWS_RESPONSE = frozenset({"output", "status", "usage", "object"})


class OpenAIResponses(HttpFormat):
    name: ClassVar[str] = "openai.responses"
    volatile: ClassVar[Volatile] = Volatile(
        settings=frozenset(
            {"user", "safety_identifier", "prompt_cache_key", "client_metadata", "metadata", "conversation"}
            | {"previous_response_id", "create_time", "stream_id"}
        ),
        nested=frozenset(
            {("stream_options", "include_obfuscation"), ("prompt_cache_options", "comparison_response_id")}
        ),
    )

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        path = recognition.path_of(request.url)
        if path.endswith(_TAILS):
            return _path_claim(body_json(request.body), path)
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        return call_kind(exchange.request.url, request)

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        return responses_request(body, memo)

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return decode_response(response, complete)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return openai_error(status, message, code)


def _path_claim(body: Json, path: str) -> Claim:
    """Bid by path and body: other services have a `/responses` as well."""
    if not isinstance(body, dict):
        return Claim.PATH if "/v1/" in path else Claim.NO
    if "input" in body or "previous_response_id" in body or "conversation" in body or "prompt" in body:
        return Claim.CERTAIN
    return Claim.PATH if "model" in body else Claim.NO


def call_kind(url: str, request: CallRequest) -> CallKind:
    if recognition.path_of(url).endswith("/input_tokens"):
        return "token_count"
    options = obj(request.settings.get("prompt_cache_options"))
    return "prewarm" if request.settings.get("generate") is False or options.get("prewarm") is True else "inference"


def responses_request(body: JsonObject, memo: Memo) -> CallRequest:
    """Decode a request body, or the JSON of a `response.create` message."""
    parts = RequestParts()
    if not is_empty(text := body.get("instructions")):
        known = text_message("system", text) if isinstance(text, str) else None
        parts.add_scalar("instructions", known or unknown_message("instructions", text, "system"))
    if (given := body.get("input")) is not None:
        parts.add_value("input", given, input_item, memo, "openai.responses")
    return parts.request(
        string(body.get("model")),
        settings_of(body, _CARRIED),
        tools=tools_of(body, response_tools, memo, "openai.responses.tools"),
        stream=body.get("stream") is True,
        previous_response_id=string(body.get("previous_response_id")),
    )


def decode_response(response: Response, whole: bool) -> CallResponse:
    """Decode the response by its bytes. `whole`: the exchange ended normally."""
    return read_response(response, whole, _plain, from_events)


def from_events(response: Response, payload: EventPayload) -> CallResponse:
    """Decode the events of one response, from a stream or a WebSocket."""
    assembler = assemble(ResponseAssembler(), payload.events)
    decoded = _plain(response, assembler.value(), truncated=not assembler.finished, streamed=True)
    error = decoded.error
    if assembler.error is not None and not assembler.terminal_error:
        error = call_error(response.status, assembler.error, _headers_in(assembler.error, response), "mid_stream")
    return replace(
        decoded,
        usage=decoded.usage if assembler.finished else without_final_output(decoded.usage),
        messages=decoded.messages + leftover_events(payload, assembler.unknown_events),
        error=error,
        finish="error" if error is not None and decoded.finish in (None, "pause") else decoded.finish,
        complete=assembler.finished,
        first_token_at=first_token_time(response, assembler.first_ms),
    )


def _headers_in(event: Json, response: Response) -> Headers:
    """Return the response's headers and those in an error event, which correspond to the headers of an HTTP error."""
    in_event = obj(obj(obj(event).get("error")).get("headers")) or obj(obj(event).get("headers"))
    return Headers([*response.headers.pairs(), *((k, str(v)) for k, v in in_event.items())])


def _plain(response: Response, value: Json, truncated: bool = False, streamed: bool = False) -> CallResponse:
    body = obj(value)
    failed = response.status >= 400 or body.get("status") == "failed" or has_error(value)
    phase: Phase = "terminal_event" if streamed else "before_stream"
    error = call_error(response.status, value, response.headers, phase) if failed else None
    messages = output_messages(items(body.get("output")), body.get("tools"), truncated)
    counts = body.get("object") == "response.input_tokens"
    if counts:
        messages = (side_answer("token_count", value),)
    elif not failed and not truncated and _SHOWS_RESPONSE.isdisjoint(body):
        messages = (unknown_message("response", value),)
    has_calls = calls_client_tools(messages)
    ended, raw_finish = responses_finish(body, has_calls and not truncated)
    return CallResponse(
        status=response.status,
        model=string(body.get("model")),
        id=string(body.get("id")),
        messages=messages,
        finish=None if truncated else ended,
        raw_finish=None if truncated else raw_finish,
        usage=None if counts else openai_usage(body.get("usage")),
        error=error,
        streamed=streamed,
        diagnostics=body.get("prompt_cache_diagnostics"),
        service_tier=served_tier(body),
    )
