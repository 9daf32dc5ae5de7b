"""An answer with other words in it: what a person makes of a recorded or a live one, in the same wire format.

An answer is edited as a short list of what it says (`said`): texts, reasoning, tool calls with their arguments. Each
value that was changed is put where the old one stands on the wire, wherever that is: in a member of the JSON, in an
object, or spread over the deltas of a stream, which stays a stream. What comes out is decoded and compared with what
was asked for: nothing is changed half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from wiretape.compare.canonical import canonical
from wiretape.errors import UsageError
from wiretape.model.call import Message, ModelCall, Reasoning, Text, ToolCall
from wiretape.model.http import Body, BytesBody, Exchange, JsonBody, StreamBody, TextBody, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.model.stream_text import Channels
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, default_registry

_RAW = "edit body (in a fork --edit body or --body FILE) changes the body itself"
_ARGUMENTS = ("arguments", "input", "args", "parameters")  # members that hold a tool call's arguments as an object


def said(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What an answer says, as a person edits it. Blocks of other kinds are not in it, and stay as they are."""
    found: list[dict[str, Any]] = []
    for message in messages:
        for block in message.blocks:
            match block:
                case Text(text=text):
                    found.append({"text": text})
                case Reasoning(text=text) if text:
                    found.append({"reasoning": text})
                case ToolCall():
                    found.append({"tool": block.name, "arguments": _parsed(block.arguments)})
                case _:
                    pass
    return found


def edited(exchange: Exchange, wanted: Sequence[Any], registry: Registry | None = None) -> Exchange:
    """The exchange with an answer that says `wanted`, which `said` gave and a person changed.

    Raises UsageError where the list no longer has the shape it had, or where the wire cannot say it so.
    """
    registry = registry or default_registry()
    now = said(_answer(exchange, registry))
    values = _values(now, wanted)
    if exchange.response is None or canonical(now) == canonical(list(wanted)):
        return exchange
    try:
        body = _Edit(values).body(exchange.response.body)
    except TypeError as error:  # a number of more than 64 bits
        raise UsageError(f"the answer of x{exchange.number} cannot be made to say this: {error}") from None
    made = replace(exchange, response=replace(exchange.response, body=body))
    got = said(_answer(made, registry))
    if canonical(got) != canonical(list(wanted)):
        raise UsageError(f"the answer of x{exchange.number} cannot be made to say this: {_RAW}")
    return made


def _answer(exchange: Exchange, registry: Registry) -> tuple[Message, ...]:
    calls: Sequence[ModelCall] = registry.calls_of(exchange, Memo())
    if len(calls) != 1 or calls[0].response is None:
        raise UsageError(f"x{exchange.number} has no answer of one model call to edit")
    return calls[0].response.messages


def _parsed(arguments: str) -> Json:
    """Arguments as JSON; as they are where they are none."""
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments


@dataclass(frozen=True, slots=True)
class _Value:
    """What the answer says at one place, and what it is to say. Arguments are a string or an object on the wire."""

    was: Json
    now: Json
    arguments: bool = False

    @property
    def stays(self) -> bool:
        return canonical(self.was) == canonical(self.now)

    def in_text(self, text: str) -> str | None:
        """What a text on the wire becomes; None if it is not this value."""
        if not self.arguments:
            return str(self.now) if text == self.was else None
        if not text or text[0] not in "{[" or canonical(_parsed(text)) != canonical(self.was):
            return None
        if self.stays:
            return text  # in its own spelling
        return self.now if isinstance(self.now, str) else orjson.dumps(self.now).decode()

    def is_object(self, name: str, value: Json) -> bool:
        """Whether an object on the wire is this value. An empty one may be anything but where arguments stand."""
        named = bool(value) or name in _ARGUMENTS
        return self.arguments and named and canonical(value) == canonical(self.was)


def _values(now: Sequence[dict[str, Any]], wanted: Sequence[Any]) -> list[_Value]:
    """All values, in their order, changed or not: of equal ones the wire shows each in its turn."""
    if len(now) != len(wanted):
        raise UsageError(
            f"the answer says {len(now)} things, and {len(wanted)} are given: to add or remove some, {_RAW}"
        )
    found: list[_Value] = []
    for number, (old, new) in enumerate(zip(now, wanted, strict=True), 1):
        if not isinstance(new, dict) or new.keys() != old.keys():
            raise UsageError(f"number {number} of what the answer says must have just {', '.join(old)}: {_RAW}")
        for name, was in old.items():
            if name != "arguments" and not isinstance(new[name], str):
                raise UsageError(f"number {number}: {name} must be a text")
            found.append(_Value(was, new[name], name == "arguments"))
    return found


class _Edit:
    """One edit of a body. Where values are equal, the first place on the wire is the first one's, and so on; a stream
    that says everything again in its last events starts anew there (`kind`: the type of the event)."""

    def __init__(self, values: Sequence[_Value]) -> None:
        self._values = values
        self._met: dict[tuple[str, bytes], int] = {}

    def body(self, body: Body | None) -> Body:
        match body:
            case JsonBody(value=value):
                return JsonBody(self._value(value, "", ""))
            case StreamBody(binary=False):
                return self._stream(body)
            case TextBody() | BytesBody():
                return JsonBody(self._value(_loaded(body_bytes(body)), "", ""))
        raise UsageError(f"this answer is no JSON and no stream of it: {_RAW}")

    def _stream(self, body: StreamBody) -> StreamBody:
        channels = Channels(body.frames)
        settled: set[int] = set()
        for channel in channels.all():
            text = self._text(channel.text, f"deltas {channel.kind}") if len(channel) > 1 else None
            if text is not None:
                settled.update(channel.frames)
                if text != channel.text:
                    channels.replace_text(channel, text)
        for number, value in list(channels.values()):
            if number not in settled:
                kind = value.get("type") if isinstance(value, dict) else None
                channels.put_value(number, self._value(value, str(kind), ""))
        return replace(body, frames=channels.frames(), rewritten=())

    def _next(self, alike: Sequence[_Value], kind: str) -> _Value:
        """Which of several equal values this place is."""
        key = kind, canonical(alike[0].was)
        turn = self._met.get(key, 0)
        self._met[key] = turn + 1
        return alike[turn % len(alike)]

    def _text(self, text: str, kind: str) -> str | None:
        alike = [value for value in self._values if value.in_text(text) is not None]
        return self._next(alike, kind).in_text(text) if alike else None

    def _value(self, value: Json, kind: str, name: str) -> Json:
        """The JSON value with each whole text or object that is changed in its new form."""
        match value:
            case str():
                text = self._text(value, kind)
                return value if text is None else text
            case dict():
                alike = [one for one in self._values if one.is_object(name, value)]
                if alike:
                    found = self._next(alike, kind)
                    return value if found.stays else found.now
                return {key: self._value(item, kind, key) for key, item in value.items()}
            case list():
                return [self._value(item, kind, name) for item in value]
        return value


def _loaded(data: bytes) -> Json:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise UsageError(f"this answer is no JSON: {_RAW}") from None
