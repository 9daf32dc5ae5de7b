"""The options of a test: mode, marker arguments, configuration of the project.

Loaded in every pytest run: import nothing heavy here.
"""

from __future__ import annotations

import os
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

import pytest

from wiretape.errors import UsageError

MARKER = "wiretape"
SEALED = "WIRETAPE_SEALED"  # its value is the inode of the sealed network: copied elsewhere, it means nothing
MARKER_HELP = (
    "wiretape(name=None, *, tier='masked', on_miss='answer', strict=False, repeat=False, pace=0, faults=(), mask=(), "
    "hosts=(), allow_hosts=(), max_age=None, max_age_action=None): answer the test's model calls from a tape, and "
    "block the network. name: the tape, under wiretape_dir; by default it has the name of the test. tier: the loosest "
    "match to accept. on_miss: 'answer' a miss in the provider's error shape, or 'raise' it at the call. strict: fail "
    "if recorded calls are left over. repeat: play a recorded answer again. pace: 1 keeps the recorded pauses. faults: "
    "faults to inject, such as '429@3'. mask: patterns for text that differs between runs. hosts: record these, too. "
    "allow_hosts: allow requests to these, and do not record them. max_age: the greatest age of the tape (days, or "
    "'30d'). max_age_action: 'warn' about an older tape, or 'fail'."
)
_LISTS = ("faults", "mask", "hosts", "allow_hosts")


class Mode(StrEnum):
    """The source of a test's answers, and the calls that are recorded."""

    NONE = "none"  # from the tape only
    ONCE = "once"  # from the tape; live and recorded if the tape does not exist
    NEW = "new"  # from the tape; misses live, and recorded at the end of the tape
    UPDATE = "update"  # from the tape; misses live, and recorded in place; calls that are left over are dropped
    ALL = "all"  # live and recorded; calls that are left over stay on the tape
    REWRITE = "rewrite"  # live and recorded; nothing else stays on the tape


@dataclass(frozen=True, slots=True)
class TapeOptions:
    """The arguments of the markers of a test, its class and its module. The nearest marker wins; lists are joined."""

    name: str | None = None
    tier: str = "masked"
    on_miss: str = "answer"
    strict: bool = False
    repeat: bool = False
    pace: float = 0
    faults: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    max_age: str | int | float | None = None
    max_age_action: str | None = None


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("wiretape", "recorded model calls")
    group.addoption(
        "--wiretape-mode",
        choices=[mode.value for mode in Mode],
        help="none: replay only (the default). once: record if the tape does not exist. new: record calls that are not "
        "on the tape. update: the same, and drop calls that are left over. all: record every call. rewrite: the same, "
        "and drop the old tape.",
    )
    group.addoption("--wiretape-strict", action="store_true", help="Fail tests that leave recorded calls over.")
    group.addoption(
        "--wiretape-orphans", action="store_true", help="List tapes that no test uses (needs the whole suite)."
    )
    group.addoption(
        "--wiretape-sealed",
        action=BooleanOptionalAction,
        default=None,
        help="Run in a network that has only loopback and wiretape_allow_hosts (Linux).",
    )
    parser.addini("wiretape_mode", "the default of --wiretape-mode", default=Mode.NONE.value)
    parser.addini("wiretape_dir", "the directory of the tapes, relative to the rootdir", default="captures")
    parser.addini("wiretape_strict", "the default of --wiretape-strict", type="bool", default=False)
    parser.addini("wiretape_sealed", "the default of --wiretape-sealed", type="bool", default=False)
    parser.addini("wiretape_allow_hosts", "hosts that every test may reach (globs)", type="linelist", default=[])


def mode_of(config: pytest.Config, options: Namespace | None = None) -> Mode:
    """The mode of a run. `options`: the options parsed so far, if `config` does not have them yet."""
    given = (options or config.option).wiretape_mode or config.getini("wiretape_mode")
    try:
        return Mode(given)
    except ValueError:
        modes = ", ".join(Mode)
        raise pytest.UsageError(f"wiretape_mode is {given!r}: it must be one of {modes}") from None


def is_to_be_sealed(config: pytest.Config, options: Namespace) -> bool:
    """True if this run needs a sealed network. In a mode that calls models, the setting is ignored."""
    if options.wiretape_sealed is None and not config.getini("wiretape_sealed"):
        return False
    mode = mode_of(config, options)
    if options.wiretape_sealed and mode is not Mode.NONE:
        raise pytest.UsageError(
            f"--wiretape-sealed blocks models, and --wiretape-mode={mode} calls models live: use one of them"
        )
    return options.wiretape_sealed is not False and mode is Mode.NONE


def is_sealed() -> bool:
    """True if this process runs in the sealed network of a pytest run."""
    try:
        return SEALED in os.environ and os.environ[SEALED] == str(os.stat("/proc/self/ns/net").st_ino)
    except OSError:
        return False


def has_tape(item: pytest.Item) -> bool:
    """True if a test is marked, or uses the fixture."""
    return item.get_closest_marker(MARKER) is not None or "wiretape" in getattr(item, "fixturenames", ())


def options_of(item: pytest.Item) -> TapeOptions:
    """The arguments of the markers around a test, over the configuration of the project."""
    config = item.config
    options = TapeOptions(
        strict=bool(config.getoption("wiretape_strict") or config.getini("wiretape_strict")),
        allow_hosts=tuple(config.getini("wiretape_allow_hosts")),
    )
    for mark in reversed(list(item.iter_markers(MARKER))):
        options = _over(options, _arguments(mark))
    return options


def named_by(item: pytest.Item) -> str | None:
    """The name of the tape, if a marker sets it. Raises UsageError if it is not a name."""
    for mark in item.iter_markers(MARKER):
        name = mark.args[0] if mark.args else mark.kwargs.get("name")
        if name is not None and not (isinstance(name, str) and name):
            raise UsageError(f"@pytest.mark.wiretape({name!r}): the name of a tape is a string, such as 'weather'")
        if name is not None:
            return str(name)
    return None


def _arguments(mark: pytest.Mark) -> Mapping[str, Any]:
    if len(mark.args) > 1:
        raise UsageError(f"@pytest.mark.wiretape takes one name, and got {len(mark.args)}: {mark.args!r}")
    known = [field.name for field in fields(TapeOptions)]
    for name in mark.kwargs:
        if name not in known:
            raise UsageError(f"@pytest.mark.wiretape does not know {name!r}; it takes {', '.join(known)}")
    return {**({"name": mark.args[0]} if mark.args else {}), **mark.kwargs}


def _over(options: TapeOptions, given: Mapping[str, Any]) -> TapeOptions:
    lists = {name: (*getattr(options, name), *_strings(name, given[name])) for name in _LISTS if name in given}
    return replace(options, **{**given, **lists})


def _strings(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    found = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(one, str) for one in found):
        raise UsageError(f"@pytest.mark.wiretape({name}=…) takes a list of strings, and got {value!r}")
    return found
