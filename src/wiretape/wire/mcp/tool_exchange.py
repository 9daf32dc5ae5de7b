"""A tool that ran in the agent's own process, as an exchange: the call and its answer as MCP spells them.

No wire carried it, so its address is no one's: `tool://local/NAME`. Being MCP's, it is read by all that reads tapes:
it pairs with the model's tool call, and tells how long the tool took. Beside the text that MCP has, the answer holds
what the function returned or raised, so that a replay can return or raise it again.
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
_TYPE = "wiretape/type"  # in `_meta`: the class that `result` was made from, or that could not be kept
_KEPT = "wiretape/kept"


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool's function came to. `kept`: whether `value` is it; else only its text is known.

    `type`: the class of a value that is no JSON by itself, or of what was raised, as `module.Name`.
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


def called(exchange: Exchange) -> tuple[str, Json]:
    """The tool's name and its arguments."""
    params = obj(obj(body_json(exchange.request.body)).get("params"))
    name = string(params.get("name")) or unquote(exchange.request.url.removeprefix(PREFIX))
    return name, params.get("arguments")


def answered(exchange: Exchange) -> ToolAnswer | None:
    """What came of it; None where the tool never ended."""
    if exchange.response is None or exchange.ended is not Ended.COMPLETE:
        return None
    return read_answer(body_json(exchange.response.body))


def read_answer(body: Json) -> ToolAnswer:
    """What `answer_body` says, whoever wrote it."""
    result = obj(obj(body).get("result"))
    text, parts, _ = result_text(result.get("content"), "")
    told, meta = obj(result.get("structuredContent")), obj(result.get("_meta"))
    if result.get("isError") is True:
        error = obj(told.get("error"))
        args = error.get("args")
        return ToolAnswer(text, None, False, string(error.get("type")), True, tuple(args or ()), parts)
    return ToolAnswer(text, told.get("result"), "result" in told, string(meta.get(_TYPE)), parts=parts)


def made_exchange(name: str, arguments: Json, answer: ToolAnswer) -> Exchange:
    """An exchange that says the same, for results that are known from elsewhere."""
    headers = Headers(HEADERS)
    request = Request("POST", tool_url(name), headers, JsonBody(call_body(name, arguments)))
    return Exchange(0, 0, request, Response(200, headers, 0, JsonBody(answer_body(answer))), Ended.COMPLETE, 0)
