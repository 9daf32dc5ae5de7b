"""Tests that share a tape: none of them is advised what would lose the calls of the others, and a loss is told."""

from __future__ import annotations

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

NAMES = """
    @pytest.mark.wiretape("shared/greet")
    @pytest.mark.parametrize("name", ["Ann", "Bob"])
    def test_param(name):
        said("hello " + name)
"""
THIRD = """
    @pytest.mark.wiretape("shared/greet")
    def test_third():
        said("goodbye")
"""
OTHER = """
    def test_other():
        pass
"""


def advice(result: pytest.RunResult) -> list[str]:
    return [line for line in result.stdout.lines if "--wiretape-mode=" in line]


@pytest.fixture
def shared(project: Project) -> Project:
    project.write(NAMES + OTHER)
    project.run("--wiretape-mode=once").assert_outcomes(passed=3)
    return project


def test_a_changed_prompt_names_every_test_of_the_tape(shared: Project) -> None:
    shared.write(NAMES.replace("hello", "hullo") + OTHER)
    assert (
        advice(shared.run())
        == ["  if the change is intended: pytest test_it.py::test_param --wiretape-mode=update"] * 2
    )
    assert advice(shared.run("test_it.py::test_param[Ann]")) == [
        "  if the change is intended: pytest 'test_it.py::test_param[Ann]' --wiretape-mode=update"
    ]


def test_a_module_that_shares_its_tape_is_named_whole(project: Project) -> None:
    project.write(NAMES + THIRD)
    project.write(OTHER, "test_other.py")
    project.run("--wiretape-mode=once").assert_outcomes(passed=4)
    project.write(NAMES + THIRD.replace("goodbye", "farewell"))
    assert advice(project.run()) == ["  if the change is intended: pytest test_it.py --wiretape-mode=update"]


def test_a_new_test_records_its_call_beside_the_others(shared: Project, model: CountingModel) -> None:
    shared.write(NAMES + OTHER + THIRD)
    shared.run("test_it.py::test_third", "--wiretape-mode=new").assert_outcomes(passed=1)
    assert model.asked == ["hello Ann", "hello Bob", "goodbye"]
    shared.run().assert_outcomes(passed=4)


def test_a_rewrite_for_one_test_says_what_it_dropped(shared: Project) -> None:
    result = shared.run("test_it.py::test_param[Ann]", "--wiretape-mode=rewrite")
    result.stdout.fnmatch_lines(["recorded captures/shared/greet.tape (1 exchange; 1 older call dropped)"])
    assert len(shared.answers("shared/greet")) == 1


def test_a_rewrite_that_loses_nothing_says_nothing_of_it(shared: Project) -> None:
    result = shared.run("--wiretape-mode=rewrite")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["recorded captures/shared/greet.tape (2 exchanges)"])
