"""Every command, as data: what line mode, scripts, the screen, help, completion and the documentation share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.debug.replies import Reply
    from wiretape.debug.session import Debugger

Group: TypeAlias = Literal["moving", "stopping", "looking", "keeping", "living", "forking", "helping"]
# What an argument can be, for completion.
Argument: TypeAlias = Literal["expression", "call", "place", "point", "checkpoint", "topic", "command", "held", ""]


@dataclass(frozen=True, slots=True)
class Command:
    """`arguments` is how they are written; `help` one line, `more` what else to know, `examples` lines to type.

    `run` gets what follows the command's name, stripped. It raises UsageError, or another WiretapeError.
    """

    name: str
    group: Group
    help: str
    run: Callable[[Debugger, str], Reply]
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    more: str = ""
    examples: tuple[str, ...] = ()
    completes: Argument = ""
    terminal: bool = False  # talks to the person by itself, in an editor or line by line: a screen steps aside


@cache
def commands() -> Mapping[str, Command]:
    """All commands by their full names, in the order of help."""
    from wiretape.debug.commands import cache as commands_cache
    from wiretape.debug.commands import fork as commands_fork
    from wiretape.debug.commands import help as commands_help
    from wiretape.debug.commands import keep as commands_keep
    from wiretape.debug.commands import live as commands_live
    from wiretape.debug.commands import look as commands_look
    from wiretape.debug.commands import move as commands_move
    from wiretape.debug.commands import stop as commands_stop

    modules = (
        commands_move, commands_stop, commands_look, commands_cache, commands_keep, commands_live, commands_fork,
        commands_help,
    )  # fmt: skip
    return {command.name: command for module in modules for command in module.COMMANDS}


@cache
def _words() -> Mapping[str, Command]:
    """Every full name and alias."""
    return {word: command for command in commands().values() for word in (command.name, *command.aliases)}


def find(line: str) -> tuple[Command, str]:
    """The command that a line begins with, and the rest. A name may be cut short as far as it stays clear."""
    if line[0] in "/?.":  # signs need no blank behind them
        whole = len(line) > 2 and line[0] == line[-1] == "/"  # /a+b/ is a regular expression
        return _words()[line[0]], line if whole else line[1:].strip()
    word, _, rest = line.partition(" ")
    return named(word), rest.strip()


def named(word: str) -> Command:
    """The command of a name, an alias, or a beginning that only one has. Raises UsageError."""
    word = word.lower()
    if word in _words():
        return _words()[word]
    starts = [command for command in commands().values() if command.name.startswith(word)]
    starts = starts or [command for name, command in _words().items() if name.startswith(word)]
    if len(starts) == 1:
        return starts[0]
    if starts:
        names = ", ".join(dict.fromkeys(command.name for command in starts))
        raise UsageError(f"{word!r} could be {names}: type more of it")
    if word in ("start", "end"):
        raise UsageError(f"there is no command {word!r}: goto {word} goes there")
    near = dict.fromkeys(_words()[name].name for name in get_close_matches(word, _words(), 2))
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"there is no command {word!r}; {hint}help lists all commands")


def needs_terminal(line: str) -> bool:
    """Whether a line is a command that talks to the person by itself."""
    try:
        return bool(line.strip()) and find(line.strip())[0].terminal
    except UsageError:
        return False
