from __future__ import annotations

from rich.console import Console
from tests.support.replaying import chat, exchange, live, session, system, user

from wiretape.matching.session import ReplaySession
from wiretape.views.replay.update import UpdateSummary, update_view


def shown(replay: ReplaySession, fresh: int, outcome: str = "updated hand.tape", written: bool = True) -> list[str]:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(update_view(UpdateSummary(replay.report(), replay.misses, fresh, outcome, written)))
    return captured.get().splitlines()


def played() -> ReplaySession:
    replay = session(*(exchange(n, chat(user(text)), "yes") for n, text in enumerate(("one", "two", "at 12:30:00"), 1)))
    for text in ("one", "zwei", "at 18:45:00", "one"):
        replay.answer(live(chat(user(text))))
    return replay


def test_it_says_what_was_kept_called_live_and_dropped() -> None:
    assert shown(played(), 3) == [
        "  kept        2 calls (1 exact, 1 masked)",
        "  called live 3 exchanges, recorded anew",
        "              POST /v1/chat/completions: never recorded",
        "              POST /v1/chat/completions: asked once more than it was recorded",
        "              (call 1)",
        "              1 of them not model calls, or WebSockets (always live)",
        "  dropped     call 2: not asked for any more",
        "updated hand.tape",
    ]


def test_where_nothing_was_written_nothing_was_dropped() -> None:
    lines = shown(played(), 2, "the program exited with 7: hand.tape is as it was", False)
    assert "  called live 2 exchanges, and not kept" in lines
    assert not any("dropped" in line for line in lines)


def test_where_nothing_was_asked_live_it_says_so() -> None:
    replay = session(exchange(1, chat(user("one")), "yes"))
    replay.answer(live(chat(user("one"))))
    assert shown(replay, 0, "as it was", False) == [
        "  kept        1 call (1 exact)",
        "  called live nothing",
        "as it was",
    ]


PROMPT = "You are a careful assistant who looks at the weather of many cities, and says what to wear. "


def test_of_many_calls_a_few_are_told() -> None:
    replay = session(exchange(1, chat(system(PROMPT + "Be brief."), user("one")), "yes"))
    for number in range(20):
        replay.answer(live(chat(system(PROMPT + f"Take {'x' * number} long."), user("one"))))
    assert "              and 14 calls more" in shown(replay, 20)


def test_what_changed_once_is_told_once_for_all_calls() -> None:
    yes = {"role": "assistant", "content": "yes"}
    said = [user("one"), yes, user("two"), yes, user("three")]
    replay = session(*(exchange(n, chat(system(PROMPT), *said[: 2 * n - 1]), "yes") for n in (1, 2, 3)))
    for n in (1, 2, 3):
        replay.answer(live(chat(system(PROMPT.replace("careful", "bold")), *said[: 2 * n - 1])))
    lines = shown(replay, 3)
    assert [line for line in lines if "differs from" in line] == [
        "              POST /v1/chat/completions: differs from call 1 at"
    ]
    assert "              and so 2 calls more" in lines
    assert "  dropped     calls 1, 2, 3: not asked for any more" in lines


def test_a_secret_stands_in_no_line_and_is_no_difference() -> None:
    key = "sk-live-8fJ2kQ9sLmX0aZ7tRwEv"
    replay = session(exchange(1, chat(system(PROMPT), user("use [redacted:authorization:2] and be kind")), "yes"))
    replay.answer(live(chat(system(PROMPT), user(f"use {key} and be brief"))))
    text = "\n".join(shown(replay, 1))
    assert key not in text
    assert "live      …d:authorization:2] and be brief" in text
