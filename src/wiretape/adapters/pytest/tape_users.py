"""The tests that use one tape, and the shortest arguments of pytest that run exactly these tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Users:
    """The tests that use a tape. `arguments`: run exactly these tests; `tests`: their ids in this run.

    `partial`: why there may be others; empty if all tests are known.
    """

    arguments: tuple[str, ...]
    partial: str = ""
    tests: tuple[str, ...] = ()


def test_id(item: pytest.Item) -> str:
    """The id of a test as pytest accepts it: without the name of a group, which xdist appends."""
    group = item.get_closest_marker("xdist_group")
    return item.nodeid.rpartition("@")[0] if group is not None and "@" in item.nodeid else item.nodeid


def typed(test: str, config: pytest.Config) -> str:
    """A test, module or directory relative to the directory where pytest was started: ids start at the rootdir."""
    if config.rootpath == config.invocation_params.dir:
        return test
    path, colons, rest = test.partition("::")
    return Path(os.path.relpath(config.rootpath / path, config.invocation_params.dir)).as_posix() + colons + rest


def arguments(users: Collection[str], every: Iterable[str]) -> list[str]:
    """The fewest directories, modules, classes and functions that contain these tests, and no others of `every`."""
    all_in = Counter(part for test in every for part in _around(test))
    users_in = Counter(part for test in users for part in _around(test))
    widest = (next(part for part in _around(test) if all_in[part] <= users_in[part]) for test in users)
    return list(dict.fromkeys(widest))


def _around(test: str) -> Iterator[str]:
    """The parents of a test, widest first, and the test: `tests`, `tests/test_a.py`, `tests/test_a.py::test_b`, …."""
    path, _, within = test.partition("::")
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end])
    names, parameters, _ = within.partition("[")
    place = path
    for name in names.split("::") if names else ():
        place += f"::{name}"
        yield place
    if parameters:
        yield test
