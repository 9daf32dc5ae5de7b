"""Prints notices on stderr, and formats command lines to copy, without secrets."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

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
    except (WiretapeError, OSError):  # broken settings are reported by the code that needs them
        return OutputRedactor((), os.environ)


def say(text: str) -> None:
    """Print a notice on stderr. If stderr is closed, the program continues."""
    with suppress(OSError, ValueError):
        print(f"wiretape: {output().text(text)}", file=sys.stderr)


def typed(argv: Sequence[str]) -> str:
    """A command line for a shell, with secrets replaced. One with line breaks is shortened to its program."""
    shown = shlex.join(output().command(argv))
    return shown if shown.isprintable() else f"{shlex.quote(argv[0])} …"
