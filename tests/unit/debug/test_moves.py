"""Where moves lead, on the captures by name and on made-up runs by law."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.debugging import debugger, runs

from wiretape.debug import moves
from wiretape.debug.session import Debugger
from wiretape.debug.timeline import Stop, Timeline
from wiretape.errors import UsageError
from wiretape.model.run import Run


def at(debugger: Debugger, *lines: str) -> Stop:
    for line in lines:
        reply = debugger.execute(line)
        assert reply.error is None, reply.error
    return debugger.here


def test_a_call_has_a_stop_before_its_request_after_its_answer_and_at_each_tool() -> None:
    assert [(stop.phase, stop.call) for stop in debugger().timeline.stops] == [
        ("start", None),
        ("request", 1), ("answer", 1), ("tool", 1),
        ("request", 2), ("answer", 2), ("tool", 2),
        ("request", 3), ("answer", 3),
        ("request", 4), ("answer", 4),
        ("end", None),
    ]  # fmt: skip


def test_into_the_subagent_back_out_and_back_to_its_first_call() -> None:
    run = debugger()
    assert at(run, "break tool=schedule_event", "continue") == Stop("tool", 1, 0)
    assert at(run, "step") == Stop("answer", 2)
    assert at(run, "finish") == Stop("request", 4)
    assert at(run, "reverse-step", "reverse-step") == Stop("answer", 2)
    assert at(run, "reverse-finish") == Stop("tool", 1, 0)


def test_next_skips_the_subagent_and_reverse_next_returns() -> None:
    run = debugger()
    assert at(run, "next") == Stop("answer", 1)
    assert at(run, "next") == Stop("answer", 4)
    assert at(run, "reverse-next") == Stop("answer", 1)


def test_next_stops_at_a_breakpoint_inside_a_skipped_subagent() -> None:
    run = debugger()
    assert at(run, "next", "break tool=create_calendar_event", "next") == Stop("tool", 2, 0)
    assert at(run, "finish") == Stop("request", 4)


def test_finish_of_a_chosen_frame_is_that_frames() -> None:
    run = debugger()
    assert at(run, "goto 2", "up", "finish") == Stop("answer", 4)


def test_each_message_to_a_subagent_starts_an_activation() -> None:
    run = debugger("subagent-control")
    sent = [use for use in run.timeline.run.tool_uses if use.call.name == "send_message" and use.call_number == 2]
    assert len(sent) == 2
    first, second = (at(run, f"goto 2.{number}", "step").call for number in (1, 2))
    assert first is not None
    assert second is not None
    assert run.timeline.activation(first) is not run.timeline.activation(second)
    assert run.timeline.frames(second)[1].tool is sent[1]
    assert at(run, f"goto {second}", "reverse-finish") == Stop("tool", 2, sent[1].index)


def test_the_ends_are_places_of_their_own() -> None:
    run = debugger()
    assert at(run, "reverse-step") == Stop("start")
    assert at(run, "continue") == Stop("end")
    assert at(run, "next") == Stop("end")
    assert at(run, "break 1", "run") == Stop("request", 1)


def test_finish_at_the_end_of_a_root_agents_turn_fails_with_a_hint() -> None:
    run = debugger()
    run.execute("goto 4")
    error = run.execute("finish").error
    assert error is not None
    assert "turn 1 ends here: use next" in error


# -- laws --------------------------------------------------------------------------------------------------------------


@given(runs(), st.data())
def test_a_step_forward_and_one_back_lead_to_the_same_place(run: Run, data: st.DataObject) -> None:
    line = Timeline(run)
    place = data.draw(st.integers(0, line.end))
    if place < line.end:
        assert moves.reverse_stepi(line, moves.stepi(line, place)) == place
    answer = data.draw(st.sampled_from([0, *line.answers]))
    if moves.step(line, answer) != line.end:
        assert moves.reverse_step(line, moves.step(line, answer)) == answer
    if line.answers:
        assert moves.reverse_step(line, line.end) == line.answers[-1]


@given(runs())
def test_next_within_one_agents_work_is_undone_by_reverse_next(run: Run) -> None:
    line = Timeline(run)
    for place in line.answers:
        here, there = line.stops[place], line.stops[moves.step_over(line, place)]
        assert here.call is not None
        if there.call is not None and line.activation(there.call) is line.activation(here.call):
            assert moves.reverse_step_over(line, line.place(there)) == place


@given(runs())
def test_step_visits_every_call_once_in_both_directions(run: Run) -> None:
    line = Timeline(run)
    place, seen = 0, []
    while (place := moves.step(line, place)) != line.end:
        seen.append(line.stops[place].call)
    assert seen == list(line.calls)
    back = []
    while (place := moves.reverse_step(line, place)) != 0:
        back.append(line.stops[place].call)
    assert back == list(reversed(line.calls))


@given(runs())
def test_next_never_enters_a_subagent_and_always_advances(run: Run) -> None:
    line = Timeline(run)
    for place in range(line.end):
        there = moves.step_over(line, place)
        assert there > place
        here, goal = line.stops[place].call, line.stops[there].call
        if here is not None and goal is not None:
            assert line.depth(goal) <= line.depth(here)
        assert moves.reverse_step_over(line, place) < place or place == 0


@given(runs())
def test_finish_leaves_the_frame_and_reverse_finish_returns_before_it(run: Run) -> None:
    line = Timeline(run)
    for number in line.calls:
        going = line.activation(number)
        if going.starter is None:
            continue
        place = moves.step_out(line, line.answer(number))
        assert place > line.answer(number)
        back = moves.reverse_step_out(line, line.answer(number))
        assert line.stops[back].call == going.starter
        if place != line.end:
            assert line.stops[place].phase == "request"


@given(runs(), st.sets(st.integers(0, 60)))
def test_running_on_and_back_stops_at_the_very_same_places(run: Run, chosen: set[int]) -> None:
    line = Timeline(run)
    wanted = sorted(place for place in chosen if 0 < place < line.end)

    def hits(place: int) -> bool:
        return place in chosen

    place, seen = 0, []
    while (place := moves.run_forward(line, place, hits)) != line.end:
        seen.append(place)
    back = []
    while (place := moves.run_back(line, place, hits)) != 0:
        back.append(place)
    assert seen == wanted
    assert back == wanted[::-1]


@pytest.mark.parametrize("frame", [0, 1])
def test_no_frame_can_be_finished_outside_all_calls(frame: int) -> None:
    line = debugger().timeline
    with pytest.raises(UsageError, match="this is the start of the tape"):
        moves.step_out(line, 0, frame)
