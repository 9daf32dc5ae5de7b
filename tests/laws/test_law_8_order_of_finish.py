"""Law 8: the result does not depend on the order in which concurrent calls finish. Here: the analysis.

The same plan of agents is played with different times. Whatever order that gives, the reconstruction is the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.worlds import Liberties, Played, Talk, liberties, play, talks

from wiretape.model.run import Run
from wiretape.runs.run import build_run


def groups(played: Played, key: Sequence[object]) -> set[frozenset[str]]:
    """Calls that share a value, as sets of the plan's names for them."""
    found: dict[object, set[str]] = {}
    for label, value in zip(played.labels, key, strict=True):
        found.setdefault(value, set()).add(label.step)
    return {frozenset(group) for group in found.values()}


def shape(played: Played, run: Run) -> dict[str, tuple[object, ...]]:
    """The analysis of each call, by the plan's names: independent of numbers and times."""
    agents = {agent.number: played.name_of(agent.started_by) for agent in run.agents}
    return {
        label.step: (
            step.cause.kind,
            played.name_of(step.cause.call),
            tuple(sorted(step.cause.tools)),
            agents[step.agent],
            step.new_from,
        )
        for label, step in zip(played.labels, run.steps, strict=True)
    }


@settings(max_examples=60, deadline=None)
@given(roots=st.lists(talks(), min_size=1, max_size=2), seed=st.integers(0, 999), how=liberties())
def test_threads_agents_and_turns_are_the_plans(roots: list[Talk], seed: int, how: Liberties) -> None:
    played = play(roots, seed, how)
    run = build_run(played.calls)
    assert not run.side_calls
    assert groups(played, [step.thread for step in run.steps]) == groups(played, [x.thread for x in played.labels])
    assert groups(played, [step.turn for step in run.steps]) == groups(played, [x.turn for x in played.labels])
    assert groups(played, [step.agent for step in run.steps]) == groups(played, [x.agent for x in played.labels])


@settings(max_examples=60, deadline=None)
@given(roots=st.lists(talks(), min_size=1, max_size=2), seed=st.integers(0, 999), how=liberties())
def test_every_cause_is_the_call_before_it_in_the_plan(roots: list[Talk], seed: int, how: Liberties) -> None:
    played = play(roots, seed, how)
    for step, label in zip(build_run(played.calls).steps, played.labels, strict=True):
        assert played.name_of(step.cause.call) == label.parent, step.cause


@settings(max_examples=40, deadline=None)
@given(roots=st.lists(talks(), min_size=1, max_size=2), seed=st.integers(0, 999), how=liberties())
def test_every_tool_call_gets_its_own_result_in_the_call_that_follows(
    roots: list[Talk], seed: int, how: Liberties
) -> None:
    played = play(roots, seed, how)
    for use in build_run(played.calls).tool_uses:
        assert use.result is not None
        assert use.result_call is not None
        assert use.result.name == use.call.name
        assert use.result.id == use.call.id
        assert played.labels[use.result_call - 1].parent == played.name_of(use.call_number)


@settings(max_examples=60, deadline=None)
@given(roots=st.lists(talks(), min_size=1, max_size=2), how=liberties(), seeds=st.tuples(*[st.integers(0, 999)] * 2))
def test_the_same_plan_at_other_times_has_the_same_run(
    roots: list[Talk], how: Liberties, seeds: tuple[int, int]
) -> None:
    one, other = (play(roots, seed, how) for seed in seeds)
    assert shape(one, build_run(one.calls)) == shape(other, build_run(other.calls))


@settings(max_examples=30, deadline=None)
@given(roots=st.lists(talks(), min_size=1, max_size=2), seed=st.integers(0, 999), how=liberties(), data=st.data())
def test_the_order_in_which_calls_are_handed_in_does_not_matter(
    roots: list[Talk], seed: int, how: Liberties, data: st.DataObject
) -> None:
    played = play(roots, seed, how)
    shuffled = data.draw(st.permutations(played.calls))
    assert build_run(shuffled) == build_run(played.calls)


@settings(max_examples=30, deadline=None)
@given(roots=st.lists(talks(), min_size=1, max_size=2), seed=st.integers(0, 999), how=liberties(), data=st.data())
def test_ends_that_no_start_lies_between_may_be_swapped(
    roots: list[Talk], seed: int, how: Liberties, data: st.DataObject
) -> None:
    played = play(roots, seed, how)
    starts = sorted(call.at for call in played.calls)

    def end_before_next_start(end: int) -> int:
        """An end in the same millisecond as a start lies before it: it stays, and no other comes there."""
        if end in starts:
            return end
        following = next((start for start in starts if start > end), end + 100)
        previous = max((start for start in starts if start < end), default=end - 1)
        return data.draw(st.integers(previous + 1, following - 1))

    moved = [replace(call, ended_at=end_before_next_start(call.ended_at or 0)) for call in played.calls]
    before, after = build_run(played.calls), build_run(moved)
    assert shape(played, before) == shape(played, after)
