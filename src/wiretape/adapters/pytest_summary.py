"""What the terminal says at the end of a run: tapes that were recorded, drift, orphans. Collects it from xdist, too.

Loaded in every pytest run of whoever has wiretape installed: nothing heavy may be imported here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypedDict

import pytest

from wiretape.adapters.pytest_options import Mode, has_tape
from wiretape.adapters.pytest_places import SUFFIXES, shown, tape_directory, tape_of

_WORKER = "wiretape"  # the key of what a worker of xdist hands over


class Told(TypedDict, total=False):
    """What a test's report carries."""

    drift: list[str]
    outside: list[str]
    recorded: list[str]
    old: list[str]


class Finishing(Protocol):
    """A test with a tape."""

    finished: list[str]

    def finish(self, torn_down: bool) -> None: ...


class Summary:
    """One for each process; that of the process that prints knows everything."""

    def __init__(self, config: pytest.Config, mode: Mode) -> None:
        self._config = config
        self._mode = mode
        self._recorded_here: set[Path] = set()
        self._told: dict[str, Told] = {}
        self._running: dict[str, Finishing] = {}
        self._used: set[str] = set()
        self._partial = ""  # why the collected tests are not all there are

    # -- modes -------------------------------------------------------------------------------------------------------

    def mode_for(self, tape: Path) -> Mode:
        """Tests that share a tape do not undo what another one has just recorded."""
        if tape in self._recorded_here:
            return {Mode.ONCE: Mode.NEW, Mode.REWRITE: Mode.ALL}.get(self._mode, self._mode)
        return self._mode

    def recorded(self, tape: Path) -> None:
        self._recorded_here.add(tape)

    def began(self, test: str, finishing: Finishing) -> None:
        self._running[test] = finishing

    def ended(self, test: str) -> None:
        self._running.pop(test, None)

    # -- collecting --------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: Told | None = getattr(report, "wiretape", None)
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
        if not self._config.getoption("wiretape_orphans"):
            return
        self._used = {os.fspath(tape_of(item)) for item in session.items if has_tape(item)}
        self._partial = self._partial or _not_all(self._config)

    @pytest.hookimpl(trylast=True)  # its fixtures are torn down before
    def pytest_sessionfinish(self) -> None:
        for test, interrupted in list(self._running.items()):
            with suppress(pytest.fail.Exception):  # nobody is left to be failed
                interrupted.finish(False)
            self._told.setdefault(test, {})["recorded"] = interrupted.finished
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_WORKER] = {"used": sorted(self._used), "partial": self._partial}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist is done. All of them collect the same tests."""
        handed = getattr(node, "workeroutput", {}).get(_WORKER, {})
        self._used.update(handed.get("used", ()))
        self._partial = self._partial or handed.get("partial", "")

    # -- printing ----------------------------------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = [
            *self._recordings(),
            *self._old_tapes(),
            *self._differences(terminalreporter.verbosity > 0),
            *self._orphans(),
        ]
        if lines:
            terminalreporter.section("wiretape")
            for line in lines:
                terminalreporter.line(line)

    def _recordings(self) -> Iterable[str]:
        for test, told in self._told.items():
            for line in told.get("recorded", ()):
                yield line if line.startswith("recorded ") else f"{test}: {line}"

    def _old_tapes(self) -> Iterable[str]:
        """Told once for each tape, however many tests it has."""
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
            yield f"{drifted} test{'' if drifted == 1 else 's'} drifted from what was recorded (-v shows where)"

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
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return "" if not config.getoption("ignore") else "some tests are ignored"
    given = {Path(config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in config.args}
    whole = {config.rootpath / path for path in config.getini("testpaths")} or {config.rootpath}
    if "::" in "".join(config.args) or not (whole <= given or config.rootpath in given):
        return "only a part of the tests was collected"
    return ""
