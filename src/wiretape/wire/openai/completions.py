"""The wire format `openai.completions`: legacy completions of a prompt, and fill-in-the-middle.

These calls have the kind `completion` and are never part of a turn.
"""

from __future__ import annotations

import re
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse, Message, Text
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    StreamAssembler,
    assemble,
    has_text,
    read_response,
    response_error,
    settings_of,
    stream_response,
    text_message,
    unknown_message,
)
from wiretape.wire.failures import has_error
from wiretape.wire.lenient import body_json, is_empty, items, number, obj, string
from wiretape.wire.openai import chat as openai_chat
from wiretape.wire.openai.usage import chat_finish, openai_usage
from wiretape.wire.payload import Event, EventPayload
from wiretape.wire.token_counts import latest_usage

_TAIL = re.compile(r"(?<!/chat)/(?:completions?|complete|infill)$")
_INPUTS = ("prompt", "suffix", "input_prefix", "input_suffix")
_TEXTS = ("text", "content", "completion", "value")  # OpenAI, llama.cpp, Anthropic's first API, Writer
_GROWING = frozenset({"choices", "usage", *_TEXTS})
_NEEDED = ("prompt", "input_prefix")


class OpenAICompletions(HttpFormat):
    name: ClassVar[str] = "openai.completions"
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"user", "metadata"}))

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request) or not _TAIL.search(recognition.path_of(request.url)):
            return Claim.NO
        body = obj(body_json(request.body))
        return Claim.CERTAIN if any(name in body for name in _NEEDED) and "messages" not in body else Claim.NO

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        return "completion"

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        return _request(body)

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return read_response(response, complete, _answer, lambda r, payload: _stream(r, payload, complete))

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return openai_chat.openai_error(status, message, code)


def _request(body: JsonObject) -> CallRequest:
    parts = RequestParts()
    for name in _INPUTS:
        value = body.get(name)
        if is_empty(value):
            continue
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            parts.add(name, [text_message("user", entry) for entry in value])
        elif isinstance(value, str):
            parts.add_scalar(name, text_message("user", value))
        else:  # a prompt of token ids
            parts.add_scalar(name, unknown_message("prompt", value, "user"))
    settings = settings_of(body, frozenset({"model", *_INPUTS}))
    return parts.request(string(body.get("model")), settings, stream=body.get("stream") is True)


def _answer(response: Response, value: Json) -> CallResponse:
    body = obj(value)
    if error := response_error(response, value):
        return CallResponse(response.status, error=error)
    choices = [obj(choice) for choice in items(body.get("choices"))]
    if any("message" in choice for choice in choices):  # fill-in-the-middle answers have the shape of a chat
        return openai_chat.decode_completion(response, value)
    texts = [(string(c.get("text")), f".choices[{n}].text", number(c.get("index"))) for n, c in enumerate(choices)]
    for name in _TEXTS[1:]:
        if isinstance(body.get(name), str):
            texts.append((body[name], f".{name}", None))
    messages = tuple(
        Message("assistant", (Text(text),), (path,), (("choice", index),) if index else ())
        for text, path, index in texts
        if text
    )
    if not messages and not choices and "usage" not in body:
        messages = (unknown_message("response", value),)
    raw_finish = string((choices[0] if choices else body).get("finish_reason")) or string(body.get("stop_reason"))
    return CallResponse(
        status=response.status,
        model=string(body.get("model")),
        id=string(body.get("id")),
        messages=messages,
        finish=chat_finish(raw_finish, False),
        raw_finish=raw_finish,
        usage=openai_usage(body.get("usage"), body.get("timings")),
    )


def _stream(response: Response, payload: EventPayload, ended: bool) -> CallResponse:
    """Decode a stream. `ended`: the exchange ended normally."""
    choices = [obj(choice) for event in payload.events for choice in items(obj(event.value).get("choices"))]
    # One server's last chunk has the shape of a chat.
    if any("delta" in choice for choice in choices) and not any(string(choice.get("text")) for choice in choices):
        return openai_chat.decode_stream(response, payload)
    assembler = assemble(CompletionAssembler(), payload.events)
    decoded = _answer(response, assembler.value())
    complete = payload.done or assembler.finished or (assembler.is_endless and ended)
    return stream_response(decoded, response, payload, assembler, complete=complete)


class CompletionAssembler(StreamAssembler):
    """Joins the events of one stream; `value` is the answer so far, choice by choice."""

    __slots__ = ("_members", "_pieces", "_reasons", "_usage", "is_endless")

    def __init__(self) -> None:
        super().__init__()
        self._members: JsonObject = {}
        self._usage: JsonObject | None = None
        self._pieces: dict[int, list[str]] = {}
        self._reasons: dict[int, str] = {}
        self.is_endless = False  # Writer's streams have no last event

    def add(self, event: Event) -> None:
        body = event.value
        if not isinstance(body, dict):
            self.unknown_events.append(body)
        elif has_error(body):
            self.error = body
        elif _GROWING.isdisjoint(body):
            if event.name != "ping":
                self.unknown_events.append(body)
        else:
            self._members.update({k: v for k, v in body.items() if k not in ("choices", "usage", *_TEXTS)})
            self._usage = latest_usage(self._usage, body.get("usage"))
            for choice in items(body.get("choices")) or [body]:
                if isinstance(choice, dict):
                    self._choice(choice, event.ms)
                elif has_text(choice):
                    self.unknown_events.append(choice)

    def _choice(self, choice: JsonObject, ms: int | None) -> None:
        index = number(choice.get("index")) or 0
        text = next((choice[k] for k in _TEXTS if isinstance(choice.get(k), str)), "")
        delta = choice.get("delta") or choice.get("message")
        text = text or string(obj(delta).get("content")) or ""
        if not text and has_text(choice):
            self.unknown_events.append(choice)
        self.is_endless = self.is_endless or isinstance(choice.get("value"), str)
        self._pieces.setdefault(index, []).append(text)
        if text:
            self.note_content(ms)
        reason = string(choice.get("finish_reason")) or string(choice.get("stop_reason"))
        if reason or choice.get("stop") is True:
            self._reasons[index] = reason or "stop"
            self.finished = True

    def value(self) -> JsonObject:
        choices = [
            {"index": index, "text": "".join(pieces), "finish_reason": self._reasons.get(index)}
            for index, pieces in sorted(self._pieces.items())
        ]
        return {**self._members, "choices": choices, "usage": self._usage or {}}
