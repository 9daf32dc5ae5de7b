"""Decodes Ollama's messages in requests and responses, and its streams: one JSON object per line."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from wiretape.model.call import (
    CallRequest,
    CallResponse,
    Finish,
    Media,
    Message,
    Reasoning,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from wiretape.model.http import Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import MessageBuilder
from wiretape.wire.decoding import (
    StreamAssembler,
    assemble,
    response_error,
    stream_response,
    text_response,
    unknown_message,
    with_tool_calls,
)
from wiretape.wire.failures import has_error
from wiretape.wire.lenient import dumps, is_empty, items, number, obj, string
from wiretape.wire.payload import Event, EventPayload, JsonPayload, TextPayload, read_payload
from wiretape.wire.token_counts import judged_usage

_CARRIED = ("role", "content", "thinking", "images", "tool_calls")
_RESULT_CARRIED = ("role", "content", "tool_name", "name", "tool_call_id")
_FINISH: dict[str, Finish] = {"stop": "stop", "length": "length", "load": "pause", "unload": "pause"}
_NO_GENERATION = ("load", "unload")
_COUNTS = ("prompt_eval_count", "eval_count", "prompt_eval_cached_count")
_PIECE = {"model", "created_at", "message", "done"}
_PIECE_MESSAGE = {"role", "content"}
_GROWING = ("content", "thinking")
_SHOWS_ANSWER = frozenset({"message", "response", "done", "thinking", "image"})
_KNOWN_MEMBERS = frozenset(
    {"model", "created_at", "message", "response", "thinking", "tool_calls", "context", "image", "done", "done_reason"}
    | {"completed", "total", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "logprobs"}
    | {"remote_model", "remote_host", "error", "signin_url", *_COUNTS}
)


def request_message(raw: Json) -> Message:
    """Decode one entry of `messages`."""
    if not isinstance(raw, dict):
        return unknown_message("message", raw, "unknown")
    role = raw.get("role")
    return ollama_message(raw, role if isinstance(role, str) and role else "unknown")


def ollama_message(raw: JsonObject, role: str, truncated: bool = False) -> Message:
    """Decode a message; its blocks are in the order reasoning, text, images, tool calls."""
    into = MessageBuilder()
    if role == "tool":
        _add_result(into, raw)
        return into.build(role)
    thinking = string(raw.get("thinking"))
    if thinking:
        into.add(Reasoning(thinking), ".thinking")
    content = raw.get("content")
    into.text(content, ".content")
    if content is not None and not isinstance(content, str):
        into.add(Unknown("content", content), ".content")
    for n, image in enumerate(items(raw.get("images"))):
        into.add(Media("image", image if isinstance(image, dict) else {"image": image}), f".images[{n}]")
    for n, call in enumerate(items(raw.get("tool_calls"))):
        _add_call(into, call, f".tool_calls[{n}]", truncated)
    into.rest(raw, _CARRIED)
    return into.build("system" if role == "developer" else role)


def _add_result(into: MessageBuilder, raw: JsonObject) -> None:
    content = raw.get("content")
    text = content if isinstance(content, str) else "" if content is None else dumps(content)
    name = string(raw.get("tool_name")) or string(raw.get("name"))
    into.add(ToolResult(string(raw.get("tool_call_id")), name, text), ".content")
    into.rest(raw, _RESULT_CARRIED)


def _add_call(into: MessageBuilder, raw: Json, path: str, truncated: bool) -> None:
    call = obj(raw)
    function = obj(call.get("function"))
    if not string(function.get("name")):
        if not is_empty(raw):
            into.add(Unknown("tool_call", raw), path)
        return
    given = function.get("arguments")
    arguments = given if isinstance(given, str) else ("" if truncated else "{}") if given is None else dumps(given)
    call_id = string(call.get("id")) or string(function.get("id"))
    into.add(ToolCall(call_id, function["name"], arguments), f"{path}.function.arguments")
    into.rest(call, ("id", "type", "function"), f"{path[1:]}.")
    into.rest(function, ("id", "index", "name", "arguments", "description"), f"{path[1:]}.function.")


def context_id(context: Json) -> str | None:
    """Return a short id for the opaque context, which an answer returns and the next request repeats."""
    return f"context-{hashlib.sha256(dumps(context).encode()).hexdigest()[:16]}" if items(context) else None


def loads_only(request: CallRequest, response: CallResponse | None) -> bool:
    """Return whether an empty request only loads or unloads the model."""
    if response is not None and response.raw_finish:
        return response.raw_finish in _NO_GENERATION
    return not request.messages and request.model is not None


class OllamaAssembler(StreamAssembler):
    """Joins the lines of one stream; `value` is the answer so far."""

    __slots__ = ("_calls", "_members", "_message", "_pieces")

    def __init__(self) -> None:
        super().__init__()
        self._members: JsonObject = {}
        self._pieces: dict[str, list[str]] = {}
        self._calls: list[Json] = []
        self._message: JsonObject = {}

    def add(self, event: Event) -> None:
        line = event.value
        if not isinstance(line, dict):
            self.unknown_events.append(line)
            return
        message = line.get("message")
        if isinstance(message, dict) and self._is_piece(line, message):  # most lines
            self._pieces.setdefault("message.content", []).append(message["content"])
            if self.first_ms is None:
                self.first_ms = event.ms
            return
        if has_error(line):
            self.error = line
            return
        if not (_SHOWS_ANSWER & line.keys() or "completed" in line):
            self.unknown_events.append(line)
            return
        message = obj(message)
        bearing = [self._grow(f"message.{name}", message.get(name)) for name in _GROWING]
        bearing += [self._grow(name, line.get(name)) for name in ("response", "thinking")]
        calls = [*items(message.get("tool_calls")), *items(line.get("tool_calls"))]
        self._calls += calls
        self._message.update({k: v for k, v in message.items() if k not in (*_GROWING, "tool_calls")})
        joined_members = ("message", "response", "thinking", "tool_calls")
        self._members.update({k: v for k, v in line.items() if k not in joined_members})
        self.finished = self._members.get("done") is True
        if any(bearing) or calls or string(line.get("image")):
            self.note_content(event.ms)

    def _is_piece(self, line: JsonObject, message: JsonObject) -> bool:
        """Return whether a line only continues the text."""
        plain = line.keys() == _PIECE and message.keys() == _PIECE_MESSAGE and line["done"] is False
        return plain and bool(self._members) and isinstance(message["content"], str) and message["content"] != ""

    def _grow(self, name: str, piece: Json) -> bool:
        if not isinstance(piece, str) or not piece:
            return False
        self._pieces.setdefault(name, []).append(piece)
        return True

    def value(self) -> JsonObject:
        joined = {name: "".join(pieces) for name, pieces in self._pieces.items()}
        message = {name.removeprefix("message."): text for name, text in joined.items() if "." in name}
        top = {name: text for name, text in joined.items() if "." not in name}
        calls = {"tool_calls": self._calls} if self._calls else {}
        if message or self._message:
            return {**self._members, **top, "message": {**self._message, **message, **calls}}
        return {**self._members, **top, **calls}


def decode_response(response: Response, whole: bool) -> CallResponse:
    """Decode the response by its bytes. `complete`: the exchange ended normally."""
    payload = read_payload(response)
    match payload:
        case JsonPayload(value=value):
            if isinstance(value, dict) and value.get("done") is False:  # the only line of a truncated stream
                return _stream(response, EventPayload([Event("", value, None)]))
            return _answer(response, value)
        case EventPayload():
            return _stream(response, payload)
        case TextPayload(text=text):
            return text_response(response, text, whole)


def _answer(response: Response, value: Json, truncated: bool = False) -> CallResponse:
    body = obj(value)
    error = response_error(response, value)
    message = _message(body, truncated)
    messages = (message,) if message.blocks or message.extra else ()
    if error is None and not truncated and _SHOWS_ANSWER.isdisjoint(body):
        messages = (unknown_message("response", value),)
    raw_finish = string(body.get("done_reason"))
    has_calls = bool(obj(body.get("message")).get("tool_calls") or body.get("tool_calls"))
    finish = _FINISH.get(raw_finish or "")
    return CallResponse(
        status=response.status,
        model=string(body.get("model")),
        id=context_id(body.get("context")),
        messages=messages,
        finish=with_tool_calls(finish, has_calls and not truncated),
        raw_finish=raw_finish,
        usage=ollama_usage(body),
        error=error,
        complete=not truncated,
    )


def _message(body: JsonObject, truncated: bool) -> Message:
    """Decode the message of a chat, or the top-level members of `generate`."""
    if isinstance(body.get("message"), dict):
        message = ollama_message(body["message"], string(body["message"].get("role")) or "assistant", truncated)
        more = tuple((k, v) for k, v in body.items() if k not in _KNOWN_MEMBERS and not is_empty(v))
        return replace(message, extra=message.extra + more) if more else message
    as_message = {
        "thinking": body.get("thinking"),
        "content": body.get("response"),
        "tool_calls": body.get("tool_calls"),
    }
    message = ollama_message(as_message, "assistant", truncated)
    paths = tuple(".response" if path == ".content" else path for path in message.block_paths)
    into = MessageBuilder()
    for block, path in zip(message.blocks, paths, strict=True):
        into.add(block, path)
    if string(body.get("image")):
        into.add(Media("image", {"image": body["image"]}), ".image")
    into.rest(body, _KNOWN_MEMBERS)
    return into.build("assistant")


def ollama_usage(body: JsonObject) -> Usage | None:
    """Read the counts. Zero counts are omitted on this wire; output includes thinking."""
    counted = {name: body[name] for name in _COUNTS if number(body.get(name)) is not None}
    prompt, output, cached = (number(counted.get(name)) for name in _COUNTS)
    return judged_usage(counted, prompt, output, None, cached=cached)


def _stream(response: Response, payload: EventPayload) -> CallResponse:
    assembler = assemble(OllamaAssembler(), payload.events)
    decoded = _answer(response, assembler.value(), truncated=not assembler.finished)
    return stream_response(decoded, response, payload, assembler, complete=assembler.finished)
