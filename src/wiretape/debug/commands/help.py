"""The commands that explain, and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretape.debug.commands.table import Command, commands, named
from wiretape.debug.commands.topics import TOPICS
from wiretape.debug.expression.expression import LANGUAGE
from wiretape.debug.expression.names import NAMES
from wiretape.debug.replies import Column, Listing, Part, Reply, Row, Said

if TYPE_CHECKING:
    from wiretape.debug.session import Debugger

GROUPS = {
    "moving": "moving, forward and back",
    "stopping": "where to stop",
    "looking": "looking",
    "keeping": "keeping",
    "living": "a program at work: the calls that wait",
    "forking": "another run from here on",
    "helping": "help",
}


def _help(debugger: Debugger, rest: str) -> Reply:
    if not rest:
        return Reply(parts=tuple(_overview()))
    word = rest.split()[0].lower()
    if word in ("names", "name"):
        return Reply(parts=(names_listing(),))
    if word in ("expressions", "expression", "conditions", "condition"):
        return Reply(parts=tuple(Said(line) for line in LANGUAGE))
    return Reply(parts=tuple(_about(named(word))))


def _overview() -> list[Part]:
    parts: list[Part] = []
    for group, title in GROUPS.items():
        rows = [
            Row((command.name, ", ".join(command.aliases[:3]), command.help))
            for command in commands().values()
            if command.group == group
        ]
        parts.append(
            Listing((Column("command"), Column("short"), Column("what it does", wide=True)), tuple(rows), title)
        )
    parts.append(Said("A command may be cut short (cont, rev-…), and an empty line does the last one again."))
    parts.append(Said("help COMMAND says more; help names and help expressions: what conditions are made of."))
    return parts


def _about(command: Command) -> list[Part]:
    usage = f"{command.name} {command.arguments}".strip()
    parts: list[Part] = [Said(f"{usage}: {command.help}")]
    if command.aliases:
        parts.append(Said(f"also: {', '.join(command.aliases)}"))
    if command.more:
        parts.append(Said(command.more))
    if command.name == "info":
        parts += [Said(f"info {name}: {topic.help}") for name, topic in TOPICS.items()]
    if command.examples:
        parts.append(Said(f"such as: {'; '.join(command.examples)}", "dim"))
    return parts


def names_listing() -> Listing:
    """Every name of the expression language."""
    rows = tuple(Row((name.name, name.known, name.help)) for name in NAMES.values())
    return Listing((Column("name"), Column("known at"), Column("what it is", wide=True)), rows)


def _history(debugger: Debugger, rest: str) -> Reply:
    rows = tuple(Row((str(number), line)) for number, line in enumerate(debugger.history, 1))
    return Reply(parts=(Listing((Column("#", True), Column("line", wide=True)), rows),))


def _quit(debugger: Debugger, rest: str) -> Reply:
    return Reply(quit=True)


COMMANDS = (
    Command(
        "help", "helping", "explain all commands, or one", _help, ("?", "h"), "[COMMAND | names | expressions]",
        examples=("help break", "help names"), completes="command",
    ),
    Command("history", "helping", "list the lines typed so far", _history, ("hist",), examples=("history",)),
    Command("quit", "helping", "leave", _quit, ("q", "exit"), examples=("quit",)),
)  # fmt: skip
