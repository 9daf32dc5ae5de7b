from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.calls import asks, assistant, make_call, result, thinks, user
from tests.support.linting import found

from wiretape.analyze.lint.base import Subject
from wiretape.analyze.lint.rules import lint
from wiretape.model.call import CallError, Message, ModelCall, Reasoning, Usage
from wiretape.model.http import Ended
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

HI = user("what time is it in Beijing?")
CLOCK = asks("getCurrentTime", '{"timezone": "Asia/Shanghai"}', "call_00")
THOUGHT = assistant(thinks("I should ask the clock."), CLOCK)
CAPTURE = Path(__file__).parents[4] / "captures" / "clock-thinking.tape"


def deepseek(number: int, messages: list[Message], answer: Message | str | None, status: int = 200) -> ModelCall:
    call = make_call(number, messages, answer, model="deepseek-v4-pro", status=status)
    return replace(call, dialect="deepseek")


def answered(call: ModelCall, **changes: object) -> ModelCall:
    assert call.response is not None
    return replace(call, response=replace(call.response, **changes))  # type: ignore[arg-type]


def test_dropped_reasoning_names_the_place_and_what_was_dropped() -> None:
    history = [HI, assistant(CLOCK), result("22:34", "call_00")]
    [finding] = found("WT009", deepseek(1, [HI], THOUGHT), deepseek(2, history, None, status=400))
    assert (finding.severity, finding.call, finding.path) == ("error", 2, "messages[1].reasoning_content")
    assert finding.text == (
        "reasoning_content of call 1's answer was dropped from the history; the provider answered 400"
    )
    assert finding.values == {"answer": "I should ask the clock.", "history": "(absent)"}


def test_reasoning_dropped_only_some_calls_later_is_told_too() -> None:
    kept = [HI, THOUGHT, result("22:34", "call_00")]
    bare = [HI, assistant(CLOCK), result("22:34", "call_00"), assistant("It is 22:34."), user("and in Paris?")]
    [finding] = found(
        "WT009", deepseek(1, [HI], THOUGHT), deepseek(2, kept, "It is 22:34."), deepseek(3, bare, "15:34")
    )
    assert finding.call == 3


@pytest.mark.parametrize("block", [thinks("I should ask the clock."), Reasoning("")])
def test_reasoning_that_was_sent_back_is_fine_even_if_it_is_empty(block: Reasoning) -> None:
    history = [HI, assistant(block, CLOCK), result("22:34", "call_00")]
    assert found("WT009", deepseek(1, [HI], THOUGHT), deepseek(2, history, "It is 22:34.")) == []


def test_other_providers_routers_and_answers_without_tools_need_no_reasoning() -> None:
    history = [HI, assistant(CLOCK), result("22:34", "call_00")]
    assert found("WT009", make_call(1, [HI], THOUGHT), make_call(2, history, "22:34")) == []
    routed = [make_call(n, m, a, model="deepseek/deepseek-r1") for n, m, a in ((1, [HI], THOUGHT), (2, history, "x"))]
    assert found("WT009", *routed) == []
    said = assistant(thinks("easy"), "hello")
    assert found("WT009", deepseek(1, [HI], said), deepseek(2, [HI, assistant("hello"), user("more")], "x")) == []


def test_the_capture_with_its_reasoning_dropped_is_caught_and_as_recorded_it_is_clean() -> None:
    calls = decode(read_tape(CAPTURE).exchanges)
    assert lint(Subject(build_run(calls))) == []

    def bare(message: Message) -> Message:
        return replace(message, blocks=tuple(b for b in message.blocks if not isinstance(b, Reasoning)))

    last = calls[-1]
    dropped = replace(last, request=replace(last.request, messages=tuple(map(bare, last.request.messages))))
    [finding] = found("WT009", *calls[:-1], dropped)
    assert (finding.call, finding.path) == (last.number, "messages[1].reasoning_content")


def test_a_truncated_answer_names_the_limit_and_what_was_spent() -> None:
    call = make_call(1, [HI], "It is", usage=Usage(input=10, output=64), settings={"max_tokens": 64})
    [finding] = found("WT010", answered(call, finish="length"))
    assert (finding.severity, finding.path, finding.values) == ("warning", "max_tokens", {"max_tokens": "64"})
    assert finding.text == "the answer was cut at its length limit after 64 tokens"
    gemini = make_call(1, [HI], "It is", settings={"generationConfig": {"maxOutputTokens": 8}})
    assert found("WT010", answered(gemini, finish="length"))[0].path == "generationConfig.maxOutputTokens"


def test_a_request_for_one_token_only_tests_the_connection() -> None:
    call = answered(make_call(1, [HI], "I", settings={"max_tokens": 1}), finish="length")
    assert [one.severity for one in found("WT010", call)] == ["info"]
    assert found("WT010", make_call(1, [HI], "all of it")) == []


def refused(number: int, retry_after_ms: int | None = None, at: int | None = None) -> ModelCall:
    error = CallError(429, "rate_limit", None, "slow down", retryable=True, retry_after_ms=retry_after_ms)
    return answered(make_call(number, [HI], status=429, at=at), error=error)


def test_retries_are_told_once_with_what_they_cost() -> None:
    calls = [refused(1, at=0), refused(2, at=1000), make_call(3, [HI], "hello", at=4200)]
    [finding] = found("WT011", *calls)
    assert (finding.severity, finding.call) == ("info", 3)
    assert finding.text == "call 1 was sent again 2 times after 429: 4.2 s"


def test_a_retry_before_retry_after_had_passed_is_a_warning_with_both_times() -> None:
    [finding] = found("WT011", refused(1, 5000, at=0), make_call(2, [HI], "hello", at=1050))
    assert finding.severity == "warning"
    assert finding.text.endswith("; call 2 did not wait as long as the answer before it required")
    assert finding.values == {"retry-after": "5000 ms", "waited": "1000 ms"}
    [patient] = found("WT011", refused(1, 5000, at=0), make_call(2, [HI], "hello", at=5060))
    assert patient.severity == "info"


def test_retries_that_came_to_nothing_are_a_warning() -> None:
    [finding] = found("WT011", refused(1), refused(2))
    assert (finding.severity, finding.text.rpartition("; ")[2]) == ("warning", "the last attempt failed, too")


def test_an_error_in_the_middle_of_a_stream_is_told_with_the_providers_words() -> None:
    error = CallError(200, "overloaded_error", None, "Overloaded", phase="mid_stream")
    [finding] = found("WT012", answered(make_call(1, [HI], "It is"), error=error))
    assert (finding.severity, finding.values) == ("error", {"error": "Overloaded"})
    assert finding.text == "the answer failed in the middle of its stream: overloaded_error"


def test_a_stream_that_was_cut_is_told_by_who_cut_it() -> None:
    [cut] = found("WT012", make_call(1, [HI], "It is", complete=False))
    assert (cut.severity, cut.text) == ("error", "the answer was cut before its last event: the upstream broke off")
    hung_up = replace(make_call(1, [HI], "It is", complete=False), ended=Ended.CLIENT_CLOSED)
    assert found("WT012", hung_up)[0].severity == "info"
    stopped = replace(make_call(1, [HI], "It is", complete=False), ended=Ended.RECORDER_STOPPED)
    assert found("WT012", stopped, refused(2)) == []


def test_counts_that_contradict_each_other_are_named_with_the_providers_total() -> None:
    raw = {"prompt_tokens": 249, "completion_tokens": 40, "total_tokens": 289}
    usage = Usage(249, 416, None, 40, None, raw, consistent=False)
    [finding] = found("WT016", make_call(1, [HI], "hello", usage=usage))
    assert (finding.severity, finding.call, finding.path) == ("warning", 1, "answer.usage")
    assert finding.text == ("the token counts contradict each other: input 249, cached 416, output 40, total 289")
    assert finding.values == {"usage": '{"prompt_tokens":249,"completion_tokens":40,"total_tokens":289}'}
    assert found("WT016", make_call(1, [HI], "hello", usage=Usage(249, 158, None, 40))) == []
