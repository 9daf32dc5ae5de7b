"""What a miss of a test advises: never what would lose the calls of other tests without a word."""

from __future__ import annotations

import pytest

from wiretape.adapters.pytest_mending import Mending
from wiretape.adapters.pytest_users import Users
from wiretape.replay.values import MissReason

NEW = "  to record it: pytest test_a.py::test_x --wiretape-mode=new"
ALL = "pytest test_a.py 'test_b.py::test_y[1]' --wiretape-mode=rewrite"


def users(partial: str = "", played: tuple[int, ...] = (), done: bool = False) -> Users:
    return Users(("test_a.py", "test_b.py::test_y[1]"), partial, lambda: played, lambda: done)


@pytest.mark.parametrize("reason", ["never recorded", "diverged"])
@pytest.mark.parametrize(
    ("of_tape", "expected"),
    [
        (users(), f"{NEW}\n  if it is a recorded call that has changed: {ALL}"),
        (users(done=True), f"  if the change is intended: {ALL}"),
        (users(played=(1,), done=True), f"  if the change is intended: {ALL}"),
        (users(played=(1, 2)), NEW),
        (users("some tests are deselected", played=(1, 2)), NEW),
        (
            users("some tests are deselected"),
            f"{NEW}\n  not with mode rewrite: some tests are deselected, and others may use this tape",
        ),
        (None, "  if the change is intended: pytest test_a.py::test_x --wiretape-mode=rewrite"),
    ],
)
def test_a_shared_tape_is_rewritten_by_all_its_tests_or_gone_on_with(
    reason: MissReason, of_tape: Users | None, expected: str
) -> None:
    assert Mending("test_a.py::test_x", True, of_tape).mend(reason, [1, 2]) == expected


@pytest.mark.parametrize(
    ("of_tape", "expected"),
    [
        (users(), f"to record anew: {ALL}"),
        (users("only a part"), "to record it once more: pytest test_a.py::test_x --wiretape-mode=new"),
    ],
)
def test_a_call_that_was_played_is_recorded_anew_by_all(of_tape: Users, expected: str) -> None:
    said = Mending("test_a.py::test_x", True, of_tape).mend("already played", [])
    assert said.split("\n") == [
        "  to give recorded answers again: @pytest.mark.wiretape(repeat=True)",
        f"  {expected}",
    ]


def test_a_tape_that_another_worker_has_just_recorded_is_the_cause() -> None:
    assert Mending("test_a.py::test_x", True, users(), other_worker=True).mend("diverged", [1]).split("\n") == [
        "  this tape was recorded a moment ago by another worker of xdist, with the calls of other tests",
        "  give such tests one worker: --dist loadfile; or record it now: pytest test_a.py::test_x --wiretape-mode=new",
    ]
