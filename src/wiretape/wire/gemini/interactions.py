"""The wire format `gemini.interactions`: Google's Interactions API."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse
from wiretape.model.http import Headers, Request, Response
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
    settings_of,
    text_message,
    text_response,
    tools_of,
    unknown_message,
)
from wiretape.wire.failures import Phase, call_error, has_error
from wiretape.wire.gemini.generate import gemini_error
from wiretape.wire.gemini.interaction_steps import input_step, output_step, tool_specs
from wiretape.wire.gemini.interaction_stream import InteractionAssembler
from wiretape.wire.gemini.parts import system_content
from wiretape.wire.gemini.payload import Chunks, read_chunks
from wiretape.wire.gemini.usage import interaction_finish, interaction_usage
from wiretape.wire.lenient import body_json, is_empty, items, obj, string
from wiretape.wire.payload import JsonPayload, TextPayload
from wiretape.wire.token_counts import without_final_output

_CARRIED = frozenset({"model", "input", "system_instruction", "tools", "previous_interaction_id"})
_SHOWS_INTERACTION = frozenset({"steps", "outputs", "status", "object"})


class GeminiInteractions(HttpFormat):
    name: ClassVar[str] = "gemini.interactions"
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"previous_interaction_id", "labels"}))

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request):
            return Claim.NO
        if recognition.path_of(request.url).endswith("/interactions"):
            return _path_claim(body_json(request.body), request.url)
        return Claim.BODY if recognition.shown_format(request) == self.name else Claim.NO

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        return interaction_request(body, memo)

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return decode_response(response, complete)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return gemini_error(status, message, code)


def _path_claim(body: Json, url: str) -> Claim:
    """Bid by the body, or without one by the host: other services have an `/interactions` as well."""
    if isinstance(body, dict):
        asks = "input" in body and ("model" in body or "agent" in body or "previous_interaction_id" in body)
        return Claim.CERTAIN if asks else Claim.NO
    return Claim.PATH if recognition.host_dialect(url) in ("gemini", "vertex") else Claim.NO


def interaction_request(body: JsonObject, memo: Memo) -> CallRequest:
    parts = RequestParts()
    if not is_empty(system := body.get("system_instruction")):
        message = text_message("system", system) if isinstance(system, str) else system_content(system)
        parts.add_scalar("system_instruction", message)
    if (given := body.get("input")) is not None:
        parts.add_value("input", given, input_step, memo, "gemini.step")
    return parts.request(
        string(body.get("model")) or string(body.get("agent")),
        settings_of(body, _CARRIED),
        tools=tools_of(body, tool_specs, memo, "gemini.interactions.tools"),
        stream=body.get("stream") is True,
        previous_response_id=string(body.get("previous_interaction_id")),
    )


def decode_response(response: Response, whole: bool) -> CallResponse:
    """Decode the response by its bytes. `complete`: the exchange ended normally."""
    read = read_chunks(response)
    match read:
        case JsonPayload(value=value):
            return _plain(response, value)
        case Chunks():
            return _stream(response, read)
        case TextPayload(text=text):
            return text_response(response, text, whole)


def _plain(response: Response, value: Json, truncated: bool = False, streamed: bool = False) -> CallResponse:
    body = obj(value)
    status = string(body.get("status"))
    failed = response.status >= 400 or status == "failed" or has_error(body)
    phase: Phase = "terminal_event" if streamed else "before_stream"
    error = call_error(response.status, _failure(body), response.headers, phase) if failed else None
    steps = items(body.get("steps") if body.get("steps") is not None else body.get("outputs"))
    messages = tuple(output_step(step) for step in steps)
    if not failed and not truncated and _SHOWS_INTERACTION.isdisjoint(body):
        messages = (unknown_message("response", value),)
    has_calls = calls_client_tools(messages)
    return CallResponse(
        status=response.status,
        model=string(body.get("model")) or string(body.get("agent")),
        id=string(body.get("id")),
        messages=tuple(m for m in messages if m.blocks or m.extra),
        finish=None if truncated else interaction_finish(status, has_calls),
        raw_finish=None if truncated else status,
        usage=interaction_usage(body.get("usage")),
        error=error,
    )


def _failure(body: JsonObject) -> Json:
    """Return the error of a failed interaction: its own, or that of a step."""
    if has_error(body) or not body.get("steps"):
        listed = items(body.get("errors"))
        return body if has_error(body) or not listed else {"error": listed[0]}
    failures = [obj(step).get("error") for step in items(body["steps"])]
    return {"error": next((f for f in failures if not is_empty(f)), {"message": "the interaction failed"})}


def _stream(response: Response, chunks: Chunks) -> CallResponse:
    assembler = assemble(InteractionAssembler(), chunks.payload.events)
    decoded = _plain(response, assembler.value(), truncated=not assembler.finished, streamed=True)
    error = decoded.error
    if assembler.error is not None:
        phase: Phase = "before_stream" if response.status >= 400 else "mid_stream"
        error = call_error(response.status, assembler.error, response.headers, phase)
    return replace(
        decoded,
        usage=decoded.usage if assembler.finished else without_final_output(decoded.usage),
        messages=decoded.messages + leftover_events(chunks.payload, assembler.unknown_events),
        error=error,
        complete=assembler.finished,
        streamed=True,
        first_token_at=first_token_time(response, assembler.first_ms),
    )
