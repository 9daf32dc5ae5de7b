"""Forks from the middle of a WebSocket: kept exchanges and live requests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.sockets import create, events, function_call, message, socket

from wiretape.model.http import Exchange, Headers, JsonBody, Response
from wiretape.rerun.fork.fork import EditedAnswer, EditedResult, Fork, ForkChange, Unchanged
from wiretape.rerun.fork.sockets_as_http import sockets_as_http
from wiretape.runs.user_text import answer_text
from wiretape.wire.registry import decode, default_registry

ASKED = {"role": "user", "content": "How is the weather?"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}


def result(call_id: str, output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def talk() -> Exchange:
    """Three calls on one connection: a tool call for the place, one for the weather, then the answer."""
    said = [
        create(input=[ASKED], instructions="Be brief."),
        *events("r1", THOUGHT, function_call("place", "c1")),
        create(input=[result("c1", "Oslo")], previous_response_id="r1", instructions="Be brief."),
        *events("r2", function_call("weather", "c2")),
        create(input=[result("c2", "rain")], previous_response_id="r2", instructions="Be brief."),
        *events("r3", message("It rains in Oslo.")),
    ]
    return socket(said, headers=[("authorization", "Bearer x"), ("sec-websocket-key", "k"), ("session-id", "s1")])


def live_of(fork: Fork) -> list[tuple[str, dict[str, Any]]]:
    """Return the live requests; each is answered with a text."""
    sent = []
    while (send := fork.next()) is not None:
        response = fork.from_tape(send)
        if response is None:
            sent.append((send.request.url, send.body))
            answer = {"id": "live", "status": "completed", "output": [message("Live.")]}
            response = Response(200, Headers([("content-type", "application/json")]), 0, JsonBody(answer))
        fork.answered(response)
    return sent


def test_calls_of_a_websocket_as_exchanges_have_their_whole_history() -> None:
    made = sockets_as_http([talk()], default_registry())
    calls = decode(made.exchanges)
    assert [[message.role for message in call.request.messages] for call in calls] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
        ["system", "user", "assistant", "tool", "assistant", "tool"],
    ]
    assert made.origins == {1: 1, 2: 1, 3: 1}
    last = made.exchanges[2]
    assert (last.request.method, last.request.url) == ("POST", "https://api.example.com/v1/responses")
    assert last.request.headers.get("authorization") == "Bearer x"
    assert "sec-websocket-key" not in last.request.headers
    assert isinstance(last.request.body, JsonBody)
    assert "previous_response_id" not in last.request.body.value
    assert [call.response and call.response.finish for call in calls] == ["tool_calls", "tool_calls", "stop"]


def test_a_call_without_a_predecessor_has_only_its_own_history() -> None:
    """The previous call ended before its answer had an id."""
    failed = ("server", {"type": "error", "status": 500, "error": {"type": "server_error", "message": "no"}})
    said = [create(input=[ASKED]), failed, create(input=[ASKED]), *events("r2", message("Rain."))]
    made = sockets_as_http([socket(said)], default_registry())
    assert [len(call.request.messages) for call in decode(made.exchanges)] == [1, 1]


CALL, RESULT = "function_call", "function_call_output"


@pytest.mark.parametrize(
    ("change", "kept", "expected", "told"),
    [
        (EditedResult(2, 0, "sun"), 2, ["message", CALL, RESULT, CALL, RESULT], "sun"),
        (Unchanged(2), 1, ["message", CALL, RESULT], "Oslo"),
        (Unchanged(1), 0, ["message"], None),
    ],
)
def test_live_requests_send_the_stored_history(
    change: ForkChange, kept: int, expected: list[str], told: str | None
) -> None:
    fork = Fork([talk()], change)
    (url, body), *_ = live_of(fork)
    assert url == "https://api.example.com/v1/responses"
    assert "previous_response_id" not in body
    assert [item.get("type", "message") for item in body["input"]] == expected
    assert body["input"][-1].get("output") == told
    assert body["instructions"] == "Be brief."
    assert all(isinstance(one, Exchange) for one in fork.entries)
    assert len(fork.entries) == fork.kept == kept


def test_the_next_request_has_the_edited_answer() -> None:
    said = [{"tool": "place", "arguments": {"of": "me"}}]
    fork = Fork([talk()], EditedAnswer(1, tuple(said), "Bergen"))
    (_, body), *_ = live_of(fork)
    assert body["input"][1]["arguments"].replace(" ", "") == '{"of":"me"}'
    assert body["input"][2]["output"] == "Bergen"
    (edited,) = fork.entries
    assert isinstance(edited, Exchange)
    assert fork.kept == 0
    assert fork.splits_socket


def test_an_earlier_connection_stays_unchanged() -> None:
    again = socket(
        [create(input=[{"role": "user", "content": "Thanks!"}]), *events("r9", message("Bye."))], number=2, at=5000
    )
    fork = Fork([talk(), again], EditedAnswer(4, ({"text": "So long."},)))
    assert live_of(fork) == []
    first, last = fork.entries
    assert first == 1
    assert isinstance(last, Exchange)
    (call,) = decode([last])
    assert call.response is not None
    assert answer_text(call.response.messages) == "So long."
    assert fork.splits_socket
