from __future__ import annotations

import json
from pathlib import Path

import pytest

from wiretape.cli.main import main

WEATHER = Path(__file__).parents[4] / "captures" / "weather-one-tool.tape"


def test_the_clock_of_a_system_prompt_is_named_with_both_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", str(WEATHER), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdicts"] == {"first": 1, "broken": 1, "unknown": 1}
    (found,) = report["calls"][1]["breaks"]
    assert (found["kind"], found["path"], found["character"]) == ("clock", "messages[0].content", 19)
    assert (found["before"], found["after"]) == ("15时05分30秒", "15时23分47秒")


def test_one_call_shows_both_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", str(WEATHER), "--call", "2"]) == 0
    screen = capsys.readouterr().out
    assert "call 1  今天是 2026年02月28日 15时▸05分30秒" in screen
    assert "call 2  今天是 2026年02月28日 15时▸23分47秒" in screen


def test_one_call_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", str(WEATHER), "--call", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "unknown"


def test_a_call_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", str(WEATHER), "--call", "9"]) == 2
    assert "has no call 9 with a prompt; its prompts are those of calls 1, 2, 3" in capsys.readouterr().err


def test_what_was_missed_adds_up_and_the_mend_promises_only_what_stands_behind_the_break(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiretape.adapters.prices.price_list", lambda started=None: None)  # prices change
    assert main(["cache", str(WEATHER), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    call = report["calls"][1]
    assert (call["predicted"], call["reported"], call["lost_tokens"]) == (805, 0, 868)
    assert (call["lost_before"], call["lost_behind"], call["why_before"]) == (805, 63, "no rule is known")
    assert (report["lost_tokens"], report["lost_before"]) == (868, 805)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["cache", str(WEATHER)]) == 0
    screen = capsys.readouterr().out
    assert "868 tokens that the cache would have served\n" in screen
    assert "63 of them behind the break: what the mend gains\n" in screen
    assert "805 in front of it: predicted and not served; no rule is known\n" in screen
    assert "missed 868 tokens: 805 in front of breaks, 63 elsewhere\n" in screen


def test_a_terminal_too_narrow_for_the_bars_has_no_legend_of_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["cache", str(WEATHER)]) == 0
    screen = capsys.readouterr().out
    assert not set("█▒░┄") & set(screen)
    assert screen.endswith("\n\n~ estimated\n")
