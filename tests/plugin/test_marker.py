"""What a marker asks for besides its tape: faults, pauses, and how old the tape may be."""

from __future__ import annotations

import re

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

ONE = """
    @pytest.mark.wiretape({0})
    def test_one():
        assert "to: hello" in said("hello")
"""


def aged(project: Project, started: str) -> None:
    """The tape, as if it had been recorded then."""
    tape = project.tape("test_it/test_one")
    tape.write_text(re.sub(r'"started": "[^"]*"', f'"started": "{started}"', tape.read_text(), count=1))


@pytest.fixture
def recorded(project: Project) -> Project:
    project.write(ONE.format(""))
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    return project


def test_a_fault_comes_before_the_recorded_answer(recorded: Project, model: CountingModel) -> None:
    recorded.write("""
        @pytest.mark.wiretape(faults=["429@1"], pace=0)
        def test_one(wiretape):
            assert ask("hello").status_code == 429
            assert "to: hello" in said("hello")
            assert [one.fault for one in wiretape.report.injected] == ["429@1"]
    """)
    recorded.run().assert_outcomes(passed=1)
    assert model.asked == ["hello"]


def test_one_fault_may_be_given_as_a_string_and_those_of_a_class_add_up(recorded: Project) -> None:
    recorded.write("""
        @pytest.mark.wiretape(faults="500@1")
        class TestAll:
            @pytest.mark.wiretape("test_it/test_one", faults="429@1:times=1")
            def test_one(self):
                assert [ask("hello").status_code for _ in range(3)] == [500, 429, 200]
    """)
    recorded.run().assert_outcomes(passed=1)


def test_a_fault_that_never_came_fails_the_test(recorded: Project) -> None:
    recorded.write("""
        @pytest.mark.wiretape(faults=["429@1"])
        def test_one():
            pass
    """)
    result = recorded.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["429@1 was not injected: no request matched its call"])


@pytest.mark.parametrize(
    ("fault", "said"),
    [("429@9", 'faults=?"429@9"?: * has no call 9'), ("surprise@1", 'faults=?"surprise@1"?: there is no fault *')],
    ids=["no such call", "no fault"],
)
def test_a_fault_that_cannot_come_is_named_at_once(fault: str, said: str, recorded: Project) -> None:
    recorded.write(ONE.format(f'faults=["{fault}"]'))
    result = recorded.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])


def test_without_a_tape_that_is_what_is_told(project: Project) -> None:
    project.write(ONE.format('faults=["429@1"]'))
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the tape captures/test_it/test_one.tape does not exist"])


def test_a_recording_has_no_faults(project: Project, model: CountingModel) -> None:
    project.write(ONE.format('faults=["429@1"]'))
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    assert model.asked == ["hello"]


def test_a_pause_is_kept_where_the_marker_asks_for_it(recorded: Project) -> None:
    tape = recorded.tape("test_it/test_one")
    text = re.sub(r'"at": \d+', '"at": 0', tape.read_text(), count=1)  # its request
    tape.write_text(re.sub(r'"headers_at": \d+', '"headers_at": 400', text))
    recorded.write("""
        import time

        @pytest.mark.wiretape(pace=1)
        def test_one():
            began = time.monotonic()
            said("hello")
            assert time.monotonic() - began > 0.3
    """)
    recorded.run().assert_outcomes(passed=1)


def test_an_old_tape_is_warned_of_once_with_the_command_that_renews_it(recorded: Project) -> None:
    aged(recorded, "2026-01-01T00:00:00Z")
    recorded.write(
        ONE.format('max_age="30d"') + ONE.format('"test_it/test_one", max_age=30').replace("_one()", "_two()")
    )
    result = recorded.run()
    result.assert_outcomes(passed=2)
    lines = result.stdout.lines
    assert sum("test_one.tape was recorded" in line for line in lines) == 1
    result.stdout.fnmatch_lines(
        [
            "captures/test_it/test_one.tape was recorded * days ago (2026-01-01): max_age is 30 days",
            "  to record it again: pytest test_it.py::test_* --wiretape-mode=rewrite",
        ]
    )


def test_an_old_tape_fails_where_that_is_asked_for(recorded: Project, model: CountingModel) -> None:
    aged(recorded, "2026-01-01T00:00:00Z")
    recorded.write(ONE.format('max_age="2w", max_age_action="fail"'))
    for mode in ("none", "new"):
        result = recorded.run(f"--wiretape-mode={mode}")
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["*test_one.tape was recorded * days ago (2026-01-01): max_age is 14 days"])
    assert recorded.tapes() == ["test_it/test_one.tape"]
    recorded.run("--wiretape-mode=rewrite").assert_outcomes(passed=1)
    recorded.run().assert_outcomes(passed=1)
    assert model.asked == ["hello", "hello"]


def test_the_settings_of_the_project_say_how_old_its_tapes_may_be(
    recorded: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    aged(recorded, "2026-01-01T00:00:00Z")
    (recorded.root / "pyproject.toml").write_text('[tool.wiretape]\nmax_age = 30\nmax_age_action = "fail"\n')
    monkeypatch.chdir(recorded.root)
    recorded.run().assert_outcomes(errors=1)
    recorded.write(ONE.format("max_age=100_000"))
    recorded.run().assert_outcomes(passed=1)
    recorded.write(ONE.format('max_age_action="warn"'))
    recorded.run().assert_outcomes(passed=1)


def test_a_fresh_tape_is_not_mentioned(recorded: Project) -> None:
    recorded.write(ONE.format('max_age="1d", max_age_action="fail"'))
    result = recorded.run()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*was recorded*")


def test_an_age_that_cannot_be_meant_is_named(recorded: Project) -> None:
    recorded.write(ONE.format('max_age="soon"'))
    recorded.run().stdout.fnmatch_lines(["*max_age: 'soon' is not an age: give days (30)*"])
