"""WebSocket connections for tests: the messages of a Responses client and server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from wiretape.model.call import ModelCall
from wiretape.model.http import (
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    Sender,
    TextBody,
    WsMessage,
)
from wiretape.wire.registry import Registry, built_in, decode

Said = tuple[Sender, Any]
URL = "https://api.example.com/v1/responses"
REGISTRY = Registry(built_in())


def create(text: str | None = None, **members: Any) -> Said:
    """What a client sends to begin a response."""
    given = {} if text is None else {"input": [{"role": "user", "content": text}]}
    return "client", {"type": "response.create", "model": "m", **given, **members}


def events(response_id: str, *output: dict[str, Any], **members: Any) -> list[Said]:
    """The server messages of one response, from `created` to `completed`."""
    lane = {"stream_id": members.pop("stream_id")} if "stream_id" in members else {}
    shown = {"id": response_id, "object": "response", "model": "m-1"}
    said: list[dict[str, Any]] = [{"type": "response.created", "response": {**shown, "status": "in_progress"}}]
    for index, item in enumerate(output):
        said.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}})
        for part in item.get("content", ()):
            for piece in (part["text"][:3], part["text"][3:]):
                said.append({"type": "response.output_text.delta", "output_index": index, "delta": piece})
        said.append({"type": "response.output_item.done", "output_index": index, "item": item})
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}
    ended = {**shown, "status": "completed", "output": list(output), "usage": usage, **members}
    said.append({"type": f"response.{ended['status']}", "response": ended})
    return [("server", {**event, **lane}) for event in said]


def message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def function_call(name: str, call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": arguments}


def socket(
    said: Iterable[Said],
    *,
    number: int = 1,
    at: int = 0,
    url: str = URL,
    ended: Ended | None = Ended.COMPLETE,
    close: Close | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> Exchange:
    """A connection on which a message crosses every 10 ms, the first after 100."""
    messages = tuple(WsMessage(at + 100 + 10 * n, sender, body(value)) for n, (sender, value) in enumerate(said))
    over = messages[-1].at + 10 if messages else at + 110
    request = Request("GET", url, Headers(headers))
    response = Response(101, Headers(), at + 50)
    ended_at = None if ended is None else over
    return Exchange(number, at, request, response, ended, ended_at, messages, close)


def body(value: Any) -> JsonBody | TextBody | BytesBody:
    if isinstance(value, bytes):
        return BytesBody(value)
    return TextBody(value) if isinstance(value, str) else JsonBody(value)


def text(value: Any) -> str | bytes:
    """A message as a client or server hands it to its socket."""
    return value if isinstance(value, bytes | str) else json.dumps(value)


def calls_of(*exchanges: Exchange) -> list[ModelCall]:
    return decode(exchanges, REGISTRY)
