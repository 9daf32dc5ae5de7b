from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.calls import assistant, make_call, system, tools, user
from tests.support.linting import found

from wiretape.analyze.lint.base import LintFinding, Subject
from wiretape.analyze.lint.rules import lint, named
from wiretape.model.call import ModelCall, Usage
from wiretape.model.http import Exchange, Headers, JsonBody, Request, Response, StreamBody, TextBody
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape

HI, MORE = user("who are you?"), user("and the weather?")
ME = assistant("an assistant")
KEY = "sk-proj-" + "Zq7Rw2Lx9Kt4Vb8N" * 2
CAPTURES = sorted((Path(__file__).parents[4] / "captures").glob("*.tape"))


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


def leaks(*exchanges: Exchange, redact: tuple[str, ...] = ()) -> list[LintFinding]:
    return lint(Subject(build_run([]), exchanges, redact), named("WT014"))


def sent(body: object = None, url: str = "https://api.example/v1/chat", **headers: str) -> Exchange:
    return Exchange(3, 0, Request("POST", url, Headers(headers.items()), JsonBody(body)), Response(200))


def places(*exchanges: Exchange, redact: tuple[str, ...] = ()) -> list[str | None]:
    findings = leaks(*exchanges, redact=redact)
    assert KEY not in str(findings)
    return [one.path for one in findings]


def test_secrets_are_found_wherever_they_stand_and_never_printed() -> None:
    assert places(sent(authorization=f"Bearer {KEY}")) == ["request.headers.authorization"]
    assert places(sent(url=f"https://api.example/v1?key={KEY}")) == ["request.url"]
    assert places(sent({"messages": [{"content": "hi"}, {"content": f"my key is {KEY}"}]})) == [
        "request.body.messages[1].content"
    ]
    assert places(sent({"mcp": {"authorization_token": "Zq7Rw2Lx9Kt4Vb8N"}})) == [
        "request.body.mcp.authorization_token"
    ]
    text = Exchange(1, 0, Request("GET", "https://a.example/"), Response(401, body=TextBody(f"no such key: {KEY}")))
    assert places(text) == ["response.body"]


def test_a_secret_that_a_stream_splits_over_frames_is_found() -> None:
    frames = [f'data: {{"delta":"{part}"}}\n\n'.encode() for part in (KEY[:10], KEY[10:25], KEY[25:])]
    streamed = Response(200, Headers(), 0, StreamBody(frames, [0, 1, 2]))
    assert places(Exchange(1, 0, Request("GET", "https://a.example/"), streamed)) == ["response.body.events[0]"]


def test_a_credential_is_found_again_in_a_body_of_no_known_shape() -> None:
    secret = "Zq7Rw2Lx9Kt4Vb8N"
    found = places(sent({"note": f"use {secret} here"}, **{"x-api-key": secret}))
    assert found == ["request.headers.x-api-key", "request.body.note"]


def test_the_projects_own_patterns_count() -> None:
    body = {"messages": [{"content": "customer cust-4711 says hi"}]}
    assert places(sent(body)) == []
    assert places(sent(body), redact=(r"cust-\d+",)) == ["request.body.messages[0].content"]


def test_an_account_is_a_warning_and_words_in_a_credentials_place_are_nothing() -> None:
    [account] = leaks(sent(**{"openai-organization": "user-grnwlxd1653lxdzp921aoihz"}))
    assert (account.severity, account.exchange) == ("warning", 3)
    assert leaks(sent(authorization="Bearer test_openai_api_key", cookie="test_cookie")) == []
    assert leaks(sent(authorization="Bearer [redacted:authorization:1]")) == []


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_captures_hold_no_secrets(path: Path) -> None:
    assert leaks(*read_tape(path).exchanges) == []
