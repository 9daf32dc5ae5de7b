"""The texts of failed tests: fix, call site, live calls without an answer, headline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.replaying import chat, exchange, response, user

from wiretape.adapters.pytest.report.failures import Fixes, call_site, headline, unanswered
from wiretape.adapters.pytest.tape_users import Users
from wiretape.compare.difference import Difference
from wiretape.matching.values import Miss, MissReason, Reference
from wiretape.model.http import Ended, Exchange

ONE = "pytest test_a.py::test_x --wiretape-mode=update"
ALL = "pytest test_a.py 'test_b.py::test_y[1]' --wiretape-mode=update"


def users(partial: str = "") -> Users:
    return Users(("test_a.py", "test_b.py::test_y[1]"), partial)


@pytest.mark.parametrize(
    ("reason", "left_over", "expected"),
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
    reason: MissReason, left_over: bool, expected: str, of_tape: Users | None, command: str
) -> None:
    assert Fixes("test_a.py::test_x", True, of_tape).of_miss(reason, left_over) == f"  {expected}: {command}"


def test_a_call_that_was_played_is_given_again_or_asked_once_more() -> None:
    assert Fixes("test_a.py::test_x", True, users()).of_miss("already played", False).split("\n") == [
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
        "  calls that none of them makes are dropped",
    ]


def test_a_tape_that_another_worker_has_just_recorded_is_the_cause() -> None:
    assert Fixes("test_a.py::test_x", True, users(), other_worker=True).of_miss("diverged", True).split("\n") == [
        "  another worker of xdist has just recorded this tape, with the calls of other tests",
        (
            "  run such tests in one worker: --dist loadfile; or record it now: "
            "pytest test_a.py::test_x --wiretape-mode=new"
        ),
    ]


def calling(path: Path, inner: Callable[[], Any]) -> Callable[[], Any]:
    """A function of a file, which calls `inner` in its second line."""
    names: dict[str, Any] = {"inner": inner}
    exec(compile("def outer():\n    return inner()\n", str(path), "exec"), names)
    made: Callable[[], Any] = names["outer"]
    return made


@pytest.mark.parametrize("installed", ["lib/site-packages/sdk.py", "lib/dist-packages/sdk.py", "../sdk/client.py"])
def test_it_is_the_innermost_below_the_rootdir_that_is_not_installed(
    tmp_path: Path, installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    monkeypatch.chdir(tmp_path)
    sdk = calling((root / installed).resolve(), lambda: call_site(root))
    test = calling(root / "test_it.py", calling(root / "agent.py", sdk))
    assert test() == "project/agent.py:2"
    assert sdk() is None


def test_an_environment_inside_the_project_is_not_the_person_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    script = calling(tmp_path / ".venv" / "bin" / "agent", lambda: call_site(tmp_path))
    assert script() is None


OPENAI, GATEWAY = "https://api.openai.com/v1/chat/completions", "http://127.0.0.1:9911/v1/chat/completions"


def asked(url: str = OPENAI, status: int | None = None) -> Exchange:
    made = exchange(1, chat(user("hi")), "hello", url=url)
    if status is None:
        return replace(made, response=None, ended=Ended.UPSTREAM_UNREACHABLE)
    return replace(made, response=response({}, status))


def test_an_address_that_cannot_be_reached_is_named_with_the_one_that_the_tape_has() -> None:
    assert unanswered([asked(f"{OPENAI}?key=secret"), asked()], [asked(GATEWAY, 200)]) == [
        f"called live 2 times: POST {OPENAI}: unreachable",
        (
            "  the tape was recorded from http://127.0.0.1:9911: if models answer there, "
            "set the base URL that the code reads"
        ),
    ]
    assert unanswered([asked()], []) == [f"called live: POST {OPENAI}: unreachable"]
    assert unanswered([asked()], [asked(OPENAI, 200)]) == [f"called live: POST {OPENAI}: unreachable"]


def test_a_key_that_is_refused_is_what_lacks() -> None:
    assert unanswered([asked(status=401)], [asked(GATEWAY, 200)]) == [
        f"called live: POST {OPENAI}: refused with 401",
        "  to record it, set an API key that is valid there; without one, the test has a dummy key",
    ]


def test_what_was_answered_is_no_reason() -> None:
    assert unanswered([asked(status=200), asked(status=429)], []) == []


CALL = Reference("greet.tape", 1, 1, "POST /v1/chat/completions")
NEAREST = (
    "no call on greet.tape answers POST /v1/chat/completions\n"
    "  it was never recorded; the nearest, call 1, differs from its start at messages[0].content\n"
    "    recorded  look at that\n"
)


@pytest.mark.parametrize(
    ("reason", "message", "nearest", "differences", "expected"),
    [
        ("never recorded", NEAREST, CALL, (), "messages[0].content differs from call 1 of greet.tape"),
        ("diverged", "", CALL, (Difference("input[3]", 1, 2),), "input[3] differs from call 1 of greet.tape"),
        ("never recorded", "", None, (), "POST /v1/chat/completions was never recorded on greet.tape"),
        ("already played", "", CALL, (), "call 1 of greet.tape was already played"),
        ("not playable", "", CALL, (), "call 1 of greet.tape cannot be played"),
        ("not playable", "", None, (), ""),
        ("fault", "wiretape failed on POST /", None, (), ""),
    ],
)
def test_it_says_what_differs(
    reason: MissReason,
    message: str,
    nearest: Reference | None,
    differences: tuple[Difference, ...],
    expected: str,
) -> None:
    missed = Miss(1, CALL.what, reason, message, nearest, differences)
    assert headline(missed, "greet.tape") == expected
