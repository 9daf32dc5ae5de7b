"""Twelve breaks, planted one by one into loops that otherwise only grow, and what is said of each."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.support.caching import ANTHROPIC, OPENAI, PROMPT, asked, history, marked, tokens, tool, turn
from tests.support.calls import assistant, make_call, result, system, thinks, user

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.prefix_tree import Elements
from wiretape.analyze.cache.report import CacheCall
from wiretape.analyze.cost import Cost
from wiretape.model.call import Control, Message, ModelCall, Reasoning, Text, Usage
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

LOOK, BOOK = tool("look"), tool("book", "books a room")


def verdicts(*calls: ModelCall) -> list[CacheCall]:
    return diagnose(build_run(calls)).calls


def last(*calls: ModelCall) -> CacheCall:
    return verdicts(*calls)[-1]


def planted(found: CacheCall, kind: str, path: str) -> None:
    """A break of this kind at this place, and at no other."""
    assert (found.verdict, [one.kind for one in found.breaks], found.breaks[0].path) == ("broken", [kind], path)
    assert found.mend is not None
    assert found.lost_tokens is not None
    assert found.lost_tokens > 1000


def prompt(text: str) -> Message:
    return system(f"{text}\n{PROMPT}")


def test_a_loop_that_grows_is_served() -> None:
    first, second = history(1), history(2)
    one, other = verdicts(asked(1, first), asked(2, second, cached=tokens(first) // 128 * 128))
    assert (one.verdict, other.verdict) == ("first", "served")
    assert other.shared == tokens(first)
    assert other.predicted == other.reported == tokens(first) // 128 * 128
    assert (other.estimate, other.evidence, other.lost_tokens) == (False, "wire", None)


def test_a_clock() -> None:
    found = last(
        asked(1, history(1, prompt("It is 2026-02-28 15:05:30."))),
        asked(2, history(2, prompt("It is 2026-02-28 15:23:47."))),
    )
    planted(found, "clock", "messages[0].content")
    assert (found.breaks[0].before, found.breaks[0].after) == ("2026-02-28 15:05:30", "2026-02-28 15:23:47")
    assert found.breaks[0].character == len("It is 2026-02-28 15:")
    assert found.text == f"prefix breaks at {found.breaks[0].text} (compared with call 1)"


def test_a_uuid() -> None:
    found = last(
        asked(1, history(1, prompt("Session 0b1c2d3e-0000-4000-8000-000000000001."))),
        asked(2, history(2, prompt("Session 7f1c2d3e-0000-4000-8000-000000000002."))),
    )
    planted(found, "uuid", "messages[0].content")


def test_tools_in_another_order() -> None:
    found = last(asked(1, history(1), offers=[LOOK, BOOK]), asked(2, history(2), offers=[BOOK, LOOK]))
    planted(found, "tools_reordered", "tools[0]")
    assert (found.breaks[0].before, found.breaks[0].after) == ("look, book", "book, look")


def test_a_schema_that_changed() -> None:
    found = last(
        asked(1, history(1), offers=[LOOK, BOOK]),
        asked(2, history(2), offers=[LOOK, tool("book", "books a room for you")]),
    )
    planted(found, "schema_changed", "tools[1].description")


def test_an_edited_history() -> None:
    edited = history(2)
    edited[3] = result("room 1 was free, but is not now", "c1")
    planted(last(asked(1, history(1)), asked(2, edited)), "history_edited", "messages[3].content")


def test_a_compaction() -> None:
    summary = "Summary so far: thirty rooms were looked at, and room 30 is free until noon."
    long = [*history(30), user("sum up what was done")]
    found = last(
        asked(1, history(30)),
        asked(2, long, cached=tokens(history(30)), answer=assistant(summary)),
        asked(3, [long[0], user(f"This session goes on from an earlier one. {summary}"), user("book it")]),
    )
    planted(found, "compaction", "messages[1].content")


def test_a_compaction_inside_a_conversation() -> None:
    item = Message("assistant", (Control("compaction", {"type": "compaction", "encrypted_content": "x"}),), ("",))
    cut = [history(9)[0], item, *history(9)[-2:], *turn(10)]
    planted(last(asked(1, history(9)), asked(2, cut)), "compaction", "messages[1]")


def test_a_marker_that_moved_out_of_reach() -> None:
    first, far = history(1), history(24)
    found = last(
        asked(1, marked(first, -1), url=ANTHROPIC, written=tokens(first)),
        asked(2, marked(far, -1), url=ANTHROPIC, written=tokens(far)),
    )
    planted(found, "marker_moved", "messages[3]")
    assert found.breaks[0].after == f"messages[{len(far) - 1}]"


def test_a_marker_that_moved_within_reach_is_none() -> None:
    first, second = history(1), history(2)
    found = last(
        asked(1, marked(first, -1), url=ANTHROPIC, written=tokens(first)),
        asked(2, marked(second, -1), url=ANTHROPIC, cached=tokens(first), written=50),
    )
    assert (found.verdict, found.predicted) == ("served", tokens(first))


def test_a_system_prompt_that_became_a_list() -> None:
    listed = Message("system", (Text(PROMPT),), (".content[0].text",))
    found = last(asked(1, history(1)), asked(2, history(2, listed)))
    planted(found, "shape_changed", "messages[0]")
    assert (found.breaks[0].before, found.breaks[0].after) == ("a string", "a list of blocks")


def test_a_nonce() -> None:
    billing = "x-anthropic-billing-header: cc_version=2.1.36.{}; cc_entrypoint=cli; cch={};"
    found = last(
        asked(1, marked(history(1, prompt(billing.format("a1c", "1f00a"))), -1), url=ANTHROPIC, written=1800),
        asked(2, marked(history(2, prompt(billing.format("a1c", "9e22b"))), -1), url=ANTHROPIC, written=1900),
    )
    planted(found, "nonce", "messages[0].content")
    assert (found.breaks[0].before, found.breaks[0].after) == ("1f00a", "9e22b")
    assert found.mend is not None
    assert "CLAUDE_CODE_ATTRIBUTION_HEADER=0" in found.mend


def test_dropped_reasoning() -> None:
    kept, dropped = history(1), history(2)
    kept[2] = assistant(thinks("hm, which room"), *kept[2].blocks)
    planted(last(asked(1, kept), asked(2, dropped)), "reasoning_dropped", "messages[2].content[0]")


def test_another_model() -> None:
    found = last(asked(1, history(1)), asked(2, history(2), model="gpt-4.1-mini"))
    planted(found, "model_switch", "model")
    assert (found.breaks[0].before, found.breaks[0].after) == ("gpt-4.1", "gpt-4.1-mini")


def test_an_entry_that_expired() -> None:
    minutes = 7 * 60 * 1000
    found = last(asked(1, history(1)), asked(2, history(2), at=minutes, ended_at=minutes + 5))
    assert (found.verdict, found.breaks) == ("expired", [])
    assert found.idle_ms == minutes - 100
    assert "7 minutes had passed since call 1" in found.text
    assert found.lost_tokens == tokens(history(1)) // 128 * 128


def test_an_entry_that_was_written_for_an_hour_is_not_taken_for_expired() -> None:
    first, minutes = history(1), 7 * 60 * 1000
    raw = {"cache_creation": {"ephemeral_1h_input_tokens": tokens(first)}}
    written = asked(1, marked(first, -1), url=ANTHROPIC, written=tokens(first))
    assert written.response is not None
    assert written.usage is not None
    hour = replace(written, response=replace(written.response, usage=replace(written.usage, raw=raw)))
    later = asked(2, marked(history(2), -1), url=ANTHROPIC, written=9, at=minutes, ended_at=minutes + 9)
    assert last(written, later).verdict == "expired"
    assert last(hour, later).verdict == "routed_elsewhere"


# -- what is no break ----------------------------------------------------------------------------------------------


def test_what_is_too_short_for_the_cache() -> None:
    short = [system("be kind"), user("hi")]
    found = last(asked(1, short), asked(2, [*short, *turn(1)]))
    assert (found.verdict, found.lost_tokens) == ("below_minimum", None)
    assert "1,024" in found.text


def test_a_provider_that_caches_only_what_is_marked() -> None:
    found = last(asked(1, history(1), url=ANTHROPIC, written=0), asked(2, history(2), url=ANTHROPIC, written=0))
    assert found.verdict == "not_asked"
    assert found.mend is not None
    assert "cache_control" in found.mend


def test_marked_but_too_short() -> None:
    short = [system("be kind"), user("hi")]
    calls = [asked(n, marked([*short, *turn(n)], -1), url=ANTHROPIC, written=0) for n in (1, 2)]
    assert verdicts(*calls)[1].verdict in ("below_minimum", "broken")
    grown = [asked(1, marked(short, -1), url=ANTHROPIC, written=0),
             asked(2, marked([*short, *turn(1)], -1), url=ANTHROPIC, written=0)]  # fmt: skip
    found = last(*grown)
    assert (found.verdict, found.evidence) == ("below_minimum", "wire")


def test_intact_and_in_time_but_not_served() -> None:
    found = last(asked(1, history(1)), asked(2, history(2)))
    assert found.verdict == "routed_elsewhere"
    assert found.mend == "send the same prompt_cache_key in every call"


def test_another_key_is_another_cache() -> None:
    keys: list[dict[str, Any]] = [{"settings": {"prompt_cache_key": key}} for key in ("a", "b")]
    found = last(asked(1, history(1), **keys[0]), asked(2, history(2), **keys[1]))
    assert (found.verdict, found.breaks[0].kind) == ("routed_elsewhere", "key_changed")


def test_a_call_that_came_before_the_answer_began() -> None:
    found = last(asked(1, history(1), at=100, ended_at=9000), asked(2, history(2), at=200, ended_at=9100))
    assert found.verdict == "too_early"


def test_a_setting_that_counts() -> None:
    found = last(
        asked(1, marked(history(1), -1), url=ANTHROPIC, written=1800, settings={"tool_choice": {"type": "auto"}}),
        asked(2, marked(history(2), -1), url=ANTHROPIC, written=1900, settings={"tool_choice": {"type": "any"}}),
    )
    planted(found, "setting_changed", "tool_choice")


def test_what_the_wire_does_not_say_is_unknown() -> None:
    found = last(asked(1, history(1), cached=None), asked(2, history(2), cached=None))
    assert (found.verdict, found.reported) == ("unknown", None)
    assert found.predicted == tokens(history(1)) // 128 * 128


def test_a_break_that_the_cache_did_not_mind() -> None:
    kept, dropped = history(1), history(2)
    kept[2] = assistant(thinks("hm"), *kept[2].blocks)
    found = last(asked(1, kept), asked(2, dropped, cached=tokens(kept)))
    assert (found.verdict, found.breaks) == ("served", [])
    assert "did not matter" in found.text


def test_a_provider_that_promises_nothing_is_not_accused() -> None:
    calls = [asked(n, history(n), url="https://nobody.test/v1/chat/completions") for n in (1, 2)]
    assert last(*calls).verdict == "unknown"


def test_a_call_that_failed_leaves_nothing_in_the_cache() -> None:
    lost = make_call(2, history(2), None, status=500)
    found = last(asked(1, history(1)), lost, asked(3, history(2), cached=tokens(history(1)) // 128 * 128))
    assert (found.verdict, found.compared_with) == ("served", 1)


def test_a_clock_breaks_the_next_conversation_too() -> None:
    other = [prompt("It is 15:06."), user("what is a room?")]
    found = last(asked(1, history(1, prompt("It is 15:05."))), asked(2, other))
    assert (found.verdict, [one.kind for one in found.breaks]) == ("broken", ["clock"])


def test_another_prompt_is_another_speaker_and_no_break() -> None:
    poet = [system("You write one line of verse about whatever you are given, and nothing else."), user("a room")]
    found = last(asked(1, history(1), offers=[LOOK]), asked(2, poet, offers=[LOOK]))
    assert (found.verdict, found.compared_with) == ("first", None)


def test_reasoning_left_out_of_a_recorded_history() -> None:
    tape = read_tape(Path(__file__).parents[4] / "captures" / "clock-thinking.tape")
    before, call = decode(tape.exchanges)
    kept = [
        replace(message, blocks=tuple(block for block in message.blocks if not isinstance(block, Reasoning)))
        for message in call.request.messages
    ]
    whole = diagnose(build_run([before, call])).calls[1]
    assert (whole.verdict, whole.breaks) == ("unknown", [])
    dropped = replace(call, request=replace(call.request, messages=tuple(kept)))
    found = diagnose(build_run([before, dropped])).calls[1]
    assert (found.verdict, [one.kind for one in found.breaks]) == ("broken", ["reasoning_dropped"])
    assert (found.breaks[0].path, found.mend) == ("messages[1]", "send the reasoning back as the model gave it")
    assert "came back without its reasoning" in found.text


def test_another_conversation_is_the_first_of_its_kind() -> None:
    found = last(asked(1, history(1)), asked(2, [system(PROMPT), user("what is a room?")]))
    assert found.verdict == "first"
    assert found.compared_with is None
    assert "those of call 1" in found.text


# -- evidence, and what it cost ------------------------------------------------------------------------------------


def diagnosed(call: ModelCall, told: object) -> ModelCall:
    assert call.response is not None
    return replace(call, response=replace(call.response, diagnostics=told))


def test_the_providers_own_reason_goes_first() -> None:
    told = {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 1718}}
    again = diagnosed(asked(2, history(2), url=ANTHROPIC, offers=[LOOK, BOOK], written=0), told)
    found = last(asked(1, history(1), url=ANTHROPIC, offers=[LOOK], written=0), again)
    assert (found.verdict, found.evidence, found.lost_tokens) == ("broken", "provider", 1718)
    assert (found.breaks[0].kind, found.breaks[0].after) == ("tools_changed", "book")
    assert found.text.startswith("the provider says tools_changed: tools[1]: another tool: 'book' is new")


def test_openais_reason_is_read_too() -> None:
    told = {"type": "cache_miss", "reason": "verbosity_changed", "cache_missed_tokens": 1664}
    found = last(asked(1, history(1)), diagnosed(asked(2, history(2)), told))
    assert (found.evidence, found.breaks[0].kind, found.lost_tokens) == ("provider", "setting_changed", 1664)


def test_a_diagnosis_that_names_nothing_says_nothing() -> None:
    told = {"cache_miss_reason": {"type": "unavailable"}}
    assert last(asked(1, history(1)), diagnosed(asked(2, history(2)), told)).evidence == "inferred"
    assert last(asked(1, history(1)), diagnosed(asked(2, history(2)), "nonsense")).evidence == "inferred"


class Penny:
    name = "a penny for each token that no cache served"

    def __call__(self, call: ModelCall) -> Cost | None:
        usage = call.usage
        if usage is None or usage.input is None:
            return None
        return Cost(Decimal(usage.input - (usage.cached or 0)) / 100)


def test_what_a_break_cost() -> None:
    calls = [asked(1, history(1, prompt("It is 15:05:30."))), asked(2, history(2, prompt("It is 15:23:47.")))]
    report = diagnose(build_run(calls), Penny())
    found = report.calls[1]
    assert found.lost_tokens is not None
    assert found.lost_usd == pytest.approx(found.lost_tokens / 100)
    assert (report.lost_tokens, report.lost_usd) == (found.lost_tokens, found.lost_usd)
    assert (report.verdicts, report.prices) == ({"first": 1, "broken": 1}, Penny.name)


def test_no_calls_no_verdicts() -> None:
    report = diagnose(build_run([]))
    assert (report.calls, report.predicted, report.lost_tokens) == ([], None, None)
    assert diagnose(build_run([make_call(1, [user("hi")], "a", kind="embedding", usage=Usage(3))])).calls == []


def test_the_address_may_be_anything() -> None:
    call = replace(asked(1, history(1)), url="http://[broken")
    assert last(call, replace(asked(2, history(2), cached=1664), url="http://[broken")).verdict == "served"
    assert OPENAI


class Counting(Elements):
    """Counts the messages that are looked at."""

    looked = 0

    def _message(self, message: Message) -> int:
        Counting.looked += 1
        return super()._message(message)


@pytest.mark.parametrize("clock", ["", "It is 10:00:{}."])
def test_a_long_loop_costs_what_each_call_adds(monkeypatch: pytest.MonkeyPatch, clock: str) -> None:
    monkeypatch.setattr("wiretape.analyze.cache.diagnosis.Elements", Counting)
    Counting.looked = 0
    said, calls = history(0), []
    for number in range(1, 301):
        said = [*said, *turn(number)]
        calls.append(asked(number, [system(clock.format(number) + PROMPT), *said[1:]], cached=None))
    assert len(verdicts(*calls)) == 300
    assert Counting.looked <= 4 * len(calls)
