"""Formats of side calls without a conversation: embeddings, rerank, moderation, token counts, decisions.

Every provider has nearly the same shape: the path identifies the kind, one or two members hold the input, and the
answer is one value with a token count, kept complete. A new kind is one small class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from wiretape.model.call import CallKind, CallRequest, CallResponse, Media, Message, Text, Usage
from wiretape.model.http import Exchange, Headers, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire import recognition
from wiretape.wire.base import Claim, Memo, Volatile
from wiretape.wire.bedrock.usage import header_usage
from wiretape.wire.decoding import (
    HttpFormat,
    RequestParts,
    response_claim,
    response_error,
    settings_of,
    side_answer,
    text_response,
)
from wiretape.wire.gemini.generate import gemini_error
from wiretape.wire.lenient import body_json, first, is_empty, items, number, obj, string
from wiretape.wire.openai.chat import openai_error
from wiretape.wire.payload import JsonPayload, TextPayload, read_payload

_GEMINI_PATH = re.compile(r"/([^/:]+):\w+$")
_PLAIN = {  # members that hold one text or a list of texts
    "embedding": ("input", "inputs", "texts", "content", "text", "prompt", "images", "image", "requests", "instances"),
    "rerank": ("query", "queries", "documents", "texts", "sources"),
    "moderation": ("input",),
    "token_count": ("text", "content", "prompt", "input", "messages"),
    "decision": ("input", "questions"),
}


class SideCalls(HttpFormat):
    """One kind of side call. `needs`: the body must have one member of each group."""

    kind: ClassVar[CallKind]
    tail: ClassVar[re.Pattern[str]]
    needs: ClassVar[tuple[tuple[str, ...], ...]]
    volatile: ClassVar[Volatile] = Volatile(settings=frozenset({"user", "safety_identifier", "labels"}))

    def claims(self, request: Request) -> Claim:
        if not recognition.is_post(request) or not self.tail.search(recognition.path_of(request.url)):
            return Claim.NO
        body = body_json(request.body)
        if not isinstance(body, dict) or "jsonrpc" in body:
            return Claim.NO
        return Claim.CERTAIN if all(any(name in body for name in group) for group in self.needs) else Claim.NO

    def claims_response(self, exchange: Exchange) -> Claim:
        return Claim.NO  # vectors and lists of scores do not identify a format

    def _kind(self, exchange: Exchange, request: CallRequest) -> CallKind:
        return self.kind

    def _decode_body(self, body: JsonObject, request: Request, memo: Memo) -> CallRequest:
        decoded = side_request(body, self.kind)
        named = _GEMINI_PATH.search(recognition.path_of(request.url)) if decoded.model is None else None
        return replace(decoded, model=named[1]) if named else decoded

    def _decode_response(self, response: Response, complete: bool, kind: CallKind) -> CallResponse:
        return side_response(response, complete, kind)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return openai_error(status, message, code)


def side_request(body: JsonObject, kind: str) -> CallRequest:
    """Return the input, one message for each text."""
    parts = RequestParts()
    carried = {"model"}
    for name in _PLAIN[kind]:
        value = body.get(name)
        if is_empty(value):
            continue
        carried.add(name)
        if isinstance(value, list) and not all(isinstance(entry, int) for entry in value):
            parts.add(name, [_input_message(entry, kind) for entry in value])
        else:  # a list of whole numbers is one tokenized text
            parts.add_scalar(name, _input_message(value, kind))
    return parts.request(string(body.get("model")), settings_of(body, frozenset(carried)))


def _input_message(value: Json, kind: str) -> Message:
    if isinstance(value, str):
        return Message("user", (Text(value),), ("",))
    found = _text_in(value)
    if found is not None:
        return Message("user", (Text(found[0]),), (found[1],))
    if isinstance(value, dict):
        return Message("user", (Media(f"{kind}_input", value),), ("",))
    return Message("user", (Media(f"{kind}_input", {"value": value}),), ("",))


def _text_in(value: Json) -> tuple[str, str] | None:
    """Return text and path of an entry with one text: `{text}`, `{content}`, or Gemini's `{content: {parts}}`."""
    entry = obj(value)
    for name in ("text", "content", "input"):
        if isinstance(entry.get(name), str):
            return entry[name], f".{name}"
    holder, path = (obj(entry["content"]), ".content") if isinstance(entry.get("content"), dict) else (entry, "")
    parts = items(holder.get("parts"))
    if len(parts) == 1 and isinstance(obj(parts[0]).get("text"), str):
        return parts[0]["text"], f"{path}.parts[0].text"
    return None


def side_response(response: Response, complete: bool, kind: str) -> CallResponse:
    payload = read_payload(response)
    if isinstance(payload, TextPayload):
        return text_response(response, payload.text, complete)
    value = payload.value if isinstance(payload, JsonPayload) else [event.value for event in payload.events]
    if error := response_error(response, value):
        return CallResponse(response.status, error=error)
    body = obj(value)
    return CallResponse(
        response.status,
        model=string(body.get("model")),
        id=string(body.get("id")),
        messages=(side_answer(kind, value),),
        usage=side_usage(body, response.headers) if kind != "token_count" else None,
    )


def side_usage(body: JsonObject, headers: Mapping[str, str] | None = None) -> Usage | None:
    """Return the input tokens from any known member. Units billed by search, character or image are not tokens."""
    for read in _READERS:
        usage = read(body)
        if usage is not None:
            return usage
    return header_usage(headers or {})


def _listed(body: JsonObject) -> Usage | None:
    raw = obj(body.get("usage"))
    spelled = [number(raw.get(name)) for name in ("prompt_tokens", "input_tokens", "text_tokens", "total_tokens")]
    output = first(number(raw.get("completion_tokens")), number(raw.get("output_tokens")))
    return _counted(first(*spelled), raw, output)


def _cohere(body: JsonObject) -> Usage | None:
    meta = obj(body.get("meta"))
    sources = (obj(meta.get("tokens")), obj(meta.get("billed_units")))
    return _counted(first(*(number(t.get("input_tokens")) for t in sources)), meta)


def _gemini(body: JsonObject) -> Usage | None:
    raw = obj(body.get("usageMetadata"))
    if raw:
        return _counted(first(number(raw.get("promptTokenCount")), number(raw.get("totalTokenCount"))), raw)
    statistics = [obj(obj(obj(p).get("embeddings")).get("statistics")) for p in items(body.get("predictions"))]
    counts = [n for n in (number(t.get("token_count")) for t in statistics) if n is not None]
    return _counted(sum(counts) if counts else None, {"statistics": statistics})


def _plain_count(body: JsonObject) -> Usage | None:
    """Read the counts of Titan and Ollama."""
    for name in ("inputTextTokenCount", "prompt_eval_count"):
        count = number(body.get(name))
        if count is not None:
            return _counted(count, {name: count})
    return None


def _counted(count: int | None, raw: JsonObject, output: int | None = None) -> Usage | None:
    return None if count is None else Usage(count, None, None, output, None, raw)


_READERS: tuple[Callable[[JsonObject], Usage | None], ...] = (_listed, _cohere, _gemini, _plain_count)


class Embeddings(SideCalls):
    name = "embeddings"
    kind = "embedding"
    tail = re.compile(r"/(?:embeddings?|embed|contextualizedembeddings|embeddings/multimodal)$")
    needs = (("input", "inputs", "texts", "content", "text", "prompt", "images"),)

    def claims_response(self, exchange: Exchange) -> Claim:
        return response_claim(exchange, self.name)


class GeminiEmbeddings(SideCalls):
    name = "gemini.embedContent"
    kind = "embedding"
    tail = re.compile(r":(?:embedContent|batchEmbedContents|asyncBatchEmbedContent)$|embedding[^/:]*:predict$")
    needs = (("content", "requests", "instances", "batch"),)

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return gemini_error(status, message, code)


class Rerank(SideCalls):
    name = "rerank"
    kind = "rerank"
    tail = re.compile(r"/rerank$")
    needs = (("query", "queries"), ("documents", "texts", "sources"))


class Moderations(SideCalls):
    name = "moderations"
    kind = "moderation"
    tail = re.compile(r"/(?:moderations|classifications)$")
    needs = (("input",),)


class Tokenize(SideCalls):
    name = "tokenize"
    kind = "token_count"
    tail = re.compile(r"/(?:tokenize|tokenization|estimate-token-count)$")
    needs = (("text", "content", "prompt", "input", "messages"),)


class Decisions(SideCalls):
    name = "decisions"
    kind = "decision"
    tail = re.compile(r"/(?:decisions|systemone)$")
    needs = (("questions",), ("input",))


SIDE_CALLS = (Embeddings, GeminiEmbeddings, Rerank, Moderations, Tokenize, Decisions)
