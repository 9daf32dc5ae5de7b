from __future__ import annotations

from tests.support.calls import assistant, make_call, system, tools, user
from tests.support.linting import found

from wiretape.model.call import ModelCall, Usage

HI, MORE = user("who are you?"), user("and the weather?")
ME = assistant("an assistant")


def prompt(time: str) -> str:
    return f"Today is 2026-02-28 {time}. You are an assistant."


def test_a_clock_in_the_system_prompt_is_named_with_place_character_and_both_values() -> None:
    calls = [
        make_call(1, [system(prompt("15:05:30")), HI], ME),
        make_call(2, [system(prompt("15:23:47")), HI, ME, MORE], "sunny"),
    ]
    [finding] = found("WT013", *calls)
    assert (finding.severity, finding.call, finding.path) == ("warning", 2, "messages[0].content")
    assert finding.text == "the prefix breaks, at character 23: a clock (compared with call 1)"
    assert finding.values == {"before": "2026-02-28 15:05:30", "after": "2026-02-28 15:23:47"}


def test_a_nonce_that_changes_in_every_request_is_told_once_for_the_thread() -> None:
    history = [HI]
    calls = []
    for number, nonce in enumerate(("a1b2c3d4", "e5f6a7b8", "c9d0e1f2"), 1):
        calls.append(make_call(number, [system(f"x-anthropic-billing-header: cch={nonce};"), *history], f"{number}"))
        history += [assistant(f"{number}"), user("more")]
    [finding] = found("WT013", *calls)
    assert finding.text == (
        "the prefix breaks, at character 32: a nonce (compared with call 1); there again in 1 later call of the thread"
    )
    assert finding.mend.startswith("set CLAUDE_CODE_ATTRIBUTION_HEADER=0")


def test_append_only_loops_moved_models_and_handoffs_are_no_findings() -> None:
    first = make_call(1, [system("p"), HI], ME, offers=tools("a"))
    later = make_call(2, [system("p"), HI, ME, MORE], "sunny", offers=tools("a"))
    assert found("WT013", first, later) == []
    other = make_call(2, [system("q"), HI, ME, MORE], "sunny", offers=tools("a"), model="n")
    assert found("WT013", first, other) == []
    handed = make_call(2, [system("another agent with a prompt of its own"), HI, ME, MORE], "x", offers=tools("b"))
    assert found("WT013", first, handed) == []


def test_two_agents_of_one_kind_may_have_prompts_of_their_own_but_no_clocks() -> None:
    def two(first: str, second: str) -> list[ModelCall]:
        asked = (user("the weather in Paris, please"), user("the weather in Rome, please"))
        return [
            make_call(number, [system(said), words], "sunny", offers=tools("look"))
            for number, (said, words) in enumerate(zip((first, second), asked, strict=True), 1)
        ]

    assert found("WT013", *two("You are agent A of the weather.", "You are agent B of the weather.")) == []
    assert len(found("WT013", *two(prompt("15:05:30"), prompt("15:23:47")))) == 1


def test_tools_in_another_order_are_told_with_both_names() -> None:
    first = make_call(1, [HI], ME, offers=tools("a", "b"))
    later = make_call(2, [HI, ME, MORE], "sunny", offers=tools("b", "a"))
    [finding] = found("WT013", first, later)
    assert finding.path == "tools[0]"
    assert [value.split(", ")[0] for value in finding.values.values()] == ["a", "b"]


def test_what_the_cache_did_not_serve_is_told_in_tokens() -> None:
    calls = [
        make_call(1, [system(prompt("15:05:30")), HI], ME, usage=Usage(input=5000, cached=0)),
        make_call(2, [system(prompt("15:23:47")), HI, ME, MORE], "sunny", usage=Usage(input=5100, cached=0)),
    ]
    [finding] = found("WT013", *calls)
    assert "input tokens were not served" in finding.text
