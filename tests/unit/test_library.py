"""`wiretape.open`: a tape's analysis in Python equals what the commands print."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import wiretape
from wiretape.cli.main import main
from wiretape.errors import TapeDamaged, UsageError

ROOT = Path(__file__).parents[2]
CAPTURES = sorted((ROOT / "captures").glob("*.tape"))
AGENTS = ROOT / "captures" / "subagents.tape"


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Printed:
    """The JSON that a command prints."""

    def __init__(self, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        self._captured = capfdbinary

    def __call__(self, *words: str | Path) -> Any:
        main([str(word) for word in words])
        return json.loads(self._captured.readouterr().out)


@pytest.fixture
def printed(capfdbinary: pytest.CaptureFixture[bytes]) -> Printed:
    return Printed(capfdbinary)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_numbers_are_those_that_the_commands_print(path: Path, printed: Printed) -> None:
    tape = wiretape.open(path)
    stats = tape.stats().model_dump(mode="json")
    assert stats == printed("stats", "--json", path)
    steps = [step for turn in stats["turns"] for step in turn["steps"]] + stats["side_calls"]
    assert [call.model_dump(mode="json") for call in tape.calls] == sorted(steps, key=lambda step: step["call"])
    assert tape.cache().model_dump(mode="json") == printed("cache", "--json", path)
    linted = printed("lint", "--json", path)
    assert [found.model_dump(mode="json") for found in tape.lint()] == linted["tapes"][0]["findings"]


def test_diff_is_what_the_command_prints(printed: Printed) -> None:
    other = ROOT / "captures" / "weather-one-tool.tape"
    shown = printed("diff", "--json", AGENTS, other)
    for there in (other, str(other), wiretape.open(other)):
        compared = wiretape.open(AGENTS).diff(there)
        assert {"a": str(AGENTS), "b": str(other), **compared.model_dump(mode="json")} == shown


def test_a_call_has_its_place_and_its_content() -> None:
    tape = wiretape.open(AGENTS)
    first = tape.calls[0]
    assert (first.number, first.turn) == (1, 1)
    assert first.request.messages[0].role == "system"
    assert first.response is not None
    assert first.text is None
    assert tape.calls[-1].text
    assert tape.call(2) is tape.calls[1]
    with pytest.raises(IndexError, match="has no call 99"):
        tape.call(99)


def test_find_takes_the_conditions_of_breakpoints() -> None:
    tape = wiretape.open(AGENTS)
    assert [call.number for call in tape.find("call = 2")] == [2]
    by_agent = [call.number for call in tape.calls if call.agent == tape.agents[1].name]
    assert [call.number for call in tape.find(f"agent = '{tape.agents[1].name}'")] == by_agent
    asking = [call.number for call in tape.calls if call.tool_calls]
    assert [call.number for call in tape.find("tool = *")] == asking
    assert tape.find("input > 100M") == []
    with pytest.raises(UsageError):
        tape.find("input >")


def test_everything_prints_as_one_readable_line() -> None:
    tape = wiretape.open(AGENTS)
    assert repr(tape) == f"<Tape {AGENTS}: 4 exchanges, 4 calls, 1 turn, 2 agents>"
    call = tape.calls[0]
    usage = call.usage
    assert usage is not None
    counts = f"{usage.input:,} input, {usage.output:,} output"
    assert repr(call) == f"<Call 1 by root: {call.model}, {counts}; {call.why}>"
    assert repr(tape.turns[0]).startswith(f"<Turn 1: 4 model calls, {tape.turns[0].tool_calls} tool calls, ")
    assert re.fullmatch(r"<Agent .*: 2 model calls, 1 tool call, .*; started by call 1>", repr(tape.agents[1]))
    assert repr(tape.exchanges[0]) == "<Exchange x1: POST http://127.0.0.1:8137/responses, 200, complete>"


def test_results_are_computed_once() -> None:
    tape = wiretape.open(AGENTS)
    assert tape.calls is tape.calls
    assert tape.stats() is tape.stats()
    assert tape.cache() is tape.cache()


def test_a_damaged_tape_is_an_error_unless_a_part_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    shutil.copy(AGENTS, path)
    documents = path.read_text(encoding="utf-8").split("\n\n")
    documents[2] = documents[2].replace(":", "", 1)
    path.write_text("\n\n".join(documents), encoding="utf-8")
    with pytest.raises(TapeDamaged):
        wiretape.open(path)
    tape = wiretape.open(path, partial=True)
    assert len(tape.damage) == 1
    assert tape.incomplete
    assert repr(tape).endswith("; incomplete>")


def test_read_tape_is_another_name_of_open() -> None:
    assert wiretape.read_tape is wiretape.open
    assert isinstance(wiretape.read_tape(str(AGENTS)), wiretape.Tape)


def test_the_example_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert examples
    for example in examples:
        exec(example, {})
