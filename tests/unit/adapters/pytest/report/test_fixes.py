"""What a miss of a test advises: what asks live only what drifted, and loses no call of other tests."""

from __future__ import annotations

import pytest

from wiretape.adapters.pytest.report.fixes import Fixes
from wiretape.adapters.pytest.tape_users import Users
from wiretape.matching.values import MissReason

ONE = "pytest test_a.py::test_x --wiretape-mode=update"
ALL = "pytest test_a.py 'test_b.py::test_y[1]' --wiretape-mode=update"


def users(partial: str = "") -> Users:
    return Users(("test_a.py", "test_b.py::test_y[1]"), partial)


@pytest.mark.parametrize(
    ("reason", "waiting", "expected"),
    [
        ("diverged", False, "if the change is intended"),
        ("never recorded", True, "if the change is intended"),
        ("never recorded", False, "to record it"),
        ("not playable", True, "to record it"),
    ],
)
@pytest.mark.parametrize(
    ("of_tape", "command"), [(None, ONE), (users(), ALL), (users("some tests are deselected"), ONE)]
)
def test_a_tape_is_updated_by_all_tests_that_are_known_to_use_it(
    reason: MissReason, waiting: bool, expected: str, of_tape: Users | None, command: str
) -> None:
    assert Fixes("test_a.py::test_x", True, of_tape).mend(reason, waiting) == f"  {expected}: {command}"


def test_a_call_that_was_played_is_given_again_or_asked_once_more() -> None:
    assert Fixes("test_a.py::test_x", True, users()).mend("already played", False).split("\n") == [
        "  to give recorded answers again: @pytest.mark.wiretape(repeat=True)",
        f"  to record it once more: {ALL}",
    ]


def test_a_tape_that_is_too_old_is_rewritten_by_all_its_tests() -> None:
    everything = "pytest test_a.py 'test_b.py::test_y[1]' --wiretape-mode=rewrite"
    assert Fixes("test_a.py::test_x", True).rewriting() == "pytest test_a.py::test_x --wiretape-mode=rewrite"
    assert Fixes("test_a.py::test_x", True, users()).rewriting() == everything
    assert Fixes("test_a.py::test_x", True, users("only a part")).rewriting().split("\n") == [
        everything,
        "  together with every other test that uses this tape (only a part):",
        "  what none of them asks is dropped",
    ]


def test_a_tape_that_another_worker_has_just_recorded_is_the_cause() -> None:
    assert Fixes("test_a.py::test_x", True, users(), other_worker=True).mend("diverged", True).split("\n") == [
        "  this tape was recorded a moment ago by another worker of xdist, with the calls of other tests",
        "  give such tests one worker: --dist loadfile; or record it now: pytest test_a.py::test_x --wiretape-mode=new",
    ]
