"""A tape with some of its exchanges replaced: what stays keeps its number, its time and its documents.

`order` is how a later run went: exchanges of the old tape that answered in it again, and fresh ones in between. A
fresh exchange takes the number and the time of what was dropped in its place. What follows moves only where it must:
where there are more fresh exchanges than dropped ones, or one took longer than the time that was there for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from wiretape.model.http import Exchange
from wiretape.tape.client_versions import united, versions_of
from wiretape.tape.editing.edit import moved
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape
from wiretape.tape.redaction import Redactor
from wiretape.tape.writing.writer import write_tape


@dataclass(frozen=True, slots=True)
class Kept:
    """An exchange of the old tape, by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class Fresh:
    exchange: Exchange


Entry: TypeAlias = Kept | Fresh


def spliced(old: Sequence[Exchange], order: Sequence[Entry]) -> list[Exchange]:
    """The exchanges of the new tape, by number. Old exchanges that `order` does not name are dropped."""
    if not any(isinstance(entry, Kept) for entry in order):
        return [entry.exchange for entry in order if isinstance(entry, Fresh)]
    by_number = {exchange.number: exchange for exchange in old}
    made = _Splicing()
    before = 0
    for kept, fresh in _rows(order):
        dropped = [by_number[n] for n in sorted(by_number) if before < n and (kept is None or n < kept)]
        made.fresh(fresh, dropped)
        if kept is not None:
            made.keep(by_number[kept])
            before = kept
    return made.exchanges


def _rows(order: Sequence[Entry]) -> list[tuple[int | None, list[Exchange]]]:
    """Fresh exchanges before each kept one, in the old order of those; last, the fresh ones behind all of them.

    Agents that work at the same time may have come in another order: a fresh exchange stands behind everything that
    was asked for before it.
    """
    rows: dict[int, list[Exchange]] = {0: []}
    latest = 0
    for entry in order:
        match entry:
            case Kept(number=number):
                rows.setdefault(number, [])
                latest = max(latest, number)
            case Fresh(exchange=exchange):
                rows[latest].append(exchange)
    numbers = sorted(rows)
    following: list[int | None] = [*numbers[1:], None]
    return [(kept, rows[behind]) for behind, kept in zip(numbers, following, strict=True)]


class _Splicing:
    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._shift = 0  # by how much the rest of the old tape is moved later
        self._waiting: list[tuple[int, int]] = []  # (what started this late before, starts no earlier now)
        self._last = (0, 0)  # the exchange before: its old start, its new end

    def keep(self, exchange: Exchange) -> None:
        at = self._at(exchange.at)
        made = moved(exchange, at - exchange.at) if at != exchange.at else exchange
        self._put(made, exchange.number, exchange.at)

    def fresh(self, exchanges: Sequence[Exchange], dropped: Sequence[Exchange]) -> None:
        by = None  # how far the one before was moved
        for position, exchange in enumerate(exchanges):
            place = dropped[position] if position < len(dropped) else None
            if place is not None:
                was, at = place.at, self._at(place.at)
            else:  # calls at the same time stay that
                was, at = self._last[0], self._last[1] if by is None else exchange.at + by
            by = at - exchange.at
            made = moved(exchange, by)
            self._put(made, place.number if place is not None else 0, was)
            ended = place.ended_at if place is not None and place.ended_at is not None else was
            self._waiting.append((ended, _end(made)))

    def _at(self, was: int) -> int:
        """The new time of an event after a replaced exchange."""
        due = [end - was for ended, end in self._waiting if was >= ended]
        self._shift = max([self._shift, *due])
        return was + self._shift

    def _put(self, exchange: Exchange, number: int, was: int) -> None:
        after = self.exchanges[-1].number if self.exchanges else 0
        number = max(number, after + 1)
        self.exchanges.append(exchange if exchange.number == number else replace(exchange, number=number))
        self._last = was, _end(exchange)


def _end(exchange: Exchange) -> int:
    return exchange.ended_at if exchange.ended_at is not None else exchange.at


def write_spliced(old: Tape, fresh: Header, order: Sequence[Entry], out: Path, redactor: Redactor) -> None:
    """Write the new tape, all or nothing. `fresh`: the header of the recording that the fresh exchanges come from.

    The day of the tape stays the old one's: what was kept is as old as that.
    """
    kept = {entry.number for entry in order if isinstance(entry, Kept)}
    header = old.header if kept else fresh
    stayed = [exchange for exchange in old.exchanges if exchange.number in kept]
    made = header.model_copy(
        update={
            "recorder": fresh.recorder,
            "note": fresh.note or old.header.note,
            "provenance": fresh.provenance or old.header.provenance,
            "redacted": sorted({*old.header.redacted, *fresh.redacted}),
            "bypassed": sorted({*(old.header.bypassed or ()), *(fresh.bypassed or ())}) or None,
            "client": united([versions_of(stayed), fresh.client]),
        }
    )
    write_tape(out, made, spliced(old.exchanges, order), redactor)
