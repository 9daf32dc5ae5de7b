"""Law 9 for commands: the work of a command is proportional to the tape, for tapes of any shape.

Work is counted in calls of functions (Python's and C's), so a busy machine changes nothing. `tests.torture.growth`
measures every command on every shape in CPU time, where loops inside C are seen, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.costs import COMMANDS, DEBUGGER, EXEMPT, PATHS, RESENDING, calls, growth_of_input
from tests.support.large import SHAPES, write_pair

from wiretape.cli.main import COMMANDS as EVERY_COMMAND
from wiretape.debug.commands.registry import COMMANDS as DEBUGGER_COMMANDS
from wiretape.debug.commands.registry import find

FEW = 40
FEW_EQUAL = 80  # of calls before which a fixed number of equal ones is looked at
FEW_RESENDING = 12  # of the resent history
# Each of these is run on all shapes, the first two also on long texts; the others on one shape.
ON_ALL = ("show TAPE 1 --full", "diff TAPE OTHER --all", "lint TAPE --json", "replay changed")
LIKE_OTHERS = ("growing_calls", "turns", "subagents", "unfinished_calls")  # to a replay, and long
PAIRS = [(shape, path) for shape in SHAPES for path in (ON_ALL[:2] if shape.startswith("text_") else ON_ALL)]
PAIRS = [pair for pair in PAIRS if pair not in {(shape, "replay changed") for shape in LIKE_OTHERS}]
PAIRS += [("websocket_calls", "verify TAPE --against TAPE")]
PAIRS += [("parallel_tool_calls", path) for path in PATHS if path not in ON_ALL]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no settings of this project


@pytest.mark.parametrize(("shape", "path"), PAIRS, ids=lambda one: one)
def test_four_times_the_tape_costs_at_most_six_times_the_work(shape: str, path: str, tmp_path: Path) -> None:
    run = PATHS[path]
    run(write_pair(tmp_path / "loads", shape, 4))  # modules are imported and caches are filled
    n = FEW_RESENDING if shape in RESENDING else FEW_EQUAL if shape == "equal_calls" else FEW
    few, many = (write_pair(tmp_path / str(size), shape, size) for size in (n, 4 * n))
    worked = [calls(lambda tape=tape: run(tape)) for tape in (few, many)]  # type: ignore[misc]
    # Quadratic work would be 16 times as much.
    assert worked[1] < 1.5 * growth_of_input(shape, path, 4) * worked[0]


def test_every_command_is_measured_or_exempt_for_a_reason() -> None:
    assert {*COMMANDS, "debug", "replay", "import", "merge-driver"} | set(EXEMPT) == set(EVERY_COMMAND)
    assert all(path in PATHS for path in ON_ALL)


def test_every_command_of_the_debugger_is_measured() -> None:
    typed = {find(line.strip())[0].name for batch in DEBUGGER for line in batch.split(";")}
    of_a_program = {name for name, command in DEBUGGER_COMMANDS.items() if command.group in ("living", "forking")}
    assert set(DEBUGGER_COMMANDS) - typed - of_a_program == {"up", "down", "quit"}
