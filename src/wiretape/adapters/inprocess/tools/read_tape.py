"""A tape that was read from disk, with stubs for the tools on it: what `wiretape.read_tape` gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from wiretape.adapters.inprocess import arguments
from wiretape.tape.reading import reader


class ToolTape(reader.Tape):
    """`tool` answers by arguments, outside of any context."""

    __slots__ = ()

    def tool(self, name: str, **options: Any) -> Callable[..., Any]:
        """A stub that answers as the recorded tool did, by arguments. `returns`, `is_async`: see docs/tools.md."""
        from wiretape.adapters.inprocess.tools.decorator import stub

        return stub(self, name, **options)


def read_tape(path: str | Path, partial: bool = False) -> ToolTape:
    """Read a tape, `.zst` too. Raises TapeError; UsageError if `path` names none.

    `partial`: read the rest of a damaged tape, and list the damage in `Tape.damage`, instead of raising TapeDamaged.
    """
    tape = reader.read_tape(arguments.place(path, "wiretape.read_tape({})"), partial)
    return ToolTape(**{field.name: getattr(tape, field.name) for field in fields(tape)})
