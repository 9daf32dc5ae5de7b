"""The cost of decoding, as ratios to `orjson.loads` of the same bytes.

For each format: a call that is all new, and call 200 of a loop whose history was seen before, against the same call
without that history. A call is what an agent's first one is: a long prompt, 20 tools, a question (20 KB), and an
answer given whole or in 300 events of a few characters each, spelled with all the members that the providers spell.
What a binary stream's checksums cost counts with `orjson.loads`. Times are CPU times, so that other work on the
machine counts little. The last line is JSON. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import orjson

from wiretape.model.http import Body, Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody, body_bytes
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, built_in

CALLS = 200
EVENTS = 300
ROUNDS = 8
TEXT = "The agent read 42 files, changed src/app.py and then ran 87 tests, all of which passed. "
MOST = 8.0  # times orjson.loads of the new content
MOST_SEEN = 2.0  # times the same call without its history
Json = Any


@dataclass(frozen=True)
class Form:
    """How a format spells a loop: its URL, a request with these messages, a message of text, an answer, its events."""

    url: str
    request: Callable[[list[Json]], Json]
    said: Callable[[str, str], Json]
    answer: Callable[[str], Json]
    first: Json
    delta: Callable[[str], Json]
    last: Json
    binary: bool = False


def tools(spell: Callable[[str], Json]) -> list[Json]:
    return [spell(f"tool_{n}") for n in range(20)]


SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": TEXT * 5}}}
USAGE = {"prompt_tokens": 900, "completion_tokens": 300, "total_tokens": 1200}
RESPONSES_USAGE = {"input_tokens": 900, "output_tokens": 300, "total_tokens": 1200}
GEMINI_USAGE = {"promptTokenCount": 900, "candidatesTokenCount": 300, "totalTokenCount": 1200}
CHUNK = {"id": "chatcmpl-C0Tdu3Fo2nPQc9YvTP1vN7tXn6mIz", "object": "chat.completion.chunk", "created": 1760000000,
         "model": "m-1-2026-01-01", "service_tier": "default", "system_fingerprint": "fp_51db84afab"}  # fmt: skip
PADDING = "abcdefghijklmnopqrstuvwxyzABCDEF"
ITEM = "msg_68a6cd5aa1fc8193b7c9c3a7b3ce7e1a07a5c1a5a3a0a3f5"


def _response(text: str) -> Json:
    item = {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [item],
            "usage": RESPONSES_USAGE}  # fmt: skip


def _candidate(text: str) -> Json:
    return {
        "candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}],
        "modelVersion": "m-1",
    }


FORMS = {
    "openai.chat": Form(
        "https://a.example/v1/chat/completions",
        lambda messages: {
            "model": "m",
            "messages": messages,
            "tools": tools(lambda n: {"type": "function", "function": {"name": n, "parameters": SCHEMA}}),
        },
        lambda role, text: {"role": role, "content": text},
        lambda text: {"id": "c", "model": "m", "choices": [{"message": {"role": "assistant", "content": text},
                      "finish_reason": "stop"}], "usage": USAGE},
        {**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]},
        lambda text: {**CHUNK, "choices": [{"index": 0, "delta": {"content": text}, "logprobs": None,
                      "finish_reason": None}], "usage": None, "obfuscation": "aB3dE5gH"},
        {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
    ),
    "openai.responses": Form(
        "https://a.example/v1/responses",
        lambda items: {
            "model": "m",
            "input": items,
            "tools": tools(lambda n: {"type": "function", "name": n, "parameters": SCHEMA}),
        },
        lambda role, text: {"role": role, "content": [{"type": "input_text", "text": text}]},
        _response,
        {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}},
        lambda text: {"type": "response.output_text.delta", "sequence_number": 104, "item_id": ITEM, "output_index": 0,
                      "content_index": 0, "delta": text, "logprobs": [], "obfuscation": "aB3dE5gH7jK9"},
        {"type": "response.completed", "response": _response(TEXT)},
    ),
    "anthropic.messages": Form(
        "https://a.example/v1/messages",
        lambda messages: {
            "model": "m",
            "max_tokens": 9,
            "messages": messages,
            "tools": tools(lambda n: {"name": n, "input_schema": SCHEMA}),
        },
        lambda role, text: {"role": role, "content": [{"type": "text", "text": text}]},
        lambda text: {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
                      "stop_reason": "end_turn", "usage": {"input_tokens": 900, "output_tokens": 300}},
        {"type": "message_start", "message": {"id": "m", "type": "message", "usage": {"input_tokens": 9}}},
        lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 300}},
    ),
    "gemini.generate": Form(
        "https://a.example/v1beta/models/m:streamGenerateContent",
        lambda contents: {
            "contents": contents,
            "tools": [{"functionDeclarations": tools(lambda n: {"name": n, "parametersJsonSchema": SCHEMA})}],
        },
        lambda role, text: {"role": role, "parts": [{"text": text}]},
        lambda text: {**_candidate(text), "usageMetadata": GEMINI_USAGE},
        _candidate(""),
        _candidate,
        {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": GEMINI_USAGE},
    ),
    "bedrock.converse": Form(
        "https://a.example/model/m/converse-stream",
        lambda messages: {
            "messages": messages,
            "toolConfig": {"tools": tools(lambda n: {"toolSpec": {"name": n, "inputSchema": {"json": SCHEMA}}})},
        },
        lambda role, text: {"role": role, "content": [{"text": text}]},
        lambda text: {"output": {"message": {"role": "assistant", "content": [{"text": text}]}},
                      "stopReason": "end_turn", "usage": {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18}},
        ("messageStart", {"role": "assistant"}),
        lambda text: ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}, "p": PADDING}),
        ("messageStop", {"stopReason": "end_turn"}),
        binary=True,
    ),
    "ollama.chat": Form(
        "https://a.example/api/chat",
        lambda messages: {
            "model": "m",
            "messages": messages,
            "tools": tools(lambda n: {"type": "function", "function": {"name": n, "parameters": SCHEMA}}),
        },
        lambda role, text: {"role": role, "content": text},
        lambda text: {"model": "m", "created_at": "2026", "message": {"role": "assistant", "content": text},
                      "done": True, "done_reason": "stop", "eval_count": 300},
        {"model": "m", "created_at": "2026", "message": {"role": "assistant", "content": ""}, "done": False},
        lambda text: {"model": "m", "created_at": "2026-01-01T00:00:00Z",
                      "message": {"role": "assistant", "content": text}, "done": False},
        {"model": "m", "created_at": "2026", "message": {"content": ""}, "done": True, "done_reason": "stop"},
    ),
    "cohere.chat": Form(
        "https://a.example/v2/chat",
        lambda messages: {
            "model": "m",
            "messages": messages,
            "tools": tools(lambda n: {"type": "function", "function": {"name": n, "parameters": SCHEMA}}),
        },
        lambda role, text: {"role": role, "content": text},
        lambda text: {"id": "c", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]},
                      "finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 9, "output_tokens": 9}}},
        {"type": "message-start", "id": "c"},
        lambda text: {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    ),
}  # fmt: skip


def body(form: Form, streamed: bool) -> tuple[Body, list[bytes]]:
    """An answer, and the JSON texts in it."""
    if not streamed:
        value = form.answer(TEXT * 10)
        return JsonBody(value), [orjson.dumps(value)]
    values = [form.first, *(form.delta(TEXT[n % 60 : n % 60 + 4]) for n in range(EVENTS)), form.last]
    if form.binary:
        frames, texts = [event(*value) for value in values], [orjson.dumps(value[1]) for value in values]
    elif form.url.endswith("/api/chat"):
        texts = [orjson.dumps(value) for value in values]
        frames = [text + b"\n" for text in texts]
    else:
        texts = [orjson.dumps(value) for value in values]
        frames = [b"data: " + text + b"\n\n" for text in texts]
    return StreamBody(tuple(frames), (0,) * len(frames), form.binary), texts


def exchange(form: Form, messages: list[Json], answer: Body, more: Json = None) -> Exchange:
    value = {**(more or form.request([])), _list_of(form): messages}
    return Exchange(
        1, 0, Request("POST", form.url, Headers(), JsonBody(value)), Response(200, Headers(), 1, answer),
        Ended.COMPLETE, 2,
    )  # fmt: skip


def _list_of(form: Form) -> str:
    return next(name for name in ("messages", "input", "contents") if name in form.request([]))


def event(name: str, payload: Json) -> bytes:
    """One message of an AWS event stream."""
    said = ((":event-type", name), (":content-type", "application/json"), (":message-type", "event"))
    head = b"".join(bytes([len(k)]) + k.encode() + b"\x07" + len(v).to_bytes(2, "big") + v.encode() for k, v in said)
    data = orjson.dumps(payload)
    prelude = (len(head) + len(data) + 16).to_bytes(4, "big") + len(head).to_bytes(4, "big")
    whole = prelude + crc32(prelude).to_bytes(4, "big") + head + data
    return whole + crc32(whole).to_bytes(4, "big")


def ratio(action: Callable[[], object], floor: Callable[[], object], target: float) -> float:
    """The shortest of many runs of each, taken in turns. What misses its target is measured longer: on a busy machine
    every run may have been disturbed."""
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for _ in range(60):
            for n, run in enumerate((action, floor)):
                started = time.thread_time()
                run()
                best[n] = min(best[n], time.thread_time() - started)
        if best[0] <= target * best[1]:
            break
    return best[0] / best[1]


def new_content(registry: Registry, form: Form, streamed: bool) -> float:
    """Decoding a call that is all new, in times of `orjson.loads` of it."""
    answer, texts = body(form, streamed)
    one = exchange(form, [form.said("user", TEXT * 80), form.said("user", TEXT)], answer)
    texts = [*texts, body_bytes(one.request.body)]
    sums = [message for message in getattr(answer, "frames", ()) if form.binary]

    def floor() -> None:
        """Parsing; where the stream has checksums, checking those, too."""
        for message in sums:
            crc32(message[:8])
            crc32(message[:-4])
        for text in texts:
            orjson.loads(text)

    return ratio(lambda: registry.calls_of(one, Memo()), floor, MOST)


def seen_history(registry: Registry, form: Form) -> float:
    """Decoding call 200 of a loop, in times of decoding it without the history that the calls before it had, too."""
    answer, _ = body(form, streamed=True)
    head = form.request([])  # tools, which every call repeats as the same objects
    history: list[Json] = []
    memo = Memo()
    for number in range(CALLS):
        history += [form.said("user", f"{number} {TEXT}"), form.said("assistant", f"{number} {TEXT}")]
        registry.calls_of(exchange(form, list(history), answer, head), memo)

    def last(kept: list[Json]) -> object:
        """The call with two messages that are new each time: nothing is remembered of those."""
        new = [form.said("user", TEXT), form.said("assistant", TEXT)]
        return registry.calls_of(exchange(form, [*kept, *new], answer, head), memo)

    return ratio(lambda: last(history[:-2]), lambda: last([]), MOST_SEEN)


def main() -> int:
    registry = Registry(built_in())
    missed: list[str] = []
    results: dict[str, dict[str, float]] = {}
    print(f"{'times orjson.loads of the new content':30} {'whole':>7} {'stream':>7}   call {CALLS} / its new content")
    for name, form in FORMS.items():
        whole, streamed = (new_content(registry, form, kind) for kind in (False, True))
        seen = seen_history(registry, form)
        results[name] = {"whole": round(whole, 2), "streamed": round(streamed, 2), "seen": round(seen, 2)}
        print(f"  {name:28} {whole:7.2f} {streamed:7.2f}   {seen:.2f}")
        missed += [f"{name}: {kind} {ratio:.2f}, target {MOST}" for kind, ratio in
                   (("whole", whole), ("streamed", streamed)) if ratio > MOST]  # fmt: skip
        if seen > MOST_SEEN:
            missed.append(f"{name}: call {CALLS} costs {seen:.2f} of its new content, target {MOST_SEEN}")
    assert not registry.problems, registry.problems
    for line in missed:
        print(f"MISSED {line}")
    print(json.dumps({"bench": "wire", "ok": not missed, **results}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
