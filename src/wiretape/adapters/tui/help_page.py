"""What `?` shows: every key, then every command."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wiretape.adapters.tui.keys import GROUPS
from wiretape.debug.commands.table import commands


def help_page() -> RenderableType:
    """Keys by what they are for, and the commands that the command line takes."""
    parts: list[RenderableType] = []
    for title, keys in GROUPS:
        table = _table(10)
        for key in keys:
            table.add_row(key.shown, key.help)
        parts += [Text(title, style="bold"), table, Text()]
    parts.append(Text("Commands (: then the name, as far as it is clear; help NAME says more)", style="bold"))
    table = _table(18)
    for command in commands().values():
        table.add_row(f"{command.name} {command.arguments}".strip(), command.help)
    return Group(*parts, table)


def _table(width: int) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", min_width=width)
    table.add_column()
    return table
