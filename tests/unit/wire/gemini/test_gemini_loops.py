"""Loops in Gemini's format: calls continue each other, results find their calls, and replays match."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.replaying import exchange, live, response, session

from wiretape.compare.difference import Tier
from wiretape.matching.values import Answer, Miss
from wiretape.model.http import Exchange
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

URL = "https://generativelanguage.googleapis.com/v1beta/models/gemini-9:generateContent"
ASSIST = "https://cloudcode-pa.googleapis.com/v1internal:generateContent"
INTERACTIONS = "https://generativelanguage.googleapis.com/v1beta/interactions"
TOOLS = [{"functionDeclarations": [{"name": "look"}, {"name": "listen"}]}]


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def call(name: str, id: str | None = None, signature: str | None = None, **args: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"name": name, "args": args, **({"id": id} if id else {})}}
    return {**part, "thoughtSignature": signature} if signature else part


def result(name: str, text: str, id: str | None = None) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": text}, **({"id": id} if id else {})}}


def asks(*contents: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {"contents": list(contents), "tools": TOOLS, **settings}


def answers(*parts: dict[str, Any]) -> Any:
    return response({"candidates": [{"content": model(*parts), "finishReason": "STOP"}], "modelVersion": "gemini-9"})


ASKED = user({"text": "What is there?"})


def loop(stamp: str = "", signature: str | None = "c2ln", url: str = URL) -> list[Exchange]:
    """Two parallel calls of one tool, then another call, then the answer. `stamp` ends the client's ids."""
    ids = [f"look-{stamp}-0", f"look-{stamp}-1", f"listen-{stamp}-2"] if stamp else [None] * 3
    first = [call("look", None, signature, at="door"), call("look", at="window")]
    second = [call("listen")]
    said = [call("look", ids[0], signature, at="door"), call("look", ids[1], at="window")]
    results = user(result("look", "closed", ids[0]), result("look", "open", ids[1]))
    heard = [model(call("listen", ids[2])), user(result("listen", "rain", ids[2]))]
    bodies = [asks(ASKED), asks(ASKED, model(*said), results), asks(ASKED, model(*said), results, *heard)]
    told = [answers(*first), answers(*second), answers({"text": "Rain."})]
    return [exchange(n, body, told[n - 1], url=url) for n, body in enumerate(bodies, 1)]


def run_of(exchanges: list[Exchange]) -> Run:
    return build_run(decode(exchanges))


@pytest.mark.parametrize("stamp", ["", "1754000000000"])
def test_a_loop_is_one_thread_and_results_find_their_calls(stamp: str) -> None:
    run = run_of(loop(stamp))
    assert (len(run.threads), len(run.turns), len(run.agents)) == (1, 1, 1)
    assert [(step.cause.kind, step.cause.tools) for step in run.steps] == [
        ("turn_start", ()),
        ("tool_results", ("look", "look")),
        ("tool_results", ("listen",)),
    ]
    assert [(use.call.arguments, use.result and use.result.text, use.result_call) for use in run.tool_uses] == [
        ('{"at":"door"}', "closed", 2),
        ('{"at":"window"}', "open", 2),
        ("{}", "rain", 3),
    ]
    assert (run.turns[0].user, run.turns[0].answer) == ("What is there?", "Rain.")
    assert [step.new_from for step in run.steps] == [0, 2, 4]


def test_a_token_count_is_a_side_call() -> None:
    counted = exchange(4, asks(ASKED), response({"totalTokens": 9}), url=URL.replace("generateContent", "countTokens"))
    run = run_of([*loop(), counted])
    assert ([step.call.number for step in run.side_calls], len(run.threads)) == ([4], 1)


def test_both_spellings_are_the_same_history() -> None:
    snake = {"function_call": {"name": "look", "args": {"at": "door"}}, "thought_signature": "c2ln"}
    done = {"function_response": {"name": "look", "response": {"output": "closed"}}}
    run = run_of(
        [
            exchange(1, asks(ASKED), answers(call("look", None, "c2ln", at="door")), url=URL),
            exchange(2, asks(ASKED, model(snake), user(done)), answers({"text": "Closed."}), url=URL),
        ]
    )
    assert (len(run.threads), run.tool_uses[0].result_call) == (1, 2)


def test_ids_with_a_clock_replay_as_normalized() -> None:
    replay = session(*loop("1754000000000"))
    outcomes = [replay.answer(live(x.request.body.value, url=URL)) for x in loop("1764444444444")]  # type: ignore[union-attr]
    assert [o.tier for o in outcomes if isinstance(o, Answer)] == [Tier.EXACT, Tier.NORMALIZED, Tier.NORMALIZED]


@pytest.mark.parametrize("signature", ["b3RoZXI=", None])
def test_signatures_are_not_compared(signature: str | None) -> None:
    replay = session(*loop())
    outcomes = [replay.answer(live(x.request.body.value, url=URL)) for x in loop(signature=signature)]  # type: ignore[union-attr]
    assert [o.tier for o in outcomes if isinstance(o, Answer)] == [Tier.EXACT, Tier.NORMALIZED, Tier.NORMALIZED]


def test_other_arguments_are_a_miss() -> None:
    replay = session(*loop())
    contents = [ASKED, model(call("look", at="roof")), user(result("look", "closed"))]
    replay.answer(live(asks(ASKED), url=URL))
    assert isinstance(replay.answer(live(asks(*contents), url=URL)), Miss)


def test_streamed_counted_and_plain_calls_do_not_match_each_other() -> None:
    stream = URL.replace("generateContent", "streamGenerateContent")
    urls = [URL, f"{stream}?alt=sse", stream, URL.replace("generateContent", "countTokens")]
    for recorded in urls:
        for asked in urls:
            replay = session(exchange(1, asks(ASKED), answers({"text": "Hi"}), url=recorded))
            assert isinstance(replay.answer(live(asks(ASKED), url=asked)), Answer) is (asked == recorded)


def test_the_user_ids_of_code_assist_are_ignored() -> None:
    def wrapped(mark: str) -> dict[str, Any]:
        inner = {**asks(ASKED), "session_id": f"s-{mark}"}
        return {"model": "gemini-9", "project": f"p-{mark}", "user_prompt_id": f"s-{mark}########0", "request": inner}

    replay = session(exchange(1, wrapped("a"), answers({"text": "Hi"}), url=ASSIST))
    outcome = replay.answer(live(wrapped("b"), url=ASSIST))
    assert isinstance(outcome, Answer)
    assert outcome.tier is Tier.NORMALIZED


def test_interactions_may_name_the_previous_one() -> None:
    step = {"type": "function_call", "id": "c1", "name": "look", "arguments": {"at": "door"}}
    first = {"id": "v1_a", "object": "interaction", "status": "requires_action", "steps": [step]}
    said = [{"type": "model_output", "content": [{"type": "text", "text": "Closed."}]}]
    second = {"id": "v1_b", "object": "interaction", "status": "completed", "steps": said}
    found = [{"type": "function_result", "call_id": "c1", "name": "look", "result": "closed"}]
    body = {"model": "gemini-9", "input": "What is there?"}
    after = {"model": "gemini-9", "input": found, "previous_interaction_id": "v1_a"}
    exchanges = [
        exchange(1, body, response(first), url=INTERACTIONS),
        exchange(2, after, response(second), url=INTERACTIONS),
    ]
    run = run_of(exchanges)
    assert [step.cause.kind for step in run.steps] == ["turn_start", "tool_results"]
    assert (run.tool_uses[0].result_call, run.turns[0].answer, len(run.threads)) == (2, "Closed.", 1)
    replay = session(*exchanges)
    assert isinstance(replay.answer(live(body, url=INTERACTIONS)), Answer)
    assert isinstance(replay.answer(live({**after, "previous_interaction_id": "v1_other"}, url=INTERACTIONS)), Answer)
