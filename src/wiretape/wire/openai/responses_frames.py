"""What a single WebSocket message of OpenAI Responses says, for those who play, compare and rebuild them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import obj

NAMES_BEFORE: Final = "previous_response_id"  # the member that names the answer which the provider holds
_LANE: Final = "stream_id"


def lane_of(message: Json) -> Json:
    """Which of the calls that share a connection a message belongs to; None where it does not say."""
    return obj(message).get(_LANE)


def same_kind(one: Json, other: Json) -> bool:
    """Whether two messages are of one sort: their type, and their lane."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(one.get(name) == other.get(name) for name in ("type", _LANE))
    return type(one) is type(other)


def error_event(status: int, body: bytes, headers: Sequence[tuple[str, str]] = (), lane: Json = None) -> str:
    """An error's body over HTTP as the event that tells a client of it."""
    try:
        told = orjson.loads(body)
    except ValueError:
        told = {}
    told = told if isinstance(told, dict) else {}
    if headers and isinstance(told.get("error"), dict):
        told["error"]["headers"] = dict(headers)
    own = {} if lane is None else {_LANE: lane}
    return orjson.dumps({"type": "error", "status": status, **told, **own}).decode()


def as_http_body(message: JsonObject) -> JsonObject:
    """The body over HTTP that asks the same; some clients wrap it in `response`."""
    wrapped = message.get("response")
    whole = {**message, **wrapped} if isinstance(wrapped, dict) else message
    return {name: item for name, item in whole.items() if name not in ("type", "response", _LANE)}


def can_be_told(item: Json) -> bool:
    """Thoughts that only the provider kept are nothing that a request could bring."""
    return obj(item).get("type") != "reasoning" or bool(obj(item).get("encrypted_content"))
