"""What the README shows is what a reader will see."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wiretape.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_commands_exist() -> None:
    named = set(re.findall(r"wiretape ([a-z]+)", README)) & set(re.findall(r"(?:\$|`)\s*wiretape ([a-z]+)", README))
    assert {"record", "replay", "stats", "show"} <= named <= set(COMMANDS)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    targets = set(phony[1].split())
    assert targets == set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+) ", README)) | set(re.findall(r"`make ([a-z-]+)`", README))
    assert {"demo", "test"} <= named <= targets


def test_stats_are_what_the_command_prints() -> None:
    block = re.search(r"\$ wiretape stats captures/subagents\.tape\n(.*?)\n\.\.\.\n```", README, re.DOTALL)
    assert block is not None
    printed = subprocess.run(
        [sys.executable, "-m", "wiretape", "stats", "captures/subagents.tape"],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={"COLUMNS": "80", "PATH": ""},
        check=True,
    ).stdout
    printed = re.sub(
        r" · ≈?\$\S+(?: \+\d+\?)?$", "", printed, flags=re.MULTILINE
    )  # costs: with the extra `prices` only
    assert printed.startswith(block[1])


@pytest.mark.slow
@pytest.mark.proxy
def test_the_recording_goes_as_it_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("mitmproxy", reason="recording needs mitmproxy (Python 3.12 or later)")
    block = re.search(r"```console\n\$ (python.*?record.*?[^\\])\n(.*?)```", README, re.DOTALL)
    assert block is not None
    done = subprocess.run(
        ["sh", "-c", f"{block[1]} 2>&1"],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={
            "COLUMNS": "80",
            "HOME": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "XDG_STATE_HOME": str(tmp_path / "state"),
        },
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    shown, printed = (re.sub(r"\d+ ms", "N ms", text).splitlines() for text in (block[2], done.stdout))
    assert sorted(printed) == sorted(shown)  # what the agent says and what wiretape says come by two pipes


@pytest.mark.parametrize("line", [line for line in README.splitlines() if line.startswith("$ ")])
def test_programs_exist(line: str) -> None:
    for module in re.findall(r"-m (wiretape\.\S+)", line):
        assert (ROOT / "src" / (module.replace(".", "/") + ".py")).is_file()
