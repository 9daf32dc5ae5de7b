"""A call's facts: what is known, what is not, and what went wrong."""

from __future__ import annotations

from tests.support.views import message, model_call, shown, subagents_run

from wiretape.model.call import CallError, ModelCall, Text, Usage
from wiretape.model.http import Ended
from wiretape.model.run import Agent, Cause, Run, Step, Thread
from wiretape.views.show.call import call_view, error_words, usage_sentence


def alone(call: ModelCall, full: bool = False) -> str:
    step = Step(call, 0, 0, None, Cause("side_call"))
    run = Run((step,), (), (Agent(0, "root"),), (Thread(0, 0, (1,)),), (), (step,))
    return shown(call_view(step, run, "side call", full=full))


def test_only_what_a_call_adds_is_shown_with_its_place_in_the_body() -> None:
    run = subagents_run()
    screen = shown(call_view(run.steps[3], run, "answers schedule_event from call 1"))
    assert "adds 1 message to the 3 of its thread ─" in screen
    assert "tool  input[3]\n  result of schedule_event  call_00_Fsa6\n" in screen
    assert "帮我约明天下午 3 点和张三开产品评审会，1 小时" not in screen


def test_the_whole_history_marks_what_is_new() -> None:
    run = subagents_run()
    screen = shown(call_view(run.steps[3], run, "answers schedule_event", full=True))
    assert "user  input[1]\n  帮我约明天下午 3 点和张三开产品评审会，1 小时\n" in screen
    assert "tool  input[3]  new\n" in screen
    assert "offers 1 tool ─" in screen


def test_a_side_call_says_so() -> None:
    assert alone(model_call(1, ())).startswith("Call 1 of 1 · x1 · agent root · side call\n")


def test_tokens_that_the_wire_does_not_give_are_unknown() -> None:
    assert usage_sentence(None) == "unknown: the wire gives no usage"
    assert usage_sentence(Usage(input=462, cached=256, output=31)) == "462 in, 256 cached, 31 out, ? reasoning"
    assert "4,096 written to the cache" in usage_sentence(Usage(cache_write=4096))


def test_an_error_says_what_the_provider_said() -> None:
    error = CallError(429, "rate_limit_error", None, "slow\ndown", "mid_stream", True, 2000)
    assert error_words(error) == "rate_limit_error: slow down (mid stream); retry after 2.0 s"
    screen = alone(model_call(1, (), error=error, status=429))
    assert "finish    429 · error 429 rate_limit_error\nerror     rate_limit_error: slow down" in screen


def test_an_answer_cut_short_says_where() -> None:
    cut = model_call(1, (), (message("assistant", Text("half an ans")),), complete=False, ended=Ended.CLIENT_CLOSED)
    assert alone(cut).endswith("answer " + "─" * 73 + "\nassistant\n  half an ans\n(cut short here)\n")


def test_a_call_without_a_response_says_so() -> None:
    screen = alone(model_call(1, (), answered=False, ended=Ended.UPSTREAM_UNREACHABLE, took=None))
    assert "finish    no response (upstream_unreachable)\n" in screen
    assert "time      started at 0 ms, not ended\n" in screen
    assert screen.endswith("(none)\n")


def test_every_setting_is_named_and_long_values_are_shortened() -> None:
    settings = {"temperature": 0.8, "metadata": {"long": "x" * 500}, "stream": True}
    screen = alone(model_call(1, (), settings=settings))
    assert 'settings  temperature 0.8 · metadata {"long":' in screen
    assert "x… · stream true\n" in screen
    assert "x" * 500 in "".join(alone(model_call(1, (), settings=settings), full=True).split())


def test_a_subagent_says_which_call_started_it() -> None:
    run = subagents_run()
    screen = shown(call_view(run.steps[2], run, "answers create_calendar_event from call 2"))
    assert screen.startswith("Call 3 of 4 · x3 · agent schedule_event (started by call 1) · turn 1\n")
