from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.golden import check_screen

from wiretape.cli.main import main

CAPTURES = Path(__file__).parents[4] / "captures"


@pytest.mark.parametrize("columns", [50, 80])
def test_the_tools_of_a_tape(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["tools", str(CAPTURES / "weather-one-tool.tape")]) == 0
    check_screen(f"cli-tools-{columns}", capsys.readouterr().out)


def test_a_parent_and_its_subagent_keep_their_contexts_append_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", str(CAPTURES / "subagent-control.tape"), "--json"]) == 0
    tools = {one["tool"]: one for one in json.loads(capsys.readouterr().out)["tools"]}
    for name in ("subagent", "send_message", "list_agents", "report"):
        assert (tools[name]["append_only"], tools[name]["schema_stable"]) == (True, True)


def test_a_tape_without_tools(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", str(CAPTURES / "introduction.tape")]) == 0
    assert capsys.readouterr().out == "No tools on this tape.\n"
