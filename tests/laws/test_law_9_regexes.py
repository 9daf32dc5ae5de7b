"""Law 9 for regular expressions: every expression of the source takes linear time on any text."""

from __future__ import annotations

import ast
import contextlib
import importlib
import pkgutil
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.pumping import texts

import wiretape

ANCHORED = {"match", "fullmatch"}


def _modules() -> Iterator[Any]:
    for info in pkgutil.walk_packages(wiretape.__path__, "wiretape."):
        if info.name.endswith("__main__"):
            continue
        # mitmproxy and textual are not installed everywhere, and their imports warn.
        with warnings.catch_warnings(action="ignore"), contextlib.suppress(ImportError):
            yield importlib.import_module(info.name)


def _patterns(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _patterns([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _patterns(one)


def _methods(module: Any, name: str) -> set[str]:
    """With which methods a module uses the expression of this name; {} where it hands it on."""
    tree = ast.parse(Path(module.__file__).read_text())
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


def _found() -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Each expression by where it stands; and whether it is matched at one place only, or searched for."""
    found: dict[str, tuple[re.Pattern[Any], bool]] = {}
    seen: set[tuple[Any, int]] = set()
    for module in _modules():
        for name, value in vars(module).items():
            for number, pattern in enumerate(_patterns(value)):
                if (pattern.pattern, pattern.flags) in seen:
                    continue
                seen.add((pattern.pattern, pattern.flags))
                methods = _methods(module, name)
                anchored = bool(methods) and methods <= ANCHORED
                found[f"{module.__name__.removeprefix('wiretape.')}.{name}[{number}]"] = pattern, anchored
    return found


FOUND = _found()


def _work(pattern: re.Pattern[Any], anchored: bool) -> Callable[[Any], object]:
    if anchored:
        return lambda text: (pattern.match(text), pattern.fullmatch(text))
    return lambda text: sum(1 for _ in pattern.finditer(text))


def _seconds(work: Callable[[Any], object], text: Any) -> float:
    best = 9e9
    for _ in range(3):
        started = time.thread_time()
        work(text)
        best = min(best, time.thread_time() - started)
        if not 0.002 < best < 0.05:
            break  # too short to be judged, or long enough to be trusted
    return best


# Small steps first: an exponential expression never ends at 60. The last size confirms what the one before shows.
SIZES = (12, 16, 20, 24, 60, 240, 960, 3_840, 15_360)


def slow_texts(pattern: re.Pattern[Any], anchored: bool) -> Iterator[str]:
    """Texts of which four times as much takes more than nine times as long, or more than six times twice in a row.

    An expression with a bounded lookahead may be superlinear once.
    """
    work = _work(pattern, anchored)
    for row in zip(*(texts(pattern, size) for size in SIZES), strict=True):
        before, length, steep = 0.0, 1, False
        for text, size in zip(row, SIZES, strict=True):
            if size == SIZES[-1] and not steep:
                break
            taken = _seconds(work, text if isinstance(pattern.pattern, str) else text.encode())
            # A machine's noise decides nothing: a short time is reason to try the next size, a long one is a verdict.
            was_steep, steep = steep, taken > 0.001 and taken > (size / length) ** 1.3 * before
            if steep and taken > 0.005 and (was_steep or taken > (size / length) ** 1.6 * before):
                yield f"{text[:40]!r}… of {length} and {size} characters: {before:.4f} s, then {taken:.4f} s"
                break
            before, length = taken, size


@pytest.mark.parametrize("place", FOUND)
def test_an_expression_takes_four_times_as_long_for_four_times_the_text(place: str) -> None:
    pattern, anchored = FOUND[place]
    assert next(slow_texts(pattern, anchored), None) is None


@pytest.mark.parametrize("slow", [r"<(a|b)\b[^>]*>", r"(a+)+b", r"x*y", r"\s+$"])
def test_a_slow_expression_is_noticed(slow: str) -> None:
    assert next(slow_texts(re.compile(slow), anchored=False), None) is not None
