"""Opens a text in the editor that a person has chosen."""

from __future__ import annotations

import os
import sys

import click

from wiretape.errors import UsageError


def in_editor(text: str) -> str:
    """What a person makes of a text in $EDITOR. Raises UsageError where it is left as it was."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not chosen and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("no terminal for an editor: set EDITOR, or give what is to change with --answer or --set")
    try:
        written = click.edit(text + "\n", extension=".json", require_save=True)
    except click.ClickException as error:
        raise UsageError(f"{error.message}: set EDITOR to the editor you want") from None
    if written is None or written.rstrip("\n") == text:
        raise UsageError("nothing was changed in the editor, and nothing was sent")
    return written
