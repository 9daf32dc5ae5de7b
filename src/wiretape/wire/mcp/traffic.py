"""Reads MCP traffic: JSON-RPC over HTTP between a program and its tool servers.

It shows where a tool call of a model ran (`served_tool_calls`), and describes exchanges (`describe_mcp`). Sessions,
JSON or event answers, batches, and the older pair of a POST and an event channel are supported: the JSON-RPC id links
call and answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlsplit

from wiretape.model.call import ServedToolCall
from wiretape.model.http import Exchange, JsonBody, Request, Response, StreamBody
from wiretape.model.jsonvalue import JsonObject
from wiretape.model.wording import plural
from wiretape.wire.content import result_text
from wiretape.wire.lenient import body_json, dumps, obj, raw_bytes, string
from wiretape.wire.payload import EventPayload, JsonPayload, read_payload

_METHODS = frozenset(
    {"initialize", "ping", "server/discover", "subscriptions/listen", "completion/complete", "logging/setLevel"}
    | {"roots/list", "sampling/createMessage", "elicitation/create"}
)
_PREFIXES = ("tools/", "prompts/", "resources/", "notifications/")
_SESSION_NAMES = ("sessionId", "session_id")
_MAX_DESCRIBED = 3


def is_jsonrpc(request: Request) -> bool:
    """Return whether a request's body is JSON-RPC; then no model format claims it, whatever its path."""
    body = request.body
    if not isinstance(body, JsonBody) and b'"jsonrpc"' not in raw_bytes(body)[:65536]:
        return False
    value = body_json(body)
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(obj(first).get("jsonrpc"), str)


def is_mcp(exchange: Exchange) -> bool:
    """Return whether an exchange belongs to MCP; other protocols use JSON-RPC as well."""
    request = exchange.request
    named = any(name.startswith("mcp-") for name in request.headers)
    if request.method.upper() == "POST":
        return is_jsonrpc(request) and (named or any(_is_method(m) for m in _messages(body_json(request.body))))
    if request.method.upper() == "DELETE":
        return "mcp-session-id" in request.headers
    return request.method.upper() == "GET" and (named or _starts_with_endpoint(exchange.response))


def _is_method(message: JsonObject) -> bool:
    method = message.get("method")
    return isinstance(method, str) and (method in _METHODS or method.startswith(_PREFIXES))


def _starts_with_endpoint(response: Response | None) -> bool:
    """Return whether an event channel of the older protocol starts with the URL to POST to."""
    body = response.body if response is not None else None
    if not isinstance(body, StreamBody) or body.binary:
        return False
    first = next(iter(body.frames), b"")
    return b"event: endpoint" in first[:200] or b"event:endpoint" in first[:200]


def _messages(value: object) -> list[JsonObject]:
    """Return the JSON-RPC messages in a body: one, or a batch."""
    listed = value if isinstance(value, list) else [value]
    return [message for message in listed if isinstance(message, dict) and "jsonrpc" in message]


def _answers(exchange: Exchange) -> Iterator[tuple[JsonObject, int | None]]:
    """Yield the JSON-RPC messages of the response, each with its time."""
    response = exchange.response
    if response is None:
        return
    payload = read_payload(response)
    if isinstance(payload, JsonPayload):
        yield from ((message, exchange.ended_at) for message in _messages(payload.value))
    elif isinstance(payload, EventPayload):
        for event in payload.events:
            at = exchange.ended_at if event.ms is None else response.headers_at + event.ms
            yield from ((message, at) for message in _messages(event.value))


@dataclass(frozen=True, slots=True)
class _Answer:
    exchange: int
    message: JsonObject
    at: int | None


class _Answers:
    """Finds the answer to a call: in its own exchange, or in an event channel of its session."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[_Answer]] = {}

    def add(self, exchange: Exchange) -> None:
        session = _session(exchange)
        for message, at in _answers(exchange):
            if "id" in message and ("result" in message or "error" in message):
                answer = _Answer(exchange.number, message, at)
                self._found.setdefault((session, dumps(message["id"])), []).append(answer)

    def answer(self, exchange: Exchange, call_id: str) -> _Answer | None:
        found = self._found.get((_session(exchange), call_id), [])
        own = next((answer for answer in found if answer.exchange == exchange.number), None)
        later = (answer for answer in found if answer.at is None or answer.at >= exchange.at)
        return own or next(later, None)


def _session(exchange: Exchange) -> str:
    """Return the session's id, or the server if there is none."""
    request, response = exchange.request, exchange.response
    session = request.headers.get("mcp-session-id") or (response.headers.get("mcp-session-id") if response else None)
    if session:
        return session
    named = _query_session(request.url)
    if named is None and _starts_with_endpoint(response) and response is not None:
        payload = read_payload(response)
        unparsed = payload.unreadable if isinstance(payload, EventPayload) else ()
        named = next(filter(None, map(_query_session, unparsed)), None)
    return named or _host(request.url)


def _query_session(url: str) -> str | None:
    query = dict(parse_qsl(url.strip().partition("?")[2]))
    return next((query[name] for name in _SESSION_NAMES if query.get(name)), None)


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return url


def served_tool_calls(exchanges: Iterable[Exchange]) -> list[ServedToolCall]:
    """Return every tool call that an MCP server received, by start, with its answer."""
    mcp_exchanges = [exchange for exchange in exchanges if is_mcp(exchange)]
    answers = _Answers()
    for exchange in mcp_exchanges:
        answers.add(exchange)
    served: list[ServedToolCall] = []
    for exchange in sorted(mcp_exchanges, key=lambda exchange: (exchange.at, exchange.number)):
        for message in _messages(body_json(exchange.request.body)):
            if message.get("method") == "tools/call":
                _add_call(exchange, message, answers, served)
    return served


def _add_call(exchange: Exchange, message: JsonObject, answers: _Answers, served: list[ServedToolCall]) -> None:
    params = obj(message.get("params"))
    call = ServedToolCall(
        exchange=exchange.number,
        name=string(params.get("name")) or "",
        arguments=params.get("arguments", {}),
        at=exchange.at,
        id=dumps(message.get("id")),
        server=exchange.request.url,
    )
    answer = answers.answer(exchange, call.id)
    if answer is not None:
        call = _with_answer(call, answer)
    if "inputResponses" in params and _continues(call, served):
        return
    served.append(call)


def _continues(call: ServedToolCall, served: list[ServedToolCall]) -> bool:
    """Continue an earlier call that the server answered with a request for input: the client calls it again."""
    for position in range(len(served) - 1, -1, -1):
        before = served[position]
        if before.waits and (before.name, before.arguments) == (call.name, call.arguments):
            served[position] = replace(call, exchange=before.exchange, at=before.at, id=before.id)
            return True
    return False


def _with_answer(call: ServedToolCall, answer: _Answer) -> ServedToolCall:
    if "error" in answer.message:
        error = obj(answer.message["error"])
        text = string(error.get("message")) or dumps(answer.message["error"])
        return replace(call, ended_at=answer.at, text=text, is_error=True)
    result = obj(answer.message.get("result"))
    text, parts, _ = result_text(result.get("content"), "")
    if not text and not parts and result.get("structuredContent") is not None:
        text = dumps(result["structuredContent"])
    return replace(
        call,
        ended_at=answer.at,
        text=text,
        parts=parts,
        is_error=result.get("isError") is True,
        waits=result.get("resultType") == "input_required",
    )


def describe_mcp(exchange: Exchange) -> str | None:
    """Describe an MCP exchange in a few words; None for any other exchange."""
    if not is_mcp(exchange):
        return None
    method = exchange.request.method.upper()
    if method == "DELETE":
        return "MCP, end of the session"
    if method == "GET":
        count = sum(1 for _ in _answers(exchange))
        which = "an open channel" if exchange.ended is None else "a channel"
        return f"MCP, {which} from the server, {plural(count, 'message')}"
    descriptions = [_description(message) for message in _messages(body_json(exchange.request.body))]
    more = f" and {len(descriptions) - _MAX_DESCRIBED} more" if len(descriptions) > _MAX_DESCRIBED else ""
    return "MCP " + ", ".join(descriptions[:_MAX_DESCRIBED]) + more


def _description(message: JsonObject) -> str:
    method = message.get("method")
    if not isinstance(method, str):
        return "an answer to the server"
    params = obj(message.get("params"))
    name = string(params.get("name")) or string(params.get("uri"))
    return f"{method} {name}" if name else method
