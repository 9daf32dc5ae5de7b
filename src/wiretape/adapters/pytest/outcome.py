"""The outcome of a test that has a tape: misses fail it, even if it hid them; its recording is kept or discarded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

import pytest

from wiretape.adapters.pytest.fixture import Wiretape
from wiretape.adapters.pytest.options import Mode, TapeOptions
from wiretape.adapters.pytest.report.failures import Fixes, headline, unanswered
from wiretape.adapters.pytest.report.summary import ReportData, Summary
from wiretape.adapters.pytest.report.updates import TapeUpdate, dropped_names, first_recording, update_of
from wiretape.adapters.pytest.tape_paths import shown, tape_directory, twins
from wiretape.adapters.pytest.tape_users import test_id, typed
from wiretape.adapters.update.staged_recording import StagedRecording
from wiretape.adapters.update.write_updated import TapePlacement
from wiretape.errors import MissInterrupt, NotATape, TapeDamaged, WiretapeError
from wiretape.matching.report import ReportedExchange
from wiretape.matching.values import Miss
from wiretape.model.wording import listed

_MOST_MISSES = 3  # misses whose text is printed; the others are counted
_MOST_NAMED = 12


class TapedTest:
    """A test, its tape, and the outcomes of its phases."""

    def __init__(self, item: pytest.Item, options: TapeOptions, tape: Path, summary: Summary) -> None:
        self._item = item
        self._summary = summary
        self._options = options
        users, elsewhere = summary.users_of(item, tape), summary.is_of_another_worker(tape)
        self._fixes = Fixes(typed(test_id(item), item.config), tape.exists(), users, elsewhere)
        self._placement = TapePlacement(tape, summary.turns)  # before the mode: one of them notices another worker
        mode = summary.mode_for(tape)
        self.wiretape = Wiretape(tape, options, mode, self._fixes, item.config.rootpath)
        self._outcomes: dict[str, str] = {}
        self._reported_misses = 0
        self.finished: list[str] = []  # lines about the recording
        self.made: list[tuple[str, int]] = []  # recorded tapes, and the number of their new exchanges
        self.updated: TapeUpdate | None = None  # in mode `update`
        summary.began(item.nodeid, self)

    def begin(self) -> None:
        """Open the tape. A damaged tape or an unwritable directory fails the test with a fix."""
        tape = shown(self.wiretape.tape)
        try:
            self.wiretape.begin()
        except (NotATape, TapeDamaged) as error:
            fix = f"  to record it again: {self._fixes.rewriting()}"
            raise pytest.fail.Exception(f"{error}\n{fix}", pytrace=False) from None
        except OSError as error:
            text = (
                f"{tape} cannot be recorded: {error.strerror or error} ({error.filename})\n"
                "  the recording is written to the same directory: make it writable, or name another\n"
                "  (wiretape_dir in the configuration of pytest)"
            )
            raise pytest.fail.Exception(text, pytrace=False) from None

    # -- failures ----------------------------------------------------------------------------------------------------

    def explain(self, error: BaseException) -> None:
        """Fail a test that raised an error with its misses first: they are usually the cause."""
        if isinstance(error, (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt)):
            return
        if self._unreported():
            result = [] if self._reports_miss(error) else [f"  the test then failed with {_first_line(error)}"]
            self._fail([*self._misses(), *result], error)
        if refused := self._refused_providers():
            self._fail(refused, error)
        if self.wiretape.is_missing:
            tape, command = shown(self.wiretape.tape), self._fixes.command("once")
            error.add_note(f"the tape {tape} does not exist; to record it: {command}")
        for warning in self.wiretape.tape_warnings[:_MOST_MISSES]:  # an incomplete answer ends as its recording did
            error.add_note(f"the tape is incomplete: {warning}\n  to fix it: {self._fixes.updating()}")

    def judge(self) -> None:
        """Fail a test that passed with misses. Calls that are left over may still be made by its fixtures."""
        lines = [*self._misses(), *self._refused_providers()]
        if lines:
            self._fail(lines)

    def _left_over(self) -> list[str]:
        """Lines about calls that a strict test has left over."""
        left = self.wiretape.report.left_over
        if not left or not self.wiretape.strict or self.wiretape.recording or self.wiretape.update_session is not None:
            return []
        names = ", ".join(f"{one} ({one.what})" for one in left[:_MOST_NAMED])
        more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        return [
            f"{len(left)} recorded on {shown(self.wiretape.tape)} and not requested: {names}{more}",
            f"  if the change is intended: {self._fixes.updating()}",
        ]

    def _fail(self, lines: list[str], error: BaseException | None = None) -> NoReturn:
        failure = pytest.fail.Exception("\n".join(lines), pytrace=False)
        raise failure.with_traceback(error.__traceback__ if error is not None else None) from None

    def _unreported(self) -> list[Miss]:
        return self.wiretape.misses[self._reported_misses :]

    def _misses(self) -> list[str]:
        misses = self._unreported()
        self._reported_misses += len(misses)
        if not misses:
            return []
        tape = self.wiretape.tape
        first = f"the tape {shown(tape)} does not exist" if self.wiretape.is_missing else headline(misses[0], tape.name)
        lines = [first] if first else []
        if len(misses) > 1:
            lines.append(f"{len(misses)} requests had no recorded answer")
        lines += [miss.message for miss in misses[:_MOST_MISSES]]
        lines += [f"  the tape is incomplete: {warning}" for warning in self.wiretape.tape_warnings[:_MOST_MISSES]]
        if len(misses) > _MOST_MISSES:
            lines.append(f"and {len(misses) - _MOST_MISSES} more")
        strays = [stray.what for stray in self.wiretape.report.strayed]
        if strays:
            lines.append(f"  answered 404, neither model calls nor recorded: {', '.join(strays[:_MOST_NAMED])}")
        return lines

    def _reports_miss(self, error: BaseException) -> bool:
        if isinstance(error, MissInterrupt):
            return True
        text = str(error)
        return any(miss.message.partition("\n")[0] in text for miss in self.wiretape.misses)

    def _refused_providers(self) -> list[str]:
        """Models that an unpatched library tried to reach count as misses."""
        refused = [where for where, provider in self.wiretape.guard.refused.items() if provider]
        return [self._fixes.of_refusal(where) for where in refused]

    def _unused_faults(self) -> list[str]:
        """Lines about faults that were not injected: the test has not tested them. Live calls get no faults."""
        if self.wiretape.new_exchanges:
            return []
        faults = ", ".join(self.wiretape.report.not_injected)
        return [f"{faults} was not injected: no request matched its call"] if faults else []

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self, torn_down: bool) -> None:
        """Judge the test after its teardown. A recording replaces the tape only if the test passed completely."""
        outcomes = [self._outcomes.get(phase) for phase in ("setup", "call")]  # the test may open its tape itself
        passed = torn_down and outcomes in (["passed", "passed"], [None, "passed"])
        self._summary.ended(self._item)
        unused = self._unused_faults() if passed else []
        try:
            self._finish_recording(passed and not unused and not self._unreported())
        except (WiretapeError, OSError) as error:
            self._fail([f"the recording of {shown(self.wiretape.tape)} cannot be kept: {error}"])
        if torn_down and self._unreported():
            self._fail(self._misses())
        if passed and (lines := [*unused, *self._left_over()]):
            self._fail(lines)

    def _finish_recording(self, passed: bool) -> None:
        made, wiretape = self.wiretape.staged, self.wiretape
        if made is None:
            return
        tape = shown(wiretape.tape)
        if passed and not wiretape.troubles and wiretape.mode is Mode.UPDATE:
            self._update(made)
            return
        if not wiretape.new_exchanges:
            made.remove()
            self._report_bypassed()
            return
        if passed and not wiretape.troubles:
            self._keep(made)
            for twin in twins(wiretape.tape):
                self.finished.append(
                    f"{tape.name} and {twin.name} differ only in case: macOS and Windows take them for one file\n"
                    '  name one of them: @pytest.mark.wiretape("…"), or change the id of its parameter'
                )
            return
        failed = self._unanswered()
        aside = made.put_aside(self._place_aside())
        why = f"the recording is incomplete ({wiretape.troubles[0]})" if passed else "the test did not pass"
        old = f"{tape} is unchanged" if wiretape.tape.exists() else f"{tape} was not created"
        kept = f"; the recording: {shown(aside)}" if aside is not None else ""
        self.finished.append("\n".join([f"{why}: {old}{kept}", *(f"  {line}" for line in failed)]))

    def _unanswered(self) -> list[str]:
        wiretape = self.wiretape
        recorded = wiretape.session.tapes[0].exchanges if wiretape.session is not None else ()
        try:
            return unanswered(wiretape.fresh[-wiretape.new_exchanges :], recorded)
        except (WiretapeError, OSError):  # an unreadable recording is put aside, too
            return []

    def _report_bypassed(self) -> None:
        """Name hosts that were not recorded, such as a gateway: without a tape the test fails the next time."""
        hosts = [host for host in self.wiretape.bypassed if not self._allows(host)]
        if hosts and self.wiretape.recording:
            globs = ", ".join(f'"{host}"' for host in hosts[:_MOST_NAMED])
            self.finished.append(
                f"nothing was recorded; the test called {', '.join(hosts[:_MOST_NAMED])}\n"
                f"  if models answer there: @pytest.mark.wiretape(hosts=[{globs}]), or hosts in [tool.wiretape]"
            )

    def _allows(self, host: str) -> bool:
        return any(fnmatchcase(host.lower(), glob.lower()) for glob in self._options.allow_hosts)

    def _keep(self, made: StagedRecording) -> None:
        wiretape = self.wiretape
        if (updated := wiretape.updated_tape) is not None:
            self._placement.update(made, updated, drop=False, append=True)
            made.remove()
        elif (dropped := self._placement.keep(made, merge=wiretape.mode is Mode.ALL)) is not None:
            self._summary.dropped(wiretape.tape, dropped)
        self._summary.recorded(wiretape.tape)
        self.made.append((str(shown(wiretape.tape)), wiretape.new_exchanges))

    def _update(self, made: StagedRecording) -> None:
        """Mode `update`: drop the calls that are left over, unless other tests use the tape."""
        wiretape, users = self.wiretape, self._fixes.users
        session, updated = wiretape.update_session, wiretape.updated_tape
        if session is None or updated is None:  # the tape did not exist
            if wiretape.new_exchanges:
                self._keep(made)
                self.updated = first_recording(wiretape.tape, users)
            made.remove()
            return
        report = session.report()
        self.updated = update_of(wiretape.tape, users, updated, session.called_live)
        if not updated.entries and updated.old.exchanges and users is None:
            self.finished.append(f"no model was called: {shown(wiretape.tape)} is unchanged")
        elif not session.drifted:
            self.updated["fresh"] = 0
        elif updated.fresh or users is None:
            put = self._placement.update(made, updated, drop=users is None, append=False)
            self.updated["fresh"] = len(put.fresh)
            if put.left:
                self.updated["dropped"] = dropped_names(report, session.called_live)
        made.remove()

    def _place_aside(self) -> Path | None:
        cache = getattr(self._item.config, "cache", None)
        if cache is None:
            return None
        place: Path = cache.mkdir("wiretape")
        directory, tape = tape_directory(self._item.config), self.wiretape.tape
        return place / tape.parent.relative_to(directory) if tape.is_relative_to(directory) else place

    # -- the report --------------------------------------------------------------------------------------------------

    def reported(self, report: pytest.TestReport) -> None:
        """Attach data to a report: it reaches the process that prints, also from the workers of xdist."""
        self._outcomes[report.when] = report.outcome
        data: ReportData = {}
        if report.when == "call":
            data = {"drift": list(self._drift()), "outside": self._outside(), "old": self.wiretape.warnings}
        elif report.when == "teardown":
            data = {"recorded": self.finished, "made": self.made}
            if self.updated is not None:
                data["updated"] = self.updated
        report.wiretape = data  # type: ignore[attr-defined]

    def _drift(self) -> Iterator[str]:
        for drift in self.wiretape.report.drifted:
            yield f"{drift.where} in {_names(drift.calls)} ({drift.tier})"
            yield f"  recorded  {drift.recorded_excerpt}"
            yield f"  live      {drift.live_excerpt}"

    def _outside(self) -> list[str]:
        strays = [f"{stray.what}: answered 404, not on the tape" for stray in self.wiretape.report.strayed]
        return strays + [f"{where}: refused" for where in self.wiretape.guard.refused]


def _names(calls: Sequence[ReportedExchange]) -> str:
    return listed(calls, _MOST_NAMED)


def _first_line(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
