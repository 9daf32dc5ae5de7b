"""What the `wiretape` fixture gives a test: its tape, and what has been played from it or recorded on it so far."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wiretape._version import __version__
from wiretape.adapters.inprocess.api import record
from wiretape.adapters.inprocess.context_children import LockedSession
from wiretape.adapters.inprocess.context_record import Record
from wiretape.adapters.inprocess.context_replay import OnMiss, Replay, TierName
from wiretape.adapters.inprocess.fork_channel import ForkChannel
from wiretape.adapters.inprocess.network_guard import NetworkGuard
from wiretape.adapters.pytest.child_processes import SharedRecorder, recording_children
from wiretape.adapters.pytest.late_threads import LATE_THREADS
from wiretape.adapters.pytest.options import Mode, TapeOptions
from wiretape.adapters.pytest.report.fixes import Fixes
from wiretape.adapters.pytest.report.frames import asked_at
from wiretape.adapters.pytest.tape_paths import shown
from wiretape.adapters.pytest.thread_context import Origin
from wiretape.adapters.pytest.update.mixed import UpdatingReplay
from wiretape.adapters.pytest.update.new_tape import UpdatedTape
from wiretape.adapters.update.staging import StagedRecording, tape_exists
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
    """The turns of a test, from 0. One that is not there says what is."""

    def __getitem__(self, place: Any) -> Any:
        try:
            return super().__getitem__(place)
        except IndexError:
            there = f"{plural(len(self), 'turn')} so far, counted from 0" if self else "no turn so far"
            raise IndexError(f"there is no turn {place}: the test has made {there}") from None


class Wiretape:
    """One test and its tape.

    `tape` is its place; `recording` says whether the test runs live. Everything else may be asked at any time.
    """

    def __init__(self, tape: Path, asked: TapeOptions, mode: Mode, mending: Fixes, root: Path) -> None:
        self.tape = tape
        self._root = root
        self.mode = mode
        self._options = asked
        self._fixes = mending
        self._there = tape_exists(tape)
        self.recording = mode in (Mode.ALL, Mode.REWRITE) or (not self._there and mode is not Mode.NONE)
        self.guard = NetworkGuard(asked.allow_hosts, self._refusal)
        self.rerecording: StagedRecording | None = None
        self.warnings: list[str] = []  # of the tape's age, and of child processes that are not recorded
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
        """What was played, drifted, missed and left over so far; empty while recording."""
        if isinstance(self._replay, UpdatingReplay):  # what is not on the tape is recorded
            return self._replay.report.model_copy(update={"missed": (), "strayed": ()})
        if self._replay is not None:
            return self._replay.report
        return empty_report(str(shown(self.tape)))

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """What this test has played or recorded so far."""
        renewal = self.renewal
        return tuple(renewal.exchanges) if renewal is not None else self._played() + self.fresh

    @property
    def stats(self) -> StatsReport:
        """What `wiretape stats` would say of this test so far."""
        return stats(self._run())

    def lint(self, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[LintFinding]:
        """What `wiretape lint` would find in this test so far; secrets are looked for in the tape only."""
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
        """As pytest shows it beside an assertion that failed."""
        return f"<wiretape {shown(self.tape)}, {'recording' if self.recording else f'mode {self.mode}'}>"

    def environ(self) -> dict[str, str]:
        """The environment that child processes of this test get, for those that are not started from Python."""
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
            if self.rerecording is not None:
                self.rerecording.remove()
            raise

    def _begin(self) -> None:
        origin = Origin(self._fixes.test, self._options.allow_hosts)
        LATE_THREADS.begin(origin)
        self._open.callback(LATE_THREADS.end, origin)
        if self.recording or self.mode in (Mode.NEW, Mode.UPDATE):
            self.rerecording = StagedRecording(self.tape, goes_on=not self.recording)
            self._record = record(self.rerecording.fresh, hosts=self._options.hosts, append=True)
            self._record.says_empty = False  # a test may ask nothing
        if self._record is not None and self.recording:
            self._record.serve_children = functools.partial(recording_children, self._record, self._options.hosts)
            self._record.on_unserved_children = self._warn
            self._record.forks = ForkChannel({"context": self._record, "recorder": SharedRecorder(self._record)})
            self._open.enter_context(self._record)
            return
        replay = self._replaying()
        replay.miss_fix = functools.partial(self._miss_fix, replay)
        self._open.push(self._leave_replay(replay))
        self._replay = replay  # one that has begun
        replay.forks = self._forks(replay)
        if self._record is None:
            self.guard.own_ports, self.guard.note = replay.child_ports, self._note_refused
            self._open.enter_context(self.guard)

    def _forks(self, replay: Replay) -> ForkChannel:
        asked: dict[str, object] = {"context": replay, "session": LockedSession(replay), "refused": self.guard.refused}
        if isinstance(replay, UpdatingReplay):
            asked |= {"renewing": replay.renewing, "recorder": SharedRecorder(replay.recording)}
        return ForkChannel(asked)

    def _note_refused(self, asked: str, is_provider: bool) -> None:
        if self._replay is not None and self._replay.is_copy and self._replay.forks is not None:
            self._replay.forks.call("refused", "__setitem__", asked, is_provider)
        else:
            self.guard.refused[asked] = is_provider

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _refusal(self, asked: str) -> str:
        outlived = LATE_THREADS.here()
        return outlived.message(asked) if outlived is not None else self._fixes.refusal(asked)

    def _miss_fix(self, replay: Replay, reason: MissReason) -> str:
        """Runs where the request is made: on its thread, below whoever makes it."""
        said = self._fixes.mend(reason, bool(replay.session.report().left_over))
        place = asked_at(self._root)
        return f"  asked at {place}\n{said}" if place is not None else said

    def end(self) -> None:
        """The test is over: every door closes."""
        self._open.close()

    @property
    def misses(self) -> list[Miss]:
        if isinstance(self._replay, UpdatingReplay):
            return self._replay.unplayed
        if self._replay is None:
            return []
        return self._replay.session.misses

    @property
    def renewing(self) -> UpdateSession | None:
        """What of the tape answers, in the modes that ask the rest live."""
        return self._replay.renewing if isinstance(self._replay, UpdatingReplay) else None

    @property
    def renewal(self) -> UpdatedTape | None:
        """What that makes of the tape so far."""
        if self.renewing is None or self.rerecording is None or not tape_exists(self.rerecording.fresh):
            return None
        return UpdatedTape.of(self.renewing.session.tapes[0], self.renewing, read_tape(self.rerecording.fresh))

    @property
    def new_exchanges(self) -> int:
        """How many exchanges were recorded."""
        return self._record.summary.exchanges if self._record is not None and self._record.summary is not None else 0

    @property
    def troubles(self) -> Sequence[str]:
        """Why the recording lacks something."""
        summary = self._record.summary if self._record is not None else None
        if summary is None or not summary.incomplete:
            return ()
        return summary.troubles or ("the recording is incomplete",)

    @property
    def went_past(self) -> Sequence[str]:
        """The hosts that were asked live and are not recorded."""
        summary = self._record.summary if self._record is not None else None
        return summary.bypassed if summary is not None else ()

    @property
    def lacks(self) -> Sequence[str]:
        """What the tape says that it lacks."""
        return self._replay.session.tapes[0].warnings if self._replay is not None else ()

    @property
    def strict(self) -> bool:
        return self._options.strict

    @property
    def is_missing(self) -> bool:
        """Whether the test runs from a tape that is not there."""
        return not self._there and not self.recording

    def _replaying(self) -> Replay:
        tape = self._tape()
        asked = self._options
        tier, on_miss = cast(TierName, asked.tier), cast(OnMiss, asked.on_miss)
        kind = Replay if self._record is None else UpdatingReplay
        faults = asked.faults if self._there else ()  # that there is no tape is what must be told then
        action = cast(AgeAction | None, asked.max_age_action)
        made = kind(
            (tape,),
            tier,
            asked.pace,
            on_miss,
            asked.allow_hosts,
            asked.repeat,
            asked.mask,
            faults,
            asked.max_age,
            action,
        )
        made.on_warning, made.renewal = self.warnings.append, self._fixes.rewriting()
        if isinstance(made, UpdatingReplay) and self._record is not None:
            made.recording, made.hosts, made.on_unserved_children = self._record, self._options.hosts, self._warn
        return made

    def _tape(self) -> Tape:
        """A test that makes no call needs no tape: one that is not there has nothing on it."""
        if self._there:
            return read_tape(shown(self.tape))
        header = Header(wiretape=VERSION, started=datetime.now(UTC), recorder=f"wiretape {__version__}")
        return Tape(shown(self.tape), header, (), (), False)

    def _leave_replay(self, opened: Replay) -> ExitStack:
        """Misses are told by the plugin, which knows what became of the test."""
        stack = ExitStack()
        opened.__enter__()

        def leave() -> None:
            with suppress(MissError):
                opened.__exit__(None, None, None)

        stack.callback(leave)
        return stack

    def _played(self) -> tuple[Exchange, ...]:
        if self._replay is None:
            return ()
        recorded = {one.number: one for tape in self._replay.session.tapes for one in tape.exchanges}
        return tuple(recorded[played.answer.exchange] for played in self._replay.report.played if not played.repeated)

    @property
    def fresh(self) -> tuple[Exchange, ...]:
        """What the recording holds, its journal included; in the modes that go on with a tape, all of that before."""
        if self.rerecording is None or not tape_exists(self.rerecording.fresh):
            return ()
        return read_tape(self.rerecording.fresh).exchanges
