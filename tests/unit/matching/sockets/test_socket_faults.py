"""Faults, repeated answers and the tier `position` in a recorded WebSocket with many calls."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.replaying import chat, exchange, session, user
from tests.support.sockets import Said, create, events, function_call, message, socket, text

from wiretape.compare.difference import Tier
from wiretape.errors import UsageError
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.playback import playback
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.values import Injected, LiveRequest, Miss, Outcome
from wiretape.model.http import Close, Ended, Exchange, Headers

URL = "https://api.example.com/v1/responses"
SHAKE = Headers([("upgrade", "websocket")])
ONE, TWO, THREE = (f"r{n}" for n in (1, 2, 3))


def said(*texts: str, name: str = "r") -> list[Said]:
    """A connection whose calls each name the previous response."""
    found: list[Said] = []
    for n, asked in enumerate(texts, 1):
        named = {} if n == 1 else {"previous_response_id": f"{name}{n - 1}"}
        found += [create(asked, **named), *events(f"{name}{n}", message(f"to {asked}"))]
    return found


def replaying(*recorded: Exchange, faults: tuple[str, ...] = (), **options: Any) -> ReplaySession:
    return session(*recorded, faults=tuple(map(parse_fault, faults)), **options)


def opened(made: ReplaySession) -> SocketPlay:
    play = made.open_socket(LiveRequest("GET", URL, SHAKE))
    assert isinstance(play, SocketPlay)
    return play


def ask(play: SocketPlay, asked: str | Said, **members: Any) -> list[dict[str, Any]]:
    """Send a message; return what is due then."""
    value = asked if isinstance(asked, tuple) else create(asked, **members)
    play.receive(text(value[1]))
    return [orjson.loads(frame.data) for frame in play.due() if frame.data is not None]


def answer(frames: list[dict[str, Any]]) -> str:
    """All text of an answer that is whole."""
    assert frames[-1]["type"] == "response.completed", frames
    return "".join(frame["delta"] for frame in frames if "delta" in frame)


def kinds(outcomes: list[Outcome]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]


# -- a status


def test_a_refused_call_gets_an_error_event_and_the_next_attempt_on_the_connection_its_answer() -> None:
    made = replaying(socket(said("a", "b")), faults=("429@2:after=1.5s",))
    play = opened(made)
    assert answer(ask(play, "a")) == "to a"
    assert ask(play, "b", previous_response_id=ONE) == [
        {
            "type": "error",
            "status": 429,
            "error": {
                "message": "injected by wiretape (--fault 429@2:after=1.5s)",
                "type": "rate_limit_error",
                "param": None,
                "code": "wiretape_fault",
                "headers": {"retry-after": "2", "retry-after-ms": "1500"},
            },
        }
    ]
    assert (play.close, play.cut) == (None, False)
    assert answer(ask(play, "b", previous_response_id=ONE)) == "to b"
    assert kinds(play.new_outcomes()) == ["Answer", "Injected", "Answer"]
    report = made.report()
    assert [(one.fault, one.answer.call, one.broke) for one in report.injected] == [("429@2:after=1.5s", 2, True)]
    assert [(one.answer.call, one.tier, one.repeated) for one in report.played] == [
        (1, "exact", False),
        (2, "exact", False),
    ]
    assert report.left_over == ()


def test_a_client_may_give_up_a_refused_call_which_is_left_over() -> None:
    made = replaying(socket(said("a", "b", "c")), faults=("500@2",))
    play = opened(made)
    ask(play, "a")
    ask(play, "b", previous_response_id=ONE)
    assert answer(ask(play, "c", previous_response_id=TWO)) == "to c"
    assert [left.call for left in made.report().left_over] == [2]


def test_the_close_that_was_recorded_waits_for_the_refused_call() -> None:
    made = replaying(socket(said("a"), close=Close(1001, "", "server")), faults=("503@1:times=2",))
    play = opened(made)
    for _ in range(2):
        assert ask(play, "a")[0]["status"] == 503
        assert play.close is None
    assert answer(ask(play, "a")) == "to a"
    assert play.close == Close(1001, "", "server")
    assert kinds(play.new_outcomes()) == ["Injected", "Injected", "Answer"]


def test_a_refused_call_is_answered_on_another_connection_while_the_first_is_still_open() -> None:
    """A client may reconnect before the server notices that the old connection is closed."""
    made = replaying(socket(said("a", "b", "c")), faults=("429@2",))
    first = opened(made)
    ask(first, "a")
    ask(first, "b", previous_response_id=ONE)
    second = opened(made)
    assert answer(ask(second, "b", previous_response_id=ONE)) == "to b"
    assert answer(ask(second, "c", previous_response_id=TWO)) == "to c"
    assert first.due() == []
    assert made.report().missed == ()


def test_an_error_event_names_the_lane_of_the_call() -> None:
    asked = create("a", stream_id="s1")
    made = replaying(socket([asked, *events(ONE, message("x"), stream_id="s1")]), faults=("429@1",))
    assert ask(opened(made), asked)[0]["stream_id"] == "s1"


def test_the_handshake_option_refuses_the_handshake_with_the_status() -> None:
    made = replaying(socket(said("a")), faults=("503@1:handshake",))
    refused = made.open_socket(LiveRequest("GET", URL, SHAKE))
    assert isinstance(refused, Injected)
    shown = playback(refused)
    assert (shown.status, dict(shown.headers)["retry-after"]) == (503, "1")
    assert orjson.loads(shown.pieces[0].data)["error"]["code"] == "wiretape_fault"
    assert answer(ask(opened(made), "a")) == "to a"
    assert [(one.fault, one.broke) for one in made.report().injected] == [("503@1:handshake", True)]


# -- what ends the connection


@pytest.mark.parametrize(
    ("fault", "events", "how"),
    [
        ("cut@2", 3, "cut"),
        ("cut@2:event=2", 2, "cut"),
        ("cut@2:event=0", 0, "cut"),
        ("reset@2", 0, "reset"),
        ("reset@2:event=5", 5, "reset"),
        ("stall@2", 0, "silent"),
        ("stall@2:event=1", 1, "silent"),
    ],
)
def test_an_answer_is_cut_after_its_event_and_a_new_connection_continues(fault: str, events: int, how: str) -> None:
    made = replaying(socket(said("a", "b", "c")), faults=(fault,))
    first = opened(made)
    ask(first, "a")
    assert len(ask(first, "b", previous_response_id=ONE)) == events
    assert {"cut": first.cut, "reset": first.reset, "silent": first.silent} == {
        "cut": how != "silent",
        "reset": how == "reset",
        "silent": how == "silent",
    }
    assert ask(first, "c", previous_response_id=TWO) == []  # nothing is heard there any more
    second = opened(made)
    assert answer(ask(second, "b", previous_response_id=ONE)) == "to b"
    assert answer(ask(second, "c", previous_response_id=TWO)) == "to c"
    report = made.report()
    assert [played.answer.call for played in report.played] == [1, 2, 3]
    assert (report.missed, report.left_over, report.sockets) == ((), (), 0)


@pytest.mark.parametrize("fault", ["cut@1:event=6", "reset@1:event=6", "stall@1:event=6"])
def test_a_cut_after_the_last_event_ends_the_connection_after_the_answer(fault: str) -> None:
    made = replaying(socket(said("a", "b")), faults=(fault,))
    first = opened(made)
    assert answer(ask(first, "a")) == "to a"
    assert (first.cut, first.silent) == (not fault.startswith("stall"), fault.startswith("stall"))
    assert answer(ask(opened(made), "b", previous_response_id=ONE)) == "to b"
    report = made.report()
    assert [(one.fault, one.broke) for one in report.injected] == [(fault, False)]
    assert (report.missed, report.left_over) == ((), ())


def test_the_first_call_of_a_connection_may_break_off_too() -> None:
    made = replaying(socket(said("a")), faults=("cut@1:event=1",))
    assert len(ask(opened(made), "a")) == 1
    assert answer(ask(opened(made), "a")) == "to a"
    third = made.open_socket(LiveRequest("GET", URL, SHAKE))
    assert isinstance(third, Miss)
    assert "was already played" in third.message


def test_a_client_that_reconnects_may_send_the_whole_history() -> None:
    """The provider stores no history for it any more, so it cannot send a `previous_response_id`."""
    made = replaying(socket(said("a", "b")), faults=("cut@2",))
    first = opened(made)
    ask(first, "a")
    ask(first, "b", previous_response_id=ONE)
    told = [{"role": "user", "content": "a"}, message("to a"), {"role": "user", "content": "b"}]
    assert answer(ask(opened(made), create(input=told))) == "to b"
    report = made.report()
    assert [(one.answer.call, one.tier) for one in report.played] == [(1, "exact"), (2, "normalized")]
    assert [(one.where, one.minor, one.recorded, one.live) for one in report.drifted] == [
        ("previous_response_id", True, "r1", "(nothing)")
    ]


@pytest.mark.parametrize("change", ["to x", "to a at 2026-01-01"])
def test_a_whole_history_that_differs_is_a_miss(change: str) -> None:
    made = replaying(socket(said("a", "b")), faults=("cut@2",))
    first = opened(made)
    ask(first, "a")
    ask(first, "b", previous_response_id=ONE)
    play = opened(made)
    ask(play, create(input=[{"role": "user", "content": "a"}, message(change), {"role": "user", "content": "b"}]))
    assert play.miss is not None


def test_a_server_that_greets_greets_the_connection_after_a_fault_too() -> None:
    greeting: Said = ("server", {"type": "hello"})
    made = replaying(socket([greeting, *said("a", "b")]), faults=("cut@2:event=0",))
    first = opened(made)
    assert len(first.due()) == 1
    ask(first, "a")
    assert ask(first, "b", previous_response_id=ONE) == []
    second = opened(made)
    assert [frame.data for frame in second.due()] == ['{"type":"hello"}']
    assert answer(ask(second, "b", previous_response_id=ONE)) == "to b"
    assert made.report().left_over == ()


def test_other_lanes_under_way_are_cut_too_and_answered_at_the_next_attempt() -> None:
    one, two = create("a", stream_id="s1"), create("b", stream_id="s2")
    crossed: list[Said] = [one, two]
    for pair in zip(
        events(ONE, message("to a"), stream_id="s1"), events(TWO, message("to b"), stream_id="s2"), strict=True
    ):
        crossed += pair
    crossed.insert(3, ("client", {"type": "response.processed", "response_id": "r0"}))  # holds the rest up
    made = replaying(socket(crossed), faults=("cut@2:event=1",))
    first = opened(made)
    assert [frame["stream_id"] for frame in ask(first, one)] == []
    assert [frame["stream_id"] for frame in ask(first, two)] == ["s2"]
    second = opened(made)
    assert answer(ask(second, two)) == "to b"
    assert answer(ask(second, one)) == "to a"
    assert made.report().left_over == ()


SPECS = st.builds(
    "{}@{}{}".format,
    st.sampled_from(["429", "cut", "reset", "stall", "slow"]),
    st.sampled_from(["1", "2", "3", "4", "5", "*"]),
    st.sampled_from(["", ":event=1", ":event=6", ":times=2", ":for=1s", ":handshake", ":x2"]),
)


@given(st.lists(SPECS, max_size=5), st.booleans(), st.booleans())
def test_a_client_that_retries_gets_every_recorded_answer(specs: list[str], anew: bool, tells_all: bool) -> None:
    """Whatever breaks and however often. `anew`: it dials anew after errors, too; `tells_all`: its whole history."""
    recorded = [socket(said("a", "b", "c")), socket(said("x", "y", name="q"), number=2, at=900)]
    kept = []
    for spec in specs:
        with suppress(UsageError):
            replaying(*recorded, faults=(spec,))
            kept.append(spec)
    made = replaying(*recorded, faults=tuple(kept))
    for talk, name in (("abc", "r"), ("xy", "q")):
        play, history, fresh = None, [], True
        for n, asked in enumerate(talk):
            got: list[dict[str, Any]] = []
            new = {"role": "user", "content": asked}
            while not got or got[-1]["type"] != "response.completed":
                if play is None:
                    outcome = made.open_socket(LiveRequest("GET", URL, SHAKE))
                    assert not isinstance(outcome, Miss)
                    play, fresh = (outcome if isinstance(outcome, SocketPlay) else None), True
                    continue
                whole = {"input": [*history, new]} if fresh and tells_all else {"input": [new]}
                named = {} if n == 0 or (fresh and tells_all) else {"previous_response_id": f"{name}{n}"}
                got = ask(play, create(**whole, **named))
                assert play.miss is None
                fresh = False
                if play.cut or play.silent or (anew and got and got[-1]["type"] == "error"):
                    play = None
            assert answer(got) == f"to {asked}"
            history += [new, message(f"to {asked}")]
    report = made.report()
    assert (report.missed, report.left_over, report.sockets) == ((), (), 0)


# -- what delays


def test_a_slow_fault_multiplies_the_pauses_of_its_call_only() -> None:
    made = replaying(socket(said("a", "b")), faults=("slow@2:x10",))
    play = opened(made)
    play.receive(text(create("a")[1]))
    assert {frame.wait(0) for frame in play.due()} == {0}
    play.receive(text(create("b", previous_response_id=ONE)[1]))
    frames = play.due()
    assert [frame.wait(0) for frame in frames] == [100.0] * 6
    assert frames[0].wait(2) == 200
    assert [(one.fault, one.broke) for one in made.report().injected] == [("slow@2:x10", False)]


def test_a_stall_with_an_end_is_before_the_event_that_follows_and_needs_no_pace() -> None:
    made = replaying(socket(said("a")), faults=("stall@1:event=2:for=3s",))
    play = opened(made)
    play.receive(text(create("a")[1]))
    assert [frame.wait(0) for frame in play.due()] == [0, 0, 3000, 0, 0, 0]


def test_a_client_may_retry_a_delayed_call_on_a_new_connection() -> None:
    made = replaying(socket(said("a", "b", "c")), faults=("slow@2:x10",))
    first = opened(made)
    ask(first, "a")
    ask(first, "b", previous_response_id=ONE)
    second = opened(made)
    assert answer(ask(second, "b", previous_response_id=ONE)) == "to b"
    assert answer(ask(second, "c", previous_response_id=TWO)) == "to c"
    assert [(one.answer.call, one.repeated) for one in made.report().played] == [
        (1, False),
        (2, False),
        (2, True),
        (3, False),
    ]


# -- what a fault may name


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("429@9", "has no call 9\n  there are: 1, 2, 3"),
        ("cut@2:event=7", "the answer of call 2 on hand.tape is 6 messages of a WebSocket"),
        ("stall@2:event=6:for=1s", "the answer of call 2 on hand.tape is 6 messages of a WebSocket"),
        ("503@1:handshake", "call 1 came over HTTP, which has no handshake\n  omit :handshake"),
        ("503@3:handshake", "call 3 was not the first call of its WebSocket"),
    ],
)
def test_a_fault_without_a_possible_target_is_an_error_at_the_start(fault: str, why: str) -> None:
    recorded = [exchange(1, chat(user("hi")), "one"), socket(said("a", "b"), number=2)]
    with pytest.raises(UsageError, match=r"^--fault ") as seen:
        replaying(*recorded, faults=(fault,))
    assert why in str(seen.value)


def test_a_call_that_the_server_began_cannot_be_retried() -> None:
    steered = [create("a"), *events(ONE, message("x"))[:1]]
    steered += [("client", {"type": "response.steer", "previous_response_id": ONE, "input": "b"})]
    steered += [*events(ONE, message("x"))[1:], *events(TWO, message("y"), previous_response_id=ONE)]
    with pytest.raises(UsageError, match="call 2 was begun by the server"):
        replaying(socket(steered), faults=("429@2",))
    made = replaying(socket(steered), faults=("slow@*:x2",))
    play = opened(made)
    ask(play, steered[0])
    assert answer(ask(play, next(one for one in steered[1:] if one[0] == "client"))) == "xy"
    assert [one.answer.call for one in made.report().played] == [1, 2]
    assert made.report().left_over == ()


def test_a_fault_for_all_calls_targets_http_and_websockets() -> None:
    made = replaying(exchange(1, chat(user("hi")), "one"), socket(said("a"), number=2), faults=("429@*",))
    assert ask(opened(made), "a")[0]["status"] == 429
    assert made.report().not_injected == ()


@pytest.mark.parametrize("fault", ["429@tool=weather", "429@agent=root", "429@3"])
def test_a_tool_and_an_agent_name_calls_of_a_websocket_too(fault: str) -> None:
    talk = [*said("a"), create("b", previous_response_id=ONE), *events(TWO, function_call("weather", "c1"))]
    made = replaying(exchange(1, chat(user("hi")), "one"), socket(talk, number=2), faults=(fault,))
    play = opened(made)
    first = ask(play, "a")
    if "agent" in fault:
        assert first[0]["status"] == 429
        ask(play, "a")
    assert ask(play, "b", previous_response_id=ONE)[0]["status"] == 429
    assert ask(play, "b", previous_response_id=ONE)[-1]["type"] == "response.completed"
    assert {one.answer.exchange for one in made.report().injected} == {2}


def test_a_fault_without_an_attempt_is_reported() -> None:
    made = replaying(socket(said("a", "b")), faults=("429@2",))
    ask(opened(made), "a")
    assert made.report().not_injected == ("429@2",)


# -- again


def test_a_repeated_call_is_a_miss_that_names_the_repeat_option() -> None:
    made = replaying(socket(said("a")))
    play = opened(made)
    ask(play, "a")
    ask(play, "a")
    assert play.miss is not None
    assert play.miss.reason == "already played"
    assert "call 1 would, but it was already played" in play.miss.message
    assert "--repeat" in play.miss.message


def test_with_repeat_a_call_is_played_again_on_the_same_and_on_a_new_connection() -> None:
    made = replaying(socket(said("a", "b")), repeat=True)
    first, second, third = opened(made), opened(made), opened(made)
    for play, asked in ((first, "a"), (first, "a"), (second, "a"), (first, "b"), (second, "b"), (first, "a")):
        named = {"previous_response_id": ONE} if asked == "b" else {}
        assert answer(ask(play, asked, **named)) == f"to {asked}"
    assert answer(ask(third, "b", previous_response_id=ONE)) == "to b"
    assert [(one.answer.call, one.repeated) for one in made.report().played] == [
        (1, False),
        (1, True),
        (1, True),
        (2, False),
        (2, True),
        (1, True),
        (2, True),
    ]
    assert made.report().missed == ()


def test_with_repeat_recorded_answers_to_equal_messages_come_in_their_order_and_then_the_last_again() -> None:
    same: list[Said] = []
    for n in (1, 2):
        same += [create("go"), *events(f"r{n}", message(f"answer {n}"))]
    play = opened(replaying(socket(same), repeat=True))
    assert [answer(ask(play, "go")) for _ in range(4)] == ["answer 1", "answer 2", "answer 2", "answer 2"]


def test_with_repeat_messages_that_are_not_calls_are_played_again() -> None:
    made = replaying(socket([("client", "a"), ("server", "1"), ("server", "2"), ("client", "b")]), repeat=True)
    play = opened(made)
    for _ in range(2):
        play.receive("a")
        assert [frame.data for frame in play.due()] == ["1", "2"]
    again = opened(made)
    again.receive("a")
    assert [frame.data for frame in again.due()] == ["1", "2"]


def test_with_repeat_a_connection_ends_like_the_first_time() -> None:
    made = replaying(socket(said("a"), ended=Ended.UPSTREAM_CLOSED), repeat=True)
    for _ in range(2):
        play = opened(made)
        assert answer(ask(play, "a")) == "to a"
        assert play.cut


def test_with_repeat_the_last_of_several_connections_is_played_again() -> None:
    made = replaying(*(socket([("server", f"hello {n}")], number=n) for n in (1, 2)), repeat=True)
    assert [[frame.data for frame in opened(made).due()] for _ in range(3)] == [["hello 1"], ["hello 2"], ["hello 2"]]


# -- by position

POSITION = {"tier": Tier.POSITION}


def test_by_position_the_next_call_of_the_connection_answers_and_what_differs_is_drift() -> None:
    made = replaying(socket(said("a", "b")), **POSITION)
    play = opened(made)
    assert answer(ask(play, "another prompt")) == "to a"
    assert answer(ask(play, "and another", previous_response_id=ONE)) == "to b"
    report = made.report()
    assert [(one.answer.call, one.tier) for one in report.played] == [(1, "position"), (2, "position")]
    assert [(one.where, one.recorded, one.live) for one in report.drifted] == [
        ("input[0].content", "a", "another prompt"),
    ]
    assert [[call.call for call in one.calls] for one in report.drifted] == [[1, 2]]


def test_by_position_the_same_message_again_does_not_take_the_next_place() -> None:
    play = opened(replaying(socket(said("a", "b")), **POSITION))
    ask(play, "another")
    ask(play, "another")
    assert play.miss is not None


def test_by_position_a_refused_call_is_the_next_one_again() -> None:
    play = opened(replaying(socket(said("a", "b")), faults=("429@1",), **POSITION))
    assert ask(play, "another")[0]["status"] == 429
    assert answer(ask(play, "another")) == "to a"
    assert answer(ask(play, "more", previous_response_id=ONE)) == "to b"


def test_by_position_a_message_follows_the_answer_that_it_names() -> None:
    talk = [*said("a"), *said("x")[:1], *events("q1", message("to x"))]
    talk += [create("y", previous_response_id="q1"), *events("q2", message("to y"))]
    talk += [create("b", previous_response_id=ONE), *events("r2", message("to b"))]
    play = opened(replaying(socket(talk), **POSITION))
    ask(play, "a")
    ask(play, "x")
    play.receive(text(create("changed", previous_response_id=ONE)[1]))
    assert play.miss is None
    assert play.due() == []  # as ever, it waits until all that was said before it has come
    assert answer(ask(play, "y", previous_response_id="q1")) == "to yto b"
    ask(play, "z", previous_response_id="nobody")
    assert play.miss is not None


def test_by_position_the_connection_with_most_common_traits_is_chosen() -> None:
    tools = {"tools": [{"type": "function", "name": "weather", "parameters": {}}], "instructions": "You help."}
    one = [create("a", **tools), *events("r1", message("with tools"))]
    two = [create("b", instructions="You name it."), *events("q1", message("without"))]
    made = replaying(socket(two), socket(one, number=2), **POSITION)
    assert answer(ask(opened(made), create("changed", **tools))) == "with tools"
    assert answer(ask(opened(made), create("changed", instructions="You name it."))) == "without"


def test_by_position_two_equally_good_connections_are_a_miss() -> None:
    made = replaying(socket(said("a")), socket(said("b"), number=2), **POSITION)
    play = opened(made)
    ask(play, "c")
    assert isinstance(play.miss, Miss)
    assert "the first call of several connections: call 1, call 2 fit equally well" in play.miss.message


def test_by_position_messages_that_are_not_calls_follow_if_their_kind_is_the_same() -> None:
    play = opened(replaying(socket([("client", "a"), ("server", "1"), ("client", "b"), ("server", "2")]), **POSITION))
    play.receive("x")
    assert [frame.data for frame in play.due()] == ["1"]
    play.receive(b"bytes")
    assert play.miss is not None
