"""Equal requests of several agents: each gets the answers of one recorded thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.replaying import calls, chat, exchange, live, reply, response, result, said, session, user

from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer
from wiretape.model.http import Exchange, Headers

_POLLS = 3


def poll(agent: str, step: int) -> list[dict[str, Any]]:
    """The history of an agent before a step: the same for all agents, ids included."""
    history = [user("wait until it is done")]
    for n in range(step):
        history += [calls("poll", "{}", f"call_{n}"), result(f"call_{n}", "pending")]
    return history


def asks_again(step: int, agent: str) -> Any:
    message = {**calls("poll", "{}", f"call_{step}"), "content": f"{agent} waits"}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return response({**reply(""), "choices": [choice]})


def of(exchange: Exchange, session: str) -> Exchange:
    headers = Headers([*exchange.request.headers.pairs(), ("x-session-id", session)])
    return replace(exchange, request=replace(exchange.request, headers=headers))


def two_agents() -> ReplaySession:
    """Both poll in turn with the same texts; only the client's headers tell them apart."""
    made: list[Exchange] = []
    for step in range(_POLLS):
        for agent in ("a", "b"):
            made.append(of(exchange(len(made) + 1, chat(*poll(agent, step)), f"{agent}{step}"), f"recorded-{agent}"))
    return session(*made)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from("xy"), min_size=2 * _POLLS, max_size=2 * _POLLS).map("".join))
def test_each_of_two_equal_agents_gets_one_threads_answers(order: str) -> None:
    """Law 8: whichever asks first, and however often before the other."""
    replay = two_agents()
    heard: dict[str, list[str]] = {"x": [], "y": []}
    for agent in order:
        step = len(heard[agent])
        if step == _POLLS:
            continue
        heard[agent].append(said(replay.answer(live(chat(*poll(agent, step)), x_session_id=f"live-{agent}"))))
    for answers in heard.values():
        assert len({answer[0] for answer in answers}) <= 1, heard
        assert [answer[1] for answer in answers] == [str(n) for n in range(len(answers))]


def test_without_evidence_the_earliest_goes_first() -> None:
    replay = two_agents()
    assert [said(replay.answer(live(chat(*poll("", 0))))) for _ in range(2)] == ["a0", "b0"]


def test_the_answer_that_a_request_names_tells_equal_threads_apart() -> None:
    """Stored histories: only the id of the previous answer identifies the thread."""
    url = "https://api.openai.com/v1/responses"

    def asked(text: str, before: str | None = None) -> dict[str, Any]:
        named = {"previous_response_id": before} if before else {}
        return {"model": "m", "input": text, "prompt_cache_key": "k", **named}

    def answered(id: str, text: str) -> Any:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"type": "message", "id": f"msg_{id}", "role": "assistant", "status": "completed", "content": content}
        return response({"id": id, "object": "response", "status": "completed", "model": "m", "output": [item]})

    replay = session(
        exchange(1, asked("task a"), answered("resp_a", "a0"), url),
        exchange(2, asked("task b"), answered("resp_b", "b0"), url),
        exchange(3, asked("go on", "resp_a"), answered("resp_a1", "a1"), url),
        exchange(4, asked("go on", "resp_b"), answered("resp_b1", "b1"), url),
    )
    changed = {"prompt_cache_key": "another"}  # so that nothing is exactly alike

    def names(body: dict[str, Any]) -> int:
        outcome = replay.answer(live({**body, **changed}, url))
        assert isinstance(outcome, Answer), outcome
        return outcome.reference.exchange

    assert names(asked("task a")) == 1
    assert names(asked("task b")) == 2
    assert names(asked("go on", "resp_b")) == 4
    assert names(asked("go on", "resp_a")) == 3
