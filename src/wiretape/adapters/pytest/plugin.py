"""The hooks of the pytest plugin: `@pytest.mark.wiretape`, the `wiretape` fixture, the command-line options.

Loaded in every pytest run: import nothing heavy here before a test needs its tape.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from wiretape.adapters.pytest.options import (
    MARKER_HELP,
    Mode,
    add_options,
    has_tape,
    is_sealed,
    is_to_be_sealed,
    mode_of,
    options_of,
)
from wiretape.adapters.pytest.report.summary import Summary
from wiretape.adapters.pytest.tape_paths import tape_of
from wiretape.errors import WiretapeError

if TYPE_CHECKING:
    from wiretape.adapters.pytest.fixture import Wiretape
    from wiretape.adapters.pytest.outcome import TapedTest
    from wiretape.adapters.pytest.setup_guard import SetupGuard

_LIVE = {
    Mode.NEW: "calls that the tapes do not answer are sent to real models",
    Mode.UPDATE: "calls that the tapes do not answer are sent to real models",
    Mode.ALL: "all model calls are sent to real models",
    Mode.REWRITE: "all model calls are sent to real models",
}
_TAPED: pytest.StashKey[TapedTest] = pytest.StashKey()
_GUARD: pytest.StashKey[SetupGuard | None] = pytest.StashKey()
_SUMMARY: pytest.StashKey[Summary] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before output is captured, and before any code of the project runs
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    options = early_config.known_args_namespace
    if not (options.help or options.version) and is_to_be_sealed(early_config, options) and not is_sealed():
        from wiretape.adapters.pytest.sealed import run_sealed

        raise SystemExit(run_sealed(early_config))
    yield


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_HELP)
    mode = mode_of(config)
    config.stash[_SUMMARY] = Summary(config, mode)
    config.pluginmanager.register(config.stash[_SUMMARY], "wiretape-summary")


def pytest_report_header(config: pytest.Config) -> str | None:
    mode = mode_of(config)
    if is_sealed():
        return "wiretape: sealed: only loopback and wiretape_allow_hosts can be reached"
    text = _LIVE.get(mode, "")
    if mode is not Mode.NONE and config.getini("wiretape_sealed"):
        text = f"{text or 'tapes that do not exist are recorded'}; this run is not sealed"
    return f"wiretape: mode {mode}: {text}" if text else None


@pytest.fixture(autouse=True)
def _wiretape_of_marked_tests(request: pytest.FixtureRequest) -> None:
    """Opens the tape before the other fixtures of a test, so that it has their model calls, too."""
    if has_tape(request.node):
        request.getfixturevalue("wiretape")


@pytest.fixture
def wiretape(request: pytest.FixtureRequest) -> Iterator[Wiretape]:
    """The test's tape: `stats`, `turns`, `report`, `environ()`."""
    from wiretape.adapters.pytest.outcome import TapedTest

    item = request.node
    summary = request.config.stash[_SUMMARY]
    if (guard := item.stash.get(_GUARD, None)) is not None:
        guard.end()
    try:
        options, tape = options_of(item), tape_of(item)
        if is_sealed():
            from wiretape.adapters.pytest.sealed import check_hosts

            check_hosts(options.allow_hosts, item.config)
        taped = TapedTest(item, options, tape, summary)
        taped.begin()
    except WiretapeError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    item.stash[_TAPED] = taped
    try:
        yield taped.wiretape
    finally:
        taped.wiretape.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    if _TAPED in item.stash:  # an earlier run of the same test, by a plugin that repeats tests
        del item.stash[_TAPED]
    guard = item.stash[_GUARD] = _setup_guard(item)
    try:
        yield
    except Exception as error:
        if guard is not None:
            guard.judge(error)
        if (taped := item.stash.get(_TAPED, None)) is not None:
            taped.explain(error)
        raise
    finally:
        if guard is not None:
            guard.end()
    if guard is not None:
        guard.judge()


def _setup_guard(item: pytest.Item) -> SetupGuard | None:
    if not has_tape(item) or mode_of(item.config) is not Mode.NONE:
        return None
    from wiretape.adapters.pytest.setup_guard import SetupGuard

    try:
        return SetupGuard(item.nodeid, options_of(item).allow_hosts)
    except WiretapeError:  # the fixture raises it, too
        return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    try:
        yield
    except BaseException as error:
        if (taped := item.stash.get(_TAPED, None)) is not None:
            taped.explain(error)
        raise
    if (taped := item.stash.get(_TAPED, None)) is not None:
        taped.judge()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    taped = item.stash.get(_TAPED, None)
    try:
        yield
    except BaseException:
        if taped is not None:
            taped.finish(False)
        raise
    if taped is not None:
        taped.finish(True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    taped = item.stash.get(_TAPED, None)
    if taped is not None:
        taped.reported(report)
    return report
