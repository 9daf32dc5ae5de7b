"""The command that leaves the tape: another run from here on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from wiretape.debug.commands.table import Command
from wiretape.debug.replies import Reply, said
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger


def _fork(debugger: Debugger, rest: str) -> Reply:
    world, stop = debugger.world, debugger.selected
    number = world.number(stop)
    if world.known.fork is None:
        raise UsageError("this debugger was started without a way to a model: wiretape fork does it from the shell")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"fork {rest}: {error}: a quotation mark is open") from None
    if stop.tool is not None and "--result" in words and "--tool" not in words:
        words = ["--tool", str(_place(debugger, number, stop.tool)), *words]
    path = world.known.fork(number, words)
    return said(f"forked to {path}; diff {shlex.quote(path)} shows where the runs part", "good")


def _place(debugger: Debugger, number: int, tool: int) -> int:
    """Which of the client's tools, from 1: the provider's own have no result to change."""
    own = [use.index for use in debugger.line.uses(number) if use.call.kind != "server"]
    if tool not in own:
        raise UsageError("the provider runs this tool: its result is part of the answer; fork --edit answer")
    return own.index(tool) + 1


COMMANDS = (
    Command(
        "fork",
        "forking",
        "change one thing here, and go on from here live, on a tape of its own",
        _fork,
        (),
        "[OPTIONS] [-- CMD]",
        "The options are those of wiretape fork: --say and --edit answer change what the model said, --result what "
        "the tool here gives, --prompt, --set and --edit request what was asked; --model and --base-url say who goes "
        "on, -o names the new tape. This tape is never changed.",
        ('fork --say "Refused."', 'fork --result "17:30" --model NAME', "fork --edit answer"),
        terminal=True,
    ),
)
