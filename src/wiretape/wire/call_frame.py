"""What every format does alike with an exchange around its own JSON: dialect, linking headers, unreadable bodies."""

from __future__ import annotations

from wiretape.model.call import CallKind, CallRequest, CallResponse, Media, Message, ModelCall, Unknown
from wiretape.model.http import Body, Ended, Exchange, Headers
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import as_text, dumps, raw_bytes
from wiretape.wire.recognition import host_dialect

_LINKING = frozenset(
    {"x-session-id", "x-parent-session-id", "x-deepseek-harness-session-id", "session-id", "thread-id"}
    | {"x-codex-parent-thread-id"}
    | {"x-codex-turn-metadata", "x-stainless-retry-count", "idempotency-key"}
)


def linking_headers(headers: Headers) -> tuple[tuple[str, str], ...]:
    """The request headers that tell which session, agent or attempt a call belongs to."""
    return tuple([(name, headers[name]) for name in headers if name in _LINKING or name.startswith("x-claude-code-")])


def frame_call(
    exchange: Exchange,
    name: str,
    request: CallRequest,
    response: CallResponse | None,
    kind: CallKind = "inference",
    dialect: str | None = None,
) -> ModelCall:
    return ModelCall(
        number=0,
        exchange=exchange.number,
        format=name,
        request=request,
        response=response,
        at=exchange.at,
        ended_at=exchange.ended_at,
        ended=exchange.ended,
        kind=kind,
        dialect=dialect or host_dialect(exchange.request.url),
        url=exchange.request.url,
        headers=linking_headers(exchange.request.headers),
    )


def unreadable_request(body: Body | None) -> CallRequest:
    """A request whose body is no JSON object: kept as one unknown block."""
    data = raw_bytes(body)
    if not data:
        return CallRequest(None, ())
    return CallRequest(
        None,
        (Message("unknown", (Unknown("body", as_text(data)),), ("",)),),
        segments=((0, ""),),
        scalars=frozenset({""}),
    )


def unknown_message(kind: str, raw: object, role: str = "assistant") -> Message:
    return Message(role, (Unknown(kind, raw),), ("",))


def kept_answer(kind: str, value: Json) -> Message:
    """The answer of a side call is one value, kept whole: a vector, scores, verdicts, a count."""
    if isinstance(value, dict) and value:
        return Message("assistant", (Media(kind, value),), ("",))
    return unknown_message(kind, value)


def came_whole(exchange: Exchange) -> bool:
    """Did the exchange end as it should? (One still open has not.)"""
    return exchange.ended is Ended.COMPLETE


def settings_of(body: JsonObject, carried: frozenset[str]) -> JsonObject:
    """The members that are no part of the conversation; nulls say nothing."""
    return {k: v for k, v in body.items() if k not in carried and v is not None}


def json_error(body: JsonObject) -> tuple[Headers, bytes]:
    return Headers([("content-type", "application/json")]), dumps(body).encode()
