"""The JSON of `wiretape show --json`: a tape, a call or an exchange."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, fields

from wiretape.model.call import (
    Block,
    Control,
    Media,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unknown,
    Usage,
)
from wiretape.model.http import Body, BytesBody, Exchange, Headers, JsonBody, StreamBody, TextBody, body_bytes
from wiretape.model.jsonvalue import JsonObject
from wiretape.model.run import Run, Step
from wiretape.tape.format.documents import Header

_TYPE = {
    Text: "text",
    Reasoning: "reasoning",
    ToolCall: "tool_call",
    ToolResult: "tool_result",
    Media: "media",
    Control: "control",
    Unknown: "unknown",
}


def tape_json(name: str, header: Header, exchanges: Sequence[Exchange], run: Run) -> JsonObject:
    """Return every exchange, and a summary of each model call."""
    calls: dict[int, list[JsonObject]] = {}
    for step in run.steps:
        calls.setdefault(step.call.exchange, []).append(_summary(step, run))
    return {
        "tape": name,
        "header": header.model_dump(mode="json", exclude_none=True),
        "calls": len(run.steps),
        "turns": len(run.turns),
        "agents": [asdict(agent) for agent in run.agents],
        "links": [asdict(link) for link in run.links],
        "exchanges": [_exchange_summary(exchange, calls.get(exchange.number, [])) for exchange in exchanges],
    }


def call_json(step: Step, run: Run, why: str, *, full: bool = False) -> JsonObject:
    """Return a call: its new messages (all messages with `full`), and the answer."""
    call, request, response = step.call, step.call.request, step.call.response
    start = 0 if full else step.new_from
    return {
        **_summary(step, run),
        "why": why,
        "cause": {name: value for name, value in asdict(step.cause).items() if value not in (None, ())},
        "new_from": step.new_from,
        "messages_sent": len(request.messages),
        "messages": [{"path": request.path(start + i), **_message(m)} for i, m in enumerate(request.messages[start:])],
        "tools": [_tool(tool, full) for tool in request.tools],
        "settings": request.settings,
        "previous_response_id": request.previous_response_id,
        "ran": [
            {"tool": use.call.name, "index": use.index, "exchange": use.exchange, "ms": use.ran_ms}
            for use in run.tool_uses
            if use.call_number == call.number and use.exchange is not None
        ],
        "part": call.part,
        "frames": list(call.frames),
        "answer": [_message(message) for message in response.messages] if response else None,
        "complete": response.complete if response else False,
        "raw_finish": response.raw_finish if response else None,
        "error": asdict(response.error) if response and response.error else None,
        "url": call.url,
    }


def exchange_json(exchange: Exchange) -> JsonObject:
    """Return a whole exchange."""
    request, response = exchange.request, exchange.response
    said: JsonObject = {
        "exchange": exchange.number,
        "at_ms": exchange.at,
        "ended": exchange.ended,
        "ended_at_ms": exchange.ended_at,
        "request": {"method": request.method, "url": request.url, **_content(request.headers, request.body)},
        "response": None,
    }
    if response is not None:
        said["response"] = {"status": response.status, **_content(response.headers, response.body)}
    if exchange.messages:
        said["messages"] = [{"at_ms": m.at, "from": m.sender, "body": _body(m.body)} for m in exchange.messages]
    if exchange.close is not None:
        said["close"] = {"code": exchange.close.code, "reason": exchange.close.reason, "from": exchange.close.sender}
    return said


def _summary(step: Step, run: Run) -> JsonObject:
    call, response = step.call, step.call.response
    first = response.first_token_at if response else None
    return {
        "call": call.number,
        "exchange": call.exchange,
        "agent": next((agent.name for agent in run.agents if agent.number == step.agent), None),
        "thread": step.thread,
        "turn": step.turn,
        "format": call.format,
        "kind": call.kind,
        "model": call.model,
        "requested_model": call.request.model,
        "status": response.status if response else None,
        "finish": response.finish if response else None,
        "ended": call.ended,
        "usage": _usage(call.usage),
        "tool_calls": [tool.name for tool in call.tool_calls],
        "at_ms": call.at,
        "first_token_ms": None if first is None else first - call.at,
        "duration_ms": _span(call),
    }


def _span(call: ModelCall) -> int | None:
    return None if call.ended_at is None else call.ended_at - call.at


def _usage(usage: Usage | None) -> JsonObject | None:
    if usage is None:
        return None
    counts = {f.name: getattr(usage, f.name) for f in fields(Usage) if f.name not in ("raw", "consistent")}
    mark = {} if usage.consistent else {"consistent": False}
    return {**counts, **mark, "raw": usage.raw}


def _message(message: Message) -> JsonObject:
    said: JsonObject = {"role": message.role, "blocks": [_block(block) for block in message.blocks]}
    if message.extra:
        said["extra"] = dict(message.extra)
    if message.cache_marked:
        said["cache_marked"] = True
    return said


def _block(block: Block) -> JsonObject:
    # asdict would copy raw blocks, which may have megabytes of media.
    # The raw value of an unknown block has its type.
    said = {f.name: getattr(block, f.name) for f in fields(block) if f.name != "type"}
    return {"type": _TYPE[type(block)], **said}


def _tool(tool: ToolSpec, full: bool) -> JsonObject:
    said: JsonObject = {"name": tool.name, "kind": tool.kind}
    return said | ({"description": tool.description, "schema": tool.schema} if full else {})


def _exchange_summary(exchange: Exchange, calls: list[JsonObject]) -> JsonObject:
    return {
        "exchange": exchange.number,
        "at_ms": exchange.at,
        "method": exchange.request.method,
        "url": exchange.request.url,
        "status": exchange.response.status if exchange.response else None,
        "ended": exchange.ended,
        "calls": calls,
    }


def _content(headers: Headers, body: Body | None) -> JsonObject:
    lists = {name: headers.all(name) for name in headers}
    said: JsonObject = {"headers": {name: v[0] if len(v) == 1 else list(v) for name, v in lists.items()}}
    return said | ({"body": _body(body)} if body is not None else {})


def _body(body: Body) -> JsonObject:
    match body:
        case JsonBody(value=value):
            return {"json": value}
        case TextBody(text=text):
            return {"text": text}
        case StreamBody(binary=False):
            return {"text": body_bytes(body).decode(errors="replace")}
        case StreamBody() | BytesBody():
            return {"base64": b64encode(body_bytes(body)).decode()}
