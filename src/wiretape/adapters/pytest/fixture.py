"""The `wiretape` fixture: a test's tape, and the exchanges that were played or recorded so far."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wiretape._version import __version__
from wiretape.adapters.inprocess.child_server import LockedSession
from wiretape.adapters.inprocess.context_record import Record, RecordContextOptions
from wiretape.adapters.inprocess.context_replay import Replay, ReplayContextOptions
from wiretape.adapters.inprocess.fork_channel import ForkChannel
from wiretape.adapters.inprocess.network_guard import NetworkGuard
from wiretape.adapters.pytest.child_processes import RecordWithChildren, SharedRecorder, UpdateWithChildren
from wiretape.adapters.pytest.late_threads import LATE_THREADS
from wiretape.adapters.pytest.options import Mode, TapeOptions
from wiretape.adapters.pytest.report.failures import Fixes, call_site
from wiretape.adapters.pytest.tape_paths import shown
from wiretape.adapters.pytest.thread_context import Origin
from wiretape.adapters.update.staged_recording import StagedRecording, tape_exists
from wiretape.adapters.update.updated_tape import UpdatedTape
from wiretape.adapters.update.updating_replay import UpdatingReplay
from wiretape.analyze.report import StatsReport, TurnReport
from wiretape.analyze.stats import stats
from wiretape.errors import MissError, UsageError
from wiretape.matching.report import ReplayReport, empty_report
from wiretape.matching.tape_age import AgeAction
from wiretape.matching.values import Miss, MissReason
from wiretape.model.http import Exchange
from wiretape.model.wording import plural
from wiretape.runs.run import build_run
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.wire.registry import decode

if TYPE_CHECKING:
    from wiretape.adapters.update.session import UpdateSession
    from wiretape.analyze.lint.base import LintFinding
    from wiretape.matching.session import ReplaySession
    from wiretape.model.run import Run


class _Turns(list[TurnReport]):
    """The turns of a test, from 0. The IndexError states how many there are."""

    def __getitem__(self, place: Any) -> Any:
        try:
            return super().__getitem__(place)
        except IndexError:
            number = f"{plural(len(self), 'turn')} so far, counted from 0" if self else "no turn so far"
            raise IndexError(f"there is no turn {place}: the test has made {number}") from None


class Wiretape:
    """A test and its tape. `tape`: its path; `recording`: True if all calls of the test are live.

    The other properties may be read at any time.
    """

    def __init__(self, tape: Path, options: TapeOptions, mode: Mode, fixes: Fixes, root: Path) -> None:
        self.tape = tape
        self.mode = mode
        self._root = root
        self._options = options
        self._fixes = fixes
        self._exists = tape_exists(tape)
        self.recording = mode in (Mode.ALL, Mode.REWRITE) or (not self._exists and mode is not Mode.NONE)
        self.guard = NetworkGuard(options.allow_hosts, self._refusal)
        self.staged: StagedRecording | None = None
        self.warnings: list[str] = []  # about the age of the tape, and child processes that are not recorded
        self._replay: Replay | None = None
        self._record: Record | None = None
        self._open = ExitStack()

    # -- for tests ---------------------------------------------------------------------------------------------------

    @property
    def session(self) -> ReplaySession | None:
        """The session that answers; None while recording."""
        return self._replay.session if self._replay is not None else None

    @property
    def report(self) -> ReplayReport:
        """The calls that were played, drifted, missed and left over so far; empty while recording."""
        if isinstance(self._replay, UpdatingReplay):  # misses are recorded
            return self._replay.report.model_copy(update={"missed": (), "strayed": ()})
        if self._replay is not None:
            return self._replay.report
        return empty_report(str(shown(self.tape)))

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges that this test has played or recorded so far."""
        updated = self.updated_tape
        return tuple(updated.exchanges) if updated is not None else self._played() + self.fresh

    @property
    def stats(self) -> StatsReport:
        """The report of `wiretape stats` for this test so far."""
        return stats(self._run())

    def lint(self, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[LintFinding]:
        """The findings of `wiretape lint` for this test so far, without those about secrets on the tape."""
        from wiretape.analyze.lint.base import Subject
        from wiretape.analyze.lint.rules import chosen, lint

        return lint(Subject(self._run()), chosen(select, ignore))

    def _run(self) -> Run:
        exchanges = self.exchanges
        calls = decode(exchanges)
        decoded = {call.exchange for call in calls}
        return build_run(calls, [one.number for one in exchanges if one.number not in decoded])

    @property
    def turns(self) -> list[TurnReport]:
        return _Turns(self.stats.turns)

    def __repr__(self) -> str:
        """Shown by pytest with a failed assertion."""
        return f"<wiretape {shown(self.tape)}, {'recording' if self.recording else f'mode {self.mode}'}>"

    def environ(self) -> dict[str, str]:
        """The environment for child processes that are not started from Python."""
        context = self._record if self.recording else self._replay
        children = context.children() if context is not None and context.is_open else None
        if children is None:
            raise UsageError("this test's tape is not open: use environ() while the test runs")
        return {**os.environ, **children.variables(os.environ)}

    # -- for the plugin ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        try:
            self._begin()
        except BaseException:
            self._open.close()
            if self.staged is not None:
                self.staged.remove()
            raise

    def _begin(self) -> None:
        origin = Origin(self._fixes.test, self._options.allow_hosts)
        LATE_THREADS.begin(origin)
        self._open.callback(LATE_THREADS.end, origin)
        if self.recording or self.mode in (Mode.NEW, Mode.UPDATE):
            self.staged = StagedRecording(self.tape, goes_on=not self.recording)
            recording = RecordContextOptions(
                hosts=self._options.hosts, append=True, report_empty=False, on_unserved_children=self._warn
            )
            self._record = RecordWithChildren(self.staged.fresh, recording)
        if self._record is not None and self.recording:
            self._record.forks = ForkChannel({"context": self._record, "recorder": SharedRecorder(self._record)})
            self._open.enter_context(self._record)
            return
        replay = self._new_replay()
        replay.__enter__()
        self._open.callback(_close_quietly, replay)
        self._replay = replay
        replay.forks = self._forks(replay)
        if self._record is None:
            self.guard.own_ports, self.guard.note = replay.child_ports, self._note_refused
            self._open.enter_context(self.guard)

    def _forks(self, replay: Replay) -> ForkChannel:
        shared: dict[str, object] = {"context": replay, "session": LockedSession(replay), "refused": self.guard.refused}
        if isinstance(replay, UpdatingReplay):
            shared |= {"update_session": replay.update_session, "recorder": SharedRecorder(replay.recording)}
        return ForkChannel(shared)

    def _note_refused(self, where: str, is_provider: bool) -> None:
        if self._replay is not None and self._replay.is_copy and self._replay.forks is not None:
            self._replay.forks.call("refused", "__setitem__", where, is_provider)
        else:
            self.guard.refused[where] = is_provider

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _refusal(self, where: str) -> str:
        late = LATE_THREADS.here()
        return late.message(where) if late is not None else self._fixes.of_refusal(where)

    def _miss_fix(self, session: ReplaySession, reason: MissReason) -> str:
        """Runs on the thread of the request, so that its stack shows the call site."""
        fix = self._fixes.of_miss(reason, bool(session.report().left_over))
        place = call_site(self._root)
        return f"  sent from {place}\n{fix}" if place is not None else fix

    def end(self) -> None:
        """Close the tape and remove the patches."""
        self._open.close()

    @property
    def misses(self) -> list[Miss]:
        if isinstance(self._replay, UpdatingReplay):
            return self._replay.unplayed
        if self._replay is None:
            return []
        return self._replay.session.misses

    @property
    def update_session(self) -> UpdateSession | None:
        """The session of an update; None in the other modes."""
        return self._replay.update_session if isinstance(self._replay, UpdatingReplay) else None

    @property
    def updated_tape(self) -> UpdatedTape | None:
        """The tape after the update so far; None in the other modes."""
        if self.update_session is None or self.staged is None or not tape_exists(self.staged.fresh):
            return None
        return UpdatedTape.of(self.update_session.session.tapes[0], self.update_session, read_tape(self.staged.fresh))

    @property
    def new_exchanges(self) -> int:
        """The number of recorded exchanges; 0 until the test ends."""
        return self._record.summary.exchanges if self._record is not None and self._record.summary is not None else 0

    @property
    def troubles(self) -> Sequence[str]:
        """Why the recording is incomplete."""
        summary = self._record.summary if self._record is not None else None
        if summary is None or not summary.incomplete:
            return ()
        return summary.troubles or ("the recording is incomplete",)

    @property
    def bypassed(self) -> Sequence[str]:
        """The hosts whose requests were sent live and not recorded."""
        summary = self._record.summary if self._record is not None else None
        return summary.bypassed if summary is not None else ()

    @property
    def tape_warnings(self) -> Sequence[str]:
        """The warnings of the tape: missing data."""
        return self._replay.session.tapes[0].warnings if self._replay is not None else ()

    @property
    def strict(self) -> bool:
        return self._options.strict

    @property
    def is_missing(self) -> bool:
        """True if the test must run from a tape that does not exist."""
        return not self._exists and not self.recording

    def _new_replay(self) -> Replay:
        options = self._options
        made = ReplayContextOptions(
            options.tier,
            options.pace,
            options.on_miss,
            options.allow_hosts,
            options.repeat,
            options.mask,
            options.faults if self._exists else (),  # without a tape, the error must be that it does not exist
            options.max_age,
            cast(AgeAction | None, options.max_age_action),
            on_warning=self.warnings.append,
            how_to_record=self._fixes.rewriting(),
            on_unserved_children=self._warn if self._record is not None else None,
            miss_fix=self._miss_fix,
        )
        if self._record is None:
            return Replay((self._read(),), made)
        return UpdateWithChildren((self._read(),), made, self._record)

    def _read(self) -> Tape:
        """The tape; empty if it does not exist, as a test without calls needs no tape."""
        if self._exists:
            return read_tape(shown(self.tape))
        header = Header(wiretape=VERSION, started=datetime.now(UTC), recorder=f"wiretape {__version__}")
        return Tape(shown(self.tape), header, (), (), False)

    def _played(self) -> tuple[Exchange, ...]:
        if self._replay is None:
            return ()
        recorded = {one.number: one for tape in self._replay.session.tapes for one in tape.exchanges}
        return tuple(recorded[played.answer.exchange] for played in self._replay.report.played if not played.repeated)

    @property
    def fresh(self) -> tuple[Exchange, ...]:
        """The exchanges of the recording and its journal, after those of the tape that it continues."""
        if self.staged is None or not tape_exists(self.staged.fresh):
            return ()
        return read_tape(self.staged.fresh).exchanges


def _close_quietly(replay: Replay) -> None:
    """Close a replay. The plugin reports its misses, as it knows the outcome of the test."""
    with suppress(MissError):
        replay.__exit__(None, None, None)
