"""All commands of the debugger: look-up by name, and help."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import chain

from wiretape.debug.command import DebugCommand, Group
from wiretape.debug.commands import inspect, live, move, notes_and_forks, stop
from wiretape.debug.commands.topics import TOPICS
from wiretape.debug.expression.expression import LANGUAGE
from wiretape.debug.expression.names import NAMES
from wiretape.debug.replies import CommandReply, Listing, ListingRow, Part, Sentence, listing, reply
from wiretape.debug.state import DebuggerState
from wiretape.errors import UsageError

GROUPS: dict[Group, str] = {
    "moving": "moving, forward and back",
    "stopping": "where to stop",
    "looking": "looking",
    "keeping": "keeping",
    "living": "a running program: its held calls",
    "forking": "another run from here on",
    "helping": "help",
}


def _help(debugger: DebuggerState, rest: str) -> CommandReply:
    if not rest:
        return reply(*_overview())
    word = rest.split()[0].lower()
    if word in ("names", "name"):
        return reply(names_listing())
    if word in ("expressions", "expression", "conditions", "condition"):
        return reply(*(Sentence(line) for line in LANGUAGE))
    return reply(*_about(named(word)))


def _overview() -> list[Part]:
    parts: list[Part] = []
    columns = "command|short|what it does*"
    for group, title in GROUPS.items():
        rows = [
            ListingRow((command.name, ", ".join(command.aliases[:3]), command.help))
            for command in COMMANDS.values()
            if command.group == group
        ]
        parts.append(listing(columns, rows, title))
    parts.append(Sentence("A command may be cut short (cont, rev-…), and an empty line repeats the last one."))
    parts.append(Sentence("help COMMAND explains one; help names and help expressions explain conditions."))
    return parts


def _about(command: DebugCommand) -> list[Part]:
    usage = f"{command.name} {command.arguments}".strip()
    parts: list[Part] = [Sentence(f"{usage}: {command.help}")]
    if command.aliases:
        parts.append(Sentence(f"also: {', '.join(command.aliases)}"))
    if command.more:
        parts.append(Sentence(command.more))
    if command.name == "info":
        parts += [Sentence(f"info {name}: {topic.help}") for name, topic in TOPICS.items()]
    if command.examples:
        parts.append(Sentence(f"such as: {'; '.join(command.examples)}", "dim"))
    return parts


def names_listing() -> Listing:
    """Every name of the expression language."""
    rows = tuple(ListingRow((name.name, name.known_from, name.help)) for name in NAMES.values())
    return listing("name|known at|what it is*", rows)


def _history(debugger: DebuggerState, rest: str) -> CommandReply:
    rows = tuple(ListingRow((str(number), line)) for number, line in enumerate(debugger.history, 1))
    return reply(listing("#>|line*", rows))


def _quit(debugger: DebuggerState, rest: str) -> CommandReply:
    return CommandReply(quit=True)


_HELP = (
    DebugCommand(
        "help", "helping", "explain all commands, or one", _help, ("?", "h"), "[COMMAND | names | expressions]",
        examples=("help break", "help names"), completes="command",
    ),
    DebugCommand("history", "helping", "list the lines typed so far", _history, ("hist",), examples=("history",)),
    DebugCommand("quit", "helping", "leave", _quit, ("q", "exit"), examples=("quit",)),
)  # fmt: skip

# All commands by their full names, in the order of help.
COMMANDS: Mapping[str, DebugCommand] = {
    command.name: command
    for group in GROUPS
    for command in chain(inspect.COMMANDS, move.COMMANDS, stop.COMMANDS, notes_and_forks.COMMANDS, live.COMMANDS, _HELP)
    if command.group == group
}
# Every full name and alias.
_WORDS = {word: command for command in COMMANDS.values() for word in (command.name, *command.aliases)}


def find(line: str) -> tuple[DebugCommand, str]:
    """The command that a line begins with, and the rest of the line. Raises UsageError."""
    if line[0] in "/?.":  # these signs are commands even without a blank after them
        whole = len(line) > 2 and line[0] == line[-1] == "/"  # /a+b/ is a regular expression
        return _WORDS[line[0]], line if whole else line[1:].strip()
    word, _, rest = line.partition(" ")
    return named(word), rest.strip()


def named(word: str) -> DebugCommand:
    """The command with this name or alias, or the only command that begins with it. Raises UsageError."""
    word = word.lower()
    if word in _WORDS:
        return _WORDS[word]
    starts = [command for command in COMMANDS.values() if command.name.startswith(word)]
    starts = starts or [command for name, command in _WORDS.items() if name.startswith(word)]
    if len(starts) == 1:
        return starts[0]
    if starts:
        names = ", ".join(dict.fromkeys(command.name for command in starts))
        raise UsageError(f"{word!r} is ambiguous: it could be {names}")
    if word in ("start", "end"):
        raise UsageError(f"unknown command {word!r}: use goto {word}")
    near = dict.fromkeys(_WORDS[name].name for name in get_close_matches(word, _WORDS, 2))
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"unknown command {word!r}; {hint}help lists all commands")


def needs_terminal(line: str) -> bool:
    """Whether the line is a command that opens an editor or prompts on the terminal."""
    try:
        return bool(line.strip()) and find(line.strip())[0].terminal
    except UsageError:
        return False
