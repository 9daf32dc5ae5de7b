"""One line per call, at any width, with what matters most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.views import message, model_call, subagents_run

from wiretape.model.call import CallError, Text, ToolCall, Usage
from wiretape.model.http import Ended
from wiretape.views.call_line import call_line, ending, usage_text

CALLS = [step.call for step in subagents_run().steps]


def test_a_line_says_number_model_tokens_tools_and_time() -> None:
    assert call_line(CALLS[0], 120).plain == (
        "  1  deepseek-flash  openai.responses  347 in 75 out  → schedule_event  1.7 s"
    )
    assert call_line(CALLS[3], 80).plain == "  4  deepseek-flash  462 in (256 cached) 31 out  stop  1.2 s"


def test_a_finish_that_tools_do_not_imply_is_said() -> None:
    cut = model_call(1, (), (message("assistant", ToolCall("1", "look", "{}")),), finish="length")
    assert "  → look  length" in call_line(cut, 80).plain
    unnamed = model_call(1, (), (message("assistant", Text("hi")),), finish="tool_calls")
    assert "  tool_calls" in call_line(unnamed, 80).plain


LONG = model_call(
    2,
    (),
    (message("assistant", ToolCall("1", "create_calendar_event", "{}"), ToolCall("2", "send_invitation", "{}")),),
    model="claude-opus-4-5-20251101",
    usage=Usage(input=12345, cached=10240, output=1024),
    finish="tool_calls",
)


def test_tools_and_time_are_clipped_and_never_left_out() -> None:
    assert call_line(LONG, 80).plain == (
        "  2  claude-opus-4…  12,345 in (10,240 cached) 1,024 out  → create_calen…  1.7 s"
    )
    assert call_line(LONG, 80, beside=16).plain == "  2  claude-opus-4…  12,345 in 1,024 out  → create_ca…  1.7 s"
    assert call_line(LONG, 50).plain == "  2  claude-opus-4…  → create_calendar_eve…  1.7 s"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_all_rows_of_a_screen_have_the_same_parts(width: int) -> None:
    for beside in (0, 9, 16):  # record's word before it, replay's mark behind it
        lines = [call_line(call, width, beside=beside).plain for call in (*CALLS, LONG)]
        assert all(("out" in line or "tokens unknown" in line) is (width >= 60) for line in lines)
        assert all(line.endswith(("ms", " s")) for line in lines)


def test_a_call_without_a_number_yet_has_its_exchange() -> None:
    assert call_line(model_call(0, (), exchange=7), 80).plain.startswith(" x7  ")


@given(st.text(max_size=80), st.text(max_size=80), st.integers(10, 130))
def test_it_is_one_line_that_fits_whatever_names_say(model: str, tool: str, width: int) -> None:
    call = model_call(3, (), (message("assistant", ToolCall("1", tool, "{}")),), model=model)
    line = call_line(call, width)
    assert line.cell_len <= width
    assert "\n" not in line.plain


def test_unknown_tokens_say_so() -> None:
    assert usage_text(None) == "tokens unknown"
    assert usage_text(Usage()) == "tokens unknown"
    assert usage_text(Usage(input=5)) == "5 in ? out"
    assert usage_text(Usage(input=5, cached=0, output=1)) == "5 in (0 cached) 1 out"


RATE_LIMITED = CallError(429, "rate_limit_error", "rate_limited", "slow down")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"answered": False, "ended": Ended.UPSTREAM_UNREACHABLE}, ("no response (upstream_unreachable)", True)),
        ({"answered": False, "ended": None}, ("still open", False)),
        ({"error": RATE_LIMITED, "status": 429}, ("error 429 rate_limited", True)),
        ({"status": 500}, ("error 500", True)),
        ({"complete": False, "ended": Ended.CLIENT_CLOSED}, ("cut (client_closed)", True)),
        ({"finish": None}, ("done", False)),
        ({"finish": "length"}, ("length", False)),
    ],
)
def test_how_a_call_ended(options: dict[str, object], words: tuple[str, bool]) -> None:
    assert ending(model_call(1, (), (message("assistant", Text("hi")),), **options)) == words  # type: ignore[arg-type]


def test_errors_are_red() -> None:
    line = call_line(model_call(1, (), error=RATE_LIMITED, status=429), 80)
    assert any(span.style == "red" and "error 429" in line.plain[span.start : span.end] for span in line.spans)
