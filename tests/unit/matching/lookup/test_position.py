"""The tier `position`: same position in the same thread, any content, never another agent's answer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.replaying import calls, chat, exchange, live, reply, response, result, said, session, system, user

from wiretape.compare.difference import Tier
from wiretape.compare.mask import Masker
from wiretape.matching.faults.apply import AtCall, Fault
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Miss, Outcome
from wiretape.model.faults import ErrorStatus
from wiretape.model.http import Exchange

RESPONSES = "https://api.openai.com/v1/responses"


def by_position(*recorded: Exchange, **options: Any) -> ReplaySession:
    return session(*recorded, tier=Tier.POSITION, **options)


def asks(name: str, arguments: str, id: str, text: str = "") -> dict[str, Any]:
    answer = reply(text)
    answer["choices"][0]["message"] = {**calls(name, arguments, id), "content": text}
    answer["choices"][0]["finish_reason"] = "tool_calls"
    return answer


def loop(prompt: str, question: str, *results: str, tag: str = "c") -> list[dict[str, Any]]:
    """The requests of a loop that calls one tool again and again."""
    messages = [system(prompt), user(question)]
    requests = [chat(*messages)]
    for n, text in enumerate(results):
        messages += [calls("look", f'{{"n": {n}}}', f"{tag}{n}"), result(f"{tag}{n}", text)]
        requests.append(chat(*messages))
    return requests


def recorded_loop(*results: str) -> list[Exchange]:
    requests = loop("You help.", "What is it?", *results)
    answers = [asks("look", f'{{"n": {n}}}', f"c{n}", f"step {n + 1}") for n in range(len(results))]
    return [
        exchange(n, body, answer) for n, (body, answer) in enumerate(zip(requests, [*answers, "done"], strict=True), 1)
    ]


def tier(outcome: Outcome) -> Tier | None:
    return outcome.tier if isinstance(outcome, Answer) else None


def test_a_loop_continues_although_all_its_texts_are_new() -> None:
    replay = by_position(*recorded_loop("red", "green"))
    changed = loop("You are of use.", "And what is this?", "a cat", "a dog")
    outcomes = [replay.answer(live(body)) for body in changed]
    assert list(map(said, outcomes)) == ["step 1", "step 2", "done"]
    assert {tier(outcome) for outcome in outcomes} == {Tier.POSITION}


def test_differences_are_drift_with_both_values() -> None:
    replay = by_position(*recorded_loop("red"))
    replay.answer(live(loop("You help.", "And this?", "blue")[0]))
    replay.answer(live(loop("You help.", "And this?", "blue")[1]))
    told = [(drift.where, drift.first.recorded, drift.first.live, drift.tier) for drift in replay.ledger.drifts]
    assert told == [
        ("messages[1].content", "What is it?", "And this?", Tier.POSITION),
        ("messages[3].content", "red", "blue", Tier.POSITION),
    ]
    assert {played.tier for played in replay.report().played} == {"position"}


def test_stricter_tiers_go_first() -> None:
    replay = by_position(*recorded_loop("red", "green"))
    same = loop("You help.", "What is it?", "red", "yellow")
    assert [tier(replay.answer(live(body))) for body in same] == [Tier.EXACT, Tier.EXACT, Tier.POSITION]


def test_the_tier_position_is_opt_in() -> None:
    replay = session(*recorded_loop("red"))
    assert said(replay.answer(live(loop("You are of use.", "And this?")[0]))).startswith("miss")


def test_a_prompt_that_changes_at_every_call_breaks_no_thread() -> None:
    replay = by_position(*recorded_loop("red", "green"))
    bodies = [loop(f"Mood {n}.", "And this?", "a", "b")[n] for n in range(3)]
    assert [said(replay.answer(live(body))) for body in bodies] == ["step 1", "step 2", "done"]


def test_after_the_last_recorded_call_everything_is_a_miss() -> None:
    replay = by_position(*recorded_loop("red"))
    bodies = loop("You are of use.", "And this?", "a", "b")
    outcomes = [replay.answer(live(body)) for body in bodies]
    assert [said(outcome) for outcome in outcomes] == ["step 1", "done", "miss: already played"]
    assert isinstance(outcomes[-1], Miss)
    assert "call 2 would, but it was already played" in outcomes[-1].message


def test_the_same_request_again_does_not_take_the_next_place() -> None:
    replay = by_position(*recorded_loop("red"))
    first, second = loop("You are of use.", "And this?", "a")
    got = [said(replay.answer(live(body))) for body in (first, first, second)]
    assert got == ["step 1", "miss: already played", "done"]


def test_a_recorded_retry_has_a_place_of_its_own() -> None:
    limited = response({"error": {"message": "slow down", "type": "rate_limit_error"}}, status=429)
    first, second = recorded_loop("red")
    retried = [
        exchange(1, chat(system("You help."), user("What is it?")), limited),
        exchange(2, chat(system("You help."), user("What is it?")), first.response),
        exchange(3, loop("You help.", "What is it?", "red")[1], second.response),
    ]
    replay = by_position(*retried)
    one, two = loop("You are of use.", "And this?", "a")
    outcomes = [replay.answer(live(body)) for body in (one, one, two)]
    assert [o.reference.call for o in outcomes if isinstance(o, Answer)] == [1, 2, 3]


def test_the_attempt_after_an_injected_fault_gets_the_place() -> None:
    replay = by_position(*recorded_loop("red"), faults=(Fault("500@2", ErrorStatus(500), AtCall(2)),))
    one, two = loop("You are of use.", "And this?", "a")
    assert [said(replay.answer(live(body))) for body in (one, two, two)] == ["step 1", "injected: 500@2", "done"]


def agent(name: str, word: str, *results: str) -> list[dict[str, Any]]:
    return loop(f"You are {name}.", f"{name}, {word}", *results, tag=name)


def agents_of(*names: str) -> list[Exchange]:
    """Agents of two calls each, side by side; each has its own prompt."""
    firsts = [
        exchange(n, agent(name, "go", "x")[0], asks("look", '{"n": 0}', f"{name}0", f"{name} 1"))
        for n, name in enumerate(names, 1)
    ]
    seconds = [exchange(n + len(names), agent(name, "go", "x")[1], f"{name} 2") for n, name in enumerate(names, 1)]
    return [*firsts, *seconds]


def test_parallel_agents_get_their_own_answers_in_any_order() -> None:
    replay = by_position(*agents_of("Ann", "Bob"))
    live_ones = {name: agent(name, "run", "other") for name in ("Ann", "Bob")}
    order = [("Bob", 0), ("Ann", 0), ("Ann", 1), ("Bob", 1)]
    assert [said(replay.answer(live(live_ones[name][n]))) for name, n in order] == ["Bob 1", "Ann 1", "Ann 2", "Bob 2"]


def test_two_equally_good_threads_are_a_miss() -> None:
    replay = by_position(*agents_of("Ann", "Bob"))
    outcome = replay.answer(live(chat(system("You are Cid."), user("Cid, go"))))
    assert isinstance(outcome, Miss)
    assert outcome.reason == "not playable"
    assert "it may be the first call of several threads: call 1, call 2 fit equally well" in outcome.message
    assert len(replay.report().left_over) == 4


def test_an_agent_that_diverges_does_not_get_another_agents_answers() -> None:
    replay = by_position(*agents_of("Ann", "Bob"))
    ann, bob = (agent(name, "run", "other", "more") for name in ("Ann", "Bob"))
    got = [said(replay.answer(live(body))) for body in (ann[0], bob[0], ann[1], ann[2], bob[1])]
    assert got == ["Ann 1", "Bob 1", "Ann 2", "miss: already played", "Bob 2"]


@pytest.mark.parametrize("url", ["https://api.example.com/v1/embeddings", "https://api.anthropic.com/v1/messages"])
def test_another_kind_of_request_is_a_miss(url: str) -> None:
    replay = by_position(*recorded_loop("red"))
    body = {"model": "m-1", "max_tokens": 9, "messages": [user("hi")], "input": "hi"}
    assert not isinstance(replay.answer(live(body, url=url)), Answer)


def test_a_stored_history_continues_after_the_answer_that_it_names() -> None:
    def answer(id: str, text: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"id": f"m_{id}", "type": "message", "role": "assistant", "status": "completed", "content": content}
        return {"id": id, "object": "response", "model": "m-1", "status": "completed", "output": [item]}

    def ask(text: str, after: str | None = None) -> dict[str, Any]:
        held = {"previous_response_id": after} if after else {}
        return {"model": "m-1", "input": [{"role": "user", "content": text}], **held}

    recorded = [
        exchange(1, ask("one"), answer("resp_1", "1"), url=RESPONSES),
        exchange(2, ask("two", "resp_1"), answer("resp_2", "2"), url=RESPONSES),
        exchange(3, ask("three", "resp_2"), answer("resp_3", "3"), url=RESPONSES),
    ]
    replay = by_position(*recorded)
    asked = [ask("uno"), ask("due", "resp_1"), ask("tre", "resp_2"), ask("quattro", "resp_9")]
    outcomes = [replay.answer(live(body, url=RESPONSES)) for body in asked]
    assert [o.reference.call if isinstance(o, Answer) else None for o in outcomes] == [1, 2, 3, None]


def test_a_subagent_does_not_get_its_parents_answers() -> None:
    """Both have the same model and no tools; the subagent can only begin after the call that started it."""
    task = '{"prompt": "count the red ones, please, and report"}'
    asked = chat(system("You lead."), user("How many?"))
    goes_on = chat(*asked["messages"], calls("task", task, "t1"), result("t1", "four"))
    inner = chat(system("You serve."), user("count the red ones, please, and report"))
    recorded = [
        exchange(1, asked, asks("task", task, "t1", "lead 1")),
        exchange(2, inner, "four"),
        exchange(3, goes_on, "lead 2"),
    ]
    replay = by_position(*recorded)
    lead = chat(system("You guide."), user("How much?"))
    then = chat(*lead["messages"], calls("task", task, "t1"), result("t1", "five"))
    sub = chat(system("You obey."), user("now count"))
    assert [said(replay.answer(live(body))) for body in (lead, sub, then)] == ["lead 1", "four", "lead 2"]


def test_an_unrecorded_conversation_takes_no_recorded_position() -> None:
    """A title that the recorded program never asked for must not get the answer of an agent that is still to come."""
    look = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    alone = by_position(*[exchange(1, chat(user("a"), tools=[look]), "one")])
    assert said(alone.answer(live(chat(system("Make a title."), user("x"))))).startswith("miss")
    assert said(alone.answer(live(chat(user("b"), tools=[look])))) == "one"
    replay = by_position(*agents_of("Ann", "Bob"))
    assert said(replay.answer(live(agent("Ann", "run")[0]))) == "Ann 1"
    title = {**chat(system("Make a title."), user("x"), max_tokens=9, stream=True), "model": "small"}
    assert said(replay.answer(live(title))).startswith("miss")
    assert said(replay.answer(live(agent("Bob", "run")[0]))) == "Bob 1"


def test_traits_of_recorded_calls_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[Any] = []
    value = Masker.value
    monkeypatch.setattr(Masker, "value", lambda self, one: masked.append(one) or value(self, one))
    replay = by_position(*(exchange(n, chat(system(f"You are {n}."), user(f"go {n}")), f"{n}") for n in range(1, 31)))
    for n in range(3):
        replay.answer(live(chat(system("You are new."), user(f"start {n}"))))
    assert masked.count(["You are 7."]) == 1
