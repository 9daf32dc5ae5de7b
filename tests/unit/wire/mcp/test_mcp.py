"""MCP traffic: recognition, and tool calls with every kind of answer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.sockets import REGISTRY
from tests.support.wire import SSE, exchange, frame, stream

from wiretape.model.call import ServedToolCall
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.wire.mcp.traffic import describe_mcp, is_mcp, served_tool_calls
from wiretape.wire.registry import decode

URL = "http://127.0.0.1:8000/mcp"


def rpc(method: str, call_id: Any = None, **params: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if call_id is None else {**message, "id": call_id}


def result(call_id: Any, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "result": members}


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


def call(call_id: Any = 1, name: str = "weather", **more: Any) -> dict[str, Any]:
    return rpc("tools/call", call_id, name=name, arguments={"city": "Oslo"}, **more)


def post(asked: Any, answer: Any = None, **more: Any) -> Exchange:
    body = None if answer is None else answer if not isinstance(answer, dict | list) else JsonBody(answer)
    return exchange(more.pop("url", URL), body, request=asked, **more)


def served(*exchanges: Exchange) -> ServedToolCall:
    (one,) = served_tool_calls(exchanges)
    return one


def test_a_call_that_is_answered_as_json() -> None:
    one = served(post(call(), result(1, content=text("rain")), number=7, at=1000))
    assert (one.exchange, one.name, one.arguments, one.text) == (7, "weather", {"city": "Oslo"}, "rain")
    assert (one.at, one.ended_at, one.is_error, one.server) == (1000, 1500, False, URL)


def test_a_call_that_is_answered_by_events_after_others() -> None:
    frames = [
        b"id: 1\ndata: \n\n",  # a priming event
        frame(rpc("notifications/progress", progress=1), "message"),
        frame(result(1, content=text("rain")), "message"),
    ]
    one = served(post(call(), stream(frames, [1, 20, 35]), headers=SSE))
    assert (one.text, one.ended_at) == ("rain", 135)


@pytest.mark.parametrize("call_id", [0, "a-1", 7])
def test_an_id_may_be_any_number_or_string(call_id: Any) -> None:
    assert served(post(call(call_id), result(call_id, content=text("rain")))).text == "rain"


def test_a_number_is_not_the_string_that_spells_it() -> None:
    assert served(post(call(1), result("1", content=text("rain")))).text is None


def test_a_failed_tool_and_a_refused_call() -> None:
    failed = served(post(call(), result(1, content=text("no such city"), isError=True)))
    refused = served(post(call(), {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "unknown tool"}}))
    assert [(one.text, one.is_error) for one in (failed, refused)] == [("no such city", True), ("unknown tool", True)]


def test_content_other_than_text_is_kept() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    one = served(post(call(), result(1, content=[*text("a map"), image])))
    assert (one.text, one.parts) == ("a map", (image,))
    assert served(post(call(), result(1, content=[], structuredContent={"t": 3}))).text == '{"t":3}'


def test_a_batch_holds_several_calls_with_answers_in_any_order() -> None:
    asked = [call(1), rpc("notifications/initialized"), call(2, "time")]
    answers = [result(2, content=text("noon")), result(1, content=text("rain"))]
    assert [(one.name, one.text) for one in served_tool_calls([post(asked, answers)])] == [
        ("weather", "rain"),
        ("time", "noon"),
    ]


def channel(url: str, frames: list[bytes], number: int = 1, ended: Ended | None = None, **headers: str) -> Exchange:
    request = Request("GET", url, Headers([("accept", "text/event-stream"), *headers.items()]))
    ms = [1000 * (n + 1) for n in range(len(frames))]
    response = Response(200, Headers(SSE), 10, stream(frames, ms))
    return Exchange(number, 0, request, response, ended, None)


def test_the_older_protocol_answers_on_a_channel_that_stays_open() -> None:
    told = [
        frame("/messages?sessionId=s1", "endpoint"),
        frame(result(1, content=text("rain")), "message"),
        frame(result(1, content=text("sun")), "message"),
    ]
    mine = channel("http://127.0.0.1:8000/sse", told)
    others = channel(
        "http://127.0.0.1:8000/sse", [frame("/messages?sessionId=s2", "endpoint"), frame(result(1, content=text("x")))]
    )
    asked = post(call(), url="http://127.0.0.1:8000/messages?sessionId=s1", status=202, number=3, at=1500)
    one = served(others, mine, asked)
    assert (one.exchange, one.text, one.ended_at) == (3, "rain", 2010)


def test_a_session_tells_equal_ids_apart() -> None:
    answers = [frame(result(1, content=text(said)), "message") for said in ("rain", "sun")]
    channels = [channel(URL, [answer], number=n, **{"mcp-session-id": f"s{n}"}) for n, answer in enumerate(answers, 1)]
    asked = [
        post(call(), status=202, request_headers=[("mcp-session-id", f"s{n}")], number=10 + n, at=100 * n)
        for n in (1, 2)
    ]
    assert [one.text for one in served_tool_calls([*channels, *asked])] == ["rain", "sun"]


def test_a_call_repeated_with_more_input_is_one_call() -> None:
    waiting = result(1, resultType="input_required", inputRequests={"q": {}})
    first = post(call(1), waiting, number=1, at=0)
    again = post(call(2, inputResponses={"q": "yes"}), result(2, content=text("rain")), number=2, at=5000)
    one = served(first, again)
    assert (one.exchange, one.at, one.ended_at, one.text, one.waits) == (1, 0, 5500, "rain", False)
    assert served(first).waits


def test_a_call_without_an_answer_has_no_end() -> None:
    one = served(Exchange(1, 5, Request("POST", URL, Headers(), JsonBody(call()))))
    assert (one.text, one.is_error, one.ended_at) == (None, None, None)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions", "/mcp", "/"])
def test_json_rpc_is_never_a_model_call(path: str) -> None:
    one = post(call(), result(1, content=text("rain")), url="http://127.0.0.1:8000" + path)
    assert REGISTRY.recognise(one) is None
    assert decode([one], REGISTRY) == []
    assert len(served_tool_calls([one])) == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}},  # another protocol, between agents
        {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": []},
        {"method": "tools/call", "params": {}},
    ],
)
def test_other_protocols_are_not_mcp(asked: dict[str, Any]) -> None:
    assert not is_mcp(post(asked))
    assert describe_mcp(post(asked)) is None


def test_exchanges_are_described_in_words() -> None:
    session = [("mcp-session-id", "s1")]
    answer_to_server = {"jsonrpc": "2.0", "id": 1, "result": {}}
    open_channel = channel(URL, [frame(rpc("ping", 1)), frame(rpc("ping", 2))], **{"mcp-session-id": "s1"})
    over = Exchange(1, 0, Request("DELETE", URL, Headers(session)), Response(200))
    batch = [rpc("tools/list", n) for n in range(5)]
    assert [
        describe_mcp(one)
        for one in (post(call()), post(answer_to_server, request_headers=session), open_channel, over, post(batch))
    ] == [
        "MCP tools/call weather",
        "MCP an answer to the server",
        "MCP, an open channel from the server, 2 messages",
        "MCP, end of the session",
        "MCP tools/list, tools/list, tools/list and 2 more",
    ]


def test_the_stateless_protocol_is_recognized_by_headers_and_methods() -> None:
    headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "weather")]
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    one = post(call(1, _meta=meta), result(1, content=text("rain"), resultType="complete"), request_headers=headers)
    assert served(one).text == "rain"
    assert is_mcp(post(rpc("server/discover", 1)))
