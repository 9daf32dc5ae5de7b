"""Opens a text in the user's editor."""

from __future__ import annotations

import os
import sys

import click

from wiretape.errors import UsageError


def in_editor(text: str) -> str:
    """Return the text after editing in $EDITOR. Raises UsageError if it is unchanged."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not chosen and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("no terminal for an editor: set EDITOR, or give the change with --answer or --set")
    try:
        written = click.edit(text + "\n", extension=".json", require_save=True)
    except click.ClickException as error:
        raise UsageError(f"{error.message}: set EDITOR to the editor you want") from None
    if written is None or written.rstrip("\n") == text:
        raise UsageError("the text was not changed in the editor: nothing was sent")
    return written
