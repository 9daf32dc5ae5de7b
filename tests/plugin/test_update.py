"""`--wiretape-mode=update`: what drifted is asked live, what nobody asks for any more is dropped, the rest is kept."""

from __future__ import annotations

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

from wiretape.tape.reading.reader import read_tape

UPDATE = "--wiretape-mode=update"


def asking(*words: str, ending: str = "", marker: str = "") -> str:
    asked = "\n".join(f"        said({word!r})" for word in words)
    return f"""
    @pytest.mark.wiretape({marker})
    def test_one():
{asked}
        {ending}
"""


def told(result: pytest.RunResult) -> list[str]:
    """The plugin's section of the summary."""
    lines = result.stdout.lines
    begins = [place for place, line in enumerate(lines) if line.startswith("=") and " wiretape " in line]
    if not begins:
        return []
    ends = next(place for place in range(begins[0] + 1, len(lines)) if lines[place].startswith("="))
    return [line for line in lines[begins[0] + 1 : ends] if line]


@pytest.fixture
def recorded(project: Project, model: CountingModel) -> Project:
    project.write(asking("one", "two", "three"))
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    model.asked.clear()
    return project


def test_what_differs_is_asked_live_in_its_place_and_what_is_gone_is_dropped_without_asking_anybody(
    recorded: Project, model: CountingModel
) -> None:
    recorded.write(asking("one", "twice", "three"))
    result = recorded.run(UPDATE)
    result.assert_outcomes(passed=1)
    assert model.asked == ["twice"]
    assert recorded.answers("test_it/test_one") == ["answer 1 to: one", "answer 1 to: twice", "answer 3 to: three"]
    assert told(result) == [
        "updated captures/test_it/test_one.tape: 1 exchange called live, 2 kept, 1 dropped",
        "  POST /v1/chat/completions: messages[0].content differs from call 2 of test_one.tape",
        "  no longer requested: call 2",
    ]
    assert recorded.tapes() == ["test_it/test_one.tape"]
    recorded.run("--wiretape-strict").assert_outcomes(passed=1)
    recorded.write(asking("one", "three"))
    assert told(recorded.run(UPDATE)) == [
        "updated captures/test_it/test_one.tape: 0 exchanges called live, 2 kept, 1 dropped",
        "  no longer requested: call 2",
    ]
    assert recorded.answers("test_it/test_one") == ["answer 1 to: one", "answer 3 to: three"]
    before = recorded.tape("test_it/test_one").read_bytes()
    assert told(recorded.run(UPDATE)) == ["1 tape still answers every call: nothing was called live for it"]
    assert recorded.tape("test_it/test_one").read_bytes() == before
    assert model.asked == ["twice"]


def test_a_prompt_that_changed_early_makes_what_followed_obsolete(project: Project, model: CountingModel) -> None:
    """The history goes on with the new answers: none of the recorded calls after it answers any more."""
    talk = """
    @pytest.mark.wiretape
    def test_one():
        messages = []
        for text in {}:
            messages.append({{"role": "user", "content": text}})
            body = {{"model": "counting-1", "messages": messages}}
            answer = httpx.post(os.environ["MODEL_URL"] + "/chat/completions", json=body).json()
            messages.append(answer["choices"][0]["message"])
    """
    project.write(talk.format(["one", "two", "three"]))
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    model.asked.clear()
    project.write(talk.format(["one", "twice", "three"]))
    project.run(UPDATE).assert_outcomes(passed=1)
    assert model.asked == ["twice", "three"]
    assert project.answers("test_it/test_one") == ["answer 1 to: one", "answer 1 to: twice", "answer 2 to: three"]
    project.run("--wiretape-strict").assert_outcomes(passed=1)


def test_the_tape_is_as_it_was_where_the_test_did_not_pass(recorded: Project) -> None:
    before = recorded.tape("test_it/test_one").read_bytes()
    recorded.write(asking("one", "twice", ending="assert False"))
    result = recorded.run(UPDATE)
    result.assert_outcomes(failed=1)
    assert recorded.tape("test_it/test_one").read_bytes() == before
    assert recorded.tapes() == ["test_it/test_one.tape"]
    aside = ".pytest_cache/d/wiretape/test_it/test_one.tape"
    assert told(result) == [
        "test_it.py::test_one: the test did not pass: captures/test_it/test_one.tape is unchanged; the recording: "
        + aside
    ]


def test_a_test_that_asks_nothing_leaves_its_tape_and_says_so(recorded: Project) -> None:
    recorded.write(asking(ending="pass"))
    result = recorded.run(UPDATE)
    assert "test_it.py::test_one: no model was called: captures/test_it/test_one.tape is unchanged" in told(result)
    assert len(recorded.answers("test_it/test_one")) == 3


def test_where_there_is_no_tape_it_is_recorded(project: Project, model: CountingModel) -> None:
    project.write(asking("one"))
    result = project.run(UPDATE)
    assert told(result)[0] == "recorded captures/test_it/test_one.tape (1 exchange)"
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["one"]


def test_a_fault_is_injected_as_in_a_replay_and_none_is_missed_at_a_call_that_is_renewed(
    recorded: Project, model: CountingModel
) -> None:
    tries = """
    @pytest.mark.wiretape(faults=["429@1", "500@2"])
    def test_one():
        seen = []
        for text in ["one", "{}", "three"]:
            while (status := ask(text).status_code) != 200:
                seen.append(status)
        {}
    """
    recorded.write(tries.format("twice", "assert seen == [429]"))
    recorded.run(UPDATE).assert_outcomes(passed=1)
    assert model.asked == ["twice"]
    recorded.write(tries.format("twice", "assert seen == [429, 500]"))
    recorded.run("--wiretape-strict").assert_outcomes(passed=1)


@pytest.mark.parametrize("mode", ["new", "update"])
def test_the_time_between_two_recordings_is_no_time_of_the_run(recorded: Project, mode: str) -> None:
    tape = recorded.tape("test_it/test_one")
    text = tape.read_text()
    started = text.partition('"started": "')[2].partition('"')[0]
    tape.write_text(text.replace(started, "2026-01-01T00:00:00Z"))  # recorded long ago
    ended = max(one.ended_at or 0 for one in read_tape(tape).exchanges)
    recorded.write(asking("one", "two", "three", "four", ending="pass"))
    recorded.run(f"--wiretape-mode={mode}").assert_outcomes(passed=1)
    made = read_tape(tape)
    assert made.header.started.year == 2026
    assert [one.at for one in made.exchanges][-1] == ended
    assert len(made.exchanges) == 4


def test_stats_in_the_test_are_those_of_the_new_tape(recorded: Project) -> None:
    recorded.write("""
    @pytest.mark.wiretape
    def test_one(wiretape):
        said("one"), said("twice"), said("three")
        assert wiretape.stats.calls == 3
        assert [one.number for one in wiretape.exchanges] == [1, 2, 3]
        assert [wiretape.report.played[0].answer.call, wiretape.recording] == [1, False]
    """)
    recorded.run(UPDATE).assert_outcomes(passed=1)


SHARED = """
    pytestmark = pytest.mark.wiretape("shared")
    @pytest.mark.parametrize("name", ["Ann", "Bob"])
    def test_greets(name):
        said("{greeting} " + name)
    def test_parts():
        said("{parting}")
"""


@pytest.fixture
def shared(project: Project, model: CountingModel) -> Project:
    project.write(SHARED.format(greeting="hello", parting="bye"))
    project.run("--wiretape-mode=once").assert_outcomes(passed=3)
    model.asked.clear()
    return project


def test_what_one_test_of_a_shared_tape_does_not_ask_for_another_may(shared: Project, model: CountingModel) -> None:
    shared.write(SHARED.format(greeting="hello", parting="good night"))
    result = shared.run(UPDATE)
    result.assert_outcomes(passed=3)
    assert model.asked == ["good night"]
    assert shared.answers("shared") == ["answer 1 to: hello Ann", "answer 2 to: hello Bob", "answer 1 to: good night"]
    assert told(result) == [
        "updated captures/shared.tape: 1 exchange called live, 2 kept, 1 dropped",
        "  POST /v1/chat/completions: messages[0].content differs from call 1 of shared.tape",
    ]
    shared.run().assert_outcomes(passed=3)


def test_nothing_is_dropped_of_a_shared_tape_where_another_test_may_ask_for_it(shared: Project) -> None:
    shared.write(SHARED.format(greeting="hello", parting="good night"))
    result = shared.run(UPDATE, "test_it.py::test_parts")
    assert len(shared.answers("shared")) == 4
    assert told(result)[-2:] == [
        "captures/shared.tape: 3 exchanges that these tests did not request stay",
        "  only a part of the tests was collected, and others may use this tape: a run of the whole suite drops them",
    ]
    shared.write(
        SHARED.format(greeting="hello", parting="good day").replace("name):", 'name):\n        assert name == "Ann"')
    )
    result = shared.run(UPDATE)
    result.assert_outcomes(passed=2, failed=1)
    assert told(result)[-2:] == [
        "captures/shared.tape: 3 exchanges that these tests did not request stay",
        "  other tests that use the tape have not passed in this run: test_it.py::test_greets[Bob]",
    ]
    shared.write(SHARED.format(greeting="hello", parting="good day"))
    assert told(shared.run(UPDATE)) == ["updated captures/shared.tape: 0 exchanges called live, 3 kept, 2 dropped"]
    shared.run().assert_outcomes(passed=3)


def test_a_test_that_fails_at_its_very_end_leaves_its_tape_as_it_was(recorded: Project, model: CountingModel) -> None:
    before = recorded.tape("test_it/test_one").read_bytes()
    recorded.write(asking("one", marker='faults=["429@2"]'))
    result = recorded.run(UPDATE)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["429@2 was not injected: no request matched its call"])
    assert recorded.tape("test_it/test_one").read_bytes() == before
    assert told(result) == []
