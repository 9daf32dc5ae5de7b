"""Makes a small tape of a real client's recording: its structure in words of our own, for tests/corpus/clients.

    python -m tests.clients.reduce RECORDED.tape tests/corpus/clients/NAME.tape

What stays: roles, tool names, ids, the headers that link calls, the texts of our own scripts, and all answers (they are
the scripted mock's). Whatever else a client says to its model becomes `words 1a2b3c`; settings and schemas go.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import orjson

from wiretape.model.http import Body, Exchange, Headers, JsonBody, Request, WsMessage, body_bytes
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.runs.side_calls import purpose
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.writing.writer import write_tape
from wiretape.wire.registry import decode

_HEADERS = re.compile(
    r"content-type|x-claude-code-.*|x-deepseek-harness-session-id|x-(?:parent-)?session-id|thread-id|session-id"
    r"|x-codex-(?:parent-thread-id|turn-metadata)|x-stainless-retry-count|sec-websocket-.*|upgrade|anthropic-version"
)
_CODEX = ("session_id", "thread_id", "agent_name", "parent_thread_id", "thread_source", "request_kind", "turn_id")
_MEMBERS = frozenset(
    {"model", "messages", "input", "contents", "system", "instructions", "systemInstruction", "tools", "stream", "type"}
    | {"previous_response_id", "generate", "conversation", "max_tokens"}
)
_TOOL = frozenset({"type", "name", "function", "functionDeclarations", "tools", "namespace"})
# The texts of the scripts and the mock.
_OURS = re.compile(
    r"PARENT|CHILD|MAIN-AGENT|HANDOFF-AGENT|JOIN|README|[Rr]eadme|demo repo|weather|[Ss]unny|[Mm]ock|two lines"
    r"|-l\b|A: |B: |\bls\b|\bx\b|[0-9a-f]{8}-[0-9a-f]{4}-|child done"
)
_LONG = 200  # a longer text is always the client's
_KEPT_TAGS = re.compile(r"<(task-id|tool-use-id|status|result)>(.*?)</\1>", re.DOTALL)
_TAGGED = re.compile(
    r"<(system-reminder|environment_context|permissions instructions|session_context|skills_instructions|tools)>"
    r".*?</\1>",
    re.DOTALL,
)
_OPENING = re.compile(r"(Current runtime context\. This snapshot supersedes|# AGENTS\.md instructions|Observation:\s)")
_ROW_TEXT = re.compile(r'"description":"[^"]*"')
_IDS = re.compile(r"(?:agentId|task_id)\W+[\w-]+|started subagent [\w-]+|named '\w+'|<task id=\"\w+\"")
_TITLE = {"title": "Give a title.", "router": "Rate the complexity.", "summary": "Write a summary."}


def words(text: str) -> str:
    return f"words {sha256(text.encode()).hexdigest()[:6]}"


def reduced_text(text: str) -> str:
    """Return a client's text without the client's own words."""
    told = _KEPT_TAGS.findall(text)
    if "<task-notification>" in text and told:
        kept = "".join(f"<{tag}>{said}</{tag}>" for tag, said in told)
        return f"<task-notification>{kept}</task-notification>"
    if text.startswith('{"agents"'):
        return _ROW_TEXT.sub('"description":"..."', text)
    tagged = _TAGGED.findall(text)
    rest = _TAGGED.sub("", text).strip()
    said = "".join(f"<{tag}>...</{tag}>" for tag in tagged)
    if not rest:
        return said
    if len(rest) <= _LONG and _OURS.search(rest):
        return said + rest
    opening = _OPENING.match(rest)
    ours = [line for line in rest.splitlines() if len(line) <= _LONG and re.search(r"CHILD|PARENT|weather in", line)]
    ids = [found[0] for found in _IDS.finditer(rest)]
    if len(rest) < 40 and " " not in rest:
        return said + rest
    return "\n".join([*([said] if said else []), *([opening[1]] if opening else []), words(rest), *ids, *ours])


def reduced(value: Json, name: str = "") -> Json:
    match value:
        case str():
            return value if name in _NAMES else reduced_text(value)
        case {"role": "assistant" | "model"} | {"type": "agent_message"}:  # the mock's text, or an agent's message
            return value
        case dict():
            return {key: reduced(member, key) for key, member in value.items()}
        case list():
            return [reduced(element, name) for element in value]
        case _:
            return value


_NAMES = frozenset({"role", "type", "id", "name", "call_id", "tool_call_id", "tool_use_id", "model", "arguments"})


def reduced_tools(value: Json) -> Json:
    match value:
        case dict():
            return {key: reduced_tools(member) for key, member in value.items() if key in _TOOL}
        case list():
            return [reduced_tools(element) for element in value]
        case _:
            return value


def reduced_request(body: JsonObject, aside: str | None) -> JsonObject:
    kept = {key: member for key, member in body.items() if key in _MEMBERS}
    for key, member in kept.items():
        kept[key] = reduced_tools(member) if key == "tools" else reduced(member, key if key in _NAMES else "")
    if aside is not None:
        kept = _with_purpose(kept, _TITLE[aside])
    return kept


def _with_purpose(body: JsonObject, said: str) -> JsonObject:
    """Replace the prompt of a side call with a description of its purpose."""
    if "systemInstruction" in body:
        return {**body, "systemInstruction": {"parts": [{"text": said}]}}
    first, *others = body["messages"]
    return {**body, "messages": [{**first, "content": said}, *others]}


def _body(body: Body | None, aside: str | None = None) -> Body | None:
    if body is None:
        return None
    try:
        value = orjson.loads(body_bytes(body))
    except orjson.JSONDecodeError:
        return None
    return JsonBody(reduced_request(value, aside)) if isinstance(value, dict) else None


def _headers(headers: Headers) -> Headers:
    pairs = [(name, value) for name, value in headers.pairs() if _HEADERS.fullmatch(name)]
    return Headers([(name, _codex(value) if name == "x-codex-turn-metadata" else value) for name, value in pairs])


def _codex(value: str) -> str:
    metadata = json.loads(value)
    return json.dumps({name: metadata[name] for name in _CODEX if name in metadata})


def _message(message: WsMessage) -> WsMessage:
    body = _body(message.body) if message.sender == "client" else message.body
    return replace(message, body=body if body is not None else message.body)


def reduce(exchanges: Sequence[Exchange]) -> list[Exchange]:
    calls = {call.exchange: call for call in decode(exchanges)}
    kept: list[Exchange] = []
    for exchange in exchanges:
        call = calls.get(exchange.number)
        if call is None:
            continue
        aside = purpose(call) if not call.request.tools else None
        request = Request(
            exchange.request.method,
            exchange.request.url,
            _headers(exchange.request.headers),
            _body(exchange.request.body, aside if aside in _TITLE else None),
        )
        response = exchange.response
        if response is not None:
            response = replace(response, headers=_headers(response.headers))
        messages = tuple(_message(message) for message in exchange.messages)
        kept.append(replace(exchange, number=len(kept) + 1, request=request, response=response, messages=messages))
    return kept


def main(recorded: str, path: str) -> None:
    said = "The structure of a real client's run against a scripted model: its own words are replaced."
    header = Header(started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape", provenance=said)
    write_tape(Path(path), header, reduce(read_tape(recorded).exchanges))


if __name__ == "__main__":
    main(*sys.argv[1:])
