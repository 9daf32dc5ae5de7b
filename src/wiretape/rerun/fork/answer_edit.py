"""Edits a recorded or live answer in its wire format, by its values or by its whole body.

The values are a short list: texts, reasoning, tool calls with their arguments. Each changed value replaces the old one
wherever the wire has it: in a JSON member, in an object, or spread over the deltas of a stream, which stays a stream.
The result is decoded and compared with the edit, so an edit is applied completely or refused. The body is JSON text,
or the text of a stream's events; it must decode to a complete answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from wiretape.compare.canonical import canonical
from wiretape.errors import UsageError
from wiretape.model.call import Message, ModelCall, Reasoning, Text, ToolCall, Unknown
from wiretape.model.framing import framer_for, list_framer_for
from wiretape.model.http import Body, BytesBody, Exchange, JsonBody, StreamBody, TextBody, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import parsed
from wiretape.model.stream_text import Channels
from wiretape.wire.base import Memo
from wiretape.wire.registry import default_registry

_EDIT_BODY = "edit the body instead: edit body, or --edit body and --body FILE of a fork"
_ARGUMENTS = ("arguments", "input", "args", "parameters")  # members that hold a tool call's arguments as an object
_SNIFFED_BYTES = 64
_NEWLINES = "\r\n"


def answer_values(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the editable values of an answer: texts, reasoning and tool calls, each as a small object."""
    found: list[dict[str, Any]] = []
    for message in messages:
        for block in message.blocks:
            match block:
                case Text(text=text):
                    found.append({"text": text})
                case Reasoning(text=text) if text:
                    found.append({"reasoning": text})
                case ToolCall():
                    found.append({"tool": block.name, "arguments": parsed(block.arguments)})
                case _:
                    pass
    return found


def edit_answer(exchange: Exchange, wanted: Sequence[Any]) -> Exchange:
    """Return the exchange with the answer values `wanted`, an edited `answer_values` of its answer.

    Raises UsageError if the list has another shape, or if the wire format cannot represent an edit.
    """
    current = answer_values(_answer(exchange))
    edits = _edits(current, wanted)
    if exchange.response is None or canonical(current) == canonical(list(wanted)):
        return exchange
    refused = f"cannot write this edit into the answer of x{exchange.number}"
    try:
        body = _BodyEditor(edits).edit(exchange.response.body)
    except TypeError as error:  # an integer of more than 64 bits
        raise UsageError(f"{refused}: {error}") from None
    edited = replace(exchange, response=replace(exchange.response, body=body))
    if canonical(answer_values(_answer(edited))) != canonical(list(wanted)):
        raise UsageError(f"{refused}\n  {_EDIT_BODY}")
    return edited


def _answer(exchange: Exchange) -> tuple[Message, ...]:
    calls: Sequence[ModelCall] = default_registry().calls_of(exchange, Memo())
    if len(calls) != 1 or calls[0].response is None:
        raise UsageError(f"cannot edit x{exchange.number}: it is not one model call with an answer")
    return calls[0].response.messages


@dataclass(frozen=True, slots=True)
class _ValueEdit:
    """One value of the answer before and after the edit. Arguments are a string or an object on the wire."""

    old: Json
    new: Json
    arguments: bool = False

    @property
    def unchanged(self) -> bool:
        return canonical(self.old) == canonical(self.new)

    def apply_to_text(self, text: str) -> str | None:
        """Return the new text, or None if `text` is not this value."""
        if not self.arguments:
            return str(self.new) if text == self.old else None
        if not text or text[0] not in "{[" or canonical(parsed(text)) != canonical(self.old):
            return None
        if self.unchanged:
            return text  # keeps its spelling
        return self.new if isinstance(self.new, str) else orjson.dumps(self.new).decode()

    def is_object(self, name: str, value: Json) -> bool:
        """Return whether an object on the wire is this value. An empty object counts only as a call's arguments."""
        named = bool(value) or name in _ARGUMENTS
        return self.arguments and named and canonical(value) == canonical(self.old)


def _edits(current: Sequence[dict[str, Any]], wanted: Sequence[Any]) -> list[_ValueEdit]:
    """Return an edit for each value, changed or not: equal values are told apart by their order."""
    if len(current) != len(wanted):
        raise UsageError(
            f"the answer has {len(current)} values, the edit has {len(wanted)}\n  to add or remove values, {_EDIT_BODY}"
        )
    found: list[_ValueEdit] = []
    for number, (old, new) in enumerate(zip(current, wanted, strict=True), 1):
        if not isinstance(new, dict) or new.keys() != old.keys():
            raise UsageError(f"value {number} of the answer must have the members {', '.join(old)}\n  {_EDIT_BODY}")
        for name, value in old.items():
            if name != "arguments" and not isinstance(new[name], str):
                raise UsageError(f"value {number} of the answer: {name} must be a string")
            found.append(_ValueEdit(value, new[name], name == "arguments"))
    return found


class _BodyEditor:
    """Applies the edits to one body.

    Equal values are matched to their places in order. A stream may repeat all values in its last events: the order
    starts again for each type of event (`kind`).
    """

    def __init__(self, edits: Sequence[_ValueEdit]) -> None:
        self._edits = edits
        self._turns: dict[tuple[str, bytes], int] = {}

    def edit(self, body: Body | None) -> Body:
        match body:
            case JsonBody(value=value):
                return JsonBody(self._value(value, "", ""))
            case StreamBody(binary=False):
                return self._stream(body)
            case TextBody() | BytesBody():
                return JsonBody(self._value(_loaded(body_bytes(body)), "", ""))
        raise UsageError(f"cannot edit the values of this answer: its body is binary or missing\n  {_EDIT_BODY}")

    def _stream(self, body: StreamBody) -> StreamBody:
        channels = Channels(body.frames)
        done: set[int] = set()
        for channel in channels.all():
            text = self._text(channel.text, f"deltas {channel.kind}") if len(channel) > 1 else None
            if text is not None:
                done.update(channel.frames)
                if text != channel.text:
                    channels.replace_text(channel, text)
        for number, value in list(channels.values()):
            if number not in done:
                kind = value.get("type") if isinstance(value, dict) else None
                channels.put_value(number, self._value(value, str(kind), ""))
        return replace(body, frames=channels.frames(), rewritten=())

    def _next(self, equal: Sequence[_ValueEdit], kind: str) -> _ValueEdit:
        """Return which of several equal values is at this place."""
        key = kind, canonical(equal[0].old)
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        return equal[turn % len(equal)]

    def _text(self, text: str, kind: str) -> str | None:
        equal = [edit for edit in self._edits if edit.apply_to_text(text) is not None]
        return self._next(equal, kind).apply_to_text(text) if equal else None

    def _value(self, value: Json, kind: str, name: str) -> Json:
        """Return the JSON value with every edited text and object replaced."""
        match value:
            case str():
                text = self._text(value, kind)
                return value if text is None else text
            case dict():
                equal = [edit for edit in self._edits if edit.is_object(name, value)]
                if equal:
                    found = self._next(equal, kind)
                    return value if found.unchanged else found.new
                return {key: self._value(item, kind, key) for key, item in value.items()}
            case list():
                return [self._value(item, kind, name) for item in value]
        return value


def _loaded(data: bytes) -> Json:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise UsageError(f"cannot edit the values of this answer: it is not JSON\n  {_EDIT_BODY}") from None


def body_text(exchange: Exchange) -> str:
    """Return the body of an answer as editable text. Raises UsageError if it is binary or missing."""
    body = exchange.response.body if exchange.response is not None else None
    if isinstance(body, JsonBody):
        return json.dumps(body.value, ensure_ascii=False, indent=2)
    try:
        if body is not None and not (isinstance(body, StreamBody) and body.binary):
            return body_bytes(body).decode()
    except UnicodeDecodeError:
        pass
    raise UsageError(f"cannot edit the body of x{exchange.number}: its answer has no text body")


def with_body_text(exchange: Exchange, text: str) -> Exchange:
    """Return the exchange with this text as the answer's body. A stream keeps the times of its events.

    Raises UsageError if the text is of another kind than the body, or does not decode to one complete answer.
    """
    response = exchange.response
    if response is None:
        raise UsageError(f"cannot edit the body of x{exchange.number}: it has no answer")
    before = body_text(exchange)
    # Editors add and strip newlines at the end, but the last event of a stream needs its empty line.
    text = text.rstrip(_NEWLINES) + before[len(before.rstrip(_NEWLINES)) :]
    if text == before:
        return exchange
    kind = response.headers.get("content-type")
    body = _stream_body(response.body, text, kind) if isinstance(response.body, StreamBody) else _json_body(text)
    edited = replace(exchange, response=replace(response, body=body))
    calls = default_registry().calls_of(edited, Memo())
    answer = calls[0].response if len(calls) == 1 else None
    if answer is None or all(isinstance(block, Unknown) for message in answer.messages for block in message.blocks):
        raise UsageError("the edited body is not an answer in its wire format")
    if not answer.complete:
        raise UsageError("the edited body is a truncated answer: add its end")
    return edited


def _json_body(text: str) -> Body:
    try:
        return JsonBody(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the edited body is not JSON: {error}") from None


def _stream_body(before: StreamBody, text: str, content_type: str | None) -> Body:
    """Return the text as a stream with the times of `before`; additional events get the last time."""
    data = text.encode()
    start = data[:_SNIFFED_BYTES]
    framer = framer_for(content_type, start) or list_framer_for(content_type, start)
    if framer is None:
        raise UsageError("cannot edit this stream: its events have no known framing")
    frames = [*framer.feed(data), *framer.close()]
    last = before.ms[-1] if before.ms else 0
    return StreamBody(frames, [before.ms[n] if n < len(before.ms) else last for n in range(len(frames))])
