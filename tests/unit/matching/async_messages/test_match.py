"""Asynchronous messages: a subagent's report may have another position in the history of each run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.replaying import calls, chat, exchange, live, reply, response, result, said, session, system, user

from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Miss
from wiretape.model.http import Exchange

AGENT, ANEW = "b3010bdf-5631-439b-9c7e-27d6acd91635", "7c388db4-3b31-4d77-b97a-518d4c8972b4"
PROMPT = [system("You lead."), user("survey the readme")]
CHILD = [system("You help."), user("CHILD: read README.md")]
FIRST, SECOND = "The readme says hello.", "README.md has 2 lines."


def asks(id: str, name: str = "wait", arguments: str = "{}") -> dict[str, Any]:
    return {
        **reply(""),
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": calls(name, arguments, id)}],
    }


def told(text: str, agent: str = AGENT) -> dict[str, Any]:
    return user(f"Background subagent {agent} reported:{text}")


def spawned(agent: str = AGENT) -> list[dict[str, Any]]:
    return [
        *PROMPT,
        calls("subagent", '{"prompt": "CHILD: read README.md"}', "call_1"),
        result("call_1", f"started subagent {agent}"),
    ]


def waited(n: int) -> list[dict[str, Any]]:
    return [calls("wait", "{}", f"call_{n}"), result(f"call_{n}", "(no output)")]


def child() -> list[Exchange]:
    """The subagent's calls: it reports twice, each time with a tool."""
    one = [*CHILD, calls("report", f'{{"output": "{FIRST}"}}', "call_a"), result("call_a", "accepted")]
    two = [*one, calls("report", f'{{"output": "{SECOND}"}}', "call_b"), result("call_b", "accepted")]
    return [
        exchange(50, chat(*CHILD), response(asks("call_a", "report", f'{{"output": "{FIRST}"}}'))),
        exchange(51, chat(*one), response(asks("call_b", "report", f'{{"output": "{SECOND}"}}'))),
        exchange(52, chat(*two), "I am done."),
    ]


def parent(*steps: tuple[list[dict[str, Any]], Any]) -> ReplaySession:
    """The parent's requests behind the subagent's start, with their answers."""
    made = [exchange(1, chat(*PROMPT), response(asks("call_1", "subagent", '{"prompt": "CHILD: read README.md"}')))]
    made += [exchange(n, chat(*spawned(), *more), answer) for n, (more, answer) in enumerate(steps, 2)]
    return session(*made, *child())


def told_at_the_end() -> ReplaySession:
    return parent(
        ([], response(asks("call_2"))),
        (waited(2), response(asks("call_3"))),
        ([*waited(2), *waited(3), told(FIRST), told(SECOND)], "All is done."),
    )


def places(outcome: object) -> list[str]:
    assert isinstance(outcome, Answer), outcome
    return [difference.where for difference in outcome.differences]


def test_a_report_that_arrives_earlier_than_recorded_is_drift() -> None:
    replay = told_at_the_end()
    replay.answer(live(chat(*PROMPT)))
    replay.answer(live(chat(*spawned())))
    early = replay.answer(live(chat(*spawned(), *waited(2), told(FIRST))))
    assert isinstance(early, Answer)
    assert (early.reference.call, early.tier.word) == (3, "masked")
    [moved] = early.differences
    assert moved.where == "messages[6] (moved)"
    assert moved.recorded == f"at messages[8], from call 4 on: Background subagent {AGENT} reported:{FIRST}"
    assert moved.live == f"at messages[6]: Background subagent {AGENT} reported:{FIRST}"
    last = replay.answer(live(chat(*spawned(), *waited(2), told(FIRST), *waited(3), told(SECOND))))
    assert said(last) == "All is done."
    assert places(last) == ["messages[6] (moved)"]  # where it stands now beside where it stood; the second is in place


def test_a_report_that_arrives_later_than_recorded_is_drift() -> None:
    replay = parent(
        ([], response(asks("call_2"))),
        ([*waited(2), told(FIRST)], response(asks("call_3"))),
        ([*waited(2), told(FIRST), *waited(3), told(SECOND)], "All is done."),
    )
    replay.answer(live(chat(*spawned())))
    late = replay.answer(live(chat(*spawned(), *waited(2))))
    assert places(late) == ["messages[6] (moved)"]
    assert isinstance(late, Answer)
    assert late.differences[0].live == "not yet"
    assert (
        said(replay.answer(live(chat(*spawned(), *waited(2), *waited(3), told(FIRST), told(SECOND))))) == "All is done."
    )


def test_the_live_id_of_an_agent_is_learned_from_its_report() -> None:
    replay = told_at_the_end()
    started = replay.answer(live(chat(*spawned(ANEW))))
    assert places(started) == ["messages[3].content"]
    early = replay.answer(live(chat(*spawned(ANEW), *waited(2), told(FIRST, ANEW))))
    assert places(early) == ["messages[6] (moved)"]
    assert said(replay.answer(live(chat(*spawned(ANEW), *waited(2), told(FIRST, ANEW), *waited(3))))) == "All is done."


@pytest.mark.parametrize(
    "changed",
    [
        [system("You lead."), user("survey the licence"), *spawned()[2:], *waited(2), told(FIRST)],
        [system("You follow."), *spawned()[1:], *waited(2), told(FIRST)],
        [*spawned(), *waited(2), told("The readme says goodbye.")],
        [*spawned(), *waited(2), told(FIRST), told(FIRST)],
        [*spawned(), *waited(2), told(FIRST), user("hurry up")],
        [*spawned(), calls("wait", "{}", "call_2"), result("call_2", "interrupted"), told(FIRST)],
    ],
    ids=["prompt", "instructions", "another report", "the same report twice", "a new message", "a tool's result"],
)
def test_anything_else_that_changed_is_a_miss(changed: list[dict[str, Any]]) -> None:
    replay = told_at_the_end()
    replay.answer(live(chat(*spawned())))
    assert said(replay.answer(live(chat(*changed)))) == "miss: diverged"


def test_a_miss_names_what_changed_and_not_what_moved() -> None:
    replay = told_at_the_end()
    changed = [calls("wait", "{}", "call_3"), result("call_3", "interrupted")]
    missed = replay.answer(live(chat(*spawned(), *waited(2), told(FIRST), *changed)))
    assert isinstance(missed, Miss)
    assert [apart.where for apart in missed.differences] == ["messages[8].content"]
    assert (
        "it diverges from call 4 at messages[8].content\n    recorded  (no output)\n    live      interrupted"
        in missed.message
    )


def test_other_settings_are_a_miss_whatever_moved() -> None:
    replay = told_at_the_end()
    assert said(replay.answer(live(chat(*spawned(), *waited(2), told(FIRST), temperature=0.5)))) == "miss: diverged"


def test_two_reports_at_once_get_the_answer_to_the_second_and_leave_the_first_over() -> None:
    """Recorded: it answered, heard one report, answered, heard the other. Live: both were there at once."""
    replay = parent(
        ([], "I wait."),
        ([reply_("I wait."), told(FIRST)], "I wait for the other."),
        ([reply_("I wait."), told(FIRST), reply_("I wait for the other."), told(SECOND)], "All is done."),
    )
    both = replay.answer(live(chat(*spawned(), told(FIRST), told(SECOND))))
    assert said(both) == "All is done."
    assert [left.call for left in replay.report().left_over if left.call and left.call < 5] == [1, 2, 3]


def test_reports_one_by_one_get_the_answer_to_both_again() -> None:
    """Recorded: both were there at once. Live: it was asked at each."""
    replay = parent(([told(FIRST), told(SECOND)], "All is done."))
    first = replay.answer(live(chat(*spawned())))
    second = replay.answer(live(chat(*spawned(), reply_("All is done."), told(FIRST))))
    third = replay.answer(
        live(chat(*spawned(), reply_("All is done."), told(FIRST), reply_("All is done."), told(SECOND)))
    )
    assert [said(outcome) for outcome in (first, second, third)] == ["All is done."] * 3
    assert [outcome.repeated for outcome in (first, second, third) if isinstance(outcome, Answer)] == [
        False,
        True,
        True,
    ]
    assert "its answer (given again)" in places(second)
    again = replay.answer(
        live(chat(*spawned(), reply_("All is done."), told(FIRST), reply_("All is done."), told(SECOND)))
    )
    assert said(again) == "miss: already played"


def test_an_answer_with_a_tool_call_is_never_repeated() -> None:
    replay = parent(([told(FIRST)], response(asks("call_2"))), ([told(FIRST), *waited(2)], "Done."))
    assert isinstance(replay.answer(live(chat(*spawned()))), Answer)
    assert said(replay.answer(live(chat(*spawned(), told(FIRST))))) == "miss: already played"


def test_reports_of_two_agents_in_another_order() -> None:
    replay = parent(
        ([], "I wait."),
        ([reply_("I wait."), told(FIRST)], "I wait for the other."),
        ([reply_("I wait."), told(FIRST), reply_("I wait for the other."), told(SECOND)], "All is done."),
    )
    assert said(replay.answer(live(chat(*spawned())))) == "I wait."
    assert said(replay.answer(live(chat(*spawned(), reply_("I wait."), told(SECOND))))) == "I wait for the other."
    history = [reply_("I wait."), told(SECOND), reply_("I wait for the other."), told(FIRST)]
    assert said(replay.answer(live(chat(*spawned(), *history)))) == "All is done."


def test_a_users_message_is_not_asynchronous() -> None:
    """A second prompt at another place is a changed program."""
    first = [*PROMPT, calls("wait", "{}", "call_1"), result("call_1", "ok")]
    replay = session(
        exchange(1, chat(*PROMPT), response(asks("call_1"))),
        exchange(2, chat(*first, user("and the licence?")), "Both are read."),
    )
    assert isinstance(replay.answer(live(chat(*PROMPT))), Answer)
    assert said(replay.answer(live(chat(*first)))) == "miss: diverged"


def test_only_the_tier_masked_looks_for_moved_messages() -> None:
    from wiretape.compare.difference import Tier

    replay = told_at_the_end()
    strict = ReplaySession(replay.tapes, type(replay.options)(tier=Tier.NORMALIZED))
    assert said(strict.answer(live(chat(*spawned(), *waited(2), told(FIRST))))) == "miss: diverged"


def reply_(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


# -- other formats --


def test_a_notification_beside_a_tools_result_is_a_block_that_moves() -> None:
    """Messages: harnesses put it into the user message that holds the results of tools."""
    url = "https://api.anthropic.com/v1/messages"
    note = {"type": "text", "text": "<task-notification><task-id>a1</task-id> B: two lines.</task-notification>"}

    def uses(n: int) -> dict[str, Any]:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": f"toolu_{n}", "name": "Wait", "input": {}}]}

    def results(n: int, *more: dict[str, Any]) -> dict[str, Any]:
        return {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "ok"}, *more],
        }

    def asked(*messages: dict[str, Any]) -> dict[str, Any]:
        return {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}, *messages]}

    def answer(n: int) -> Any:
        content = uses(n)["content"] if n < 3 else [{"type": "text", "text": "done"}]
        return response(
            {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": "claude", "content": content}
        )

    replay = session(
        exchange(1, asked(), answer(1), url),
        exchange(2, asked(uses(1), results(1)), answer(2), url),
        exchange(3, asked(uses(1), results(1), uses(2), results(2, note)), answer(3), url),
    )
    replay.answer(live(asked(), url))
    early = replay.answer(live(asked(uses(1), results(1, note)), url))
    assert isinstance(early, Answer)
    assert (early.reference.call, places(early)) == (2, ["messages[2] (moved)"])
    alone = {"role": "user", "content": [note]}  # and another client gives it a message of its own
    last = replay.answer(live(asked(uses(1), results(1), alone, uses(2), results(2)), url))
    assert isinstance(last, Answer)
    assert last.reference.call == 3


def test_an_item_of_an_agents_own_role_moves() -> None:
    """Responses: Codex passes on what agents say to one another as items whose role is `agent`."""
    url = "https://api.openai.com/v1/responses"
    said = {
        "type": "message",
        "role": "agent",
        "author": "/root/survey",
        "recipient": "/root",
        "content": [{"type": "input_text", "text": "Message Type: FINAL_ANSWER\nPayload: it says hello."}],
    }

    def called(n: int) -> list[dict[str, Any]]:
        call = {"type": "function_call", "call_id": f"call_{n}", "name": "wait_agent", "arguments": "{}"}
        return [call, {"type": "function_call_output", "call_id": f"call_{n}", "output": "completed"}]

    def asked(*items: dict[str, Any]) -> dict[str, Any]:
        start = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
        return {"model": "m", "input": [start, *items]}

    def answer(n: int) -> Any:
        item = {**called(n)[0], "id": f"fc_{n}", "status": "completed"}
        return response(
            {"id": f"resp_{n}", "object": "response", "status": "completed", "model": "m", "output": [item]}
        )

    replay = session(
        exchange(1, asked(), answer(1), url),
        exchange(2, asked(*called(1), said), answer(2), url),
        exchange(3, asked(*called(1), said, *called(2)), answer(3), url),
    )
    replay.answer(live(asked(), url))
    late = replay.answer(live(asked(*called(1)), url))
    assert isinstance(late, Answer)
    assert (late.reference.call, places(late)) == (2, ["input[3] (moved)"])
    last = replay.answer(live(asked(*called(1), *called(2), said), url))
    assert isinstance(last, Answer)
    assert last.reference.call == 3


# -- several that came at once are one text --


def note(task: str, result: str, remaining: int = 0) -> str:
    return (
        f"<task-notification>\n<task-id>{task}</task-id>\n<remaining>{remaining}</remaining>\n"
        f"<all-terminal>{str(not remaining).lower()}</all-terminal>\n<result>{result}</result>\n</task-notification>"
    )


READS, COUNTS = note("task_a", "It says hello.", 1), note("task_b", "It has two lines.")
BOTH = f"{READS}\n\n{COUNTS}"


def test_notifications_recorded_in_one_text_may_come_one_by_one() -> None:
    replay = parent(([], "I wait."), ([reply_("I wait."), user(BOTH)], "All is done."))
    assert said(replay.answer(live(chat(*spawned())))) == "I wait."
    first = replay.answer(live(chat(*spawned(), reply_("I wait."), user(READS))))
    assert said(first) == "All is done."
    history = [reply_("I wait."), user(READS), reply_("All is done."), user(COUNTS)]
    last = replay.answer(live(chat(*spawned(), *history)))
    assert said(last) == "All is done."
    assert isinstance(last, Answer)
    assert last.repeated
    moved = {difference.where: difference for difference in last.differences}["messages[7] (moved)"]
    assert moved.recorded == f"at messages[5], from call 3 on: {COUNTS}"
    assert moved.live == f"at messages[7]: {COUNTS}"
    assert not replay.misses


def test_notifications_recorded_one_by_one_may_come_in_one_text() -> None:
    apart = [reply_("I wait."), user(READS), reply_("One is read."), user(COUNTS)]
    replay = parent(([], "I wait."), (apart[:2], "One is read."), (apart, "All is done."))
    assert said(replay.answer(live(chat(*spawned())))) == "I wait."
    both = replay.answer(live(chat(*spawned(), reply_("I wait."), user(BOTH))))
    assert said(both) == "All is done."
    assert "messages[7] (moved)" not in places(both)
    assert "messages[5] (moved)" in places(both)


def test_one_text_and_two_messages_in_the_same_place_are_drift() -> None:
    replay = parent(([], "I wait."), ([reply_("I wait."), user(BOTH)], "All is done."))
    replay.answer(live(chat(*spawned())))
    last = replay.answer(live(chat(*spawned(), reply_("I wait."), user(READS), user(COUNTS))))
    assert said(last) == "All is done."
    assert places(last) == ["messages[6] (moved)"]


def test_the_number_of_remaining_notifications_may_differ_and_is_drift() -> None:
    replay = parent(([], "I wait."), ([reply_("I wait."), user(BOTH)], "All is done."))
    replay.answer(live(chat(*spawned())))
    turned = f"{note('task_b', 'It has two lines.', 1)}\n\n{note('task_a', 'It says hello.')}"
    last = replay.answer(live(chat(*spawned(), reply_("I wait."), user(turned))))
    assert said(last) == "All is done."
    assert "messages[5]" in "".join(places(last))


@pytest.mark.parametrize(
    "changed",
    [
        [user(READS), user(note("task_b", "It has three lines."))],
        [user(f"{READS}\n\n{note('task_b', 'It has three lines.')}")],
        [user(f"{BOTH}\n\n{COUNTS}")],
        [user(f"{BOTH}\n\nAnd now the licence.")],
        [user(f"hurry up\n\n{BOTH}")],
        [user(READS), user("<task-notification>It has two lines.")],
    ],
    ids=["one of two", "one in a text", "one more", "words behind", "words before", "a tag that is not closed"],
)
def test_another_text_beside_notifications_is_a_miss(changed: list[dict[str, Any]]) -> None:
    for recorded in ([user(BOTH)], [user(READS), user(COUNTS)]):
        replay = parent(([], "I wait."), ([reply_("I wait."), *recorded], "All is done."))
        replay.answer(live(chat(*spawned())))
        assert said(replay.answer(live(chat(*spawned(), reply_("I wait."), *changed)))) == "miss: diverged"


def test_a_miss_shows_the_notification_that_changed_alone() -> None:
    replay = parent(([], "I wait."), ([reply_("I wait."), user(BOTH)], "All is done."))
    replay.answer(live(chat(*spawned())))
    missed = replay.answer(
        live(chat(*spawned(), reply_("I wait."), user(READS), user(note("task_b", "It has three lines."))))
    )
    assert isinstance(missed, Miss)
    assert [apart.where for apart in missed.differences] == ["messages[6].content"]
    assert (missed.differences[0].recorded, missed.differences[0].live) == (COUNTS, COUNTS.replace("two", "three"))


def test_a_users_text_beside_a_notification_keeps_its_position() -> None:
    asked = user(f"and the licence?\n\n{READS}")
    replay = parent(([], "I wait."), ([reply_("I wait."), asked], "All is done."))
    replay.answer(live(chat(*spawned())))
    apart = [user(READS), reply_("I wait."), user("and the licence?")]
    assert said(replay.answer(live(chat(*spawned(), *apart)))) == "All is done."
    other = [reply_("I wait."), user(READS), user("and the author?")]
    assert said(replay.answer(live(chat(*spawned(), *other)))) == "miss: diverged"
