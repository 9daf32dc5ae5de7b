"""The Responses API over a WebSocket: messages of each call, its end, and unknown messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.sockets import REGISTRY, Said, calls_of, create, events, function_call, message, socket
from tests.support.wire import at_path, blocks, counts, said

from wiretape.model.http import Close, Ended, JsonBody, TextBody, body_bytes
from wiretape.wire.lenient import body_json

TOOL_TURN: list[Said] = [
    create("How is the weather?", instructions="Be brief.", stream_id=None),
    *events("r1", function_call("weather", "c1", '{"city": "Oslo"}')),
    (
        "client",
        {
            "type": "response.create",
            "model": "m",
            "previous_response_id": "r1",
            "instructions": "Be brief.",
            "input": [{"type": "function_call_output", "call_id": "c1", "output": "rain"}],
        },
    ),
    *events("r2", message("It rains.")),
]


def test_each_response_of_a_connection_is_a_call() -> None:
    first, second = calls_of(socket(TOOL_TURN, headers=[("session-id", "s")]))
    assert (first.number, first.exchange, first.part, second.number, second.part) == (1, 1, 1, 2, 2)
    assert (first.format, first.model, first.kind) == ("openai.responses", "m-1", "inference")
    assert first.response is not None
    assert second.response is not None
    assert said(first.response) == [("call", "c1", "weather", '{"city": "Oslo"}')]
    assert (first.response.id, first.response.finish, first.response.status) == ("r1", "tool_calls", 101)
    assert counts(first.response) == (10, 4, None, 3, None)
    assert (second.response.finish, second.response.complete, second.ended) == ("stop", True, Ended.COMPLETE)
    assert first.headers == (("session-id", "s"),)


def test_the_times_of_a_call_are_those_of_its_messages() -> None:
    first, second = calls_of(socket(TOOL_TURN, at=1000))
    assert (first.at, first.ended_at) == (1100, 1140)  # created, item added, item done, completed
    assert second.response is not None
    assert (second.at, second.response.first_token_at, second.ended_at) == (1150, 1180, 1210)
    assert first.frames == (1, 2, 3, 4, 5)
    assert second.frames == (6, 7, 8, 9, 10, 11, 12)


def test_an_incremental_turn_has_the_whole_history_with_shared_messages() -> None:
    first, second = calls_of(socket(TOOL_TURN))
    assert blocks(second.request.messages) == [
        ("text", "Be brief."),
        ("text", "How is the weather?"),
        ("call", "c1", "weather", '{"city": "Oslo"}'),
        ("result", "c1", None, "rain"),
    ]
    assert second.request.messages[1] is first.request.messages[1]
    assert first.response is not None
    assert second.request.messages[2] is first.response.messages[0]
    assert second.request.held == 3
    paths = [second.request.path(n) for n in range(4)]
    assert paths == ["instructions", "previous_response[0]", "previous_response[1]", "input[0]"]


def test_instructions_are_not_inherited() -> None:
    turn = [*TOOL_TURN[:5], ("client", {k: v for k, v in TOOL_TURN[5][1].items() if k != "instructions"})]
    second = calls_of(socket([*turn, *TOOL_TURN[6:]]))[1]
    assert [m.role for m in second.request.messages] == ["user", "assistant", "tool"]


def test_a_history_outside_the_tape_is_not_invented() -> None:
    call = calls_of(socket(TOOL_TURN[5:]))[0]
    assert blocks(call.request.messages) == [("text", "Be brief."), ("result", "c1", None, "rain")]
    assert (call.request.held, call.request.previous_response_id) == (0, "r1")


def test_the_paths_of_new_messages_point_into_their_frame() -> None:
    exchange = socket(TOOL_TURN)
    second = calls_of(exchange)[1]
    frame = body_json(exchange.messages[second.frames[0] - 1].body)
    new = second.request.messages[second.request.held]
    assert at_path(frame, second.request.path(second.request.held) + new.block_paths[0]) == "rain"


def test_a_prewarm_is_not_an_inference_and_the_next_call_has_its_input() -> None:
    warm, call = calls_of(
        socket(
            [
                create("You are an agent.", generate=False),
                *events("r0"),
                create("Go.", previous_response_id="r0"),
                *events("r1", message("Done.")),
            ]
        )
    )
    assert (warm.kind, call.kind) == ("prewarm", "inference")
    assert blocks(call.request.messages) == [("text", "You are an agent."), ("text", "Go.")]


def test_a_call_is_complete_while_the_socket_is_open() -> None:
    open_one = socket([*TOOL_TURN[:5], create("And tomorrow?"), *events("r3", message("Sun."))[:3]], ended=None)
    done, running = calls_of(open_one)
    assert done.response is not None
    assert (done.ended, done.response.complete, done.response.finish) == (Ended.COMPLETE, True, "tool_calls")
    assert running.response is not None
    assert (running.ended, running.ended_at, running.response.complete) == (None, None, False)
    assert said(running.response) == [("text", "Sun")]


def test_every_call_is_returned_at_its_last_message() -> None:
    exchange = socket(TOOL_TURN)
    found = REGISTRY.socket_format(exchange)
    assert found is not None
    follower, bare, told = found.follow(), replace(exchange, messages=()), []
    for n, one in enumerate(exchange.messages, 1):
        told += [(n, call.part, call.response and call.response.finish) for call in follower.feed(bare, one)]
    assert told == [(5, 1, "tool_calls"), (12, 2, "stop")]
    assert follower.rest(bare) == []


def test_a_follower_returns_incomplete_calls_at_the_end() -> None:
    exchange = socket(TOOL_TURN[:3], ended=Ended.UPSTREAM_CLOSED)
    found = REGISTRY.socket_format(exchange)
    assert found is not None
    follower = found.follow()
    assert all(follower.feed(exchange, one) == [] for one in exchange.messages)
    (call,) = follower.rest(exchange)
    assert (call.ended, call.response is not None and call.response.complete) == (Ended.UPSTREAM_CLOSED, False)


@pytest.mark.parametrize(
    ("close", "ended", "expected"),
    [
        (Close(1000, "", "client"), Ended.COMPLETE, Ended.CLIENT_CLOSED),
        (Close(1011, "", "server"), Ended.COMPLETE, Ended.UPSTREAM_CLOSED),
        (None, Ended.RECORDER_STOPPED, Ended.RECORDER_STOPPED),
    ],
)
def test_a_close_in_a_response_keeps_the_received_part(close: Close | None, ended: Ended, expected: Ended) -> None:
    said_so_far = [create("Go."), *events("r1", message("Working on it."))[:3]]
    (call,) = calls_of(socket(said_so_far, ended=ended, close=close))
    assert call.response is not None
    assert (call.ended, call.response.complete, call.response.finish) == (expected, False, None)
    assert said(call.response) == [("text", "Wor")]


def test_an_unanswered_request_has_no_response() -> None:
    (call,) = calls_of(socket([create("Go.")], ended=Ended.UPSTREAM_CLOSED))
    assert (call.response, call.ended) == (None, Ended.UPSTREAM_CLOSED)


def test_lanes_are_answered_in_parallel_each_in_order() -> None:
    one, two = events("a1", message("one"), stream_id="a"), events("b1", message("two"), stream_id="b")
    three = events("a2", message("three"), stream_id="a")
    asked = [create("1", stream_id="a"), create("2", stream_id="b"), create("3", stream_id="a")]
    mixed = [pair for both in zip(one, two, strict=True) for pair in both]
    calls = calls_of(socket([*asked, *mixed, *three]))
    answers = [(c.request.settings["stream_id"], said(c.response)) for c in calls if c.response is not None]
    assert answers == [("a", [("text", "one")]), ("b", [("text", "two")]), ("a", [("text", "three")])]


def test_calls_without_a_lane_are_answered_one_at_a_time() -> None:
    turn = [create("1"), create("2"), *events("r1", message("one")), *events("r2", message("two"))]
    assert [said(c.response) for c in calls_of(socket(turn)) if c.response] == [[("text", "one")], [("text", "two")]]


def test_an_older_wrapper_around_the_body_is_read_too() -> None:
    wrapped = ("client", {"type": "response.create", "response": {"model": "m", "input": "Go.", "temperature": 1}})
    (call,) = calls_of(socket([wrapped, *events("r1", message("ok"))]))
    assert blocks(call.request.messages) == [("text", "Go.")]
    assert call.request.settings == {"temperature": 1}


def error_event(code: str, status: int = 429) -> Said:
    error = {"type": "rate_limit_error", "code": code, "message": "slow down", "headers": {"retry-after": "7"}}
    return "server", {"type": "error", "status": status, "error": error}


def test_an_error_ends_only_its_call() -> None:
    failed, fine = calls_of(socket([create("1"), error_event("too_fast"), create("1"), *events("r1", message("one"))]))
    assert failed.response is not None
    assert failed.response.error is not None
    error = failed.response.error
    assert (failed.response.status, error.status, error.code, error.retryable) == (429, 429, "too_fast", True)
    assert error.retry_after_ms == 7000
    assert (failed.ended_at, failed.response.finish) == (110, "error")
    assert fine.response is not None
    assert said(fine.response) == [("text", "one")]


def test_an_error_on_an_idle_connection_belongs_to_no_call() -> None:
    exchange = socket([*TOOL_TURN, error_event("websocket_connection_limit_reached", 400)])
    assert [call.response is not None and call.response.error for call in calls_of(exchange)] == [None, None]


def test_steering_input_belongs_to_the_next_response() -> None:
    steered = {"status": "incomplete", "incomplete_details": {"reason": "steered"}}
    steer = {"type": "response.steer", "previous_response_id": "r1", "input": "In French, please."}
    accepted = {"type": "response.steer.accepted", "steer": {"id": "s1", "previous_response_id": "r1"}}
    before = events("r1", message("It is"), **steered)
    first, second = calls_of(
        socket(
            [
                create("How is it?", temperature=0.5),
                *before[:3],
                ("client", steer),
                ("server", accepted),
                *before[3:],
                *events("r2", message("Il pleut.")),
            ]
        )
    )
    assert first.response is not None
    assert (first.response.finish, first.response.raw_finish) == ("pause", "steered")
    assert blocks(second.request.messages) == [
        ("text", "How is it?"),
        ("text", "It is"),
        ("text", "In French, please."),
    ]
    assert (second.part, second.request.settings["temperature"]) == (2, 0.5)
    assert second.request.path(2) == "input[0]"


def test_steering_input_waits_for_the_tool_results() -> None:
    steer = {"type": "response.steer", "previous_response_id": "r1", "input": [{"role": "user", "content": "Faster."}]}
    turn = [*TOOL_TURN[:3], ("client", steer), *TOOL_TURN[3:]]
    second = calls_of(socket(turn))[1]
    assert blocks(second.request.messages[second.request.held :]) == [
        ("text", "Faster."),
        ("result", "c1", None, "rain"),
    ]
    assert [second.request.path(n) for n in (3, 4)] == ["steer[0]", "input[0]"]


def test_failed_steering_input_belongs_to_no_request() -> None:
    steer = {"previous_response_id": "r1", "input": "Faster."}
    failed = {"type": "response.steer.failed", "steer": {"id": "s1", **steer}, "error": {"code": "response_not_active"}}
    turn = [*TOOL_TURN[:3], ("client", {"type": "response.steer", **steer}), ("server", failed), *TOOL_TURN[3:]]
    second = calls_of(socket(turn))[1]
    assert blocks(second.request.messages[second.request.held :]) == [("result", "c1", None, "rain")]


def test_binary_and_unreadable_messages_are_kept_with_the_call() -> None:
    answer = events("r1", message("ok"))
    strange: list[Said] = [("server", b"\x00\xff"), ("server", "half a {"), ("client", {"type": "session.update"})]
    (call,) = calls_of(socket([create("Go."), answer[0], *strange, *answer[1:], ("client", b"late")]))
    assert call.response is not None
    assert said(call.response) == [
        ("text", "ok"),
        ("unknown", "binary_message"),
        ("unknown", "unreadable_message"),
        ("unknown", "client_message"),
        ("unknown", "binary_message"),
    ]
    assert call.response.complete


def test_unreadable_messages_are_not_part_of_the_next_history() -> None:
    turn = [*TOOL_TURN[:2], ("server", b"\x00"), *TOOL_TURN[2:]]
    assert len(calls_of(socket(turn))[1].request.messages) == 4


def test_other_sockets_are_not_model_calls() -> None:
    assert calls_of(socket([("client", {"type": "hello"}), ("server", {"type": "welcome"})])) == []
    assert calls_of(socket([create("Go."), *events("r1")], url="https://api.example.com/v1/realtime")) == []
    assert calls_of(socket([])) == []


@pytest.mark.parametrize("said_first", ["session.update", "conversation.item.create", "input_audio_buffer.append"])
def test_realtime_is_another_protocol_at_any_path(said_first: str) -> None:
    spoken: list[Said] = [("client", {"type": said_first}), ("client", {"type": "response.create"}), *events("r1")]
    assert calls_of(socket(spoken, url="https://gateway.example.com/socket")) == []
    greeted: list[Said] = [("server", {"type": "session.created"}), create("Go."), *events("r1")]
    assert calls_of(socket(greeted, url="https://gateway.example.com/socket")) == []


def test_a_connection_is_recognized_by_its_messages() -> None:
    assert len(calls_of(socket(TOOL_TURN, url="https://gateway.example.com/socket"))) == 2


def test_events_in_another_spelling_are_read() -> None:
    exchange = socket(TOOL_TURN)
    spelled = tuple(replace(m, body=TextBody(" " + body_bytes(m.body).decode() + "\n")) for m in exchange.messages)
    ours, theirs = calls_of(exchange), calls_of(replace(exchange, messages=spelled))
    assert [blocks(c.request.messages) for c in theirs] == [blocks(c.request.messages) for c in ours]


def test_sockets_and_http_calls_are_numbered_together_by_start() -> None:
    http = http_call("resp_h", "r2", at=1000, number=2)
    calls = calls_of(socket(TOOL_TURN), http)
    assert [(call.number, call.exchange, call.part) for call in calls] == [(1, 1, 1), (2, 1, 2), (3, 2, None)]
    assert blocks(calls[2].request.messages) == [
        ("text", "How is the weather?"),
        ("call", "c1", "weather", '{"city": "Oslo"}'),
        ("result", "c1", None, "rain"),
        ("text", "It rains."),
        ("text", "Thanks."),
    ]


def http_call(response_id: str, previous: str, at: int, number: int) -> Any:
    from tests.support.wire import RESPONSES, exchange

    asked = {"model": "m", "previous_response_id": previous, "input": "Thanks."}
    answered = {"id": response_id, "object": "response", "status": "completed", "output": [message("Bye.")]}
    return exchange(RESPONSES, JsonBody(answered), request=asked, at=at, number=number)


def test_an_http_call_that_names_a_response_on_the_tape_has_its_history() -> None:
    one = http_call("h1", "gone", at=0, number=1)
    two = http_call("h2", "h1", at=1000, number=2)
    first, second = calls_of(one, two)
    assert blocks(first.request.messages) == [("text", "Thanks.")]
    assert blocks(second.request.messages) == [("text", "Thanks."), ("text", "Bye."), ("text", "Thanks.")]
    assert second.request.held == 2


def test_metadata_of_a_call_overrides_the_handshakes_headers() -> None:
    metadata = {"thread_id": "child", "x-codex-parent-thread-id": "root", "other": "x", "n": 1}
    turn = [create("Go.", client_metadata=metadata), *events("r1", message("ok"))]
    (call,) = calls_of(socket(turn, headers=[("thread-id", "root"), ("session-id", "s")]))
    assert dict(call.headers) == {"thread-id": "child", "session-id": "s", "x-codex-parent-thread-id": "root"}
