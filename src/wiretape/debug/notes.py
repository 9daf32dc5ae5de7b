"""Notes at a step: what a person wrote down about a place in a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from wiretape.debug.timeline import Stop


@dataclass(frozen=True, slots=True)
class Note:
    stop: Stop
    text: str


# Writes all notes to wherever they are kept. Raises WiretapeError.
SavesNotes: TypeAlias = Callable[[Sequence[Note]], None]
