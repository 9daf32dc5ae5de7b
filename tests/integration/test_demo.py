"""`wiretape demo`, with the recorder and on a machine without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wiretape.cli.main import main
from wiretape.cli.run import demo
from wiretape.tape.reading.reader import read_tape

ANSWER = "已经帮你安排好了：明天（2025-06-11）下午 3 点和张三的产品评审会，时长 1 小时。"


@pytest.mark.slow
@pytest.mark.proxy
def test_demo_records_replays_and_explains(tmp_path: Path) -> None:
    pytest.importorskip("mitmproxy", reason="recording needs mitmproxy (Python 3.12 or later)")
    tape = tmp_path / "demo.tape"
    done = subprocess.run(
        [sys.executable, "-m", "wiretape", "demo", "-o", str(tape)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "80"},
        timeout=120,  # it takes about five seconds; a busy machine may take a minute
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(ANSWER) == 2  # recorded, replayed
    assert "connection refused" in done.stdout
    assert "4 exact" in done.stdout
    assert "The agent printed the same text" in done.stdout
    assert "4 calls · 2 tool calls · 2 agents" in done.stdout
    assert "\x1b" not in done.stdout
    assert len(read_tape(tape).exchanges) == 4


@pytest.mark.slow
def test_demo_without_the_recorder_replays_the_packaged_capture_with_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_can_record", lambda: False)
    tape = tmp_path / "new" / "demo.tape"
    assert main(["demo", "-o", str(tape)]) == 0
    said = capfd.readouterr().out
    assert "recording needs mitmproxy" in said
    assert said.count(ANSWER) == 1
    assert "4 calls · 2 tool calls · 2 agents" in said
    assert "record -o" not in said
    assert len(read_tape(tape).exchanges) == 4


def test_demo_leaves_an_existing_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.tape"
    mine.write_text("mine", encoding="utf-8")
    assert main(["demo", "-o", str(mine)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert mine.read_text(encoding="utf-8") == "mine"


def test_demo_stops_when_a_step_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_can_record", lambda: False)
    monkeypatch.setattr(demo, "AGENT", "wiretape.demo.introduction")  # not what the capture holds
    assert main(["demo", "-o", str(tmp_path / "demo.tape")]) == 1
    said = capfd.readouterr()
    assert "`wiretape replay` ended with exit code" in said.err
    assert "4  explain" not in said.out
