"""The names that conditions, `watch` and `print` know, and JSONPath over them.

Completion, help and the documentation read the same table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.expression.values import messages_text, to_json, wire_json
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json, JsonObject

Kind: TypeAlias = Literal["number", "text", "texts", "flag", "value"]
KnownFrom: TypeAlias = Literal["request", "answer", "tool"]  # the first stop of a call at which the name has a value


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the expression language. `get` returns None for an unknown value."""

    name: str
    kind: Kind
    known_from: KnownFrom
    help: str
    get: Callable[[AnnotatedRun, Stop], Any]


def _usage(field: str) -> Callable[[AnnotatedRun, Stop], Any]:
    """Get a field of the call's usage."""
    return lambda annotated, stop: getattr(annotated.call(stop).usage, field, None)


def _response(field: str) -> Callable[[AnnotatedRun, Stop], Any]:
    """Get a field of the call's response."""
    return lambda annotated, stop: getattr(annotated.call(stop).response, field, None)


def _hit(annotated: AnnotatedRun, stop: Stop) -> float | None:
    usage = annotated.call(stop).usage
    if usage is None or usage.cached is None or not usage.input:
        return None
    return usage.cached / usage.input


def _cache(annotated: AnnotatedRun, stop: Stop) -> str | None:
    verdict = annotated.cache_verdict(annotated.number(stop))
    return verdict.word if verdict is not None else None


def _duration(annotated: AnnotatedRun, stop: Stop) -> int | None:
    call = annotated.call(stop)
    return None if call.ended_at is None else call.ended_at - call.at


def _first_token(annotated: AnnotatedRun, stop: Stop) -> int | None:
    call = annotated.call(stop)
    first = call.response.first_token_at if call.response is not None else None
    return None if first is None else first - call.at


def _tool(annotated: AnnotatedRun, stop: Stop) -> Any:
    use = annotated.timeline.use(stop)
    return use.call.name if use is not None else _called_tools(annotated, stop)


def _called_tools(annotated: AnnotatedRun, stop: Stop) -> list[str]:
    return [tool.name for tool in annotated.call(stop).tool_calls]


def _arguments(annotated: AnnotatedRun, stop: Stop) -> Any:
    use = annotated.timeline.use(stop)
    return use.call.arguments if use is not None else [tool.arguments for tool in annotated.call(stop).tool_calls]


def _result(annotated: AnnotatedRun, stop: Stop) -> Any:
    use = annotated.timeline.use(stop)
    if use is not None:
        return use.result.text if use.result is not None else None
    uses = annotated.timeline.uses(annotated.call(stop).number)
    return [one.result.text for one in uses if one.result is not None]


def _tool_error(annotated: AnnotatedRun, stop: Stop) -> Any:
    use = annotated.timeline.use(stop)
    uses = [use] if use is not None else annotated.timeline.uses(annotated.call(stop).number)
    errors = [one.result.is_error for one in uses if one.result is not None]
    return any(errors) if errors else None


def _user(annotated: AnnotatedRun, stop: Stop) -> str | None:
    turn = annotated.step(stop).turn
    return next((t.user for t in annotated.timeline.run.turns if t.number == turn), None)


def _answer(annotated: AnnotatedRun, stop: Stop) -> str:
    response = annotated.call(stop).response
    return messages_text(response.messages) if response is not None else ""


def _system(annotated: AnnotatedRun, stop: Stop) -> str:
    return messages_text([m for m in annotated.call(stop).request.messages if m.role == "system"])


def _first(annotated: AnnotatedRun, stop: Stop) -> bool:
    number = annotated.call(stop).number
    return annotated.timeline.activation(number).calls[0] == number


def _body(annotated: AnnotatedRun, stop: Stop) -> Any:
    """The request body; for a call on a WebSocket, the client's message."""
    call = annotated.call(stop)
    exchange = annotated.annotations.exchanges.get(call.exchange)
    if exchange is None:
        return None
    wire = wire_json(exchange)
    if not exchange.messages:
        return wire["request"]["body"]
    sent = [wire["messages"][frame - 1] for frame in call.frames if frame <= len(exchange.messages)]
    return next((message["body"] for message in sent if message["from"] == "client"), None)


def _wire(annotated: AnnotatedRun, stop: Stop) -> Any:
    exchange = annotated.annotations.exchanges.get(annotated.call(stop).exchange)
    return wire_json(exchange) if exchange is not None else None


NAMES: dict[str, Name] = {
    name.name: name
    for name in (
        Name("call", "number", "request", "the call's number", lambda w, s: w.call(s).number),
        Name("exchange", "number", "request", "its exchange's number", lambda w, s: w.call(s).exchange),
        Name("turn", "number", "request", "the number of its turn", lambda w, s: w.step(s).turn),
        Name("thread", "number", "request", "the number of its thread", lambda w, s: w.step(s).thread),
        Name("agent", "text", "request", "the agent's name", lambda w, s: w.agent(s).name),
        Name("depth", "number", "request", "0 for a root agent", lambda w, s: w.timeline.depth(w.call(s).number)),
        Name("first", "flag", "request", "whether it is the first call since its agent was started", _first),
        Name("cause", "text", "request", "why: turn_start, tool_results, …", lambda w, s: w.step(s).cause.kind),
        Name("kind", "text", "request", "inference, token_count, …", lambda w, s: w.call(s).kind),
        Name("format", "text", "request", "the wire format", lambda w, s: w.call(s).format),
        Name("url", "text", "request", "the URL of the request", lambda w, s: w.call(s).url),
        Name("at", "number", "request", "when it was sent, in ms since the tape started", lambda w, s: w.call(s).at),
        Name("user", "text", "request", "the user's message of its turn", _user),
        Name("new", "text", "request", "what its request adds to the thread", lambda w, s: w.new_text(s)),
        Name("system", "text", "request", "its system prompt", _system),
        Name("model", "text", "answer", "the model that answered", lambda w, s: w.call(s).model),
        Name("finish", "text", "answer", "stop, tool_calls, length, error, …", _response("finish")),
        Name("status", "number", "answer", "the HTTP status", _response("status")),
        Name("error", "texts", "answer", "status, type, code and message of the error", lambda w, s: w.errors(s)),
        Name("input", "number", "answer", "input tokens, cached ones included", _usage("input")),
        Name("cached", "number", "answer", "cached tokens; against 0.5 or 50%: the hit rate", _usage("cached")),
        Name("hit", "number", "answer", "cached / input", _hit),
        Name("cache", "text", "answer", "the cache's verdict: served, broken, expired, first, …", _cache),
        Name("cache_write", "number", "answer", "tokens written to the cache", _usage("cache_write")),
        Name("output", "number", "answer", "output tokens, reasoning included", _usage("output")),
        Name("reasoning", "number", "answer", "reasoning tokens", _usage("reasoning")),
        Name("duration", "number", "answer", "how long it took, in ms", _duration),
        Name("first_token", "number", "answer", "ms until the first token", _first_token),
        Name("answer", "text", "answer", "what the model answered, tool calls included", _answer),
        Name("text", "text", "answer", "the new messages and the answer", lambda w, s: w.text(s)),
        Name("asks", "texts", "answer", "the tools that the answer calls", _called_tools),
        Name("finding", "texts", "answer", "kinds of findings about the call", lambda w, s: w.finding_kinds(s)),
        Name("drift", "texts", "answer", "how a replayed call differs from the recording", lambda w, s: w.drift(s)),
        Name("tool", "text", "tool", "the name of the called tool", _tool),
        Name("arguments", "text", "tool", "the arguments of the tool call", _arguments),
        Name("result", "text", "tool", "the result of the tool call", _result),
        Name("tool_error", "flag", "tool", "the tool reported an error", _tool_error),
        Name("request", "value", "request", "the decoded request", lambda w, s: w.call(s).request),
        Name("response", "value", "answer", "the decoded answer", lambda w, s: w.call(s).response),
        Name("usage", "value", "answer", "the tokens, as the provider reports them", lambda w, s: w.call(s).usage),
        Name("why", "value", "request", "why the call was made, in words", lambda w, s: w.why(s)),
        Name("body", "value", "request", "the request body; the paths on the screen are paths in it", _body),
        Name("wire", "value", "answer", "the exchange as it crossed the wire", _wire),
    )
}
# Synonyms of names.
SYNONYMS = {"lint": "finding", "findings": "finding", "tools": "asks", "tokens": "usage", "x": "exchange"}


def name_of(word: str) -> Name | None:
    return NAMES.get(SYNONYMS.get(word, word))


def found_by_jsonpath(annotated: AnnotatedRun, stop: Stop, path: str) -> Json:
    """The values that a JSONPath finds at a stop. Raises UsageError if the path is invalid."""
    import jsonpath  # slow to import

    try:
        compiled = jsonpath.compile(path)
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise UsageError(f"{path} is not a JSONPath: {' '.join(str(error).split())}") from None
    document = call_document(annotated, stop, _wanted(path))
    try:
        return list(compiled.findall(document))
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise UsageError(f"cannot evaluate {path}: {' '.join(str(error).split())}") from None


def call_document(annotated: AnnotatedRun, stop: Stop, names: Container[str] = NAMES) -> JsonObject:
    """The names of a call as one JSON document, or some of them."""
    return {name.name: to_json(name.get(annotated, stop)) for name in NAMES.values() if name.name in names}


_FIRST = re.compile(r"\$(?:\.(\w+)|\[['\"](\w+)['\"]\])")


def _wanted(path: str) -> Container[str]:
    """The name that a path begins with; if it is a wildcard, all names except `wire` and `body`."""
    match = _FIRST.match(path)
    return {match[1] or match[2]} if match is not None else NAMES.keys() - {"wire", "body"}
