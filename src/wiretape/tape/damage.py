"""Damage inside a tape: what it is, how it is reported, and the error that it becomes.

A torn end is not damage: a recorder that was killed leaves one, and a reader warns about it. Everything else that
cannot be read is damage: commands that judge, write or replay refuse the tape unless the user accepts a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wiretape.errors import TapeDamaged

_SHOWN = 5  # damaged parts that are listed


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a tape, or of its journal, that cannot be read."""

    path: Path
    reason: str
    line: int | None = None  # None: in a journal, or in the compressed bytes
    conflict: bool = False  # a line that git wrote: a conflict marker

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}"


def without_repeats(damage: Sequence[Damage]) -> tuple[Damage, ...]:
    """All conflict markers as one piece of damage; the others unchanged, in their order."""
    conflicts = [one for one in damage if one.conflict]
    if not conflicts:
        return tuple(damage)
    others = [one for one in damage if not one.conflict]
    return (replace(conflicts[0], reason="git conflict markers: a merge was not finished"), *others)


def listed(damage: Sequence[Damage]) -> list[str]:
    """The damage as warnings: the first parts, and how many more there are."""
    more = len(damage) - _SHOWN
    return [*map(str, damage[:_SHOWN]), *([f"{damage[0].path}: {more} more parts are damaged"] if more > 0 else [])]


def refuse(damage: Sequence[Damage]) -> None:
    """Raise TapeDamaged if there is any damage."""
    if not damage:
        return
    first, more = damage[0], len(damage) - 1
    others = f" ({more} more part{'s are' if more > 1 else ' is'} damaged)" if more else ""
    raise TapeDamaged(f"{first}{others}\n{_next_step(first)}")


def _next_step(damage: Damage) -> str:
    if damage.conflict:
        name = damage.path
        return (
            f"  to keep the calls of both branches: wiretape merge-driver --install && git checkout --merge {name}\n"
            f"  to keep one branch's tape: git checkout --ours {name} (or --theirs); then git add {name}"
        )
    return f"  to use the rest: --partial; to remove the damaged parts: wiretape redact --partial {damage.path}"
