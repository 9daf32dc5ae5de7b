"""Writes imported exchanges as a tape: numbers and times for all, redaction, and the provenance in the header.

Files keep the order in which they were named. Times come from the container: relative to the tape's `started`. An
exchange without a time starts a millisecond after the end of the one before it, which states the order only. A file
that began before the end of the previous file is shifted as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import groupby
from pathlib import Path

from wiretape._version import __version__
from wiretape.adapters.importers.source import ImportedExchange
from wiretape.model.http import Exchange
from wiretape.tape.editing.edit import moved, with_whole_messages
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.redaction import Redactor, kinds_in
from wiretape.tape.writing.writer import TapeWriter, document_text, header_document, replace_tape

_MOST_NAMES = 50


@dataclass(frozen=True, slots=True)
class PlacedExchanges:
    """Exchanges with numbers, and times relative to `started`."""

    started: datetime
    exchanges: tuple[Exchange, ...]


def place(taken: Sequence[ImportedExchange], now: datetime) -> PlacedExchanges:
    """Number the exchanges, and set their times. `now`: the start of a tape if no time is known."""
    zero = next((min(times) for group in _by_file(taken) if (times := _known(group))), None)
    exchanges: list[Exchange] = []
    for group in _by_file(taken):
        exchanges += _file(group, zero, exchanges)
    exchanges = [replace(exchange, number=number) for number, exchange in enumerate(exchanges, 1)]
    if zero is not None:
        return PlacedExchanges(datetime.fromtimestamp(zero, UTC), tuple(exchanges))
    return PlacedExchanges(next(_dates(exchanges), now), tuple(exchanges))


def _by_file(taken: Sequence[ImportedExchange]) -> Iterator[list[ImportedExchange]]:
    for _, group in groupby(taken, key=lambda one: one.file):
        yield list(group)


def _known(group: Sequence[ImportedExchange]) -> list[float]:
    return [one.started for one in group if one.started is not None]


def _file(group: list[ImportedExchange], zero: float | None, before: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges of one file with their times."""
    times = _known(group)
    if len(times) == len(group):
        group = sorted(group, key=lambda one: one.started or 0)  # stable
    elif all(one.order is not None for one in group):
        group = sorted(group, key=lambda one: one.order or 0)
    floor = 1 + max((_end(exchange) for exchange in before), default=-1)
    shift = max(0, floor - _offset(min(times), zero)) if times else 0
    placed: list[Exchange] = []
    for one in group:
        after = 1 + max((_end(exchange) for exchange in placed[-1:]), default=floor - 1)
        at = after if one.started is None else _offset(one.started, zero) + shift
        previous = placed[-1] if placed else None
        # Both have no duration and the same start: the container's clock is too coarse to order them.
        if previous is not None and at <= previous.at and _end(previous) == previous.at:
            at = after
        elif previous is not None:
            at = max(at, previous.at)
        placed.append(moved(one.exchange, at))
    return placed


def _offset(started: float, zero: float | None) -> int:
    return round((started - (zero or 0)) * 1000)


def _end(exchange: Exchange) -> int:
    return exchange.at if exchange.ended_at is None else exchange.ended_at


def _dates(exchanges: Sequence[Exchange]) -> Iterator[datetime]:
    """Yield the `date` headers of the responses: the start of a recording without times."""
    for exchange in exchanges:
        if exchange.response is not None and "date" in exchange.response.headers:
            try:
                found = parsedate_to_datetime(exchange.response.headers["date"])
            except ValueError:
                continue
            yield found if found.tzinfo else found.replace(tzinfo=UTC)


def write_imported(
    out: Path, taken: Sequence[ImportedExchange], now: datetime, redactor: Redactor, note: str | None
) -> PlacedExchanges:
    """Write the tape, all or nothing. All credentials in headers are learned before anything is written."""
    placed = place(taken, now)
    for exchange in placed.exchanges:
        redactor.learn(exchange.request.headers.pairs(), exchange.request.url)
        if exchange.response is not None:
            redactor.learn(exchange.response.headers.pairs(), "")
    documents = _documents(placed.exchanges, redactor)
    if redactor.late and redactor.leaks(b"".join(documents)):  # found after it was written
        redactor.forget_counts()
        documents = _documents(placed.exchanges, redactor)
    header = Header(
        wiretape=VERSION,
        started=placed.started,
        recorder=f"wiretape {__version__}",
        note=redactor.text(note) if note else None,
        provenance=redactor.text(provenance(taken)),
        redacted=sorted(redactor.kinds.union(*(kinds_in(document.decode()) for document in documents))),
    )
    replace_tape(out, [document_text(header_document(header)), *documents])
    return placed


def _documents(exchanges: Sequence[Exchange], redactor: Redactor) -> list[bytes]:
    documents: list[bytes] = []
    writer = TapeWriter(documents.append, redactor)
    steps: list[tuple[int, Callable[[], object]]] = []
    for exchange in exchanges:
        steps += writer.steps(with_whole_messages(exchange, redactor))
    for _, write in sorted(steps, key=lambda step: step[0]):  # stable: an exchange's own documents stay in order
        write()
    return documents


def provenance(taken: Sequence[ImportedExchange]) -> str:
    """Return `imported from vcrpy: a.yaml, b.yaml`: containers, and the names of the files."""
    names: dict[str, list[str]] = {}
    for one in taken:
        listed = names.setdefault(one.container, [])
        if (name := Path(one.file).name) not in listed[-1:]:
            listed.append(name)
    parts = []
    for container, files in names.items():
        more = f" and {len(files) - _MOST_NAMES} more" if len(files) > _MOST_NAMES else ""
        parts.append(f"{container}: {', '.join(files[:_MOST_NAMES])}{more}")
    return f"imported from {'; '.join(parts)}"
