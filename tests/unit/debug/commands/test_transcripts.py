"""Transcripts of debugger sessions, to the character. They contain every command.

WIRETAPE_REWRITE_GOLDEN=1 rewrites them.
"""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from tests.support.debugging import debugger, type_in
from tests.support.golden import check_screen

from wiretape.debug.annotations import CallFinding
from wiretape.debug.commands.registry import COMMANDS

TRANSCRIPTS: dict[str, tuple[str, list[str]]] = {
    "walk": (
        "subagents",
        ["step", "step", "backtrace", "up", "print agent", "down", "frame 1", "next", "reverse-next", "reverse-finish",
         "step", "", "finish", "when", "stepi 2", "stepi", "reverse-step", "reverse-stepi", "goto end",
         "reverse-continue", "reverse-step", "finish", "next 4", "goto 2", "show", "goto x3", "goto turn 1"],
    ),
    "breakpoints": (
        "subagents",
        ["break tool=schedule_event", "continue", "step", "finish", "reverse-continue", "break agent=schedule_event",
         "info breakpoints", "disable 1", "run", "continue", "tbreak call=4", "continue", "continue", "delete 2",
         "enable 1", "watch input", "break input>400 and cached<60%", "reverse-continue", "run", "continue", "continue",
         "break create_calendar_event", "break schedule_evnt", "delete", "info breakpoints"],
    ),
    "looking": (
        "subagents",
        ["print usage", "goto 4", "print usage.cached", "print cached / input", "print request.messages[-1]",
         "print response.blocks[0].text", "print $.request.messages[*].role", "print answer", "context", "context new",
         "context 2 full", "cache", "diff", "diff 2", "diff 1 2", "list", "goto 1.1", "print tool",
         "print arguments.request", "show full",
         "print wire.request.body.model", "print request.mesages", "print request.messages[9]"],
    ),
    "searching": (
        "subagents",
        ["search 产品评审会", "search", "reverse-search", "search OK: created", "search", "/refund",
         "search /OK:|为你创建/", "/OK:|refund/", "goto start", "search CREATE_calendar"],
    ),
    "keeping": (
        "subagents",
        ["goto 3", "checkpoint", "goto 1", "checkpoint", "info checkpoints", "restart 1", "note the time is wrong here",
         "show", "note", "note delete 1", "info notes", "delete checkpoint 2", "restart", "restart 2", "history"],
    ),
    "topics": (
        "subagents",
        ["show", "cache", "info tape", "info turns", "info agents", "info tools", "info findings", "goto 2",
         "info frame", "info", "info wrong"],
    ),
    "helping": (
        "subagents",
        ["help", "help break", "? print", "help names", "help expressions", "help nothing", "quit"],
    ),
    "clock": (
        "clock-thinking",
        ["watch system", "break drift", "continue", "diff", "break cache=broken", "reverse-continue",
         "diff subagents.tape 1", "list 1-2", "list -", "continue"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_session(name: str) -> None:
    tape, lines = TRANSCRIPTS[name]
    finding = CallFinding("lost-result", 2, "a tool call got no result", "warning", id="WT001", fix="send it back")
    text = type_in(debugger(tape, [finding]), *lines)
    assert all(cell_len(line) <= 80 for line in text.splitlines() if not line.startswith("(wiretape)"))
    assert not any(line.endswith(" ") for line in text.splitlines())
    check_screen(f"debug-{name}", text)


def test_every_command_is_in_a_session() -> None:
    typed = {line.split(" ")[0] for _, lines in TRANSCRIPTS.values() for line in lines}
    elsewhere = {command.name for command in COMMANDS.values() if command.terminal or command.group == "living"}
    assert COMMANDS.keys() - elsewhere <= typed
