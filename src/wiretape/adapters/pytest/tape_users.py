"""The tests of a run that use one tape, and the shortest arguments of pytest that run exactly them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Users:
    """Who uses a tape. `arguments`: what runs exactly them; `tests`: their ids in this run.

    `partial`: why there may be more of them; empty where all are known.
    """

    arguments: tuple[str, ...]
    partial: str = ""
    tests: tuple[str, ...] = ()


def test_id(item: pytest.Item) -> str:
    """The test as pytest takes it on its command line: xdist adds the name of a group."""
    group = item.get_closest_marker("xdist_group")
    return item.nodeid.rpartition("@")[0] if group is not None and "@" in item.nodeid else item.nodeid


def typed(test: str, config: pytest.Config) -> str:
    """A test, module or directory as a person types it where pytest was started: ids begin at the rootdir."""
    if config.rootpath == config.invocation_params.dir:
        return test
    path, colons, rest = test.partition("::")
    return Path(os.path.relpath(config.rootpath / path, config.invocation_params.dir)).as_posix() + colons + rest


def arguments(users: Collection[str], every: Iterable[str]) -> list[str]:
    """The fewest directories, modules, classes, functions and tests that hold these tests, and no other of `every`."""
    all_in = Counter(part for test in every for part in _around(test))
    users_in = Counter(part for test in users for part in _around(test))
    widest = (next(part for part in _around(test) if all_in[part] <= users_in[part]) for test in users)
    return list(dict.fromkeys(widest))


def _around(test: str) -> Iterator[str]:
    """What a test is in, widest first, and itself: `tests`, `tests/test_a.py`, `tests/test_a.py::test_b`, …."""
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
