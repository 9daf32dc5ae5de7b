"""Faults: their spelling, the attempts that get them, and their effect on a playback."""

from __future__ import annotations

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.replaying import calls, chat, exchange, live, reply, response, result, said, session, stream, user

from wiretape.errors import UsageError
from wiretape.matching.faults.apply import (
    FOREVER_MS,
    IN_PYTHON,
    ON_COMMAND_LINE,
    AtAgent,
    AtCall,
    AtTool,
    Everywhere,
    Fault,
)
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.playback import Playback, playback
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected
from wiretape.model.faults import Cut, ErrorStatus, Reset, Slow, Stall
from wiretape.model.http import Ended, Exchange

ANTHROPIC = "https://api.anthropic.com/v1/messages"
FRAMES = ('data: {"n": 1}\n\n', ": keep-alive\n\n", 'data: {"n": 2}\n\n', 'data: {"n": 3}\n\n', "data: [DONE]\n\n")
HI = chat(user("hi"))


def with_faults(*recorded: Exchange, faults: list[str], **options: object) -> ReplaySession:
    return session(*recorded, faults=tuple(map(parse_fault, faults)), **options)


def streamed(*faults: str, pace: float = 0, answer: object = None) -> Playback:
    made = answer if answer is not None else stream(*FRAMES, ms=[10, 20, 30, 40, 50])
    return playback(with_faults(exchange(1, HI, made), faults=list(faults)).answer(live(HI)), pace)


def sent(shown: Playback) -> list[str]:
    return [piece.data.decode() for piece in shown.pieces]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("429@3", Fault("429@3", ErrorStatus(429), AtCall(3))),
        ("529@*:after=2s", Fault("529@*:after=2s", ErrorStatus(529, 2.0), Everywhere())),
        ("500@1:times=3", Fault("500@1:times=3", ErrorStatus(500), AtCall(1), 3)),
        ("cut@2:event=5", Fault("cut@2:event=5", Cut(5), AtCall(2))),
        ("cut@2", Fault("cut@2", Cut(), AtCall(2))),
        ("stall@2", Fault("stall@2", Stall(), AtCall(2))),
        ("stall@2:event=0:for=10s", Fault("stall@2:event=0:for=10s", Stall(0, 10_000.0), AtCall(2))),
        ("stall@2:for=1.5m", Fault("stall@2:for=1.5m", Stall(None, 90_000.0), AtCall(2))),
        ("reset@tool=get_weather", Fault("reset@tool=get_weather", Reset(), AtTool("get_weather"))),
        ("slow@agent=calendar:x0.5", Fault("slow@agent=calendar:x0.5", Slow(0.5), AtAgent("calendar"))),
    ],
)
def test_a_fault_is_parsed(spec: str, expected: Fault) -> None:
    assert parse_fault(spec) == expected


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "the call is missing: WHAT@CALL"),
        ("429", "the call is missing: WHAT@CALL"),
        ("429@", "the call is missing: WHAT@CALL"),
        ("200@1", "200 is not an error status: use 400 to 599"),
        ("600@1", "600 is not an error status"),
        ("explode@1", "there is no fault 'explode'"),
        ("@1", "there is no fault ''"),
        ("cut@0", "'0' is not a target"),
        ("cut@-1", "'-1' is not a target"),
        ("cut@tool=", "'tool=' is not a target"),
        ("cut@call=3", "'call=3' is not a target"),
        ("cut@1:event=x", "event=x is not a number from 0"),
        ("cut@1:event=-1", "event=-1 is not a number from 0"),
        ("cut@1:event", "option 'event' has no value"),
        ("cut@1:for=2s", "cut has no option 'for=2s'"),
        ("429@1:event=2", "a status has no option 'event=2'"),
        ("429@1:after=2", "after=2 is not a duration: use 500ms, 10s or 2m"),
        ("stall@1:for=ever", "for=ever is not a duration"),
        ("slow@1", "the factor is missing"),
        ("slow@1:10", "slow has no option '10'"),
        ("9" * 5000 + "@1", "there is no fault"),
        ("cut@" + "9" * 5000, f"'{'9' * 5000}' is not a target"),
        ("stall@1:for=" + "9" * 400 + "s", "for="),
        ("429@1:times=0", "times=0 is not a number from 1"),
    ],
)
def test_a_wrong_fault_is_an_error_with_the_allowed_forms(spec: str, why: str) -> None:
    with pytest.raises(UsageError) as seen:
        parse_fault(spec)
    first, *rest = str(seen.value).split("\n")
    assert first.startswith(f"--fault {spec}: {why}")
    shown = [line.split("@")[0].strip() for line in rest if "@" in line]
    assert shown == ["429", "cut", "stall", "reset", "slow"]
    assert all(len(line) <= 80 for line in rest)


@pytest.mark.parametrize(("written", "named"), [(ON_COMMAND_LINE, "--fault 429@7"), (IN_PYTHON, 'faults=["429@7"]')])
def test_a_fault_is_named_as_it_was_given(written: str, named: str) -> None:
    recorded = exchange(1, HI, "one")
    with pytest.raises(UsageError) as seen:
        session(recorded, faults=(parse_fault("429@7", written),))
    assert str(seen.value).startswith(f"{named}: ")
    with pytest.raises(UsageError) as seen:
        parse_fault("129@7", written)
    assert str(seen.value).startswith(f"{named.replace('429', '129')}: 129 is not an error status")
    shown = playback(session(recorded, faults=(parse_fault("429@1", written),)).answer(live(HI)))
    said = orjson.loads(shown.pieces[0].data)["error"]["message"]
    assert said == f"injected by wiretape ({named.replace('7', '1')})"


@given(st.text(st.sampled_from("cutslowrea429@*:=x.0-ms nvif"), max_size=30))
def test_any_text_is_a_fault_or_an_error(spec: str) -> None:
    with suppress(UsageError):
        assert parse_fault(spec).spec == spec.strip()


@given(st.sampled_from(["429@1", "cut@1", "cut@1:event=0", "reset@1", "stall@1:for=1s", "slow@1:x2"]), st.data())
def test_an_attempt_after_all_faults_gets_the_recorded_answer(spec: str, data: st.DataObject) -> None:
    """Whatever breaks and however often: what is left of each is never more than was recorded, and then all of it."""
    specs = [spec, *data.draw(st.lists(st.sampled_from(["500@1:times=2", "cut@*", "reset@1:event=1", "stall@1"])))]
    replay = with_faults(exchange(1, HI, stream(*FRAMES)), faults=specs)
    whole = "".join(FRAMES)
    while isinstance(outcome := replay.answer(live(HI)), Injected):
        shown = playback(outcome)
        assert shown.status in (429, 500) or whole.startswith("".join(sent(shown)))
    assert "".join(sent(playback(outcome))) == whole
    assert len(replay.report().injected) >= 1


@pytest.mark.parametrize("spec", ["slow@1:x999999999", "stall@1:event=1:for=999999999m", "stall@1:for=999999999m"])
def test_no_pause_is_longer_than_timers_take(spec: str) -> None:
    recorded = exchange(1, HI, stream(*FRAMES, ms=[10, 20, 600_000, 700_000, 800_000]))
    shown = playback(with_faults(recorded, faults=[spec]).answer(live(HI)))
    assert max(shown.pause, *(piece.pause for piece in shown.pieces)) == FOREVER_MS


def test_a_call_that_is_not_on_the_tape_is_refused_at_once() -> None:
    for spec in ("429@3", "429@tool=weather", "429@agent=calendar"):
        with pytest.raises(UsageError, match=r"hand\.tape has no call"):
            with_faults(exchange(1, HI), exchange(2, chat(user("no"))), faults=[spec])
    with pytest.raises(UsageError) as seen:
        with_faults(exchange(1, HI), exchange(2, chat(user("no"))), faults=["429@3"])
    assert str(seen.value).endswith("there are: 1, 2")


def test_an_event_that_the_stream_does_not_have_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match=r"the answer of call 1 on .* is a stream of 4 events"):
        with_faults(exchange(1, HI, stream(*FRAMES)), faults=["cut@1:event=5"])
    with pytest.raises(UsageError, match=r"the answer of call 1 on .* is not a stream"):
        with_faults(exchange(1, HI), faults=["cut@1:event=2"])


def test_the_first_attempt_gets_the_error_and_the_retry_the_recorded_answer() -> None:
    replay = with_faults(exchange(1, HI, "one"), exchange(2, chat(user("more")), "two"), faults=["429@2"])
    assert said(replay.answer(live(HI))) == "one"
    first = replay.answer(live(chat(user("more"))))
    assert isinstance(first, Injected)
    shown = playback(first)
    assert shown.status == 429
    assert dict(shown.headers)["retry-after"] == "1"
    assert orjson.loads(shown.pieces[0].data) == {
        "error": {
            "message": "injected by wiretape (--fault 429@2)",
            "type": "rate_limit_error",
            "param": None,
            "code": "wiretape_fault",
        }
    }
    assert said(replay.answer(live(chat(user("more"))))) == "two"
    assert replay.report().left_over == ()


def test_an_error_has_the_shape_of_its_provider() -> None:
    asked = {"model": "claude", "max_tokens": 9, "messages": [user("hi")]}
    replay = with_faults(exchange(1, asked, reply("x"), url=ANTHROPIC), faults=["529@1"])
    shown = playback(replay.answer(live(asked, url=ANTHROPIC)))
    assert (shown.status, dict(shown.headers)["retry-after"]) == (529, "1")
    assert orjson.loads(shown.pieces[0].data)["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize(
    ("spec", "headers"),
    [
        ("500@1", {}),
        ("429@1", {"retry-after": "1"}),
        ("500@1:after=2s", {"retry-after": "2"}),
        ("429@1:after=1500ms", {"retry-after": "2", "retry-after-ms": "1500"}),
        ("429@1:after=0ms", {"retry-after": "0"}),
    ],
)
def test_the_client_is_told_when_to_ask_again(spec: str, headers: dict[str, str]) -> None:
    given = dict(streamed(spec).headers)
    assert {name: value for name, value in given.items() if name.startswith("retry")} == headers
    assert "x-should-retry" not in given


def test_an_error_comes_at_once_whatever_the_pace() -> None:
    replay = with_faults(exchange(1, HI, response(reply("one"), at=9_000)), faults=["429@1"])
    assert playback(replay.answer(live(HI)), 1).pause == 0
    assert playback(replay.answer(live(HI)), 1).pause == 8_900


def test_a_fault_for_all_calls_applies_to_each_call_and_to_nothing_else() -> None:
    models = exchange(3, None, {"data": []}, url="https://api.example.com/v1/models", method="GET")
    replay = with_faults(exchange(1, HI, "one"), exchange(2, chat(user("b")), "two"), models, faults=["500@*"])
    got = [type(replay.answer(one)) for one in (live(HI), live(HI), live(chat(user("b"))), live(chat(user("b"))))]
    assert got == [Injected, Answer, Injected, Answer]
    assert isinstance(replay.answer(live(None, url="https://api.example.com/v1/models", method="GET")), Answer)


def test_several_attempts_and_several_faults_come_in_the_order_given() -> None:
    replay = with_faults(exchange(1, HI, "one"), faults=["429@1:times=2", "500@1"])
    statuses = [playback(replay.answer(live(HI))).status for _ in range(4)]
    assert statuses == [429, 429, 500, 200]


def test_equal_requests_still_get_their_answers_in_order() -> None:
    replay = with_faults(exchange(1, HI, "one"), exchange(2, HI, "two"), faults=["429@2"])
    kinds = [replay.answer(live(HI)) for _ in range(3)]
    assert said(kinds[0]) == "one"
    assert isinstance(kinds[1], Injected)
    assert said(kinds[2]) == "two"


def test_calls_are_targeted_by_the_tool_that_they_request() -> None:
    asks = reply("")
    asks["choices"][0]["message"] = calls("weather", "{}", "c1")
    asks["choices"][0]["finish_reason"] = "tool_calls"
    goes_on = chat(user("hi"), calls("weather", "{}", "c1"), result("c1", "sunny"))
    replay = with_faults(exchange(1, HI, asks), exchange(2, goes_on, "done"), faults=["500@tool=weather"])
    assert isinstance(replay.answer(live(HI)), Injected)
    assert isinstance(replay.answer(live(HI)), Answer)
    assert isinstance(replay.answer(live(goes_on)), Answer)
    with pytest.raises(UsageError, match=r"has no call that requests a tool 'wether'.*\n  there are: weather"):
        with_faults(exchange(1, HI, asks), exchange(2, goes_on, "done"), faults=["500@tool=wether"])


def test_calls_are_named_by_their_agent() -> None:
    replay = with_faults(exchange(1, HI, "one"), faults=["500@agent=root"])
    assert isinstance(replay.answer(live(HI)), Injected)


@pytest.mark.parametrize(
    ("spec", "frames"),
    [
        ("cut@1:event=0", FRAMES[:0]),
        ("cut@1:event=1", FRAMES[:1]),
        ("cut@1:event=2", FRAMES[:3]),  # a comment is no event
        ("cut@1:event=4", FRAMES),
        ("cut@1", FRAMES[:3]),  # half way
    ],
)
def test_a_stream_is_cut_after_its_event(spec: str, frames: tuple[str, ...]) -> None:
    shown = streamed(spec)
    assert (shown.status, shown.cut, shown.reset) == (200, True, False)
    assert tuple(sent(shown)) == frames


def test_a_whole_answer_is_cut_in_half() -> None:
    whole = streamed(answer=response(reply("one")))
    shown = streamed("cut@1", answer=response(reply("one")))
    assert shown.cut
    assert "content-length" not in dict(shown.headers)
    assert 0 < len("".join(sent(shown))) < len("".join(sent(whole)))
    assert "".join(sent(whole)).startswith("".join(sent(shown)))


def test_the_retry_after_a_cut_gets_the_whole_answer() -> None:
    replay = with_faults(exchange(1, HI, stream(*FRAMES)), faults=["cut@1:event=1"])
    assert [len(playback(replay.answer(live(HI))).pieces) for _ in range(2)] == [1, 5]
    assert playback(replay.answer(live(HI))).status == 400  # and it is given once


def test_a_reset_comes_before_the_answer_or_after_an_event() -> None:
    before, after = streamed("reset@1"), streamed("reset@1:event=2")
    assert (before.status, before.reset, before.cut, sent(before)) == (None, True, True, [])
    assert (after.status, after.reset, after.cut, sent(after)) == (200, True, True, list(FRAMES[:3]))


def test_a_stall_without_end_leaves_the_answer_for_the_next_attempt() -> None:
    replay = with_faults(exchange(1, HI, stream(*FRAMES)), faults=["stall@1:event=1"])
    first = playback(replay.answer(live(HI)))
    assert [piece.pause for piece in first.pieces] == [0, FOREVER_MS]
    assert (sent(first), first.cut) == ([FRAMES[0], ""], True)
    assert sent(playback(replay.answer(live(HI)))) == list(FRAMES)


def test_a_stall_with_an_end_delays_the_answer_itself() -> None:
    before, within, late = (streamed(f"stall@1{event}:for=10s") for event in ("", ":event=2", ":event=4"))
    assert (before.pause, [piece.pause for piece in before.pieces]) == (10_000, [0] * 5)
    assert (within.pause, [piece.pause for piece in within.pieces]) == (0, [0, 0, 0, 10_000, 0])
    assert [piece.pause for piece in late.pieces] == [0, 0, 0, 0, 0, 10_000]
    assert sent(before) == sent(within) == list(FRAMES)
    assert [before.cut, within.cut, late.cut] == [False] * 3


def test_a_whole_answer_stalls_in_its_middle() -> None:
    shown = streamed("stall@1:event=1:for=10s", answer=response(reply("one")))
    assert [piece.pause for piece in shown.pieces] == [0, 10_000]
    assert orjson.loads("".join(sent(shown)))["choices"][0]["message"]["content"] == "one"


def test_a_client_that_gave_up_waiting_may_ask_again() -> None:
    replay = with_faults(exchange(1, HI, "one"), faults=["stall@1:for=10s"])
    assert [playback(replay.answer(live(HI))).pause for _ in range(2)] == [10_000, 0]
    assert not replay.misses


@pytest.mark.parametrize(("pace", "pauses"), [(0, [100] * 5), (1, [100] * 5), (2, [200] * 5)])
def test_a_slow_fault_uses_the_recorded_pauses_even_without_a_pace(pace: float, pauses: list[float]) -> None:
    shown = streamed("slow@*:x10", pace=pace)
    assert [piece.pause for piece in shown.pieces] == pauses


def test_delays_add_up() -> None:
    shown = streamed("slow@1:x2", "stall@1:event=1:for=1s")
    assert [piece.pause for piece in shown.pieces] == [20, 1020, 20, 20, 20]


def test_a_fault_does_not_change_a_recorded_failure() -> None:
    gone = exchange(1, HI, None, ended=Ended.UPSTREAM_UNREACHABLE)
    for spec in ("cut@1", "stall@1:event=0"):
        shown = playback(with_faults(gone, faults=[spec]).answer(live(HI)))
        assert (shown.status, sent(shown)) == (None, [])


def test_a_request_that_nothing_answers_is_a_miss_whatever_the_faults() -> None:
    replay = with_faults(exchange(1, HI, "one"), faults=["429@*"])
    assert said(replay.answer(live(chat(user("other"))))).startswith("miss")
    assert len(replay.misses) == 1


def test_the_report_lists_what_was_injected_and_what_never_came_up() -> None:
    replay = with_faults(
        exchange(1, HI, "one"), exchange(2, chat(user("b")), "two"), faults=["429@1", "slow@1:x2", "cut@2"]
    )
    for _ in range(2):
        replay.answer(live(HI))
    report = replay.report()
    assert [(m.request, m.fault, m.answer.call, m.broke) for m in report.injected] == [
        (1, "429@1", 1, True),
        (2, "slow@1:x2", 1, False),
    ]
    assert report.not_injected == ("cut@2",)
    assert [played.request for played in report.played] == [2]


def test_drift_is_reported_with_the_answer_not_with_the_fault() -> None:
    replay = with_faults(exchange(1, chat(user("at 15:05:30"))), faults=["429@1"])
    asked = live(chat(user("at 09:00:01")))
    assert isinstance(replay.answer(asked), Injected)
    answer = replay.answer(asked)
    assert isinstance(answer, Answer)
    assert [apart.where for apart in answer.differences] == ["messages[0].content"]
