"""Law 8: the result does not depend on the order in which concurrent calls finish, or arrive."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.replaying import calls, chat, exchange, live, result, said, session, system, user


def loops(steps: list[int], ids: str, clock: str) -> list[list[dict[str, Any]]]:
    """One loop for each agent: all have the same system prompt and tools, and another task."""
    made = []
    for agent, length in enumerate(steps):
        messages = [system(f"You are an agent. It is {clock}."), user(f"task {'x' * agent}")]
        bodies = []
        for step in range(length):
            bodies.append(chat(*messages))
            id = f"{ids}{agent}{step}"
            messages = [*messages, calls("tool", f'{{"step": {step}}}', id), result(id, f"{step} at {clock}")]
        made.append(bodies)
    return made


def shuffled(made: list[list[Any]], seed: int) -> list[tuple[int, int]]:
    """(agent, step) of every call; each agent's in its order."""
    order = [agent for agent, bodies in enumerate(made) for _ in bodies]
    random.Random(seed).shuffle(order)
    waiting = [iter(range(len(bodies))) for bodies in made]
    return [(agent, next(waiting[agent])) for agent in order]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(0, 999),
    st.integers(0, 999),
    st.sampled_from([("call_a", "15:05:30"), ("call_b", "15:05:30"), ("call_b", "09:23:47")]),
)
def test_each_agent_gets_its_own_answers_in_any_order(
    steps: list[int], recorded_order: int, live_order: int, changed: tuple[str, str]
) -> None:
    was, now = loops(steps, "call_a", "15:05:30"), loops(steps, *changed)
    order = shuffled(was, recorded_order)
    replay = session(*[exchange(n, was[a][s], f"{a}.{s}") for n, (a, s) in enumerate(order, 1)])
    for agent, step in shuffled(now, live_order):
        assert said(replay.answer(live(now[agent][step]))) == f"{agent}.{step}"
    assert replay.report().left_over == ()


@given(st.permutations(list(range(6))))
def test_calls_that_finish_in_another_order_than_they_started_replay_in_call_order(order: list[int]) -> None:
    """A `gather` of equal calls: the tape keeps the order of their starts, whatever finished first."""
    recorded = []
    for position, number in enumerate(order):
        made = exchange(number + 1, chat(user("same")), f"answer {number}")
        recorded.append(type(made)(made.number, made.at, made.request, made.response, made.ended, 1000 + position))
    replay = session(*sorted(recorded, key=lambda x: x.number))
    assert [said(replay.answer(live(chat(user("same"))))) for _ in order] == [f"answer {n}" for n in range(6)]
