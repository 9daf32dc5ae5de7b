"""A whole answer as the events in which its provider would stream it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_PIECE = 4  # characters a delta


def sse(answer: Json) -> Iterator[bytes]:
    """The answer's server-sent events, in its provider's spelling."""
    yield from _responses(answer) if "output" in answer else _chat(answer)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def _spell(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- Chat Completions ---


def _chat(answer: Json) -> Iterator[bytes]:
    choice = answer["choices"][0]
    head = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"

    def chunk(delta: Json, finish: str | None = None, usage: Json | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return f"data: {_spell({**head, 'choices': choices, 'usage': usage})}\n\n".encode()

    for delta in _chat_deltas(choice["message"]):
        yield chunk(delta)
    yield chunk({"content": ""}, choice["finish_reason"], answer.get("usage"))
    yield b"data: [DONE]\n\n"


def _chat_deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for name in ("reasoning_content", "content"):
        for piece in _pieces(message.get(name) or ""):
            yield {name: piece}
    for call in message.get("tool_calls", ()):
        function = call["function"]
        yield {"tool_calls": [{**call, "function": {"name": function["name"], "arguments": ""}}]}
        for piece in _pieces(function["arguments"]):
            yield {"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]}


# --- Responses ---


def _responses(answer: Json) -> Iterator[bytes]:
    for number, event in enumerate(_responses_events(answer)):
        event = {"type": event.pop("type"), "sequence_number": number, **event}
        yield f"event: {event['type']}\ndata: {_spell(event)}\n\n".encode()


def _responses_events(answer: Json) -> Iterator[Json]:
    begun = {**answer, "status": "in_progress", "output": []}
    begun.pop("usage", None)
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(answer["output"]):
        for event in _item_events(item):
            yield {**event, "output_index": index}
    yield {"type": "response.completed", "response": answer}


def _item_events(item: Json) -> Iterator[Json]:
    opened = {**item, "status": "in_progress"}
    opened.pop("encrypted_content", None)
    match item["type"]:
        case "function_call":
            yield {"type": "response.output_item.added", "item": {**opened, "arguments": ""}}
            yield from _deltas("response.function_call_arguments", "arguments", item["arguments"], {})
        case kind:
            yield {"type": "response.output_item.added", "item": {**opened, "content": []}}
            name = "response.reasoning_text" if kind == "reasoning" else "response.output_text"
            for index, part in enumerate(item["content"]):
                yield from _deltas(name, "text", part["text"], {"content_index": index})
    yield {"type": "response.output_item.done", "item": item}


def _deltas(name: str, member: str, text: str, place: Json) -> Iterator[Json]:
    for piece in _pieces(text):
        yield {"type": f"{name}.delta", **place, "delta": piece}
    yield {"type": f"{name}.done", **place, member: text}
