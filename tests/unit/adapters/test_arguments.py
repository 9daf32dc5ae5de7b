"""What `wiretape.replay`, `record`, `read_tape` and `tool` say at the call of what cannot be meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wiretape
from wiretape.errors import TapeError, TapeUnwritable, UsageError

NAMED: Any = wiretape  # what type checkers would say first
ONE_BY_ONE = "tapes are given one by one, not as a list: wiretape.replay"

WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: NAMED.replay(), "name a tape to replay: wiretape.replay('captures/agent.tape')"),
    (
        lambda: NAMED.replay(""),
        """wiretape.replay(''): the name of the tape is missing; name one: wiretape.replay("captures/agent.tape")""",
    ),
    (lambda: NAMED.replay(Path()), "wiretape.replay('.'): the name of the tape is missing"),
    (lambda: NAMED.replay("/"), "wiretape.replay('/'): is a directory, not a tape"),
    (lambda: NAMED.replay([]), f'wiretape.replay([]): {ONE_BY_ONE}("captures/agent.tape")'),
    (lambda: NAMED.replay(["a.tape"]), f"wiretape.replay(['a.tape']): {ONE_BY_ONE}(*tapes)"),
    (lambda: NAMED.replay(None), "wiretape.replay(None): a tape is named by its path"),
    (lambda: NAMED.replay("a.tape", 3), "wiretape.replay(3): a tape is named by its path"),
    (lambda: NAMED.replay(b"a.tape"), "wiretape.replay(b'a.tape'): a tape is named by its path"),
    (lambda: NAMED.replay("a\0b"), r"wiretape.replay('a\x00b'): a file name cannot contain a NUL"),
    (lambda: NAMED.replay(test_nothing_to_say), "the decorator needs a tape"),
    (lambda: NAMED.replay("a.tape", tier=3), "there is no tier 3: use one of exact, normalized"),
    (lambda: NAMED.replay("a.tape", pace="fast"), "pace is 'fast': 0 plays at once, 1 as recorded"),
    (lambda: NAMED.replay("a.tape", pace=float("nan")), "pace is nan: 0 plays at once"),
    (lambda: NAMED.replay("a.tape", pace=10**400), "pace is 1000000"),
    (lambda: NAMED.replay("a.tape", pace=True), "pace is True: 0 plays at once"),
    (lambda: NAMED.replay("a.tape", pass_hosts=3), 'pass_hosts is 3: give a host such as "*.corp.example", or a list'),
    (lambda: NAMED.replay("a.tape", pass_hosts=[3]), "pass_hosts contains 3: each is a host"),
    (lambda: NAMED.replay("a.tape", pass_hosts=[" "]), "pass_hosts contains an empty host"),
    (
        lambda: NAMED.replay("a.tape", pass_hosts="https://me@tools.example/v1"),
        """pass_hosts contains 'https://me@tools.example/v1', which is a URL: name its host, "tools.example\"""",
    ),
    (lambda: NAMED.replay("a.tape", repeat="no"), "repeat is 'no': use True or False"),
    (lambda: NAMED.replay("a.tape", mask=None), "mask is None: give a pattern, or a list of them"),
    (lambda: NAMED.replay("a.tape", mask=[re.compile("x+")]), "each is a pattern, as text; its text is 'x+'"),
    (lambda: NAMED.replay("a.tape", faults={"429@3": 1}), "faults is {'429@3': 1}: give a fault such as"),
    (
        lambda: NAMED.record(""),
        """wiretape.record(''): the name of the tape is missing; name one: wiretape.record("captures/agent.tape")""",
    ),
    (lambda: NAMED.record("\ud800.tape"), r"wiretape.record('\ud800.tape'): a file name cannot contain half"),
    (lambda: NAMED.record(["a.tape"]), "wiretape.record(['a.tape']): a tape is named by its path"),
    (lambda: NAMED.record("a.tape", hosts=b"x"), "hosts is b'x': give a host"),
    (lambda: NAMED.record("a.tape", all="no"), "all is 'no': use True or False"),
    (lambda: NAMED.record("a.tape", note=3), "note is 3: give a text"),
    (lambda: NAMED.record("a.tape", on_exchange=3), "on_exchange is 3: give a function"),
    (lambda: NAMED.open(""), "wiretape.open(''): the name of the tape is missing"),
    (lambda: NAMED.tool(ignore=3), "ignore is 3: give a parameter's name, or a list of them"),
    (lambda: NAMED.tool(""), "wiretape.tool: the name is '': give the name by which the model knows the tool"),
    (lambda: NAMED.tool(name=3), "wiretape.tool: the name is 3"),
]


def test_nothing_to_say(tmp_path: Path) -> None:
    """Arguments that can be meant say nothing, and open nothing."""
    wiretape.replay(tmp_path / "x.tape", pass_hosts="[::1]:*", mask=("a", "b"), pace=0.5, faults=[])
    wiretape.record(str(tmp_path / "x.tape"), hosts=iter(["*.corp.example:8443"]), note="n")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[said[:40] for _, said in WRONG])
def test_what_cannot_be_meant_is_told_at_the_call(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        call()


def test_a_parameter_to_ignore_may_be_given_as_a_string() -> None:
    """As letters, it would be none of the parameters."""

    @wiretape.tool(ignore="session")
    def book(session: object, seat: int) -> int:
        return seat

    assert book(None, 3) == 3


def test_a_tape_that_is_none_is_told_when_the_context_opens(tmp_path: Path) -> None:
    """Not before: what a decorator names may be recorded by then."""
    missing = wiretape.replay(tmp_path / "x.tape")
    advice = f'no such file\n  to record it: run this once in wiretape.record("{tmp_path / "x.tape"}")'
    with pytest.raises(TapeError, match=re.escape(advice)), missing:
        pass
    with pytest.raises(TapeError, match="is a directory, not a tape"), wiretape.replay(tmp_path):
        pass
    with pytest.raises(TapeError, match=r"…: cannot be read: File name too long$"), wiretape.replay("x" * 5000):
        pass
    with pytest.raises(TapeUnwritable, match=r"…: cannot be written: File name too long$"), wiretape.record("x" * 5000):
        pass
    with pytest.raises(TapeUnwritable, match="is a directory: name a tape in it"), wiretape.record(tmp_path):
        pass
