"""The first words of a miss, which the short summary of pytest shows."""

from __future__ import annotations

import pytest

from wiretape.adapters.pytest.headline import headline
from wiretape.compare.difference import Difference
from wiretape.matching.values import Miss, MissReason, Reference

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
