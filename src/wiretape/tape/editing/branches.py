"""Merges two versions of a tape that have a common ancestor, as a git merge driver does.

Exchanges that only one branch added, changed or removed are taken from it. If both changed the same exchange in
different ways, nothing is written: the branches conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretape.errors import WiretapeError
from wiretape.model.http import Exchange
from wiretape.tape.editing.edit import Edited, merged_header, write_merged
from wiretape.tape.editing.identity import clock, identities
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape
from wiretape.tape.redaction import Redactor


class BranchConflict(WiretapeError):
    """Both branches changed the same exchange, or both recorded the tape again."""

    exit_code = 1  # what git takes for a conflict


@dataclass(frozen=True, slots=True)
class _Branch:
    """One version of a tape, compared with the ancestor."""

    own: dict[str, Exchange]  # by identity
    now: dict[str, str | None]  # identity of an exchange of the ancestor -> its identity here; None: removed

    @property
    def added(self) -> list[str]:
        here = set(self.now.values())
        return [identity for identity in self.own if identity not in here]

    @property
    def anew(self) -> bool:
        """Whether the branch has nothing of the ancestor any more."""
        return bool(self.now) and not any(self.now.values())

    @property
    def changed(self) -> bool:
        return bool(self.added) or any(before != now for before, now in self.now.items())


def merge_branches(base: Tape | None, ours: Tape, theirs: Tape, out: Path, redactor: Redactor) -> Edited:
    """Write the merged tape to `out`. Raises BranchConflict; then nothing is written."""
    ancestor = dict(zip(identities(base), base.exchanges, strict=True)) if base is not None else {}
    start = clock(base.header.started) if base is not None else 0
    mine, other = (_branch(tape, ancestor, start) for tape in (ours, theirs))
    both = mine.changed and other.changed and mine.own.keys() != other.own.keys()
    if both and (mine.anew or other.anew or (not ancestor and ours.header.started != theirs.header.started)):
        raise BranchConflict("both branches recorded this tape, in different runs")
    kept = [identity for before in ancestor if (identity := _merged(before, mine, other, ancestor[before])) is not None]
    kept += [*mine.added, *other.added]
    placed = [(0, mine.own[one]) if one in mine.own else (1, other.own[one]) for one in dict.fromkeys(kept)]
    return write_merged((ours, theirs), placed, _header(base, ours, theirs), out, redactor)


def _branch(tape: Tape, ancestor: dict[str, Exchange], start: int) -> _Branch:
    own = dict(zip(identities(tape), tape.exchanges, strict=True))
    shift = clock(tape.header.started) - start
    changed: dict[int, list[str]] = {}  # by when they started
    for identity, exchange in own.items():
        if identity not in ancestor:
            changed.setdefault(exchange.at + shift, []).append(identity)
    now: dict[str, str | None] = {}
    for identity, exchange in ancestor.items():
        now[identity] = identity if identity in own else _taken(changed.get(exchange.at, []), own, exchange.number)
    return _Branch(own, now)


def _taken(candidates: list[str], own: dict[str, Exchange], number: int) -> str | None:
    """Remove and return the candidate that is another version of this exchange: its number if possible."""
    if not candidates:
        return None
    found = next((one for one in candidates if own[one].number == number), candidates[0])
    candidates.remove(found)
    return found


def _merged(before: str, mine: _Branch, other: _Branch, exchange: Exchange) -> str | None:
    """Which version of an exchange of the ancestor is kept, by its identity; None: it was removed."""
    ours, theirs = mine.now[before], other.now[before]
    if ours == theirs or theirs == before:
        return ours
    if ours == before:
        return theirs
    what = "changed" if ours and theirs else "changed and removed"
    raise BranchConflict(f"exchange {exchange.number} ({exchange.request.url}) was {what} on the two branches")


def _header(base: Tape | None, ours: Tape, theirs: Tape) -> Header:
    """The header of both: a member that one branch alone changed is taken from it."""
    merged = merged_header((ours, theirs), ours.header.recorder)
    picked = {name: _picked(name, base, ours, theirs) for name in ("note", "provenance", "parent", "recorder")}
    return merged.model_copy(update=picked)


def _picked(name: str, base: Tape | None, ours: Tape, theirs: Tape) -> Any:
    mine, other = getattr(ours.header, name), getattr(theirs.header, name)
    unchanged = base is not None and mine == getattr(base.header, name)
    return other if unchanged or mine is None else mine
