"""What commands do about a damaged or incomplete tape: the only place that decides it.

Commands that judge, write or replay fail (exit code 2), unless --partial accepts the rest of the tape. Commands that
only look show the rest and exit with 1. Commands that record exit with 4 if the new tape is incomplete.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wiretape.errors import EXIT_INCOMPLETE

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

F = TypeVar("F", bound=Callable[..., Any])
SEEN = 1  # the exit code of a command that showed a damaged tape
_PARTIAL = "wiretape.partial"
_CODE = "wiretape.exit-code"


def partial_option(command: F) -> F:
    """Give a command the option --partial; `read` obeys it."""
    return click.option(
        "--partial",
        is_flag=True,
        expose_value=False,
        callback=lambda ctx, _, value: ctx.meta.__setitem__(_PARTIAL, value),
        help="Use what can be read of a damaged tape.",
    )(command)


def partial_wanted() -> bool:
    """Whether the command that runs was given --partial."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx is not None and ctx.meta.get(_PARTIAL))


def read_whole(path: str | Path) -> Tape:
    """A tape to judge, write or replay. Raises TapeDamaged, unless --partial is given."""
    from wiretape.tape.reading.reader import read_tape

    return read_tape(path, partial_wanted())


def read_to_show(path: str | Path) -> Tape:
    """A tape to look at: if it is damaged, the rest of it, and the command will exit with 1."""
    from wiretape.tape.reading.reader import read_tape

    tape = read_tape(path, partial=True)
    if tape.damage:
        note_damage()
    return tape


def note_damage() -> None:
    """Let the command that runs exit with 1 at least."""
    _note(SEEN)


def note_incomplete(tape: Path) -> None:
    """Report that a new tape is incomplete, and let the command that runs exit with 4 if it would exit with 0."""
    click.echo(f"wiretape: {tape} IS INCOMPLETE: see the warnings above", err=True)
    _note(EXIT_INCOMPLETE)


def _note(code: int) -> None:
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        ctx.meta[_CODE] = code


def code_of(ctx: click.Context, result: Any) -> Any:
    """The result of a command; the exit code that was noted, if the result would be 0."""
    return ctx.meta.get(_CODE, result) if result in (None, 0) else result
