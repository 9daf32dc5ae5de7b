"""Imported exchanges -> a tape: numbers and times for all of them, secrets out, and where they come from in the header.

Files stand in the order in which they were named. Times are the containers' own: an exchange starts as long after the
tape's `started` as its container says. What has no time stands a millisecond after the end of what is before it: that
says the order, and nothing else. A file that began before the end of the file named before it is moved behind that as
a whole; the times inside it stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import groupby
from pathlib import Path

from wiretape._version import __version__
from wiretape.adapters.importers.import_source import Taken
from wiretape.model.http import Exchange
from wiretape.tape.editing.edit import moved, with_whole_messages
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.redaction import Redactor, kinds_in
from wiretape.tape.writing.writer import TapeWriter, document_text, header_document, replace_tape

_MOST_NAMES = 50


@dataclass(frozen=True, slots=True)
class Placed:
    """Exchanges with numbers and times, and what those count from."""

    started: datetime
    exchanges: tuple[Exchange, ...]


def place(taken: Sequence[Taken], now: datetime) -> Placed:
    """Number the exchanges and say when each started. `now` is for a tape of which nothing says when it was."""
    zero = next((min(times) for group in _by_file(taken) if (times := _known(group))), None)
    exchanges: list[Exchange] = []
    for group in _by_file(taken):
        exchanges += _file(group, zero, exchanges)
    exchanges = [replace(exchange, number=number) for number, exchange in enumerate(exchanges, 1)]
    if zero is not None:
        return Placed(datetime.fromtimestamp(zero, UTC), tuple(exchanges))
    return Placed(next(_dates(exchanges), now), tuple(exchanges))


def _by_file(taken: Sequence[Taken]) -> Iterator[list[Taken]]:
    for _, group in groupby(taken, key=lambda one: one.file):
        yield list(group)


def _known(group: Sequence[Taken]) -> list[float]:
    return [one.started for one in group if one.started is not None]


def _file(group: list[Taken], zero: float | None, before: Sequence[Exchange]) -> list[Exchange]:
    """One file's exchanges in their places."""
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
        # Two that took no time and started at once: the container's clock is too coarse to order them.
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
    """The `date` headers of the answers: the best that is known of when a recording without times was made."""
    for exchange in exchanges:
        if exchange.response is not None and "date" in exchange.response.headers:
            try:
                found = parsedate_to_datetime(exchange.response.headers["date"])
            except ValueError:
                continue
            yield found if found.tzinfo else found.replace(tzinfo=UTC)


def write_imported(out: Path, taken: Sequence[Taken], now: datetime, redactor: Redactor, note: str | None) -> Placed:
    """Write the tape, all or nothing. All credentials are learnt before anything is written."""
    placed = place(taken, now)
    for exchange in placed.exchanges:
        redactor.learn(exchange.request.headers.pairs(), exchange.request.url)
        if exchange.response is not None:
            redactor.learn(exchange.response.headers.pairs(), "")
    documents = _documents(placed.exchanges, redactor)
    if redactor.late and redactor.leaks(b"".join(documents)):  # seen first in a body, after it stood elsewhere
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


def provenance(taken: Sequence[Taken]) -> str:
    """`imported from vcrpy: a.yaml, b.yaml`: containers, and the names of the files."""
    names: dict[str, list[str]] = {}
    for one in taken:
        there = names.setdefault(one.container, [])
        if (name := Path(one.file).name) not in there[-1:]:
            there.append(name)
    parts = []
    for container, files in names.items():
        more = f" and {len(files) - _MOST_NAMES} more" if len(files) > _MOST_NAMES else ""
        parts.append(f"{container}: {', '.join(files[:_MOST_NAMES])}{more}")
    return f"imported from {'; '.join(parts)}"
