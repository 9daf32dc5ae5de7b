"""Handmade recordings for the tests of replay: chat calls as an agent would send them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected, LiveRequest, Miss, Outcome, ReplayOptions, Stray
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

CHAT = "https://api.example.com/v1/chat/completions"


@dataclass(frozen=True)
class HandMade:
    """As much of a tape as a session looks at."""

    exchanges: tuple[Exchange, ...]
    path: Path | None = Path("hand.tape")


def chat(*messages: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {"model": "m-1", "messages": list(messages), **settings}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(name: str, arguments: str, id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def reply(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "m-1", "choices": [choice]}


def response(answer: Any, status: int = 200, at: int = 0, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, Headers({"content-type": "application/json", **named}.items()), at, JsonBody(answer))


def stream(*frames: str, ms: Sequence[int] | None = None) -> Response:
    body = StreamBody([frame.encode() for frame in frames], list(ms or range(0, 10 * len(frames), 10)))
    return Response(200, Headers([("content-type", "text/event-stream")]), 0, body)


def exchange(
    number: int,
    body: Any,
    answer: Any = "ok",
    url: str = CHAT,
    method: str = "POST",
    ended: Ended = Ended.COMPLETE,
) -> Exchange:
    made = (
        answer
        if isinstance(answer, Response | None)
        else response(reply(answer) if isinstance(answer, str) else answer)
    )
    sent = Request(
        method, url, Headers([("content-type", "application/json")]), None if body is None else JsonBody(body)
    )
    return Exchange(number, number * 100, sent, made, ended, number * 100 + 50)


def session(*exchanges: Exchange, **options: Any) -> ReplaySession:
    return ReplaySession([HandMade(exchanges)], ReplayOptions(**options))  # type: ignore[list-item]


def taped(*exchanges: Exchange) -> Tape:
    """A tape in memory."""
    header = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
    return Tape(Path("hand.tape"), header, exchanges, (), False)


def live(body: Any, url: str = CHAT, method: str = "POST", **headers: str) -> LiveRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    return LiveRequest(method, url, Headers(named.items()), data)


def said(outcome: Outcome) -> str:
    """The text of a chat answer, or the error."""
    match outcome:
        case Answer(exchange=found):
            assert found.response is not None
            assert isinstance(found.response.body, JsonBody)
            text: str = found.response.body.value["choices"][0]["message"]["content"]
            return text
        case Injected(fault=fault):
            return f"injected: {fault.spec}"
        case Miss(reason=reason):
            return f"miss: {reason}"
        case Stray():
            return "stray"
