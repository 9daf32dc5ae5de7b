"""A tool call inside the agent's process, as an MCP exchange with the URL `tool://local/NAME`.

Because it has the shape of MCP, it links to the model's tool call and shows the tool's duration. In addition to MCP's
text, the answer has the value that the function returned, or its exception, so that a replay can repeat it.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.content import result_text
from wiretape.wire.lenient import body_json, obj, string

PREFIX = "tool://local/"
HEADERS = (("content-type", "application/json"),)
_TYPE = "wiretape/type"  # in `_meta`: the class that `result` was made from, or of a value that was not kept
_KEPT = "wiretape/kept"


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The outcome of a tool's function. `kept`: `value` is the returned value; otherwise only its text is known.

    `type` is the class, as `module.Name`, of a value that is not plain JSON, or of the exception.
    """

    text: str
    value: Json = None
    kept: bool = True
    type: str | None = None
    raised: bool = False
    args: tuple[Json, ...] = ()  # of the exception
    parts: tuple[Json, ...] = ()


def tool_url(name: str) -> str:
    return PREFIX + quote(name, safe="")


def call_body(name: str, arguments: Json) -> JsonObject:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def answer_body(answer: ToolAnswer) -> JsonObject:
    result: JsonObject = {"content": [{"type": "text", "text": answer.text}], "isError": answer.raised}
    if answer.raised:
        result["structuredContent"] = {"error": {"type": answer.type, "args": list(answer.args)}}
    elif answer.kept:
        result["structuredContent"] = {"result": answer.value}
    meta = {_TYPE: answer.type} if answer.type is not None and not answer.raised else {}
    if not answer.kept:
        meta[_KEPT] = "text"
    return {"jsonrpc": "2.0", "id": 1, "result": {**result, "_meta": meta} if meta else result}


def is_tool_exchange(exchange: Exchange) -> bool:
    return exchange.request.url.startswith(PREFIX)


def tool_call_of(exchange: Exchange) -> tuple[str, Json]:
    """Return the tool's name and its arguments."""
    params = obj(obj(body_json(exchange.request.body)).get("params"))
    name = string(params.get("name")) or unquote(exchange.request.url.removeprefix(PREFIX))
    return name, params.get("arguments")


def tool_answer_of(exchange: Exchange) -> ToolAnswer | None:
    """Return the tool's answer, or None if the tool did not end."""
    if exchange.response is None or exchange.ended is not Ended.COMPLETE:
        return None
    return parse_answer(body_json(exchange.response.body))


def parse_answer(body: Json) -> ToolAnswer:
    """Return the answer in a JSON-RPC body."""
    result = obj(obj(body).get("result"))
    text, parts, _ = result_text(result.get("content"), "")
    structured, meta = obj(result.get("structuredContent")), obj(result.get("_meta"))
    if result.get("isError") is True:
        error = obj(structured.get("error"))
        args = error.get("args")
        return ToolAnswer(text, None, False, string(error.get("type")), True, tuple(args or ()), parts)
    return ToolAnswer(text, structured.get("result"), "result" in structured, string(meta.get(_TYPE)), parts=parts)


def tool_exchange(name: str, arguments: Json, answer: ToolAnswer) -> Exchange:
    """Return an exchange with this call and answer, for results that were not recorded as exchanges."""
    headers = Headers(HEADERS)
    request = Request("POST", tool_url(name), headers, JsonBody(call_body(name, arguments)))
    return Exchange(0, 0, request, Response(200, headers, 0, JsonBody(answer_body(answer))), Ended.COMPLETE, 0)
