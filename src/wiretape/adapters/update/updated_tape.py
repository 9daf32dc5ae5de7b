"""The new tape of an updated test: the exchanges that answered it, and the exchanges that were called live.

A live call follows the exchange before it directly, however long ago that was recorded: the time between two recordings
is not part of a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path

from wiretape.adapters.settings import Settings, redactor_of
from wiretape.adapters.update.session import UpdateSession
from wiretape.adapters.update.staged_recording import unanswered
from wiretape.model.http import Exchange, body_bytes
from wiretape.tape.client_versions import versions_of
from wiretape.tape.editing.edit import moved
from wiretape.tape.editing.splice import Entry, Fresh, Kept, spliced, write_spliced
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.storage import journal_path


@dataclass(frozen=True, slots=True)
class UpdatedTape:
    """`entries`: the exchanges in the order of the test. `header`: of the recording with the fresh exchanges."""

    old: Tape
    entries: Sequence[Entry]
    header: Header

    @classmethod
    def of(cls, old: Tape, session: UpdateSession, recording: Tape) -> UpdatedTape:
        """`recording` continues the old tape: its exchanges with greater numbers were called live."""
        last = max((one.number for one in old.exchanges), default=0)
        fresh = {one.number: one for one in recording.exchanges if one.number > last}
        began = min((one.at for one in fresh.values()), default=0)
        entries: list[Entry] = []
        for entry in session.order(fresh):
            if isinstance(entry, Fresh):
                number = entry.exchange.number - last
                entry = Fresh(replace(moved(entry.exchange, -began), number=number))
            entries.append(entry)
        started = old.header.started + timedelta(milliseconds=began)
        header = recording.header.model_copy(update={"started": started, "client": versions_of(fresh.values())})
        return cls(old, entries, header)

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges of the test, numbered as on a new tape."""
        return spliced(self.old.exchanges, self.entries)

    @property
    def kept(self) -> set[int]:
        return {entry.number for entry in self.entries if isinstance(entry, Kept)}

    @property
    def fresh(self) -> list[Exchange]:
        return [entry.exchange for entry in self.entries if isinstance(entry, Fresh)]

    @property
    def left(self) -> list[Exchange]:
        """The exchanges of the old tape that the test did not ask for."""
        kept = self.kept
        return [one for one in self.old.exchanges if one.number not in kept]

    def in_place(self) -> UpdatedTape:
        """With the exchanges that the test did not ask for; fresh exchanges are where the test sent them."""
        first = min(self.kept, default=None)
        before = [one for one in self.left if first is None or one.number < first]
        return replace(self, entries=[*_all(before), *self.entries, *_all(self.left[len(before) :])])

    def behind(self) -> UpdatedTape:
        """With all exchanges of the old tape, followed by the fresh ones."""
        return replace(self, entries=[*_all(self.old.exchanges), *map(Fresh, self.fresh)])

    def onto(self, now: Tape) -> UpdatedTape:
        """Rebased on a tape that other workers have changed. Exchanges that they recorded as well are added once."""
        known = Counter(map(digest, self.old.exchanges))
        of_others = []
        for one in now.exchanges:
            known[digest(one)] -= 1
            if known[digest(one)] < 0:
                of_others.append(one)
        fresh = unanswered(self.fresh, replace(now, exchanges=tuple(of_others)))
        return UpdatedTape(now, [*_all(now.exchanges), *map(Fresh, fresh)], self.header)

    def write(self, tape: Path, settings: Settings) -> None:
        """Replace the tape atomically."""
        redactor = redactor_of(settings, continues=tape)
        write_spliced(self.old, self.header, self.entries, tape, redactor)
        journal_path(tape).unlink(missing_ok=True)  # its exchanges are on the new tape


def without(path: Path, stale: Counter[str], settings: Settings) -> int:
    """Drop exchanges with these digests from a tape. Return how many were dropped. The tape never becomes empty."""
    tape, waiting = read_tape(path), Counter(stale)
    stays: list[Exchange] = []
    for one in tape.exchanges:
        name = digest(one)
        if waiting[name] > 0:
            waiting[name] -= 1
        else:
            stays.append(one)
    if not stays or len(stays) == len(tape.exchanges):
        return 0
    UpdatedTape(tape, _all(stays), tape.header).write(path, settings)
    return len(tape.exchanges) - len(stays)


def digest(exchange: Exchange) -> str:
    """A hash of an exchange without its number and time."""
    request, response = exchange.request, exchange.response
    parts = [request.method.encode(), request.url.encode(), body_bytes(request.body)]
    if response is not None:
        parts += [b"%d" % response.status, body_bytes(response.body)]
    for message in exchange.messages:
        parts += [message.sender.encode(), body_bytes(message.body)]
    made = blake2b(str(exchange.ended).encode(), digest_size=16)
    for part in parts:
        made.update(b"%d:" % len(part) + part)
    return made.hexdigest()


def _all(exchanges: Iterable[Exchange]) -> list[Entry]:
    return [Kept(one.number) for one in exchanges]
