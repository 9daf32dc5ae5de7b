"""Finish reasons in one vocabulary."""

from __future__ import annotations

import pytest

from wiretape.wire.finish import anthropic_finish, chat_finish, responses_finish


@pytest.mark.parametrize(
    ("raw", "has_calls", "expected"),
    [
        ("stop", False, "stop"),
        ("eos", False, "stop"),
        ("normal", False, "stop"),
        ("STOP", False, "stop"),
        ("stop", True, "tool_calls"),
        ("", True, "tool_calls"),
        (None, True, "tool_calls"),
        ("", False, None),
        ("tool_calls", True, "tool_calls"),
        ("function_call", True, "tool_calls"),
        ("length", True, "length"),
        ("content_filter", False, "content_filter"),
        ("sensitive", False, "content_filter"),
        ("error", False, "error"),
        ("insufficient_system_resource", False, "error"),
        ("a_new_one", False, None),
    ],
)
def test_chat(raw: str | None, has_calls: bool, expected: str | None) -> None:
    assert chat_finish(raw, has_calls) == expected


def test_anthropic() -> None:
    assert anthropic_finish("end_turn", False) == "stop"
    assert anthropic_finish("end_turn", True) == "tool_calls"
    assert anthropic_finish("compaction", False) == "pause"
    assert anthropic_finish(None, False) is None


def test_responses() -> None:
    assert responses_finish({"status": "completed"}, True) == ("tool_calls", "completed")
    assert responses_finish({"status": "completed"}, False) == ("stop", "completed")
    assert responses_finish({"status": "in_progress"}, False) == ("pause", "in_progress")
    steered = {"status": "incomplete", "incomplete_details": {"reason": "steered"}}
    assert responses_finish(steered, False) == ("pause", "steered")
    assert responses_finish({"status": "of_the_future"}, False) == (None, "of_the_future")
    assert responses_finish({}, False) == (None, None)
