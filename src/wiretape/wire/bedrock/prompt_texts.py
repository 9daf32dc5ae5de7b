"""Decodes answers to plain prompts on Bedrock's Invoke: text, finish reason, tokens.

Llama, Titan, Mistral, Cohere and AI21 each have their own shape, whole and streamed. Tables list the members that hold
texts, reasons and counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wiretape.model.call import CallRequest, Message, Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.bedrock.usage import METRICS
from wiretape.wire.content import MessageBuilder
from wiretape.wire.decoding import (
    RequestParts,
    StreamAssembler,
    image_message,
    settings_of,
    text_message,
    unknown_message,
)
from wiretape.wire.failures import has_error
from wiretape.wire.lenient import first, items, number, obj, string
from wiretape.wire.payload import Event
from wiretape.wire.token_counts import judged_usage

PROMPTS = ("prompt", "inputText", "message")
_LISTS = ("results", "outputs", "generations", "completions", "choices")
_TEXTS = ("generation", "outputText", "text", "completion")
_REASONS = ("stop_reason", "completionReason", "finish_reason", "finishReason")
_COUNTS = ("prompt_token_count", "generation_token_count", "inputTextTokenCount", "totalOutputTextTokenCount")
_COHERE_EVENTS = ("stream-start", "text-generation", "stream-end")


class TextPiece(NamedTuple):
    text: str
    path: str
    reason: str | None


def is_text_answer(value: Json) -> bool:
    """Return whether a value has the members of one of these vendors."""
    body = obj(value)
    if any(isinstance(body.get(name), str) for name in _TEXTS) or body.get("event_type") in _COHERE_EVENTS:
        return True
    return any(_text_piece(obj(entry), "") for name in _LISTS for entry in items(body.get(name))[:1])


def texts(body: JsonObject) -> Iterator[TextPiece]:
    """Yield every text of an answer or event, with its path and its finish reason."""
    for name in _LISTS:
        for n, entry in enumerate(items(body.get(name))):
            piece = _text_piece(obj(entry), f".{name}[{n}]")
            if piece is not None:
                yield piece
    if not any(body.get(name) for name in _LISTS):
        piece = _text_piece(body, "")
        if piece is not None:
            yield piece


def _text_piece(entry: JsonObject, path: str) -> TextPiece | None:
    data = obj(entry.get("data"))  # AI21
    holder, path = (data, f"{path}.data") if data else (entry, path)
    name = next((n for n in _TEXTS if isinstance(holder.get(n), str)), None)
    if name is None:
        return None
    return TextPiece(holder[name], f"{path}.{name}", _reason(entry))


def _reason(entry: JsonObject) -> str | None:
    for name in _REASONS:
        value = entry.get(name)
        found = string(obj(value).get("reason")) if isinstance(value, dict) else string(value)
        if found:
            return found
    return None


def text_usage(body: JsonObject) -> Usage | None:
    """Read the counts of Llama and Titan; other vendors report them in headers and metrics only."""
    results = [obj(r) for r in items(body.get("results"))]
    counted = [n for n in (number(r.get("tokenCount")) for r in results) if n is not None]
    output = first(
        number(body.get("generation_token_count")),
        number(body.get("totalOutputTextTokenCount")),
        sum(counted) if counted else None,
    )
    prompt = first(number(body.get("prompt_token_count")), number(body.get("inputTextTokenCount")))
    raw = {k: v for k, v in body.items() if k.lower().endswith(("token_count", "tokencount")) and v is not None}
    return judged_usage(raw, prompt, output, None)


class TextAssembler(StreamAssembler):
    """Joins the pieces of one streamed text; `value` is the answer of an unstreamed call."""

    __slots__ = ("_counts", "_pieces", "_reason")

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []
        self._counts: JsonObject = {}
        self._reason: str | None = None

    def add(self, event: Event) -> None:
        body = obj(event.value)
        if event.name == "error" or has_error(event.value):
            self.error = event.value
        elif is_text_answer(body) or METRICS in body:
            self._add_piece(body, event.ms)
        else:
            self.unknown_events.append(event.value)

    def _add_piece(self, body: JsonObject, ms: int | None) -> None:
        pieces = list(texts(body))
        if body.get("event_type") != "stream-end":  # which repeats the whole text
            for piece in pieces:
                if piece.text:
                    self._pieces.append(piece.text)
                    self.note_content(ms)
        reasons = [piece.reason for piece in pieces] + [_reason(body), _reason(obj(body.get("response")))]
        self._reason = next((r for r in reasons if r), self._reason)
        self._counts.update({name: body[name] for name in _COUNTS if number(body.get(name)) is not None})
        self.finished = self.finished or bool(self._reason) or METRICS in body or body.get("is_finished") is True
        self.finished = self.finished or body.get("amazon-bedrock-guardrailAction") == "INTERVENED"

    def value(self) -> JsonObject:
        return {"text": "".join(self._pieces), "finish_reason": self._reason, **self._counts}


def prompt_request(body: JsonObject) -> CallRequest:
    """Decode a prompt, with Cohere's conversation before it."""
    parts = RequestParts()
    carried = {"model"}
    for name in ("preamble", "chat_history", *PROMPTS, "images"):
        value = body.get(name)
        if not value:
            continue
        carried.add(name)
        if name == "chat_history" and isinstance(value, list):
            parts.add(name, [_history_message(entry) for entry in value])
        elif name == "images" and isinstance(value, list):
            parts.add(name, [image_message(image) for image in value])
        elif isinstance(value, str):
            parts.add_scalar(name, text_message("system" if name == "preamble" else "user", value))
        else:
            parts.add_scalar(name, unknown_message(name, value, "user"))
    return parts.request(string(body.get("model")), settings_of(body, frozenset(carried)))


def _history_message(raw: Json) -> Message:
    turn = obj(raw)
    role = {"USER": "user", "CHATBOT": "assistant", "SYSTEM": "system"}.get(str(turn.get("role")))
    if role is None or not isinstance(turn.get("message"), str):
        return unknown_message("chat_history", raw, "unknown")
    into = MessageBuilder()
    into.text(turn["message"], ".message")
    into.rest(turn, ("role", "message"))
    return into.build(role)
