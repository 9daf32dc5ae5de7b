"""What the terminal says at the end of a run: tapes that were recorded, drift, orphans. Collects it from xdist, too.

Loaded in every pytest run of whoever has wiretape installed: nothing heavy may be imported here.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import pytest

from wiretape.adapters.pytest.options import Mode, has_tape, named_by
from wiretape.adapters.pytest.tape_paths import SUFFIXES, shown, tape_directory, tape_of
from wiretape.errors import UsageError, WiretapeError
from wiretape.model.wording import plural

if TYPE_CHECKING:
    from wiretape.adapters.pytest.tape_users import Users
    from wiretape.adapters.pytest.update.report import TapeUpdate
    from wiretape.tape.reading.reader import Tape

_WORKER = "wiretape"  # the key of what a worker of xdist is given, and hands over


class ReportData(TypedDict, total=False):
    """What a test's report carries."""

    drift: list[str]
    outside: list[str]
    recorded: list[str]
    made: list[tuple[str, int]]
    updated: TapeUpdate
    old: list[str]


class OpenTest(Protocol):
    """A test with a tape."""

    finished: list[str]
    made: list[tuple[str, int]]

    def finish(self, torn_down: bool) -> None: ...


class Summary:
    """One for each process; that of the process that prints knows everything."""

    def __init__(self, config: pytest.Config, mode: Mode) -> None:
        self._config = config
        self._mode = mode
        self._began: float = getattr(config, "workerinput", {}).get(_WORKER, time.time())  # the whole run, as files do
        self._recorded_here: set[Path] = set()
        self._items: Sequence[pytest.Item] = ()
        self._items_of: dict[Path, list[pytest.Item]] | None = None
        self._left: dict[Path, Tape] = {}  # what rewrites dropped of old tapes
        self._told: dict[str, ReportData] = {}
        self._running: dict[str, OpenTest] = {}
        self._used: set[str] = set()
        self._late: dict[str, int] = {}  # what was asked after the end of its test, and how often
        self._updates: list[str] = []  # what became of the tapes that were updated
        self._partial = ""  # why the collected tests are not all there are

    # -- modes -------------------------------------------------------------------------------------------------------

    def mode_for(self, tape: Path) -> Mode:
        """Tests that share a tape do not undo what another one has just recorded."""
        if tape in self._recorded_here or self.is_of_another_worker(tape):
            return {Mode.ONCE: Mode.NEW, Mode.REWRITE: Mode.ALL}.get(self._mode, self._mode)
        return self._mode

    def recorded(self, tape: Path) -> None:
        self._recorded_here.add(tape)

    def is_of_another_worker(self, tape: Path) -> bool:
        """Whether another worker of xdist has recorded a tape in this run."""
        if not hasattr(self._config, "workerinput") or self._mode is Mode.NONE or tape in self._recorded_here:
            return False
        try:
            return tape.stat().st_mtime >= self._began
        except OSError:
            return False

    @property
    def turns(self) -> Path | None:
        """The file whose lock the workers of xdist take in turn; None without workers, or a place that all know."""
        cache = getattr(self._config, "cache", None)
        if cache is None or not hasattr(self._config, "workerinput"):
            return None
        place: Path = cache.mkdir("wiretape")
        return place / ".turns"

    def dropped(self, tape: Path, left: Tape) -> None:
        """A rewrite has dropped this of the old tape; tests that share the tape may record it anew yet."""
        self._left.setdefault(tape, left)

    def began(self, test: str, finishing: OpenTest) -> None:
        self._running[test] = finishing

    def ended(self, item: pytest.Item) -> None:
        self._running.pop(item.nodeid, None)

    # -- who uses a tape ---------------------------------------------------------------------------------------------

    def users_of(self, item: pytest.Item, tape: Path) -> Users | None:
        """None: no other test uses the tape of this one."""
        if named_by(item) is None:
            return None
        from wiretape.adapters.pytest.tape_users import Users, arguments, test_id, typed

        if self._items_of is None:
            self._items_of = {}
            for one in filter(has_tape, self._items):
                with suppress(UsageError):  # told by that test
                    self._items_of.setdefault(tape_of(one), []).append(one)
        users = self._items_of.get(tape, [item])
        if len(users) < 2 and not self._partial:
            return None
        found = arguments([test_id(one) for one in users], map(test_id, self._items or [item]))

        typed_ones = tuple(typed(one, self._config) for one in found)
        tests = tuple(one.nodeid for one in users)
        return Users(typed_ones, self._partial, tests)

    # -- collecting --------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: ReportData | None = getattr(report, "wiretape", None)
        if not told:
            return
        self._told.setdefault(report.nodeid, {}).update(told)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        if items:
            self._partial = "some tests are deselected"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._partial = "some tests cannot be collected"

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._items = session.items
        self._partial = self._partial or _not_all(self._config)
        if self._config.getoption("wiretape_orphans"):
            for item in filter(has_tape, session.items):
                with suppress(UsageError):
                    self._used.add(os.fspath(tape_of(item)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker of xdist is to be started, maybe in the place of one that died."""
        node.workerinput[_WORKER] = self._began

    @pytest.hookimpl(trylast=True)  # its fixtures are torn down before
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for test, interrupted in list(self._running.items()):
            with suppress(pytest.fail.Exception):  # nobody is left to be failed
                interrupted.finish(False)
            told: ReportData = {"recorded": interrupted.finished, "made": interrupted.made}
            self._told.setdefault(test, {}).update(told)
        if (outlived := sys.modules.get("wiretape.adapters.pytest.late_threads")) is not None:
            self._late.update(outlived.LATE_THREADS.close())
        if self._late and session.exitstatus == pytest.ExitCode.OK:  # no test is left that it could fail
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            import pickle

            left = pickle.dumps(self._left) if self._left else b""  # all workers must be done before it is looked at
            handed = {"used": sorted(self._used), "partial": self._partial, "left": left, "late": self._late}
            output[_WORKER] = handed
            return
        updates = {test: told["updated"] for test, told in self._told.items() if "updated" in told}
        if updates:
            from wiretape.adapters.pytest.update.report import settled
            from wiretape.adapters.settings import load_settings

            self._updates = settled(updates, load_settings(self._config.invocation_params.dir))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist is done. All of them collect the same tests."""
        handed = getattr(node, "workeroutput", {}).get(_WORKER, {})
        self._used.update(handed.get("used", ()))
        self._partial = self._partial or handed.get("partial", "")
        self._late.update(handed.get("late", {}))
        if left := handed.get("left"):
            import pickle

            self._left.update(pickle.loads(left))

    # -- printing ----------------------------------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = [
            *self._latecomers(),
            *self._recordings(),
            *self._updates,
            *self._old_tapes(),
            *self._differences(terminalreporter.verbosity > 0),
            *self._orphans(),
        ]
        if lines:
            terminalreporter.section("wiretape")
            for line in lines:
                terminalreporter.line(line)

    def _latecomers(self) -> Iterable[str]:
        if self._late:
            yield "asked after the end of a test, which fails the run:"
        for said, times in self._late.items():
            first, *more = said.split("\n")
            yield f"  {first}{f' ({times} times)' if times > 1 else ''}"
            yield from (f"  {line}" for line in more)

    def _recordings(self) -> Iterable[str]:
        """Each tape once, however many tests have recorded it."""
        exchanges: dict[str, int] = {}
        for told in self._told.values():
            for tape, number in told.get("made", ()):
                exchanges[tape] = exchanges.get(tape, 0) + number
        for tape, number in exchanges.items():
            dropped = self._still_left(Path(tape).absolute())
            more = f"; {plural(dropped, 'older call')} dropped" if dropped else ""
            yield f"recorded {tape} ({plural(number, 'exchange')}{more})"
        for test, told in self._told.items():
            yield from (f"{test}: {line}" for line in told.get("recorded", ()))

    def _still_left(self, tape: Path) -> int:
        """How many exchanges a rewrite has dropped that no test has recorded anew since."""
        if tape not in self._left:
            return 0
        from wiretape.adapters.pytest.update.keep import left_of
        from wiretape.tape.reading.reader import read_tape

        try:
            still = left_of(self._left[tape], read_tape(tape))
        except (WiretapeError, OSError):  # it is gone by now, with the directory of its tests maybe
            return 0
        return len(still.exchanges) if still is not None else 0

    def _old_tapes(self) -> Iterable[str]:
        """ReportData once for each tape, however many tests it has."""
        told = [warning for told in self._told.values() for warning in told.get("old", ())]
        firsts = {warning.partition("\n")[0]: warning for warning in reversed(told)}
        for warning in reversed(firsts.values()):
            yield from warning.split("\n")

    def _differences(self, verbose: bool) -> Iterable[str]:
        if verbose:
            for test, told in self._told.items():
                yield from _listed(f"{test} drifted", told.get("drift", ()))
                yield from _listed(f"{test} went outside its tape", told.get("outside", ()))
            return
        drifted = sum(1 for told in self._told.values() if told.get("drift"))
        if drifted:
            yield f"{plural(drifted, 'test')} drifted from what was recorded (-v shows where)"

    def _orphans(self) -> Iterable[str]:
        if not self._config.getoption("wiretape_orphans"):
            return
        if self._partial:
            yield f"orphans are not listed: {self._partial}"
            return
        directory = tape_directory(self._config)
        found = sorted(path for suffix in SUFFIXES for path in directory.rglob(f"*{suffix}"))
        orphans = [path for path in found if os.fspath(path) not in self._used and not path.name.startswith(".")]
        yield from _listed(f"{len(orphans)} tapes that no test uses", [str(shown(path)) for path in orphans])
        if not orphans:
            yield f"every tape in {shown(directory)} is used"


def _listed(title: str, lines: Sequence[str]) -> Iterable[str]:
    if lines:
        yield f"{title}:"
        for line in lines:
            yield f"  {line}"


def _not_all(config: pytest.Config) -> str:
    """Why this run does not collect the whole suite; empty if it does."""
    if config.getoption("ignore") or config.getoption("ignore_glob"):
        return "some tests are ignored"
    if config.getoption("lf", False):  # modules without a failure are not even collected
        return "only what failed last was collected"
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return ""
    given = {Path(config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in config.args}
    whole = {config.rootpath / path for path in config.getini("testpaths")} or {config.rootpath}
    if "::" in "".join(config.args) or not (whole <= given or config.rootpath in given):
        return "only a part of the tests was collected"
    return ""
