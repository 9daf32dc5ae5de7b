"""The summary of a run: recorded tapes, drift, orphans. Collects them from the workers of xdist, too.

Loaded in every pytest run: import nothing heavy here.
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
    from wiretape.adapters.pytest.report.updates import TapeUpdate
    from wiretape.adapters.pytest.tape_users import Users
    from wiretape.tape.reading.reader import Tape

_WORKER = "wiretape"  # the key of our data in the input and output of a worker of xdist


class ReportData(TypedDict, total=False):
    """The data that the report of a test carries."""

    drift: list[str]
    outside: list[str]
    recorded: list[str]
    made: list[tuple[str, int]]
    updated: TapeUpdate
    old: list[str]


class OpenTest(Protocol):
    """A test whose tape is open."""

    finished: list[str]
    made: list[tuple[str, int]]

    def finish(self, torn_down: bool) -> None: ...


class Summary:
    """One for each process. The one of the process that prints has the data of all workers."""

    def __init__(self, config: pytest.Config, mode: Mode) -> None:
        self._config = config
        self._mode = mode
        self._began: float = getattr(config, "workerinput", {}).get(_WORKER, time.time())  # of all workers
        self._recorded_here: set[Path] = set()
        self._items: Sequence[pytest.Item] = ()
        self._items_of: dict[Path, list[pytest.Item]] | None = None
        self._dropped: dict[Path, Tape] = {}  # exchanges of old tapes that rewrites dropped
        self._data: dict[str, ReportData] = {}
        self._running: dict[str, OpenTest] = {}
        self._used: set[str] = set()
        self._late: dict[str, int] = {}  # messages about requests after the end of their test, and how often
        self._updates: list[str] = []  # lines about updated tapes
        self._partial = ""  # why other tests exist that were not collected

    # -- modes -------------------------------------------------------------------------------------------------------

    def mode_for(self, tape: Path) -> Mode:
        """The mode for a tape: a test must keep what another test has just recorded on the same tape."""
        if tape in self._recorded_here or self.is_of_another_worker(tape):
            return {Mode.ONCE: Mode.NEW, Mode.REWRITE: Mode.ALL}.get(self._mode, self._mode)
        return self._mode

    def recorded(self, tape: Path) -> None:
        self._recorded_here.add(tape)

    def is_of_another_worker(self, tape: Path) -> bool:
        """True if another worker of xdist has recorded the tape in this run."""
        if not hasattr(self._config, "workerinput") or self._mode is Mode.NONE or tape in self._recorded_here:
            return False
        try:
            return tape.stat().st_mtime >= self._began
        except OSError:
            return False

    @property
    def turns(self) -> Path | None:
        """The file that the workers of xdist lock in turn; None without workers, or without a cache directory."""
        cache = getattr(self._config, "cache", None)
        if cache is None or not hasattr(self._config, "workerinput"):
            return None
        place: Path = cache.mkdir("wiretape")
        return place / ".turns"

    def dropped(self, tape: Path, dropped: Tape) -> None:
        """A rewrite dropped these exchanges of the old tape. Other tests of the tape may still record them again."""
        self._dropped.setdefault(tape, dropped)

    def began(self, test: str, open_test: OpenTest) -> None:
        self._running[test] = open_test

    def ended(self, item: pytest.Item) -> None:
        self._running.pop(item.nodeid, None)

    # -- tests of a tape ----------------------------------------------------------------------------------------------

    def users_of(self, item: pytest.Item, tape: Path) -> Users | None:
        """The tests that use a tape; None if only this test uses it."""
        if named_by(item) is None:
            return None
        from wiretape.adapters.pytest.tape_users import Users, arguments, test_id, typed

        if self._items_of is None:
            self._items_of = {}
            for one in filter(has_tape, self._items):
                with suppress(UsageError):  # reported by that test
                    self._items_of.setdefault(tape_of(one), []).append(one)
        users = self._items_of.get(tape, [item])
        if len(users) < 2 and not self._partial:
            return None
        found = arguments([test_id(one) for one in users], map(test_id, self._items or [item]))
        shortest = tuple(typed(one, self._config) for one in found)
        return Users(shortest, self._partial, tuple(one.nodeid for one in users))

    # -- collecting --------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data: ReportData | None = getattr(report, "wiretape", None)
        if data:
            self._data.setdefault(report.nodeid, {}).update(data)

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
        """A worker of xdist starts, perhaps to replace a crashed worker."""
        node.workerinput[_WORKER] = self._began

    @pytest.hookimpl(trylast=True)  # after the teardown of session fixtures
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for test, interrupted in list(self._running.items()):
            with suppress(pytest.fail.Exception):  # the test has ended already
                interrupted.finish(False)
            data: ReportData = {"recorded": interrupted.finished, "made": interrupted.made}
            self._data.setdefault(test, {}).update(data)
        if (late_threads := sys.modules.get("wiretape.adapters.pytest.late_threads")) is not None:
            self._late.update(late_threads.LATE_THREADS.close())
        if self._late and session.exitstatus == pytest.ExitCode.OK:  # their tests have passed already
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            import pickle

            dropped = pickle.dumps(self._dropped) if self._dropped else b""  # compared when all workers have finished
            output[_WORKER] = {
                "used": sorted(self._used),
                "partial": self._partial,
                "dropped": dropped,
                "late": self._late,
            }
            return
        updates = {test: data["updated"] for test, data in self._data.items() if "updated" in data}
        if updates:
            from wiretape.adapters.pytest.report.updates import finish_updates
            from wiretape.adapters.settings import load_settings

            self._updates = finish_updates(updates, load_settings(self._config.invocation_params.dir))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist has finished. All workers collect the same tests."""
        output = getattr(node, "workeroutput", {}).get(_WORKER, {})
        self._used.update(output.get("used", ()))
        self._partial = self._partial or output.get("partial", "")
        self._late.update(output.get("late", {}))
        if dropped := output.get("dropped"):
            import pickle

            self._dropped.update(pickle.loads(dropped))

    # -- printing ----------------------------------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = [
            *self._late_requests(),
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

    def _late_requests(self) -> Iterable[str]:
        if self._late:
            yield "requests after the end of their test, which fail the run:"
        for message, times in self._late.items():
            first, *more = message.split("\n")
            yield f"  {first}{f' ({times} times)' if times > 1 else ''}"
            yield from (f"  {line}" for line in more)

    def _recordings(self) -> Iterable[str]:
        """One line for each tape, however many tests have recorded it."""
        exchanges: dict[str, int] = {}
        for data in self._data.values():
            for tape, number in data.get("made", ()):
                exchanges[tape] = exchanges.get(tape, 0) + number
        for tape, number in exchanges.items():
            dropped = self._still_dropped(Path(tape).absolute())
            more = f"; {plural(dropped, 'older call')} dropped" if dropped else ""
            yield f"recorded {tape} ({plural(number, 'exchange')}{more})"
        for test, data in self._data.items():
            yield from (f"{test}: {line}" for line in data.get("recorded", ()))

    def _still_dropped(self, tape: Path) -> int:
        """The number of exchanges that a rewrite dropped and no test has recorded again."""
        if tape not in self._dropped:
            return 0
        from wiretape.adapters.update.write_updated import left_of
        from wiretape.tape.reading.reader import read_tape

        try:
            still = left_of(self._dropped[tape], read_tape(tape))
        except (WiretapeError, OSError):  # deleted, perhaps with the directory of its tests
            return 0
        return len(still.exchanges) if still is not None else 0

    def _old_tapes(self) -> Iterable[str]:
        """The warnings of old tapes, once for each tape."""
        warnings = [warning for data in self._data.values() for warning in data.get("old", ())]
        firsts = {warning.partition("\n")[0]: warning for warning in reversed(warnings)}
        for warning in reversed(firsts.values()):
            yield from warning.split("\n")

    def _differences(self, verbose: bool) -> Iterable[str]:
        if verbose:
            for test, data in self._data.items():
                yield from _listed(f"{test} drifted", data.get("drift", ()))
                yield from _listed(f"{test} sent requests that are not on its tape", data.get("outside", ()))
            return
        drifted = sum(1 for data in self._data.values() if data.get("drift"))
        if drifted:
            yield f"{plural(drifted, 'test')} drifted from the recording (-v shows where)"

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
    if config.getoption("lf", False):  # skips modules without failures
        return "only the last failures were collected"
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return ""
    given = {Path(config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in config.args}
    whole = {config.rootpath / path for path in config.getini("testpaths")} or {config.rootpath}
    if "::" in "".join(config.args) or not (whole <= given or config.rootpath in given):
        return "only a part of the tests was collected"
    return ""
