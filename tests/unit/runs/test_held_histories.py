"""Threads of calls whose histories the provider stores."""

from __future__ import annotations

from typing import Any

from tests.support.sockets import Said, calls_of, create, events, function_call, message, socket

from wiretape.analyze.stats import stats
from wiretape.model.run import Run
from wiretape.runs.run import build_run


def built(*said: Said, **more: Any) -> Run:
    return build_run(calls_of(socket(said, **more)))


def results(output: str, previous: str, call_id: str = "c1") -> Said:
    item = {"type": "function_call_output", "call_id": call_id, "output": output}
    return "client", {"type": "response.create", "model": "m", "previous_response_id": previous, "input": [item]}


TURN: list[Said] = [
    create("How is the weather?"),
    *events("r1", function_call("weather", "c1")),
    results("rain", "r1"),
    *events("r2", message("It rains.")),
]


def test_incremental_turns_are_one_thread_and_add_what_is_new() -> None:
    run = built(*TURN, create("And tomorrow?", previous_response_id="r2"), *events("r3", message("Sun.")))
    assert [thread.calls for thread in run.threads] == [(1, 2, 3)]
    assert [step.new_from for step in run.steps] == [0, 2, 4]
    assert [(turn.user, len(turn.steps)) for turn in run.turns] == [("How is the weather?", 2), ("And tomorrow?", 1)]
    assert [use.result and use.result.text for use in run.tool_uses] == ["rain"]
    assert stats(run).findings == []


def test_the_same_turn_with_its_whole_history_continues_the_thread() -> None:
    """As clients do when they fall back from the socket: nothing is held any more."""
    history = [
        {"role": "user", "content": "How is the weather?"},
        function_call("weather", "c1"),
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        message("It rains."),
        {"role": "user", "content": "And tomorrow?"},
    ]
    run = built(*TURN, ("client", {"type": "response.create", "model": "m", "input": history}), *events("r3"))
    assert [thread.calls for thread in run.threads] == [(1, 2, 3)]
    assert run.steps[2].new_from == 4


def test_a_turn_that_failed_and_is_sent_again_is_a_retry() -> None:
    failed: Said = ("server", {"type": "error", "status": 500, "error": {"code": "server_error", "message": "no"}})
    run = built(*TURN[:6], failed, *TURN[5:])
    assert [step.cause.kind for step in run.steps] == ["turn_start", "tool_results", "retry"]
    assert [thread.calls for thread in run.threads] == [(1, 2, 3)]


def test_two_turns_from_one_response_are_a_fork() -> None:
    run = built(*TURN, create("Elsewhere?", previous_response_id="r1"), *events("r3", message("Sun.")))
    assert [(thread.calls, thread.from_call) for thread in run.threads] == [((1, 2), None), ((3,), 1)]


def test_a_prewarm_starts_no_thread_and_accompanies_the_first_call() -> None:
    warm = [create("You are an agent.", generate=False), *events("r0")]
    run = built(*warm, create("Go.", previous_response_id="r0"), *events("r1", message("Done.")))
    assert [thread.calls for thread in run.threads] == [(2,)]
    (side_calls,) = run.side_calls
    assert (side_calls.call.kind, side_calls.cause.call, side_calls.cause.detail) == ("prewarm", 2, "prewarm")
    assert stats(run).not_inferences == {"prewarm": 1}


def test_each_lane_is_a_thread() -> None:
    one, two = ([create(f"Task {lane}", stream_id=lane), *events(f"{lane}1", message(lane * 9), stream_id=lane)]
                for lane in "ab")  # fmt: skip
    on = [create("On.", previous_response_id=f"{lane}1", stream_id=lane) for lane in "ab"]
    later = [event for lane in "ab" for event in events(f"{lane}2", message("ok"), stream_id=lane)]
    run = built(*(said for pair in zip(one, two, strict=True) for said in pair), *on, *later)
    assert [thread.calls for thread in run.threads] == [(1, 3), (2, 4)]


def test_changed_instructions_break_the_prefix_although_the_provider_stores_the_history() -> None:
    first = create("Go.", instructions="You are kind. It is 12:00.")
    again = create("On.", instructions="You are kind. It is 12:01.", previous_response_id="r1")
    run = built(first, *events("r1", message("ok")), again, *events("r2", message("ok")))
    (finding,) = [finding for finding in stats(run).findings if finding.kind == "prefix_break"]
    assert "instructions" in finding.text
    assert finding.call == 2
