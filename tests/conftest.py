"""How the tests run: which ones, how thorough, and within which limits.

`make test` leaves out slow tests (the mark `slow`, the laws, recorded traffic); `make test-all` sets
WIRETAPE_TESTS=all and runs everything. pyproject.toml sets the time limit of a test; the memory limit is set here.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester"]

ALL = os.environ.get("WIRETAPE_TESTS") == "all"
SLOW_FOLDERS = {"laws", "corpus"}  # many generated examples; recorded traffic
# Children inherit the limit: nothing that the tests start needs as much, and a test that needs more fails by name.
MEMORY_LIMIT = 4 << 30

# Machines that are shared are slow at times: how long an example takes says nothing about it.
settings.register_profile(
    "wiretape", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30 if ALL else 10)
)
settings.load_profile("wiretape")
# Whoever starts the tests in the background (`&`, nohup) has these ignored, and so would each program that they start.
for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):  # Windows has one of them
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
gc.disable()  # until the tests are collected: they and what they import stay to the end


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform == "linux":  # other systems do not enforce the limit, or do not have it
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    if sys.version_info < (3, 12, 2):  # asyncio itself leaves connections open there whose tasks were cancelled
        of_a_connection = "Exception ignored in. <(function StreamWriter|function _SelectorTransport|socket.socket)"
        config.addinivalue_line("filterwarnings", f"ignore:{of_a_connection}:pytest.PytestUnraisableExceptionWarning")


def pytest_report_header() -> str | None:
    return None if ALL else "without slow tests (make test-all, or WIRETAPE_TESTS=all, runs everything)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect slow tests, except where all are wanted or the command line names the test or its file."""
    if ALL:
        return
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    slow = [item for item in items if _is_slow(item) and item.path not in named]
    config.hook.pytest_deselected(items=slow)
    left_out = set(slow)
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """From now on there is garbage, and none of it among what has been loaded."""
    gc.freeze()
    gc.enable()


def _is_slow(item: pytest.Item) -> bool:
    folder = item.path.parent.name in SLOW_FOLDERS and not item.path.stem.endswith("_vectors")
    return folder or item.get_closest_marker("slow") is not None
