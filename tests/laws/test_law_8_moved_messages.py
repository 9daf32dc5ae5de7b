"""Law 8: the parent's run replays whenever its subagent's reports arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.replaying import calls, chat, exchange, live, reply, response, result, said, session, system, user

from wiretape.matching.session import ReplaySession
from wiretape.model.http import Exchange

RECORDED, LIVE = "b3010bdf-5631-439b-9c7e-27d6acd91635", "7c388db4-3b31-4d77-b97a-518d4c8972b4"
_STEPS = 4  # calls of the parent after the one that starts the subagent

# For each report, before which of the parent's calls it comes.
arrivals = st.lists(st.integers(1, _STEPS), min_size=1, max_size=4).map(sorted)


def asked(id: str, name: str, arguments: str) -> Any:
    message = {"index": 0, "finish_reason": "tool_calls", "message": calls(name, arguments, id)}
    return response({**reply(""), "choices": [message]})


def requests(agent: str, when: Sequence[int]) -> list[list[dict[str, Any]]]:
    """The parent's requests, one for each step; report n comes before call `when[n]`."""
    history = [system("You lead."), user("go")]
    made = [list(history)]
    for step in range(1, _STEPS + 1):
        name = "subagent" if step == 1 else "wait"
        text = f"started subagent {agent}" if step == 1 else f"waited {step}"
        history += [calls(name, "{}", f"call_{step}"), result(f"call_{step}", text)]
        history += [user(f"subagent {agent} reported: part {n} is read") for n, at in enumerate(when) if at == step]
        made.append(list(history))
    return made


def child(reports: int) -> list[Exchange]:
    history = [system("You help."), user("read all parts")]
    made = []
    for n in range(reports):
        made.append(
            exchange(50 + n, chat(*history), asked(f"call_r{n}", "report", f'{{"output": "part {n} is read"}}'))
        )
        history += [
            calls("report", f'{{"output": "part {n} is read"}}', f"call_r{n}"),
            result(f"call_r{n}", "accepted"),
        ]
    return [*made, exchange(50 + reports, chat(*history), "read")]


def recording(when: Sequence[int]) -> ReplaySession:
    made = [
        exchange(n, chat(*body), asked(f"call_{n}", "subagent" if n == 1 else "wait", "{}") if n <= _STEPS else "done")
        for n, body in enumerate(requests(RECORDED, when), 1)
    ]
    return session(*made, *child(len(when)))


@settings(max_examples=25, deadline=None)
@given(st.data(), arrivals)
def test_reports_may_come_at_any_call_of_their_parent(data: st.DataObject, was: list[int]) -> None:
    now = sorted(data.draw(st.lists(st.integers(1, _STEPS), min_size=len(was), max_size=len(was))))
    replay = recording(was)
    answered = [replay.answer(live(chat(*body))) for body in requests(LIVE, now)]
    assert not replay.misses, replay.misses[0].message
    assert [outcome.reference.call for outcome in answered] == list(range(1, _STEPS + 2))  # type: ignore[union-attr]
    assert said(answered[-1]) == "done"
    moved = [drift.where for drift in replay.ledger.drifts if drift.where.endswith("(moved)")]
    assert bool(moved) == (was != now)


def notified(agent: str, when: Sequence[int], joined: bool) -> list[list[dict[str, Any]]]:
    """The same, told in a harness's tags; those that come before the same call are one text if `joined`."""
    made = []
    for body in requests(agent, when):
        history: list[dict[str, Any]] = []
        for message in body:
            if message["role"] != "user" or not message["content"].startswith("subagent"):
                history.append(message)
                continue
            text = f"<task-notification>{message['content']}</task-notification>"
            if joined and history[-1]["role"] == "user":
                history[-1] = user(f"{history[-1]['content']}\n\n{text}")
            else:
                history.append(user(text))
        made.append(history)
    return made


@settings(max_examples=25, deadline=None)
@given(st.data(), arrivals, st.booleans(), st.booleans())
def test_notifications_may_come_in_one_text_or_one_by_one(
    data: st.DataObject, was: list[int], joined: bool, joined_live: bool
) -> None:
    now = sorted(data.draw(st.lists(st.integers(1, _STEPS), min_size=len(was), max_size=len(was))))
    replay = session(
        *(
            exchange(
                n, chat(*body), asked(f"call_{n}", "subagent" if n == 1 else "wait", "{}") if n <= _STEPS else "done"
            )
            for n, body in enumerate(notified(RECORDED, was, joined), 1)
        )
    )
    bodies = notified(LIVE, now, joined_live)
    answered = [replay.answer(live(chat(*body))) for body in bodies]
    assert not replay.misses, replay.misses[0].message
    assert [outcome.reference.call for outcome in answered] == list(range(1, _STEPS + 2))  # type: ignore[union-attr]
    moved = [drift.where for drift in replay.ledger.drifts if drift.where.endswith("(moved)")]
    at_once = len(set(was)) < len(was)
    assert bool(moved) == (was != now or (at_once and joined != joined_live))


@settings(max_examples=10, deadline=None)
@given(arrivals, st.booleans(), st.booleans())
def test_a_notification_with_another_text_is_a_miss(was: list[int], joined: bool, joined_live: bool) -> None:
    recorded = notified(RECORDED, was, joined)
    replay = session(
        *(exchange(n, chat(*body), asked(f"call_{n}", "wait", "{}")) for n, body in enumerate(recorded, 1))
    )
    *before, last = notified(LIVE, [_STEPS] * len(was), joined_live)
    for body in before:
        assert said(replay.answer(live(chat(*body)))) is None
    spoilt = [{**last[-1], "content": last[-1]["content"].replace("is read<", "is lost<", 1)}]
    assert said(replay.answer(live(chat(*last[:-1], *spoilt)))) == "miss: diverged"


@settings(max_examples=10, deadline=None)
@given(arrivals, st.integers(1, _STEPS), st.sampled_from(["waited never", "started another"]))
def test_a_changed_result_is_a_miss_at_any_position_of_reports(was: list[int], step: int, changed: str) -> None:
    replay = recording(was)
    bodies = requests(LIVE, [_STEPS] * len(was))
    for body in bodies[:step]:
        assert said(replay.answer(live(chat(*body)))) is None
    spoilt = [{**one, "content": changed} if one.get("tool_call_id") == f"call_{step}" else one for one in bodies[step]]
    assert said(replay.answer(live(chat(*spoilt)))) == "miss: diverged"
