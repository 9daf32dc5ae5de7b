"""Builders of exchanges for tests of wire formats, and a short form of a decoded answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from wiretape.model.call import (
    CallResponse,
    Control,
    Media,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from wiretape.model.http import (
    Body,
    BytesBody,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    StreamBody,
    TextBody,
)
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, built_in

CHAT = "https://api.example.com/v1/chat/completions"
RESPONSES = "https://api.example.com/v1/responses"
MESSAGES = "https://api.example.com/v1/messages"
GEMINI = "https://api.example.com/v1beta/models/m:streamGenerateContent?alt=sse"
REGISTRY = Registry(built_in())
SSE = [("content-type", "text/event-stream")]
MINIMAL: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "go"}], "stream": True},
    RESPONSES: {"model": "m", "input": "go", "stream": True},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}], "stream": True},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "go"}]}]},
}


def frame(event: Any, name: str | None = None) -> bytes:
    """One SSE event; a string is its raw data."""
    data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


def named(events: Iterable[dict[str, Any]]) -> list[bytes]:
    """Frames whose SSE name is the event's type."""
    return [frame(e, e["type"]) for e in events]


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **members: Any) -> bytes:
    """A Chat Completions chunk with one choice (none if `delta` is None)."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return frame({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-1", "choices": choices, **members})


DONE = b"data: [DONE]\n\n"


def stream(frames: Sequence[bytes], ms: Sequence[int] | None = None) -> StreamBody:
    return StreamBody(tuple(frames), tuple(ms) if ms is not None else tuple(range(len(frames))))


def exchange(
    url: str,
    answer: Body | None,
    *,
    request: Any = None,
    status: int = 200,
    headers: Sequence[tuple[str, str]] = (),
    request_headers: Sequence[tuple[str, str]] = (),
    ended: Ended | None = Ended.COMPLETE,
    method: str = "POST",
    number: int = 1,
    at: int = 0,
) -> Exchange:
    body = JsonBody(MINIMAL.get(url, {}) if request is None else request)
    asked = Request(method, url, Headers(request_headers), body)
    response = Response(status, Headers(headers), at + 100, answer)
    return Exchange(number, at, asked, response, ended, at + 500)


def decode(one: Exchange) -> ModelCall:
    """The one model call of an exchange; fails if a format breaks its promise never to raise."""
    found = REGISTRY.recognise(one)
    assert found is not None, f"{one.request.url} was not recognised"
    return found.decode(one, Memo())


def answer(url: str, body: Any, **more: Any) -> CallResponse:
    """The response decoded from a body, from the frames of a stream, or from a JSON value."""
    if isinstance(body, list) and all(isinstance(part, bytes) for part in body):
        body = stream(body)
    elif isinstance(body, str):
        body = TextBody(body)
    elif isinstance(body, bytes):
        body = BytesBody(body)
    elif not isinstance(body, StreamBody | JsonBody | TextBody | BytesBody | None):
        body = JsonBody(body)
    found = decode(exchange(url, body, **more)).response
    assert found is not None
    return found


def short(block: Any) -> Any:
    """A block as a small tuple."""
    match block:
        case Text(text=text, refusal=refusal):
            return ("refusal" if refusal else "text", text)
        case Reasoning(text=text, opaque=opaque):
            return ("reasoning", text, opaque) if opaque else ("reasoning", text)
        case ToolCall(id=call_id, name=name, arguments=arguments, kind=kind):
            return (*(("call", call_id, name, arguments)), *((kind,) if kind != "function" else ()))
        case ToolResult(id=call_id, name=name, text=text, kind=kind):
            return ("result", call_id, name, text, *((kind,) if kind != "function" else ()))
        case Media(kind=kind):
            return ("media", kind)
        case Control(kind=kind):
            return ("control", kind)
        case Unknown(type=kind):
            return ("unknown", kind)
    raise AssertionError(block)


def blocks(messages: Iterable[Message]) -> list[Any]:
    return [short(block) for message in messages for block in message.blocks]


def said(response: CallResponse) -> list[Any]:
    return blocks(response.messages)


def counts(response: CallResponse) -> tuple[int | None, ...] | None:
    """(input, cached, cache_write, output, reasoning)."""
    used = response.usage
    return None if used is None else (used.input, used.cached, used.cache_write, used.output, used.reasoning)


def everything(response: CallResponse) -> tuple[Any, ...]:
    """The decoded call without its times, to compare two ways of receiving the same bytes."""
    messages = tuple((m.role, m.blocks, m.block_paths, m.extra, m.cache_marked) for m in response.messages)
    facts = (response.status, response.model, response.id, response.finish, response.raw_finish, response.complete)
    return (*facts, messages, response.usage, response.error, response.streamed)


def at_path(raw: Any, path: str) -> Any:
    """The value at a path such as `messages[3].content[0].text`; "" is the value itself."""
    for name, index in re.findall(r"\.?([A-Za-z_]\w*)|\[(\d+)\]", path):
        raw = raw[name] if name else raw[int(index)]
    return raw


def block_text(block: Any) -> str:
    match block:
        case Text(text=text) | Reasoning(text=text) | ToolResult(text=text):
            return text
        case ToolCall(arguments=arguments):
            return arguments
    return ""


def check_paths(call: ModelCall, body: Any) -> int:
    """Check that every block's path points to its text in the raw body. The number of blocks checked."""
    checked = 0
    for n, message in enumerate(call.request.messages):
        assert len(message.blocks) == len(message.block_paths)
        for block, path in zip(message.blocks, message.block_paths, strict=True):
            found = at_path(body, call.request.path(n) + path)
            text = block_text(block)
            if isinstance(found, str):
                assert text in found or (text == "{}" and not found), (call.request.path(n) + path, text, found)
            elif isinstance(block, ToolCall):
                given = {k: v for k, v in found.items() if k != "id"} if isinstance(found, dict) else found
                assert json.loads(text) in (found, given, {} if found is None else found)
            checked += 1
    return checked


def splits(frames: Sequence[bytes]) -> list[StreamBody]:
    """The same bytes: whole, byte by byte, and cut in the middle of frames."""
    joined = b"".join(frames)
    middle = [joined[i : i + 7] for i in range(0, len(joined), 7)]
    return [stream([joined]), stream([joined[i : i + 1] for i in range(len(joined))]), stream(middle)]


def check_chunking(url: str, frames: Sequence[bytes], **more: Any) -> CallResponse:
    """The answer, after checking that it is the same however the bytes come, and that no cut breaks anything."""
    whole = answer(url, list(frames), **more)
    for body in splits(frames):
        assert everything(answer(url, body, **more)) == everything(whole)
    joined = b"".join(frames)
    cuts = [*range(0, len(joined), max(1, len(joined) // 60)), len(joined) - 1]
    for cut in cuts:
        torn = answer(url, stream([joined[:cut]]), ended=Ended.UPSTREAM_CLOSED, **more)
        _check_torn(torn, whole)
    return whole


def _check_torn(torn: CallResponse, whole: CallResponse) -> None:
    """The part of a stream before a cut is a prefix of the whole."""

    def texts(response: CallResponse, kind: type) -> str:
        return "".join(b.text for m in response.messages for b in m.blocks if isinstance(b, kind))

    if not any({"abandoned", "choice"} & dict(m.extra).keys() for m in whole.messages):
        for kind in (Text, Reasoning):
            assert texts(whole, kind).startswith(texts(torn, kind))
        assert len(torn.messages) <= len(whole.messages) + 1
