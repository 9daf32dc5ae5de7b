"""What is said before a program runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretape.cli.main import main
from wiretape.cli.programs import say_env_leaks

SAID = (
    "ignores proxy variables (22.21 reads them) (use a newer Node, or a client that reads a base URL): "
    "its requests to other addresses go to the real host"
)


@pytest.mark.parametrize(
    ("version", "told"), [("v20.20.2", f"wiretape: the fetch of Node 20.20.2 {SAID}, unrecorded\n"), ("v22.21.0", "")]
)
def test_an_old_node_is_named_before_it_runs(
    version: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho {version}\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    say_env_leaks(["node", "agent.mjs"], "unrecorded")
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("argv", [[], ["python", "node"], ["node-of-mine"]])
def test_nothing_is_asked_of_other_programs(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    say_env_leaks(argv, "unrecorded")
    assert capsys.readouterr().err == ""


def test_a_pace_that_is_no_number_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "no.tape", "--pace", "nan", "--", "true"]) == 2
    assert "--pace needs a number" in capsys.readouterr().err
