"""How the tests run: plugins that some of them need, and how thorough they are.

WIRETAPE_TESTS=quick leaves out what takes long and depends little on the version of Python: the slow tests, recorded
traffic of others, the laws, and modules of which each test starts several programs or a screen. `.ci/run` asks for it
on all versions but the newest.
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

# Each of their tests starts programs that start programs, or a whole screen.
LONG = {
    "test_debug_holding",
    "test_debug_live",
    "test_debug_live_screen",
    "test_debug_recorded",
    "test_fixture",
    "test_killed_recorder",
    "test_presets",
    "test_record_cli",
    "test_record_mitmdump",
    "test_record_socket",
    "test_record_update",
    "test_replay_sealed",
    "test_screen",
    "test_suites",
    "test_verify",
}
# Type-checks all of wiretape, which says the same on each version.
LONG_TESTS = {"test_a_user_s_strict_type_checker_knows_the_forms"}
QUICK = os.environ.get("WIRETAPE_TESTS") == "quick"

# Machines that are shared are slow at times: how long an example takes says nothing about it.
settings.register_profile(
    "wiretape", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=10 if QUICK else 30)
)
settings.load_profile("wiretape")
# Whoever starts the tests in the background (`&`, nohup) has these ignored, and so would each program that they start.
for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):  # Windows has one of them
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
gc.disable()  # until the tests are collected: they and what they import stay to the end


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not even load what is not quick, where quick is asked for."""
    return True if QUICK and _module_takes_long(collection_path) else None


def pytest_configure(config: pytest.Config) -> None:
    if sys.version_info < (3, 12, 2):  # asyncio itself leaves connections open there whose tasks were cancelled
        of_a_connection = "Exception ignored in. <(function StreamWriter|function _SelectorTransport|socket.socket)"
        config.addinivalue_line("filterwarnings", f"ignore:{of_a_connection}:pytest.PytestUnraisableExceptionWarning")


def pytest_report_header() -> str | None:
    return f"quick: without laws, recorded traffic and {', '.join(sorted(LONG))}" if QUICK else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests where quick is asked for; pytest counts what was deselected."""
    if not QUICK:
        return
    left_out = [item for item in items if _takes_long(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not _takes_long(item)]


def pytest_collection_finish() -> None:
    """From now on there is garbage, and none of it among what has been loaded."""
    gc.freeze()
    gc.enable()


def _takes_long(item: pytest.Item) -> bool:
    return item.name in LONG_TESTS or item.get_closest_marker("slow") is not None


def _module_takes_long(path: Path) -> bool:
    folder, module = path.parent.name, path.stem
    if path.suffix != ".py" or not module.startswith("test_"):
        return False
    recorded = folder == "corpus" and not module.endswith("_vectors")
    return recorded or folder == "laws" or module in LONG
