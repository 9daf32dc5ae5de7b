"""Runs a fork against a live endpoint and writes it as a tape of its own; the tape it came from is only read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from wiretape.adapters.rerun.rerunning import LiveModel, Target, parent_of
from wiretape.errors import TapeUnwritable
from wiretape.model.http import Exchange
from wiretape.rerun.fork.fork import Fork
from wiretape.rerun.values import Row
from wiretape.tape.client_versions import versions_of
from wiretape.tape.editing.edit import moved
from wiretape.tape.editing.splice import Entry, Fresh, Kept, write_spliced
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import read_text


def run_fork(
    tape: Tape,
    fork: Fork,
    target: Target,
    out: Path,
    note: str,
    *,
    environ: Mapping[str, str] = os.environ,
    redact: Sequence[str] = (),
    on_row: Callable[[Row], None] = lambda row: None,
    on_trouble: Callable[[str], None] = lambda text: None,
) -> bool:
    """Answer from the tape up to the fork, then live, and write all of it to `out`, all or nothing.

    Returns whether all of the live part was recorded. What it has been answered when it fails is written, too: it was
    paid for. Raises UsageError where the endpoint cannot be reached, TapeError where the tape cannot be written.
    """
    with TemporaryDirectory(prefix="wiretape-") as directory:
        spool = Path(directory) / "live.tape"
        went_on = False
        try:
            with LiveModel(target, environ, spool, redact=tuple(redact), on_trouble=on_trouble) as model:
                play(fork, model, on_row)
            went_on = True
        finally:
            live = read_tape(spool)
            if went_on or any(exchange.response is not None for exchange in live.exchanges):
                write_fork(tape, fork, out, note, redact, live)
    return not model.incomplete


def play(fork: Fork, model: LiveModel, on_row: Callable[[Row], None]) -> None:
    while (send := fork.next()) is not None:
        response = fork.from_tape(send)
        if response is not None:
            fork.answered(response)
        else:
            on_row(fork.answered(*model.answer(send, fork.rerun.take_of(send))))


def write_fork(tape: Tape, fork: Fork, out: Path, note: str, redact: Sequence[str], live: Tape | None = None) -> None:
    """The first calls as they were, what was changed, and what came of it: nothing yet, where a program goes on."""
    mine = [Kept(one) if isinstance(one, int) else Fresh(one) for one in fork.entries]
    changed = [entry.exchange for entry in mine if isinstance(entry, Fresh)]
    asked: Sequence[Exchange] = live.exchanges if live is not None else ()
    if changed and len(changed) == len(mine):  # nothing that stays says where and when the live part begins
        asked = _behind(asked, changed[-1])
    entries: list[Entry] = [*mine, *map(Fresh, asked)]
    fresh = [*changed, *asked]
    redactor = Redactor(redact)
    if tape.path is not None and tape.path.exists():
        redactor.resume(read_text(tape.path).decode("utf-8", "replace"))  # its placeholders keep their meaning
    named = {"parent": parent_of(tape.path, out), "note": note}
    parent = replace(tape, header=tape.header.model_copy(update=named))
    times = tape if mine or live is None else live
    header = times.header.model_copy(update={**named, "client": versions_of(fresh)})
    write_spliced(parent, header, entries, out, redactor)


def _behind(exchanges: Sequence[Exchange], last: Exchange) -> list[Exchange]:
    """Exchanges of another tape, behind one of this."""
    end = last.ended_at if last.ended_at is not None else last.at
    by = end - exchanges[0].at if exchanges else 0
    return [replace(moved(exchange, by), number=last.number + n) for n, exchange in enumerate(exchanges, 1)]


def free_name(tape: Path, word: str) -> Path:
    """A name beside a tape's that is not taken: NAME-fork-3.tape, NAME-fork-3-2.tape."""
    name = tape.name.removesuffix(".zst").removesuffix(".tape")
    for number in range(1, 1000):
        more = f"-{number}" if number > 1 else ""
        path = tape.with_name(f"{name}-{word}{more}.tape")
        if not path.exists():
            return path
    raise TapeUnwritable(f"there are too many {name}-{word}-N.tape: move some of them away")
