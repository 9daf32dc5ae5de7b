"""What becomes of a test that has a tape: misses fail it, whatever it did about them; its recording is kept or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

import pytest

from wiretape.adapters.pytest.fixture import Wiretape
from wiretape.adapters.pytest.headline import headline
from wiretape.adapters.pytest.options import Mode, TapeOptions
from wiretape.adapters.pytest.report.fixes import Fixes
from wiretape.adapters.pytest.report.summary import ReportData, Summary
from wiretape.adapters.pytest.report.unanswered import unanswered
from wiretape.adapters.pytest.tape_paths import shown, tape_directory, twins
from wiretape.adapters.pytest.tape_users import test_id, typed
from wiretape.adapters.pytest.update.keep import TapePlacement
from wiretape.adapters.pytest.update.report import TapeUpdate, named, recorded, updated
from wiretape.adapters.update.staging import StagedRecording
from wiretape.errors import MissInterrupt, NotATape, TapeDamaged, WiretapeError
from wiretape.matching.report import ReportedExchange
from wiretape.matching.values import Miss
from wiretape.model.wording import listed

_MOST_MISSES = 3  # told in full; the rest are counted
_MOST_NAMED = 12


class TapedTest:
    """A test, its tape, and how its phases went."""

    def __init__(self, item: pytest.Item, asked: TapeOptions, tape: Path, summary: Summary) -> None:
        self._item = item
        self._summary = summary
        self._options = asked
        users, elsewhere = summary.users_of(item, tape), summary.is_of_another_worker(tape)
        self._fixes = Fixes(typed(test_id(item), item.config), tape.exists(), users, elsewhere)
        self._keeping = TapePlacement(
            tape, summary.turns
        )  # before the mode: either sees what another worker has recorded
        mode = summary.mode_for(tape)
        self.wiretape = Wiretape(tape, asked, mode, self._fixes, item.config.rootpath)
        self._outcomes: dict[str, str] = {}
        self._told_misses = 0
        self.finished: list[str] = []  # what became of the recording
        self.made: list[tuple[str, int]] = []  # the tape that was recorded, and its new exchanges
        self.updated: TapeUpdate | None = None  # by mode `update`
        summary.began(item.nodeid, self)

    def begin(self) -> None:
        """Opens the tape. What is wrong with it, or with its place, fails the test with what to do about that."""
        tape = shown(self.wiretape.tape)
        try:
            self.wiretape.begin()
        except (NotATape, TapeDamaged) as error:
            anew = f"  to record it anew: {self._fixes.rewriting()}"
            raise pytest.fail.Exception(f"{error}\n{anew}", pytrace=False) from None
        except OSError as error:
            said = (
                f"{tape} cannot be recorded: {error.strerror or error} ({error.filename})\n"
                "  a recording is made beside the tape: make that directory writable, or name another\n"
                "  (wiretape_dir in the configuration of pytest)"
            )
            raise pytest.fail.Exception(said, pytrace=False) from None

    # -- failures ----------------------------------------------------------------------------------------------------

    def explain(self, error: BaseException) -> None:
        """A test that has failed: a miss goes before whatever came of it."""
        if isinstance(error, (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt)):
            return
        if self._untold():
            said = "" if self._is_of_a_miss(error) else f"  what came of it: {_first_line(error)}"
            self._fail([*self._misses(), *([said] if said else [])], error)
        if refused := self._refused_providers():
            self._fail(refused, error)
        if self.wiretape.is_missing:
            tape, command = shown(self.wiretape.tape), self._fixes.command("once")
            error.add_note(f"there is no tape {tape}; to record it: {command}")
        for lack in self.wiretape.lacks[:_MOST_MISSES]:  # an answer that is lost breaks off, as the recording did
            error.add_note(f"the tape is incomplete: {lack}\n  to mend it: {self._fixes.updating()}")

    def judge(self) -> None:
        """A test that is content with itself. What it has not asked for, its fixtures may still ask for."""
        lines = [*self._misses(), *self._refused_providers()]
        if lines:
            self._fail(lines)

    def _left_over(self) -> list[str]:
        """What a strict test should have asked for."""
        left = self.wiretape.report.left_over
        if not left or not self.wiretape.strict or self.wiretape.recording or self.wiretape.renewing is not None:
            return []
        told = ", ".join(f"{one} ({one.what})" for one in left[:_MOST_NAMED])
        more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        return [
            f"{len(left)} recorded on {shown(self.wiretape.tape)} and not asked for: {told}{more}",
            f"  if the change is intended: {self._fixes.updating()}",
        ]

    def _fail(self, lines: list[str], error: BaseException | None = None) -> NoReturn:
        failure = pytest.fail.Exception("\n".join(lines), pytrace=False)
        raise failure.with_traceback(error.__traceback__ if error is not None else None) from None

    def _untold(self) -> list[Miss]:
        return self.wiretape.misses[self._told_misses :]

    def _misses(self) -> list[str]:
        untold = self._untold()
        self._told_misses += len(untold)
        if not untold:
            return []
        tape = self.wiretape.tape
        first = f"there is no tape {shown(tape)}" if self.wiretape.is_missing else headline(untold[0], tape.name)
        lines = [first] if first else []
        if len(untold) > 1:
            lines.append(f"{len(untold)} requests had no recorded answer")
        lines += [miss.message for miss in untold[:_MOST_MISSES]]
        lines += [f"  the tape is incomplete: {lack}" for lack in self.wiretape.lacks[:_MOST_MISSES]]
        if len(untold) > _MOST_MISSES:
            lines.append(f"and {len(untold) - _MOST_MISSES} more")
        strays = [stray.what for stray in self.wiretape.report.strayed]
        if strays:
            lines.append(f"  answered 404, being neither model calls nor recorded: {', '.join(strays[:_MOST_NAMED])}")
        return lines

    def _is_of_a_miss(self, error: BaseException) -> bool:
        if isinstance(error, MissInterrupt):
            return True
        said = str(error)
        return any(miss.message.partition("\n")[0] in said for miss in self.wiretape.misses)

    def _refused_providers(self) -> list[str]:
        """A model that was asked past every door: as good as a miss."""
        asked = [where for where, provider in self.wiretape.guard.refused.items() if provider]
        return [self._fixes.refusal(where) for where in asked]

    def _faults_that_never_came(self) -> list[str]:
        """A test of what a fault does has tested nothing without it. A call that was asked live could not have one."""
        if self.wiretape.new_exchanges:
            return []
        faults = ", ".join(self.wiretape.report.not_injected)
        return [f"{faults} never came: nobody asked for the call that it was to hit"] if faults else []

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self, torn_down: bool) -> None:
        """After teardown. A recording takes the tape's place only if everything went well."""
        outcomes = [self._outcomes.get(phase) for phase in ("setup", "call")]  # a tape may be opened by the call itself
        passed = torn_down and outcomes in (["passed", "passed"], [None, "passed"])
        self._summary.ended(self._item)
        never_came = self._faults_that_never_came() if passed else []
        try:
            self._finish_recording(passed and not never_came and not self._untold())
        except (WiretapeError, OSError) as error:
            self._fail([f"the recording of {shown(self.wiretape.tape)} cannot be kept: {error}"])
        if torn_down and self._untold():
            self._fail(self._misses())
        if passed and (lines := [*never_came, *self._left_over()]):
            self._fail(lines)

    def _finish_recording(self, passed: bool) -> None:
        made, wiretape = self.wiretape.rerecording, self.wiretape
        if made is None:
            return
        tape = shown(wiretape.tape)
        if passed and not wiretape.troubles and wiretape.mode is Mode.UPDATE:
            self._update(made)
            return
        if not wiretape.new_exchanges:
            made.remove()
            self._say_what_went_past()
            return
        if passed and not wiretape.troubles:
            self._keep(made)
            for twin in twins(wiretape.tape):
                self.finished.append(
                    f"{tape.name} and {twin.name} differ in case only: macOS and Windows take them for one tape\n"
                    '  give one of them a name: @pytest.mark.wiretape("…"), or its parameter another id'
                )
            return
        failed = self._unanswered()
        aside = made.put_aside(self._place_aside())
        why = f"the recording is incomplete ({wiretape.troubles[0]})" if passed else "the test did not pass"
        old = f"{tape} is as it was" if wiretape.tape.exists() else f"there is still no {tape}"
        kept = f"; what was recorded: {shown(aside)}" if aside is not None else ""
        self.finished.append("\n".join([f"{why}: {old}{kept}", *(f"  {line}" for line in failed)]))

    def _unanswered(self) -> list[str]:
        wiretape = self.wiretape
        recorded = wiretape.session.tapes[0].exchanges if wiretape.session is not None else ()
        try:
            return unanswered(wiretape.fresh[-wiretape.new_exchanges :], recorded)
        except (WiretapeError, OSError):  # a recording that cannot be read is put aside all the same
            return []

    def _say_what_went_past(self) -> None:
        """A gateway of one's own is recorded only if it is named: without a tape the test would fail the next time."""
        hosts = [host for host in self.wiretape.went_past if not self._lets_through(host)]
        if hosts and self.wiretape.recording:
            named = ", ".join(f'"{host}"' for host in hosts[:_MOST_NAMED])
            self.finished.append(
                f"nothing was recorded: {', '.join(hosts[:_MOST_NAMED])} went past the tape\n"
                f"  if models answer there: @pytest.mark.wiretape(hosts=[{named}]), or hosts in [tool.wiretape]"
            )

    def _lets_through(self, host: str) -> bool:
        return any(fnmatchcase(host.lower(), glob.lower()) for glob in self._options.allow_hosts)

    def _keep(self, made: StagedRecording) -> None:
        wiretape = self.wiretape
        if (renewal := wiretape.renewal) is not None:
            self._keeping.renew(made, renewal, wiretape.mode, self._fixes.users is None)
            made.remove()
        elif (dropped := self._keeping.keep(made, wiretape.mode)) is not None:
            self._summary.dropped(wiretape.tape, dropped)
        self._summary.recorded(wiretape.tape)
        self.made.append((str(shown(wiretape.tape)), wiretape.new_exchanges))

    def _update(self, made: StagedRecording) -> None:
        """Mode `update`: what is on the tape and was not asked for goes now, where no other test may ask for it."""
        wiretape, users = self.wiretape, self._fixes.users
        renewing, renewal = wiretape.renewing, wiretape.renewal
        if renewing is None or renewal is None:  # there was no tape
            if wiretape.new_exchanges:
                self._keep(made)
                self.updated = recorded(wiretape.tape, users)
            made.remove()
            return
        report = renewing.report()
        self.updated = updated(wiretape.tape, users, renewal, renewing.called_live)
        if not renewal.entries and renewal.old.exchanges and users is None:
            self.finished.append(f"no model was asked: {shown(wiretape.tape)} is as it was")
        elif not renewing.drifted:
            self.updated["fresh"] = 0
        elif renewal.fresh or users is None:
            put = self._keeping.renew(made, renewal, wiretape.mode, users is None)
            self.updated["fresh"] = len(put.fresh)
            if put.left:
                self.updated["dropped"] = named(report, renewing.called_live)
        made.remove()

    def _place_aside(self) -> Path | None:
        cache = getattr(self._item.config, "cache", None)
        if cache is None:
            return None
        place: Path = cache.mkdir("wiretape")
        directory, tape = tape_directory(self._item.config), self.wiretape.tape
        return place / tape.parent.relative_to(directory) if tape.is_relative_to(directory) else place

    # -- what is told ------------------------------------------------------------------------------------------------

    def reported(self, report: pytest.TestReport) -> None:
        """Attributes of a report reach the process that prints the summary, also from xdist's workers."""
        self._outcomes[report.when] = report.outcome
        told: ReportData = {}
        if report.when == "call":
            told = {"drift": list(self._drift()), "outside": self._outside(), "old": self.wiretape.warnings}
        elif report.when == "teardown":
            told = {"recorded": self.finished, "made": self.made}
            if self.updated is not None:
                told["updated"] = self.updated
        report.wiretape = told  # type: ignore[attr-defined]

    def _drift(self) -> Iterator[str]:
        for drift in self.wiretape.report.drifted:
            yield f"{drift.where} in {_names(drift.calls)} ({drift.tier})"
            yield f"  recorded  {drift.recorded_excerpt}"
            yield f"  live      {drift.live_excerpt}"

    def _outside(self) -> list[str]:
        strays = [f"{stray.what}: answered 404, not on the tape" for stray in self.wiretape.report.strayed]
        return strays + [f"{asked}: refused" for asked in self.wiretape.guard.refused]


def _names(calls: Sequence[ReportedExchange]) -> str:
    return listed(calls, _MOST_NAMED)


def _first_line(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
