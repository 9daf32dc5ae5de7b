"""A stream of Bedrock's Invoke: each message of the AWS event stream wraps one event of the vendor's own."""

from __future__ import annotations

import base64
import binascii
from typing import Final, Literal, TypeAlias

from wiretape.model.jsonvalue import Json
from wiretape.wire.bedrock.eventstream import AwsEvents, error_value
from wiretape.wire.bedrock.stream import EVENTS
from wiretape.wire.lenient import Unreadable, dumps, items, load, obj
from wiretape.wire.payload import Event, EventPayload

Vendor: TypeAlias = Literal["anthropic.messages", "bedrock.converse", "openai.chat"]
_ANTHROPIC: Final = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"}
    | {"message_stop", "ping"}
)


def vendor_events(read: AwsEvents) -> EventPayload:
    """The vendor's events; what went wrong on the way is an event named `error`."""
    events: list[Event] = []
    unreadable: list[str] = []
    for kind, name, value, ms in read.events:
        if kind != "event":
            events.append(Event("error", error_value(name, value), ms))
            continue
        inner = _inner(value) if name == "chunk" else value
        if isinstance(inner, Unreadable):
            unreadable.append(dumps(value))
        else:
            shown = obj(inner).get("type")
            events.append(Event(shown if isinstance(shown, str) else "", inner, ms))
    return EventPayload(events, unreadable=tuple(unreadable))


def vendor_of(payload: EventPayload) -> Vendor | None:
    """Whose language the events are in; None: a text, piece by piece."""
    values = [event.value for event in payload.events if isinstance(event.value, dict) and event.name != "error"]
    if any(value.get("type") in _ANTHROPIC for value in values if isinstance(value.get("type"), str)):
        return "anthropic.messages"
    if any(not EVENTS.isdisjoint(value) for value in values):
        return "bedrock.converse"
    if any("delta" in obj(choice) for value in values for choice in items(value.get("choices"))):
        return "openai.chat"
    return None


def _inner(value: Json) -> Json | Unreadable:
    """The vendor's event inside a chunk."""
    data = obj(value).get("bytes")
    try:
        return load(base64.b64decode(data, validate=True)) if isinstance(data, str) else value
    except (binascii.Error, ValueError):
        return Unreadable()
