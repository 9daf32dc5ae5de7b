"""Runs a fork against a live endpoint and writes it as a new tape; the original tape is only read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from wiretape.adapters.rerun.live_model import LiveModel, Target, parent_of
from wiretape.adapters.settings import Settings, redactor_of
from wiretape.model.http import Exchange
from wiretape.rerun.fork.fork import Fork
from wiretape.rerun.values import CallOutcome
from wiretape.tape.client_versions import versions_of
from wiretape.tape.editing.edit import moved
from wiretape.tape.editing.splice import Entry, Fresh, Kept, write_spliced
from wiretape.tape.reading.reader import Tape, read_tape


def run_fork(
    tape: Tape,
    fork: Fork,
    target: Target,
    out: Path,
    note: str,
    *,
    environ: Mapping[str, str] = os.environ,
    settings: Settings | None = None,
    on_outcome: Callable[[CallOutcome], None] = lambda outcome: None,
    on_trouble: Callable[[str], None] = lambda text: None,
) -> bool:
    """Run the fork, write it to `out`, and return whether its live part was recorded completely.

    If the run fails, the tape with the answers so far is written as well, because they were paid for. Raises
    UsageError if the endpoint cannot be reached, TapeError if the tape cannot be written.
    """
    with TemporaryDirectory(prefix="wiretape-") as directory:
        spool = Path(directory) / "live.tape"
        finished = False
        try:
            with LiveModel(target, environ, spool, settings=settings, on_trouble=on_trouble) as model:
                play(fork, model, on_outcome)
            finished = True
        finally:
            live = read_tape(spool)
            if finished or any(exchange.response is not None for exchange in live.exchanges):
                write_fork(tape, fork, out, note, settings or Settings(), live)
    return not model.incomplete


def play(fork: Fork, model: LiveModel, on_outcome: Callable[[CallOutcome], None]) -> None:
    """Answer the fork's requests from its tape, and from the model after the fork."""
    while (planned := fork.next()) is not None:
        response = fork.from_tape(planned)
        if response is not None:
            fork.answered(response)
        else:
            on_outcome(fork.answered(*model.answer(planned, fork.rerun.recorded_call(planned))))


def write_fork(tape: Tape, fork: Fork, out: Path, note: str, settings: Settings, live: Tape | None = None) -> None:
    """Write the kept exchanges, the changed ones, and the live ones, if the fork has run."""
    own = [Kept(one) if isinstance(one, int) else Fresh(one) for one in fork.entries]
    changed = [entry.exchange for entry in own if isinstance(entry, Fresh)]
    new: Sequence[Exchange] = live.exchanges if live is not None else ()
    if changed and len(changed) == len(own):  # no kept exchange fixes the start of the live part
        new = _after(new, changed[-1])
    entries: list[Entry] = [*own, *map(Fresh, new)]
    redactor = redactor_of(settings, continues=tape.path)
    named = {"parent": parent_of(tape.path, out), "note": note}
    parent = replace(tape, header=tape.header.model_copy(update=named))
    times = tape if own or live is None else live
    header = times.header.model_copy(update={**named, "client": versions_of([*changed, *new])})
    write_spliced(parent, header, entries, out, redactor)


def _after(exchanges: Sequence[Exchange], last: Exchange) -> list[Exchange]:
    """Return exchanges of another tape, moved to the time and the numbers after `last`."""
    end = last.ended_at if last.ended_at is not None else last.at
    by = end - exchanges[0].at if exchanges else 0
    return [replace(moved(exchange, by), number=last.number + n) for n, exchange in enumerate(exchanges, 1)]
