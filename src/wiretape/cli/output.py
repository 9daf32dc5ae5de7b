"""Redacted output of the commands: warnings, and command lines to copy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.errors import WiretapeError

if TYPE_CHECKING:
    from wiretape.tape.output_redactor import OutputRedactor


@cache
def output() -> OutputRedactor:
    """Return the redactor of this process. All output shares one, and with it the secrets that it has seen."""
    from wiretape.adapters.settings import load_settings
    from wiretape.tape.output_redactor import OutputRedactor

    try:
        return OutputRedactor(load_settings(Path.cwd()).redact, os.environ)
    except (WiretapeError, OSError):  # broken settings are reported by the command that needs them
        return OutputRedactor((), os.environ)


def warn(text: str) -> None:
    """Print a line about the run to stderr."""
    click.echo(f"wiretape: {output().text(text)}", err=True)


def typed(argv: Sequence[str]) -> str:
    """A command line as a person would type it, on one line, secrets replaced; shortened where it has more lines."""
    shown = shlex.join(output().command(argv))
    return shown if shown.isprintable() else f"{shlex.quote(argv[0])} …"
