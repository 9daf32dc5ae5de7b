"""What programs get of a tape, a call, an exchange."""

from __future__ import annotations

from tests.support.views import header, message, model_call, subagents_exchanges, subagents_run

from wiretape.model.call import Media, Unknown
from wiretape.model.http import BytesBody, Close, Exchange, Headers, Request, Response, StreamBody, TextBody, WsMessage
from wiretape.model.run import Agent, Cause, Run, Step, Thread
from wiretape.views.printable import json_text
from wiretape.views.show.show_json import call_json, exchange_json, tape_json

RUN = subagents_run()


def test_a_tape_lists_every_exchange_and_its_calls() -> None:
    said = tape_json("a.tape", header(), subagents_exchanges(), RUN)
    assert (said["calls"], said["turns"], len(said["agents"])) == (4, 1, 2)
    assert said["header"]["started"] == "2026-02-28T07:05:30Z"
    assert [[call["call"] for call in x["calls"]] for x in said["exchanges"]] == [[1], [2], [3], [4], []]
    json_text(said)


def test_a_call_has_what_it_adds_and_what_was_answered() -> None:
    said = call_json(RUN.steps[3], RUN, "answers schedule_event from call 1")
    assert said["why"] == "answers schedule_event from call 1"
    assert said["cause"] == {"kind": "tool_results", "call": 1, "tools": ("schedule_event",)}
    assert (said["new_from"], said["messages_sent"]) == (3, 4)
    assert [m["path"] for m in said["messages"]] == ["input[3]"]
    result = said["messages"][0]["blocks"][0]
    assert (result["type"], result["id"]) == ("tool_result", "call_00_Fsa6")
    assert said["answer"][0]["blocks"][0]["type"] == "text"
    assert (said["usage"]["input"], said["usage"]["cached"], said["usage"]["reasoning"]) == (462, 256, None)
    json_text(said)


def test_in_full_it_has_the_whole_history_and_the_tools() -> None:
    said = call_json(RUN.steps[3], RUN, "", full=True)
    assert len(said["messages"]) == 4
    assert said["tools"] == [
        {
            "name": "schedule_event",
            "kind": "function",
            "description": "Does schedule_event.",
            "schema": {"type": "object"},
        }
    ]


def test_a_call_of_unknown_usage_has_null() -> None:
    assert call_json(RUN.steps[1], RUN, "")["usage"] is None


def test_media_and_unknown_blocks_are_whole() -> None:
    call = model_call(1, (message("user", Media("image", {"data": "AA"}), Unknown("odd", {"type": "odd"})),))
    step = Step(call, 0, 0, 1, Cause("unknown"))
    said = call_json(step, Run((step,), (), (Agent(0, "root"),), (Thread(0, 0, (1,)),), ()), "")
    assert said["messages"][0]["blocks"] == [
        {"type": "media", "kind": "image", "raw": {"data": "AA"}},
        {"type": "unknown", "raw": {"type": "odd"}},
    ]


def test_an_exchange_is_whole() -> None:
    headers = Headers([("set-cookie", "a"), ("set-cookie", "b"), ("x", "1")])
    request = Request("POST", "https://h/", headers, BytesBody(b"\x00\xff"))
    exchange = Exchange(2, 7, request, Response(200, body=StreamBody((b"data: 1\n\n",), (0,))))
    assert exchange_json(exchange) == {
        "exchange": 2,
        "at_ms": 7,
        "ended": None,
        "ended_at_ms": None,
        "request": {
            "method": "POST",
            "url": "https://h/",
            "headers": {"set-cookie": ["a", "b"], "x": "1"},
            "body": {"base64": "AP8="},
        },
        "response": {"status": 200, "headers": {}, "body": {"text": "data: 1\n\n"}},
    }


def test_a_websocket_has_its_messages_and_its_close() -> None:
    socket = Exchange(
        1,
        0,
        Request("GET", "wss://h/"),
        Response(101),
        messages=(WsMessage(5, "client", TextBody("hi")),),
        close=Close(1000, "bye", "server"),
    )
    said = exchange_json(socket)
    assert said["messages"] == [{"at_ms": 5, "from": "client", "body": {"text": "hi"}}]
    assert said["close"] == {"code": 1000, "reason": "bye", "from": "server"}
