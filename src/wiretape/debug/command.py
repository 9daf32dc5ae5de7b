"""A command of the debugger, as data: what it is called, what it does, and how it is documented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.debug.replies import CommandReply
from wiretape.debug.state import DebuggerState

Group: TypeAlias = Literal["moving", "stopping", "looking", "keeping", "living", "forking", "helping"]
# The kind of an argument, for completion.
Argument: TypeAlias = Literal["expression", "call", "place", "point", "checkpoint", "topic", "command", "held", ""]


@dataclass(frozen=True, slots=True)
class DebugCommand:
    """`help` is one line, `more` the rest of the explanation; `arguments` and `examples` are shown as they are typed.

    `run` gets the text after the command's name, stripped. It raises UsageError or another WiretapeError.
    """

    name: str
    group: Group
    help: str
    run: Callable[[DebuggerState, str], CommandReply]
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    more: str = ""
    examples: tuple[str, ...] = ()
    completes: Argument = ""
    terminal: bool = False  # opens an editor or prompts on the terminal, so the screen must be suspended
