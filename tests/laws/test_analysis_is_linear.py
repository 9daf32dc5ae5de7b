"""The analysis is linear in the new content of calls: three times the calls take three times the work.

Work is counted in calls of functions, not in seconds, so that a busy machine changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.support.calls import asks, assistant, make_call, result, system, tools, user
from tests.support.costs import calls as work

from wiretape.model.call import Message, ModelCall
from wiretape.runs.run import build_run

OFFERS = tools("look", "subagent", "send_message")
FEW, MANY = 400, 1200


def one_loop(n: int) -> list[ModelCall]:
    history: list[Message] = [system("You look things up."), user("go on for long")]
    calls = []
    for number in range(1, n + 1):
        ask = assistant(asks("look", json.dumps({"n": number}), f"id-{number}"))
        calls.append(make_call(number, tuple(history), ask, offers=OFFERS))
        history += [ask, result(f"found {number}", f"id-{number}")]
    return calls


def many_requests_without_answers_to_their_tools(n: int) -> list[ModelCall]:
    return [
        make_call(
            number,
            [system("You look things up."), user(f"what is {number} times {number}?")],
            assistant(asks("look", json.dumps({"n": f"{number} times {number}"}), f"id-{number}")),
            offers=OFFERS,
        )
        for number in range(1, n + 1)
    ]


def embeddings(n: int) -> list[ModelCall]:
    return [make_call(number, [user(f"text {number}")], kind="embedding") for number in range(1, n + 1)]


def subagents_that_report(n: int) -> list[ModelCall]:
    """A parent that starts a subagent with every second call and hears from it with the next."""
    history: list[Message] = [system("You lead."), user("go on for long")]
    calls: list[ModelCall] = []
    for number in range(1, n, 2):
        task = f"task number {number}"
        ask = assistant(asks("subagent", json.dumps({"prompt": task}), f"id-{number}"))
        calls.append(make_call(number, tuple(history), ask, offers=OFFERS))
        said = f"task {number} is done and well done"
        calls.append(make_call(number + 1, [system("You work."), user(task)], said, offers=tools("look")))
        given = result(f"started subagent child-{number:06d}", f"id-{number}")
        history += [ask, given, user(f"Report of subagent child-{number:06d}: {said}")]
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [one_loop, many_requests_without_answers_to_their_tools, embeddings, subagents_that_report]
)
def test_three_times_the_calls_are_three_times_the_work(shape: Callable[[int], list[ModelCall]]) -> None:
    few, many = shape(FEW), shape(MANY)
    assert len(many) == 3 * len(few)
    assert work(lambda: build_run(many)) < 3.4 * work(lambda: build_run(few))


def test_the_report_of_every_subagent_is_linked() -> None:
    run = build_run(subagents_that_report(400))
    assert len(run.agents) == 201
    assert len([link for link in run.links if link.kind == "closing" and link.certainty == "certain"]) == 199
