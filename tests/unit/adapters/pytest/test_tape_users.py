"""The arguments of pytest that run exactly the tests of a tape."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from wiretape.adapters.pytest.options import Mode
from wiretape.adapters.pytest.report.summary import Summary
from wiretape.adapters.pytest.tape_users import arguments, typed

EVERY = [
    "tests/a/test_one.py::test_x[1]",
    "tests/a/test_one.py::test_x[a::b/c]",
    "tests/a/test_one.py::TestK::test_y",
    "tests/a/test_one.py::TestK::test_z",
    "tests/a/test_two.py::test_x",
    "tests/test_three.py::test_x",
]


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (EVERY[:1], ["tests/a/test_one.py::test_x[1]"]),
        (EVERY[:2], ["tests/a/test_one.py::test_x"]),
        (EVERY[1:4], ["tests/a/test_one.py::test_x[a::b/c]", "tests/a/test_one.py::TestK"]),
        (EVERY[:4], ["tests/a/test_one.py"]),
        (EVERY[:5], ["tests/a"]),
        (EVERY[:4] + EVERY[5:], ["tests/a/test_one.py", "tests/test_three.py"]),
        (EVERY, ["tests"]),
    ],
)
def test_the_widest_that_holds_no_other_test_is_named(users: list[str], expected: list[str]) -> None:
    assert arguments(users, EVERY) == expected


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        ("/p", "tests/test_a.py::test_x[a::b]"),
        ("/p/tests", "test_a.py::test_x[a::b]"),
        ("/p/src", "../tests/test_a.py::test_x[a::b]"),
    ],
)
def test_a_test_is_named_as_seen_from_where_pytest_was_started(started: str, expected: str) -> None:
    config = SimpleNamespace(rootpath=Path("/p"), invocation_params=SimpleNamespace(dir=Path(started)))
    assert typed("tests/test_a.py::test_x[a::b]", cast(Any, config)) == expected


@pytest.mark.parametrize(
    ("mode", "age", "expected"),
    [
        (Mode.ONCE, 0, Mode.NEW),
        (Mode.REWRITE, 0, Mode.ALL),
        (Mode.NONE, 0, Mode.NONE),
        (Mode.ONCE, 60, Mode.ONCE),
        (Mode.REWRITE, 60, Mode.REWRITE),
    ],
)
def test_what_another_worker_has_recorded_in_this_run_is_gone_on_with(
    tmp_path: Path, mode: Mode, age: float, expected: Mode
) -> None:
    tape = tmp_path / "a.tape"
    tape.write_text("")
    began = time.time() - 10
    os.utime(tape, (began + 5 - age,) * 2)
    worker = Summary(cast(Any, SimpleNamespace(workerinput={"wiretape": began})), mode)
    assert worker.mode_for(tape) is expected
    alone = Summary(cast(Any, SimpleNamespace()), mode)
    assert alone.mode_for(tape) is mode
