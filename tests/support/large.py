"""Tapes with n of one thing each: calls, tools, events, messages, threads, turns, headers, characters.

`SHAPES` maps the name of each dimension to a function that returns the documents of such a tape. A tape of n growing
requests is written with `like` bodies, so its size is proportional to n.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

Documents: TypeAlias = list[dict[str, Any]]
Value: TypeAlias = dict[str, Any]

CHAT = "https://api.openai.com/v1/chat/completions"
ANTHROPIC = "https://api.anthropic.com/v1/messages"
RESPONSES = "https://api.openai.com/v1/responses"
JSON_HEADERS = {"content-type": "application/json"}
HEADER = {"wiretape": 1, "started": "2026-03-01T12:00:00Z", "recorder": "wiretape 0.1.0"}
SHAPES: dict[str, Callable[[int], Documents]] = {}
MARKS = {  # a character, or a few, of which long texts are made
    "ascii": "word ",
    "one_word": "x",
    "wide": "日本",
    "combining": "\u0301",
    "zero_width": "\u200b",
    "emoji_sequence": "👩\u200d🚀",
    "tabs": "\t",
    "control": "\x1b[",
    "spaces": " ",
    "lines": "a\n",
    "quotes": '"\\',
    "digits": "7",
    "brackets": "[{",
    "clocks": "2026-02-28 15:05:30 ",
    "uuids": "6fa459ea-ee8a-3ca4-894e-db77e160355e ",
    "paths": "/tmp/a",
    "placeholders": "[redacted:key:1]",
}


def shape(build: Callable[[int], Documents]) -> Callable[[int], Documents]:
    SHAPES[build.__name__] = build
    return build


def write(path: Path, documents: Documents) -> Path:
    """Write a tape of these documents below the header."""
    texts = (json.dumps(one, ensure_ascii=False, indent=2) + "\n" for one in [HEADER, *documents])
    path.write_text("\n".join(texts))
    return path


def write_pair(directory: Path, name: str, n: int) -> Path:
    """Write a tape of this shape, and a second tape whose answers and results differ. Return the first."""
    directory.mkdir()
    tape = write(directory / "large.tape", SHAPES[name](n))
    changed = tape.read_text()
    for before, after in (("done", "finished"), ("found", "saw"), ("result ", "outcome "), ("answer ", "reply ")):
        changed = changed.replace(before, after)
    tape.with_name("other-large.tape").write_text(changed)
    return tape


# -- documents ---------------------------------------------------------------------------------------------------------


def request(x: int, body: Value | None, url: str = CHAT, headers: Value | None = None, method: str = "POST") -> Value:
    sent: Value = {"method": method, "url": url, "http": "1.1", "headers": headers or JSON_HEADERS}
    return {"exchange": x, "at": 10 * x, "request": sent if body is None else {**sent, "body": body}}


def response(x: int, body: Value, status: int = 200, headers: Value | None = None) -> Value:
    answer = {"status": status, "headers": headers or JSON_HEADERS, "headers_at": 10 * x + 5, "body": body}
    return {"exchange": x, "at": 10 * x + 8, "response": answer, "ended": "complete"}


def call(x: int, body: Value, answer: Value, url: str = CHAT) -> Documents:
    return [request(x, {"json": body}, url), response(x, {"json": answer})]


def chat(messages: list[Value], **more: Any) -> Value:
    return {"model": "gpt-5", "messages": messages, **more}


def said(role: str, content: Any) -> Value:
    return {"role": role, "content": content}


def asks(calls: list[Value]) -> Value:
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool_call(id: str, name: str, arguments: Value) -> Value:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def result(id: str, content: str) -> Value:
    return {"role": "tool", "tool_call_id": id, "content": content}


def tool(name: str) -> Value:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {"type": "function", "function": {"name": name, "description": f"Reads {name}.", "parameters": schema}}


def answer(message: Value | str) -> Value:
    message = said("assistant", message) if isinstance(message, str) else message
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-5", "choices": [choice], "usage": usage}


class Growing:
    """Request bodies that each add messages to the one before."""

    def __init__(self) -> None:
        self._shape: Value = {}
        self._name = 0

    def first(self, x: int, body: Value) -> Value:
        self._shape, self._name = {"json": body}, x
        return self._shape

    def grown(self, x: int, *messages: Value) -> Value:
        spelled = json.dumps(self._shape, ensure_ascii=False, separators=(",", ":")).encode()
        patch = [{"op": "add", "path": "/messages/-", "value": message} for message in messages]
        self._shape = {"like": str(self._name), "base": sha256(spelled).hexdigest()[:8], "patch": patch}
        self._name = x
        return self._shape


# -- calls and messages ------------------------------------------------------------------------------------------------


@shape
def growing_calls(n: int) -> Documents:
    """One loop of n calls, each of which answers the tool call before it."""
    body, documents = Growing(), []
    start = chat([said("system", "You look."), said("user", "go")], tools=[tool("look")])
    for x in range(1, n + 1):
        ask = asks([tool_call(f"call_{x}", "look", {"path": f"/a/{x}"})])
        before = x - 1
        sent = (
            body.first(x, start)
            if x == 1
            else body.grown(
                x,
                asks([tool_call(f"call_{before}", "look", {"path": f"/a/{before}"})]),
                result(f"call_{before}", f"found {before}"),
            )
        )
        documents += [request(x, sent), response(x, {"json": answer(ask if x < n else "done")})]
    return documents


@shape
def turns(n: int) -> Documents:
    """One conversation of n turns."""
    body, documents = Growing(), []
    for x in range(1, n + 1):
        words = said("user", f"question {x}")
        sent = body.first(x, chat([words])) if x == 1 else body.grown(x, said("assistant", f"answer {x - 1}"), words)
        documents += [request(x, sent), response(x, {"json": answer(f"answer {x}")})]
    return documents


@shape
def separate_calls(n: int) -> Documents:
    """n calls that share only the system prompt."""
    return [
        document
        for x in range(1, n + 1)
        for document in call(
            x, chat([said("system", "You count."), said("user", f"count to {x}")]), answer(f"said {x}")
        )
    ]


@shape
def equal_calls(n: int) -> Documents:
    """n times the same request."""
    return [d for x in range(1, n + 1) for d in call(x, chat([said("user", "again")]), answer("the same"))]


@shape
def refused_calls(n: int) -> Documents:
    """n refusals with 429, then an answer."""
    body = chat([said("user", "please")])
    refused = {"error": {"message": "slow down", "type": "rate_limit"}}
    documents = [
        document
        for x in range(1, n + 1)
        for document in (request(x, {"json": body}), response(x, {"json": refused}, 429))
    ]
    return documents + call(n + 1, body, answer("fine"))


@shape
def messages(n: int) -> Documents:
    """A history of n messages, sent by three calls that grow."""
    history = [said(("user", "assistant")[i % 2], f"message {i} of many") for i in range(2 * (n // 2) + 1)]
    return [
        document
        for x in range(1, 4)
        for document in call(x, chat(history[: len(history) - 6 + 2 * x]), answer(f"answer {x}"))
    ]


@shape
def blocks(n: int) -> Documents:
    """A message of n text parts."""
    parts = [{"type": "text", "text": f"part {i}"} for i in range(n)]
    return call(1, chat([said("user", parts)]), answer("read")) + call(
        2, chat([said("user", parts), said("assistant", "read"), said("user", "more")]), answer("done")
    )


@shape
def changed_messages(n: int) -> Documents:
    """A second request that differs from the first in each of n messages."""
    first = [said(("user", "assistant")[i % 2], f"message {i} at 2026-02-28 15:05:{i % 60:02}") for i in range(n + 1)]
    second = [said(one["role"], one["content"] + " changed") for one in first]
    return call(1, chat(first), answer("a")) + call(2, chat(second), answer("b"))


# -- tools -------------------------------------------------------------------------------------------------------------


def _many(n: int) -> list[Value]:
    return [tool_call(f"call_{i}", f"tool{i % 50}", {"path": f"/a/{i}"}) for i in range(n)]


@shape
def parallel_tool_calls(n: int) -> Documents:
    """n tool calls in one answer, and n results in the next request."""
    start = [said("user", "q")]
    offers = [tool(f"tool{i}") for i in range(50)]
    results = [result(f"call_{i}", f"result {i}") for i in range(n)]
    return call(1, chat(start, tools=offers), answer(asks(_many(n)))) + call(
        2, chat([*start, asks(_many(n)), *results], tools=offers), answer("done")
    )


@shape
def results_out_of_order(n: int) -> Documents:
    """n tool calls, their results in the opposite order; half the results have no call."""
    start = [said("user", "q")]
    results = [result(f"call_{i}", f"result {i}") for i in reversed(range(n // 2, n + n // 2))]
    return call(1, chat(start), answer(asks(_many(n)))) + call(
        2, chat([*start, asks(_many(n)), *results]), answer("done")
    )


@shape
def equal_tool_calls(n: int) -> Documents:
    """n tool calls with the same arguments and no ids, as some servers answer."""
    one = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    start, offers = [said("user", "q")], [tool("look")]
    results = [{"role": "tool", "name": "look", "content": f"result {i}"} for i in range(n)]
    return call(1, chat(start, tools=offers), answer(asks([one] * n))) + call(
        2, chat([*start, asks([one] * n), *results], tools=offers), answer("done")
    )


@shape
def tools_offered(n: int) -> Documents:
    """n tools in each of two requests, in another order in the second, and one call of the last tool."""
    offers = [tool(f"tool_{i}") for i in range(n)]
    ask = asks([tool_call("call_1", f"tool_{n - 1}", {"path": "/a"})])
    history = [said("user", "q"), ask, result("call_1", "found")]
    return call(1, chat(history[:1], tools=offers), answer(ask)) + call(
        2, chat(history, tools=offers[::-1]), answer("done")
    )


@shape
def schema_members(n: int) -> Documents:
    """A tool with n parameters, called with all of them, half of them wrong."""
    properties = {f"p{i}": {"type": "integer"} for i in range(n)}
    function = {"name": "look", "parameters": {"type": "object", "properties": properties, "required": [*properties]}}
    arguments = {f"p{i}": i if i % 2 else str(i) for i in range(n)}
    ask = asks([tool_call("call_1", "look", arguments)])
    history = [said("user", "q"), ask, result("call_1", json.dumps(arguments))]
    offers = [{"type": "function", "function": function}]
    return call(1, chat(history[:1], tools=offers), answer(ask)) + call(2, chat(history, tools=offers), answer("done"))


# -- agents ------------------------------------------------------------------------------------------------------------


@shape
def subagents(n: int) -> Documents:
    """A parent that starts n subagents in one answer; each makes one call."""
    offers = [tool("subagent")]
    start = [said("system", "You lead."), said("user", "go")]
    tasks = [f"task number {i}" for i in range(n)]
    ask = asks([tool_call(f"call_{i}", "subagent", {"prompt": task}) for i, task in enumerate(tasks)])
    documents = call(1, chat(start, tools=offers), answer(ask))
    for x, task in enumerate(tasks, 2):
        documents += call(x, chat([said("system", "You work."), said("user", task)]), answer(f"{task} is well done"))
    results = [result(f"call_{i}", f"{task} is well done") for i, task in enumerate(tasks)]
    return documents + call(n + 2, chat([*start, ask, *results], tools=offers), answer("all done"))


@shape
def reporting_subagents(n: int) -> Documents:
    """A parent that starts one subagent with each call and hears from it at the next."""
    offers, body, documents = [tool("subagent")], Growing(), []
    start = chat([said("system", "You lead."), said("user", "go on for long")], tools=offers)
    grown: list[Value] = []
    for i in range(n):
        x, task = 2 * i + 1, f"task number {i}"
        ask = asks([tool_call(f"call_{i}", "subagent", {"prompt": task})])
        sent = body.grown(x, *grown) if i else body.first(x, start)
        documents += [request(x, sent), response(x, {"json": answer(ask)})]
        done = f"task {i} is done and well done"
        documents += call(x + 1, chat([said("system", "You work."), said("user", task)]), answer(done))
        child = f"child-{i:06d}"
        report = said("user", f"Report of subagent {child}: {done}")
        grown = [ask, result(f"call_{i}", f"started subagent {child}"), report]
    return documents


# -- streams and sockets -----------------------------------------------------------------------------------------------


def _sse(chunks: Iterator[Value], ms: int) -> Value:
    frames = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks]
    return {"events": frames, "ms": " ".join(str(ms * i) for i in range(len(frames)))}


def _chunk(delta: Value, finish: str | None = None) -> Value:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "choices": [choice]}


def _streamed(x: int, body: Value, chunks: Iterator[Value], url: str = CHAT) -> Documents:
    return [
        request(x, {"json": {**body, "stream": True}}, url),
        response(x, _sse(chunks, 1), headers={"content-type": "text/event-stream"}),
    ]


@shape
def sse_events(n: int) -> Documents:
    """An answer in n events."""

    def chunks() -> Iterator[Value]:
        yield from (_chunk({"content": ("the ", "word ", "天 ")[i % 3]}) for i in range(n))
        yield _chunk({}, "stop")

    return _streamed(1, chat([said("user", "q")]), chunks())


@shape
def sse_tool_calls(n: int) -> Documents:
    """n tool calls, each in two events, their events interleaved."""

    def chunks() -> Iterator[Value]:
        for i in range(n):
            yield _chunk({"tool_calls": [{"index": i, **tool_call(f"call_{i}", "look", {})}]})
        for i in range(n):
            yield _chunk({"tool_calls": [{"index": i, "function": {"arguments": " "}}]})
        yield _chunk({}, "tool_calls")

    return _streamed(1, chat([said("user", "q")], tools=[tool("look")]), chunks())


@shape
def anthropic_events(n: int) -> Documents:
    """n content blocks, and one of n deltas, of Anthropic's events."""

    def events() -> Iterator[Value]:
        usage = {"input_tokens": 3, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude", "usage": usage}
        yield {"type": "message_start", "message": head}
        for i in range(n):
            block = {"type": "tool_use", "id": f"toolu_{i}", "name": "look", "input": {}}
            yield {"type": "content_block_start", "index": i, "content_block": block}
            delta = {"type": "input_json_delta", "partial_json": '{"path": "/a"}'}
            yield {"type": "content_block_delta", "index": i, "delta": delta}
            yield {"type": "content_block_stop", "index": i}
        yield {"type": "content_block_start", "index": n, "content_block": {"type": "text", "text": ""}}
        for i in range(n):
            yield {"type": "content_block_delta", "index": n, "delta": {"type": "text_delta", "text": f"word{i} "}}
        yield {"type": "content_block_stop", "index": n}
        yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}
        yield {"type": "message_stop"}

    body = {"model": "claude", "max_tokens": 9, "messages": [said("user", "q")]}
    return _streamed(1, body, events(), ANTHROPIC)


def _socket(messages: Iterator[tuple[str, Value]], url: str) -> Documents:
    opened = {"status": 101, "headers": {"upgrade": "websocket"}, "headers_at": 12}
    documents = [
        request(1, None, url, {"upgrade": "websocket"}, "GET"),
        {"exchange": 1, "at": 12, "response": opened},
        *(
            {"exchange": 1, "at": 13 + i, "message": {"from": sender, "body": {"json": body}}}
            for i, (sender, body) in enumerate(messages)
        ),
    ]
    end = {"exchange": 1, "at": documents[-1]["at"] + 1, "ended": "complete"}
    return [*documents, {**end, "close": {"code": 1000, "reason": "", "from": "client"}}]


@shape
def websocket_calls(n: int) -> Documents:
    """n calls of the Responses API over one WebSocket."""

    def talk() -> Iterator[tuple[str, Value]]:
        before = None
        for i in range(n):
            words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"say {i}"}]}
            yield (
                "client",
                {"type": "response.create", "model": "gpt-5", "input": [words], "previous_response_id": before},
            )
            before = f"resp_{i}"
            text = {"type": "output_text", "text": f"said {i}", "annotations": []}
            output = [{"type": "message", "id": f"m{i}", "role": "assistant", "content": [text]}]
            done = {"id": before, "object": "response", "status": "completed", "model": "gpt-5", "output": output}
            yield "server", {"type": "response.created", "response": {"id": before}}
            yield "server", {"type": "response.completed", "response": done}

    return _socket(talk(), "wss://api.openai.com/v1/responses")


@shape
def websocket_messages(n: int) -> Documents:
    """n messages of a WebSocket that speaks no known protocol."""
    return _socket(
        ((("client", "server")[i % 2], {"n": i, "text": f"message {i}"}) for i in range(n)), "wss://example.com/live"
    )


# -- other exchanges ------------------------------------------------------------------------------------------


@shape
def other_exchanges(n: int) -> Documents:
    """n requests that are not model calls, to many hosts."""
    return [
        document
        for x in range(1, n + 1)
        for document in (
            request(x, None, f"https://host{x}.example.com/page/{x}?q={x}", method="GET"),
            response(x, {"text": f"page {x}"}, headers={"content-type": "text/plain"}),
        )
    ]


@shape
def headers(n: int) -> Documents:
    """n headers in request and response, and one header with n values."""
    many = {f"x-header-{i}": f"value {i}" for i in range(n)} | {"x-many": [f"v{i}" for i in range(n)]}
    named = JSON_HEADERS | many
    return [
        request(1, {"json": chat([said("user", "q")])}, headers=named),
        response(1, {"json": answer("done")}, headers=named),
    ]


@shape
def query_parameters(n: int) -> Documents:
    query = "&".join(f"p{i}={i}" for i in range(n))
    return [
        request(1, {"json": chat([said("user", "q")])}, f"{CHAT}?{query}"),
        response(1, {"json": answer("done")}),
    ]


@shape
def json_members(n: int) -> Documents:
    """Bodies with n unknown members."""
    members = {f"member_{i}": {"value": i, "list": [i]} for i in range(n)}
    return call(1, chat([said("user", "q")], metadata=members, **members), {**answer("done"), **members})


@shape
def placeholders(n: int) -> Documents:
    """n distinct placeholders in one text."""
    text = " ".join(f"key [redacted:key:{i}]" for i in range(n))
    return call(1, chat([said("user", text)]), answer(text))


@shape
def unfinished_calls(n: int) -> Documents:
    """n requests that got no response."""
    return [
        document
        for x in range(1, n + 1)
        for document in (
            request(x, {"json": chat([said("user", f"ask {x}")])}),
            {"exchange": x, "at": 10 * x + 8, "ended": "upstream_unreachable"},
        )
    ]


# -- characters --------------------------------------------------------------------------------------------------------


def text_shape(mark: str) -> Callable[[int], Documents]:
    """A text of 100 n characters in every place that holds text: prompt, answer, arguments, result, name."""

    def build(n: int) -> Documents:
        text = (mark * (100 * n // len(mark) + 1))[: 100 * n]
        ask = asks([tool_call("call_1", "look", {"path": text})])
        start = [said("system", text), said("user", text)]
        first = call(1, chat(start, tools=[tool("look")]), answer(ask))
        history = [*start, ask, result("call_1", text)]
        second = call(2, chat(history, tools=[tool("look")]), answer(text))
        # A third call differs at the end of its longest texts: what compares them has to find that.
        other = [said("system", text + "x"), said("user", text + "y")]
        return first + second + call(3, chat(other, tools=[tool("look")]), answer(text + "z"))

    return build


for _name, _mark in MARKS.items():
    SHAPES[f"text_{_name}"] = text_shape(_mark)
