"""Tapes of agent loops, made from a seed: several wire formats, tools, streams, WebSockets, failures, open journals."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.fuzz.seeds import hand_made
from tests.support.taping import SSE_TYPE, Taping
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.writing.writer import write_tape

URLS = {
    "chat": "https://api.example.com/v1/chat/completions",
    "messages": "https://api.anthropic.com/v1/messages",
    "responses": "https://api.openai.com/v1/responses",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/gemini-3:generateContent",
}
WORDS = (
    "weather",
    "天气",
    "plan",
    "🙂",
    "key",
    "2026-03-01 12:00",
    "answer",
    "\u202e",
    "é",
    "~0,0:",
    "file.py",
    "<tool>",
)
TOOLS = ("search", "read_file", "Task", "run")


def generated(seed: int, count: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Name, text and journal of each tape; the journal of most is empty."""
    with tempfile.TemporaryDirectory(prefix="wiretape-generated-") as directory:
        for number in range(count):
            source = random.Random(f"{seed} generated {number}")
            path = Path(directory, f"generated-{number}.tape")
            journal = b""
            if number % 8 == 7:
                journal = _left_open(path, source)
            else:
                exchanges = list(_loop(source)) if number % 8 else source.sample(hand_made(), 3)
                numbered = [_placed(exchange, n) for n, exchange in enumerate(exchanges, 1)]
                write_tape(path, _header(source), numbered)
            yield path.stem, path.read_bytes(), journal


def _header(source: random.Random) -> Header:
    started = datetime(2026, source.randrange(1, 13), 3, 4, 5, 6, source.randrange(1_000_000), tzinfo=UTC)
    note = _text(source) if source.random() < 0.5 else None
    return Header(wiretape=VERSION, started=started, recorder="wiretape 0.1.0", note=note, bypassed=["other.example"])


def _placed(exchange: Exchange, number: int) -> Exchange:
    from dataclasses import replace

    return replace(exchange, number=number)


def _text(source: random.Random, most: int = 12) -> str:
    return " ".join(source.choices(WORDS, k=source.randrange(1, most)))


def _loop(source: random.Random) -> Iterator[Exchange]:
    """A conversation that grows, with tools and now and then a failure."""
    form = source.choice(list(URLS))
    history: list[Any] = [{"role": "user", "content": _text(source)}]
    at = 0
    for number in range(1, source.randrange(2, 9)):
        tool = (source.choice(TOOLS), f"call_{number}") if source.random() < 0.6 else None
        failed = source.random() < 0.1
        answer = _answer(form, source, tool)
        yield _exchange(form, number, at, history, answer, failed, source)
        at += source.randrange(1, 5000)
        if not failed:
            history = [*history, *_continued(form, answer, tool, source)]


def _exchange(
    form: str, number: int, at: int, history: list[Any], answer: Any, failed: bool, source: random.Random
) -> Exchange:
    member = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    asked = {"model": "gpt-5", member: history, "tools": [{"name": name} for name in TOOLS], "temperature": 0.5}
    headers = Headers([("content-type", "application/json"), ("user-agent", "openai-python/1.2"), ("x-a", "1")])
    request = Request("POST", URLS[form], headers, JsonBody(asked), "1.1")
    end = at + source.randrange(5, 3000)
    if failed and source.random() < 0.5:
        return Exchange(number, at, request, None, Ended.UPSTREAM_UNREACHABLE, end)
    if failed:
        body = JsonBody({"error": {"message": "slow down", "type": "rate_limit"}})
        return Exchange(number, at, request, Response(429, headers, at + 2, body), Ended.COMPLETE, end)
    if form == "chat" and source.random() < 0.5:
        body = _streamed(answer)
        return Exchange(number, at, request, Response(200, Headers(SSE_TYPE), at + 3, body), Ended.COMPLETE, end)
    return Exchange(number, at, request, Response(200, headers, at + 3, JsonBody(answer)), Ended.COMPLETE, end)


def _answer(form: str, source: random.Random, tool: tuple[str, str] | None) -> Any:
    text = _text(source)
    name, call = tool or ("", "")
    spent = source.randrange(1, 9999)
    match form:
        case "chat":
            calls = [{"id": call, "type": "function", "function": {"name": name, "arguments": '{"q": "x"}'}}]
            said = {"role": "assistant", "content": text} | ({"tool_calls": calls} if tool else {})
            usage = {"prompt_tokens": spent, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}
            choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if tool else "stop"}
            return {"id": "c1", "object": "chat.completion", "model": "gpt-5", "choices": [choice], "usage": usage}
        case "messages":
            blocks: list[Any] = [{"type": "text", "text": text}]
            blocks += [{"type": "tool_use", "id": call, "name": name, "input": {"q": [1, {"a": None}]}}] if tool else []
            usage = {"input_tokens": spent, "output_tokens": 5, "cache_read_input_tokens": 8}
            return {"id": "m", "type": "message", "role": "assistant", "content": blocks, "usage": usage, "model": "c"}
        case "responses":
            items: list[Any] = [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            ]
            items += [{"type": "function_call", "call_id": call, "name": name, "arguments": "{}"}] if tool else []
            usage = {"input_tokens": spent, "output_tokens": 5, "total_tokens": spent + 5}
            return {"id": "r", "status": "completed", "output": items, "usage": usage, "model": "gpt-5"}
        case _:
            parts: list[Any] = [{"text": text}]
            parts += [{"functionCall": {"name": name, "args": {"q": 1}}}] if tool else []
            usage = {"promptTokenCount": spent, "candidatesTokenCount": 5, "totalTokenCount": spent + 5}
            return {"candidates": [{"content": {"role": "model", "parts": parts}}], "usageMetadata": usage}


def _continued(form: str, answer: Any, tool: tuple[str, str] | None, source: random.Random) -> list[Any]:
    """What the next request adds to the history."""
    result = _text(source, 40)
    name, call = tool or ("", "")
    match form:
        case "chat":
            said = answer["choices"][0]["message"]
            back = {"role": "tool", "tool_call_id": call, "content": result}
        case "messages":
            said = {"role": "assistant", "content": answer["content"]}
            back = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": result}]}
        case "responses":
            return [*answer["output"], {"type": "function_call_output", "call_id": call, "output": result}]
        case _:
            said = answer["candidates"][0]["content"]
            back = {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"r": result}}}]}
    return [said, back if tool else {"role": "user", "content": result}]


def _streamed(answer: Any) -> StreamBody:
    message = answer["choices"][0]["message"]
    pieces = [{"content": word + " "} for word in message["content"].split()]
    pieces += [{"tool_calls": [{"index": 0, **call}]} for call in message.get("tool_calls", ())]
    chunks = [
        {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one}]} for one in pieces
    ]
    chunks.append(
        {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": answer["usage"]}
    )
    frames = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
    return StreamBody(tuple(frames), tuple(range(5, 5 + 3 * len(frames), 3)))


def _left_open(path: Path, source: random.Random) -> bytes:
    """Record, and stop as if the recorder was killed. Return the journal."""
    taping = Taping(path)
    for exchange in _loop(source):
        if exchange.response is None:
            continue
        body = json.dumps(exchange.request.body.value).encode() if isinstance(exchange.request.body, JsonBody) else b""
        taping.call(body, [b'{"choices": []}'], url=exchange.request.url)
    number = taping.recorder.begin("POST", URLS["chat"], "1.1", [("content-type", "application/json")])
    taping.recorder.request_data(number, b'{"model": "m", "messages": []}')
    taping.recorder.request_end(number)
    taping.recorder.response(number, 200, SSE_TYPE)
    taping.recorder.response_data(number, b'data: {"choices": []}\n\ndata: {"cho')
    journal = path.with_name(path.name + ".journal").read_bytes()
    text = path.read_bytes()
    taping.recorder.close()
    path.write_bytes(text)
    return journal
