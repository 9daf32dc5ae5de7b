"""A concurrent parent and subagent, replayed with other interleavings; and both tapes as one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.make_captures import CAPTURE_LIST, ROOT

from wiretape.cli.main import main
from wiretape.model.run import Link, Run
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.registry import decode

BY_NAME = {capture.name: capture for capture in CAPTURE_LIST}
FIRST, RESUMED = BY_NAME["subagent-control"], BY_NAME["subagent-control-resumed"]


def run_of(*tapes: Path) -> Run:
    return build_run(decode([exchange for tape in tapes for exchange in read_tape(tape).exchanges]))


def told(links: tuple[Link, ...], *kinds: str) -> list[tuple[str, int | None, int | None, str]]:
    return [(link.kind, link.from_call, link.to_call, link.certainty) for link in links if link.kind in kinds]


def test_every_message_is_the_next_turn_and_every_report_reaches_the_parent() -> None:
    run = run_of(FIRST.path)
    assert [(agent.name, agent.parent, agent.started_tool) for agent in run.agents] == [
        ("root", None, None),
        ("subagent", 0, "subagent"),
    ]
    assert [(turn.user, len(turn.steps)) for turn in run.turns] == [("请整理 1.4 版的发布说明。", 16)]
    assert run.side_calls == ()
    child = run.threads[1].calls
    ask = next(step.call.number for step in run.steps if len(step.call.tool_calls) == 2)
    turns = [n for n in child if run.steps[n - 1].cause.detail == "a message from its parent"]
    # Two messages queued together, delivered in order.
    messages = [(m.from_call, m.tool_index, m.to_call) for m in run.links if m.kind == "message" and m.to_call]
    assert messages == [(ask, 0, turns[0]), (ask, 1, turns[1])]
    assert [kind for kind, *_ in told(run.links, "report", "closing")] == [
        "report",
        "closing",
        "report",
        "closing",
        "closing",
    ]
    assert all(sure == "certain" for *_, sure in told(run.links, "message", "report", "closing"))


def test_an_undelivered_message_has_the_error_of_its_tool() -> None:
    (lost,) = [link for link in run_of(FIRST.path).links if link.kind == "message" and link.to_call is None]
    assert lost.to_agent is None
    assert lost.detail == "not delivered: error: there is no subagent editor-2; the message was not delivered"


def test_a_listed_model_request_is_compared_with_the_tape() -> None:
    listed = [link for link in run_of(FIRST.path).links if link.kind == "listed"]
    assert [link.to_agent for link in listed] == [1, None]
    assert (listed[0].detail or "").startswith("running; ")
    assert (listed[1].detail or "").endswith(" diagnostic: corrupt; no call of it is on the tape")


def test_the_second_tape_alone_identifies_its_subagent_by_the_resuming_message() -> None:
    run = run_of(RESUMED.path)
    assert [(agent.name, agent.parent) for agent in run.agents] == [("root", None), ("subagent", 0)]
    resumed = next(link for link in run.links if link.kind == "message")
    assert (resumed.to_call, resumed.detail) == (run.threads[1].calls[0], "its start is not on the tape")
    complete = next(link for link in run.links if link.kind == "listed")
    assert complete.detail == "complete; 0 of its calls had begun, 3 came later"


def test_both_tapes_as_one_have_two_threads_and_two_turns(tmp_path: Path) -> None:
    both = tmp_path / "both.tape"
    assert main(["merge", str(FIRST.path), str(RESUMED.path), "-o", str(both)]) == 0
    run = run_of(both)
    assert [len(thread.calls) for thread in run.threads] == [14, 10]
    assert [len(turn.steps) for turn in run.turns] == [16, 8]
    assert [agent.name for agent in run.agents] == ["root", "subagent"]
    assert not [link for link in run.links if link.detail == "its start is not on the tape"]


def replay(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    report = folder / "report.json"
    command = [sys.executable, "-m", "wiretape", "replay", str(FIRST.path), "--report", str(report), "--"]
    done = subprocess.run(
        [*command, sys.executable, "-m", FIRST.module, *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DEEPSEEK_BASE_URL"},
        timeout=120,
        check=True,
    )
    return json.loads(report.read_text(encoding="utf-8")), done.stdout


@pytest.mark.slow
def test_other_interleavings_and_another_id_miss_nothing(tmp_path: Path) -> None:
    orders = set()
    for jitter in ("1", "2", "3"):
        report, said = replay(tmp_path, "--jitter", jitter)
        assert (report["missed"], report["left_over"], report["strayed"]) == ([], [], [])
        assert "共改动 7 个文件" in said
        orders.add(tuple(played["answer"]["call"] for played in report["played"]))
        # The new id is learned at its first occurrence; later requests match exactly.
        assert [drift["where"] for drift in report["drifted"]] == ["messages[3].content"]
    assert len(orders) > 1
