"""The pytest plugin: `@pytest.mark.wiretape`, the `wiretape` fixture, `--wiretape-mode` and the rest.

Hooks only; what they do is in the modules beside this one. Loaded in every pytest run of whoever has wiretape
installed: nothing heavy may be imported here before a test asks for its tape.
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
    Mode.NEW: "what the tapes do not answer is asked live, of real models",
    Mode.UPDATE: "what the tapes do not answer is asked live, of real models",
    Mode.ALL: "model calls are real",
    Mode.REWRITE: "model calls are real",
}
_TAPED: pytest.StashKey[TapedTest] = pytest.StashKey()
_BEFORE: pytest.StashKey[SetupGuard | None] = pytest.StashKey()
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
    said = _LIVE.get(mode, "")
    if mode is not Mode.NONE and config.getini("wiretape_sealed"):
        said = f"{said or 'tapes that do not exist are recorded'}; this run is not sealed"
    return f"wiretape: mode {mode}: {said}" if said else None


@pytest.fixture(autouse=True)
def _wiretape_of_marked_tests(request: pytest.FixtureRequest) -> None:
    """Opens the tape before the other fixtures of a test: what they ask models is on it, too."""
    if has_tape(request.node):
        request.getfixturevalue("wiretape")


@pytest.fixture
def wiretape(request: pytest.FixtureRequest) -> Iterator[Wiretape]:
    """The test's tape: `stats`, `turns`, `report`, `environ()`."""
    from wiretape.adapters.pytest.outcome import TapedTest

    item = request.node
    summary = request.config.stash[_SUMMARY]
    if (before := item.stash.get(_BEFORE, None)) is not None:
        before.end()
    try:
        asked, tape = options_of(item), tape_of(item)
        if is_sealed():
            from wiretape.adapters.pytest.sealed import check_hosts

            check_hosts(asked.allow_hosts, item.config)
        taped = TapedTest(item, asked, tape, summary)
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
    if _TAPED in item.stash:  # an earlier run of the same test, by a plugin that runs it again
        del item.stash[_TAPED]
    before = item.stash[_BEFORE] = _before_tape(item)
    try:
        yield
    except Exception as error:
        if before is not None:
            before.judge(error)
        if (taped := item.stash.get(_TAPED, None)) is not None:
            taped.explain(error)
        raise
    finally:
        if before is not None:
            before.end()
    if before is not None:
        before.judge()


def _before_tape(item: pytest.Item) -> SetupGuard | None:
    if not has_tape(item) or mode_of(item.config) is not Mode.NONE:
        return None
    from wiretape.adapters.pytest.setup_guard import SetupGuard

    try:
        return SetupGuard(item.nodeid, options_of(item).allow_hosts)
    except WiretapeError:  # the fixture will say it
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
