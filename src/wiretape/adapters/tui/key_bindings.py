"""The keys of the screen and its help page. A key types a command, or acts on the screen itself."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wiretape.debug.commands.registry import COMMANDS


@dataclass(frozen=True, slots=True)
class Key:
    """`keys`: textual's names; `shown`: as the help page prints them. It runs `command`, or the screen's `action`."""

    keys: str
    shown: str
    help: str
    command: str = ""
    action: str = ""


MOVING = (
    Key("n", "n", "this agent's next call, over subagents", "next"),
    Key("s", "s", "the next call, into subagents", "step"),
    Key("i", "i", "the next stop: request, answer, tool", "stepi"),
    Key("f", "f", "finish: to where the caller gets the result", "finish"),
    Key("c", "c", "continue to the next breakpoint", "continue"),
    Key("N,p", "N or p", "back to this agent's previous call", "reverse-next"),
    Key("S", "S", "back to the previous call", "reverse-step"),
    Key("I", "I", "back to the previous stop", "reverse-stepi"),
    Key("F", "F", "back to the tool call that started this agent", "reverse-finish"),
    Key("C", "C", "back to the previous breakpoint", "reverse-continue"),
    Key("home", "Home", "in the tree: the start of the tape", "goto start"),
    Key("end", "End", "in the tree: the end of the tape", "goto end"),
)
LOOKING = (
    Key("x", "x", "context: all that the model saw", "context"),
    Key("k", "k", "cache: what it served, and why not more", "cache"),
    Key("d", "d", "what changed since the previous call", "diff"),
    Key("v", "v", "the current stop in full", "show full"),
    Key("t", "t", "who called whom", "backtrace"),
    Key("w", "w", "lint findings", "info findings"),
    Key("a", "a", "play the answer as it streamed", action="play"),
    Key("slash", "/", "search in requests and answers", action="type('search ')"),
    Key("right_square_bracket", "]", "the next match", "search"),
    Key("left_square_bracket", "[", "the previous match", "reverse-search"),
    Key("escape", "Esc", "back to the current stop", action="show_step"),
)
STOPPING = (
    Key("b", "b", "set or clear a breakpoint at this call", action="toggle_break"),
    Key("B", "B", "break on more: a tool, a text, tokens …", action="type('break ')"),
    Key("m", "m", "checkpoint: mark this stop", "checkpoint"),
    Key("e", "e", "write a note here", action="type('note ')"),
    Key("g", "g", "go to a call", action="type('goto ')"),
    Key("u", "u", "up to the caller's frame", "up"),
    Key("o", "o", "down again", "down"),
)
LIVING = (
    Key("r", "r", "send the held call its answer", "serve"),
    Key("l", "l", "send it to the real model", "live"),
    Key("E", "E", "edit its answer", "edit answer"),
    Key("R", "R", "edit its request", "edit request"),
    Key("y", "y", "accept the nearest answer for a miss", "accept"),
    Key("X", "X", "inject a fault", action="type('inject ')"),
    Key("D", "D", "drop it: no answer", "drop"),
    Key("h", "h", "which calls are held", "held"),
    Key("O", "O", "what the program printed", "output"),
)
SCREEN = (
    Key("colon", ":", "type a command", action="type('')"),
    Key("up,down", "↑ ↓ Enter", "go to a node of the tree"),
    Key("left,right", "← →", "fold, unfold"),
    Key("pageup,pagedown", "PgUp PgDn", "scroll the right side"),
    Key("less_than_sign,greater_than_sign", "< >", "a wider right side, a wider tree"),
    Key("tab", "Tab", "tree, right side, command line"),
    Key("question_mark", "?", "this page", action="help"),
    Key("q", "q", "leave", action="leave"),
)
GROUPS = (("Moving", MOVING), ("Looking", LOOKING), ("Stopping and keeping", STOPPING), ("A running program", LIVING),
          ("The screen", SCREEN))  # fmt: skip
HELD_KEYS = "held: c release  r serve  l live  y accept  E edit  R request  X fault  D drop"
FOOTER = "? keys  n next  s into  f out  c go  N S F C back  b break  / find  x context"


def help_page() -> RenderableType:
    """All keys by group, and all commands."""
    parts: list[RenderableType] = []
    for title, keys in GROUPS:
        table = _table(10)
        for key in keys:
            table.add_row(key.shown, key.help)
        parts += [Text(title, style="bold"), table, Text()]
    parts.append(Text("Commands (type : and a name or its beginning; help NAME explains it)", style="bold"))
    table = _table(18)
    for command in COMMANDS.values():
        table.add_row(f"{command.name} {command.arguments}".strip(), command.help)
    return Group(*parts, table)


def _table(width: int) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", min_width=width)
    table.add_column()
    return table
