from __future__ import annotations

from tests.support.calls import asks, assistant, make_call, result, tools, user
from tests.support.linting import found

from wiretape.model.call import Message, ModelCall

HI = user("what is new?")
LONG = "a result that says something"


def loop(*rounds: tuple[str, str, str], end: bool = True) -> list[ModelCall]:
    """A loop of one tool call a round: name, arguments, result."""
    history: list[Message] = [HI]
    calls = []
    for number, (name, arguments, said) in enumerate(rounds, 1):
        ask = assistant(asks(name, arguments, f"c{number}"))
        calls.append(make_call(number, list(history), ask))
        history += [ask, result(said, f"c{number}")]
    return [*calls, make_call(len(rounds) + 1, history, "done")] if end else calls


def test_the_same_question_with_the_same_answer_right_after_is_told() -> None:
    calls = loop(("read", '{"path": "a.py"}', LONG), ("read", '{ "path":"a.py" }', LONG))
    [finding] = found("WT007", *calls)
    assert (finding.severity, finding.call, finding.path) == ("warning", 2, "answer.tool_calls[0]")
    assert finding.text == "read was asked for 2 times with the same arguments and said the same (calls 1, 2)"
    assert finding.values == {"arguments": '{ "path":"a.py" }', "result": LONG}


def test_twice_in_one_answer_is_told() -> None:
    ask = assistant(asks("read", '{"path": "a.py"}', "1"), asks("read", '{"path": "a.py"}', "2"))
    calls = [make_call(1, [HI], ask), make_call(2, [HI, ask, result(LONG, "1"), result(LONG, "2")], "done")]
    assert found("WT007", *calls)[0].text.endswith("said the same (call 1)")


def test_polls_acknowledgements_and_what_other_tools_may_have_changed_are_no_repeats() -> None:
    path = '{"path": "a.py"}'
    assert (
        found("WT007", *loop(("now", '{"zone": "UTC"}', "it is 22:34:01"), ("now", '{"zone": "UTC"}', "22:34:05")))
        == []
    )
    assert found("WT007", *loop(("press", '{"key": "down"}', "ok"), ("press", '{"key": "down"}', "ok"))) == []
    assert found("WT007", *loop(("read", path, LONG), ("edit", path, "edited it"), ("read", path, LONG))) == []
    assert found("WT007", *loop(("wait_agent", "{}", LONG), ("wait_agent", "{}", LONG))) == []


def test_a_loop_that_asks_the_same_three_times_runs_away() -> None:
    rounds = [("read", '{"path": "a.py"}', LONG)] * 4
    [finding] = found("WT008", *loop(*rounds))
    assert (finding.severity, finding.call) == ("error", 4)
    assert finding.text == "the same call 4 times in a row (calls 1 to 4): read"
    assert found("WT007", *loop(*rounds)) == []  # told once


def test_a_cycle_of_two_calls_runs_away_in_its_third_round() -> None:
    rounds = [("read", '{"n": 1}', LONG), ("edit", '{"n": 1}', "no match")] * 3
    [finding] = found("WT008", *loop(*rounds))
    assert finding.text == "the same cycle of 2 calls 3 times in a row (calls 1 to 6): read, edit"
    assert found("WT008", *loop(*rounds[:5])) == []


def test_a_recording_that_was_cut_in_the_third_round_still_shows_it() -> None:
    assert len(found("WT008", *loop(*[("read", '{"n": 1}', LONG)] * 3, end=False))) == 1


def test_polls_and_new_questions_do_not_run_away() -> None:
    assert found("WT008", *loop(*[("poll", '{"job": 7}', f"{n} percent done") for n in range(9)])) == []
    history: list[Message] = []
    calls = []
    for number in range(1, 9, 2):  # the user asks for the same each time
        ask = assistant(asks("read", '{"n": 1}', f"c{number}"))
        calls.append(make_call(number, [*history, user("again")], ask))
        history += [user("again"), ask, result(LONG, f"c{number}")]
        calls.append(make_call(number + 1, list(history), "there"))
        history.append(assistant("there"))
    assert found("WT008", *calls) == []


def test_waiting_while_a_subagent_works_is_no_runaway() -> None:
    task = "look at the whole repository and report"
    start = assistant(asks("spawn", f'{{"task": "{task}"}}', "s"))
    history = [HI, start, result("started", "s")]
    calls = [make_call(1, [HI], start, offers=tools("spawn", "wait"))]
    child: list[Message] = [user(task)]
    for number in range(2, 10, 2):
        wait = assistant(asks("wait", '{"ms": 100}', f"w{number}"))
        calls.append(make_call(number, list(history), wait, offers=tools("spawn", "wait")))
        history += [wait, result("timed out, still at work", f"w{number}")]
        look = assistant(asks("grep", f'{{"n": {number}}}', f"g{number}"))
        calls.append(make_call(number + 1, list(child), look, offers=tools("grep")))
        child += [look, result(f"{number} lines were found", f"g{number}")]
    assert found("WT008", *calls) == []
