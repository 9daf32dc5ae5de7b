"""The line for each call while a replay runs: at once between an agent's calls, behind the answers under load."""

from __future__ import annotations

import threading
import time

import pytest
from tests.support.replaying import chat, exchange, live, session, user

from wiretape.cli import replay_report
from wiretape.cli.replay_report import LiveLines
from wiretape.matching.values import Answer
from wiretape.model.call import ModelCall

TAPE = [exchange(number, chat(user(f"{number}")), "ok") for number in range(1, 41)]


def numbers(printed: str) -> list[int]:
    return [int(line.split()[0]) for line in printed.splitlines()]


def test_between_the_calls_of_an_agent_each_line_is_printed_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_report, "_APART", 0)
    replay = session(*TAPE)
    with LiveLines(replay) as lines:
        for number in (1, 2, 3):
            lines.show(replay.answer(live(chat(user(f"{number}")))))
            assert numbers(capsys.readouterr().err) == [number]
    assert capsys.readouterr().err == ""


def test_under_load_lines_follow_in_order_and_none_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_report, "_APART", 60)
    replay = session(*TAPE)
    with LiveLines(replay) as lines:
        for number in range(1, 41):
            lines.show(replay.answer(live(chat(user(f"{number}")))))
    assert numbers(capsys.readouterr().err) == list(range(1, 41))


def test_lines_catch_up_when_nobody_asks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_report, "_APART", 60)
    replay, printed, until = session(*TAPE), "", time.monotonic() + 30
    with LiveLines(replay) as lines:
        for number in range(1, 11):
            lines.show(replay.answer(live(chat(user(f"{number}")))))
        while len(numbers(printed)) < 10 and time.monotonic() < until:
            time.sleep(0.01)
            printed += capsys.readouterr().err
    assert numbers(printed) == list(range(1, 11))


def test_no_thread_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_report, "_APART", 60)
    replay = session(*TAPE)
    with LiveLines(replay) as lines:
        lines.show(replay.answer(live(chat(user("1")))))
        lines.show(replay.answer(live(chat(user("2")))))
    assert "wiretape-lines" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("verbose", "told"), [(False, ""), (True, "stray  GET api.example.com/telemetry\n")])
def test_what_is_neither_call_nor_miss_is_told_only_when_asked(
    verbose: bool, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = session(*TAPE)
    with LiveLines(replay, verbose) as lines:
        lines.show(replay.answer(live(None, "https://api.example.com/telemetry", "GET")))
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("apart", [0, 60], ids=["at once", "behind"])
def test_a_line_that_cannot_be_made_is_said_and_the_others_are_printed(
    apart: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_report, "_APART", apart)
    replay = session(*TAPE)
    call_of = replay.call_of

    def broken(answer: Answer) -> ModelCall | None:
        if answer.reference.call == 2:
            raise KeyError("odd\n")
        return call_of(answer)

    monkeypatch.setattr(replay, "call_of", broken)
    with LiveLines(replay) as lines:
        for number in (1, 2, 3):
            lines.show(replay.answer(live(chat(user(f"{number}")))))
    first, second, third = capsys.readouterr().err.splitlines()
    assert (first.split()[0], third.split()[0]) == ("1", "3")
    assert second == "a line could not be shown: KeyError: 'odd\\n'"
