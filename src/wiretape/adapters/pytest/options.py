"""What a test asks of wiretape: the mode, the marker's arguments, the project's configuration.

Loaded in every pytest run of whoever has wiretape installed: nothing heavy may be imported here.
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
SEALED = "WIRETAPE_SEALED"  # a variable; its value is the inode of the sealed network, so that a copy means nothing
MARKER_HELP = (
    "wiretape(name=None, *, tier='masked', on_miss='answer', strict=False, repeat=False, pace=0, faults=(), mask=(), "
    "hosts=(), allow_hosts=(), max_age=None, max_age_action=None): answer the test's model calls from a tape, and "
    "refuse the network. name: the tape, under wiretape_dir; by default it has the test's own name. tier: how alike a "
    "request must be at least. on_miss: 'answer' a miss as the provider would, or 'raise' it at the call. strict: "
    "recorded calls that are not asked for fail the test. repeat: give a recorded answer again. pace: 1 keeps the "
    "recorded pauses. faults: what goes wrong at which call, such as '429@3'. mask: patterns for what changes between "
    "runs. hosts: record these, too. allow_hosts: let these through, untaped. max_age: how old the tape may be (days, "
    "or '30d'). max_age_action: 'warn' of an older one, or 'fail'."
)
_LISTS = ("faults", "mask", "hosts", "allow_hosts")


class Mode(StrEnum):
    """Where a test's answers come from."""

    NONE = "none"  # from the tape only
    ONCE = "once"  # from the tape; live, and recorded, where there is no tape yet
    NEW = "new"  # from the tape; what is not on it live, and recorded behind the rest
    UPDATE = "update"  # the same, in its place; what is no longer asked for is dropped
    ALL = "all"  # live, and recorded; what the test no longer asks for stays on the tape
    REWRITE = "rewrite"  # live, and recorded; the tape then holds that and nothing else


@dataclass(frozen=True, slots=True)
class TapeOptions:
    """The arguments of a test's markers, its class's and its module's; the nearest one goes first, lists add up."""

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
        help="none: replay only (the default). once: record where there is no tape. new: record what is not on the "
        "tape. update: the same, and drop what is no longer asked for. all: record everything anew. rewrite: the same, "
        "and drop what was on the tape.",
    )
    group.addoption(
        "--wiretape-strict", action="store_true", help="Recorded calls that a test does not ask for fail it."
    )
    group.addoption(
        "--wiretape-orphans", action="store_true", help="List the tapes that no test uses (needs the whole suite)."
    )
    group.addoption(
        "--wiretape-sealed",
        action=BooleanOptionalAction,
        default=None,
        help="Run in a network that has loopback and wiretape_allow_hosts alone (Linux).",
    )
    parser.addini("wiretape_mode", "what --wiretape-mode is where it is not given", default=Mode.NONE.value)
    parser.addini("wiretape_dir", "where tapes are, relative to the rootdir", default="captures")
    parser.addini("wiretape_strict", "what --wiretape-strict does, always", type="bool", default=False)
    parser.addini("wiretape_sealed", "what --wiretape-sealed does, always", type="bool", default=False)
    parser.addini("wiretape_allow_hosts", "hosts that every test may reach (globs)", type="linelist", default=[])


def mode_of(config: pytest.Config, options: Namespace | None = None) -> Mode:
    """`options`: those that are known so far, before `config` has them."""
    given = (options or config.option).wiretape_mode or config.getini("wiretape_mode")
    try:
        return Mode(given)
    except ValueError:
        modes = ", ".join(Mode)
        raise pytest.UsageError(f"wiretape_mode is {given!r}: it must be one of {modes}") from None


def is_to_be_sealed(config: pytest.Config, options: Namespace) -> bool:
    """Whether this run wants a sealed network. Only the option insists on it while models are asked live."""
    if options.wiretape_sealed is None and not config.getini("wiretape_sealed"):
        return False
    mode = mode_of(config, options)
    if options.wiretape_sealed and mode is not Mode.NONE:
        raise pytest.UsageError(
            f"--wiretape-sealed reaches no model, and --wiretape-mode={mode} asks models live: leave one of them out"
        )
    return options.wiretape_sealed is not False and mode is Mode.NONE


def is_sealed() -> bool:
    """Whether this process runs in the network that a run of pytest was sealed with."""
    try:
        return SEALED in os.environ and os.environ[SEALED] == str(os.stat("/proc/self/ns/net").st_ino)
    except OSError:
        return False


def has_tape(item: pytest.Item) -> bool:
    """Whether a test is marked, or takes the fixture."""
    return item.get_closest_marker(MARKER) is not None or "wiretape" in getattr(item, "fixturenames", ())


def options_of(item: pytest.Item) -> TapeOptions:
    """What the markers around a test ask for, over what the project does."""
    config = item.config
    asked = TapeOptions(
        strict=bool(config.getoption("wiretape_strict") or config.getini("wiretape_strict")),
        allow_hosts=tuple(config.getini("wiretape_allow_hosts")),
    )
    for mark in reversed(list(item.iter_markers(MARKER))):
        asked = _over(asked, _arguments(mark))
    return asked


def named_by(item: pytest.Item) -> str | None:
    """The tape's name, if a marker gives one. UsageError: it cannot be one."""
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


def _over(asked: TapeOptions, given: Mapping[str, Any]) -> TapeOptions:
    lists = {name: (*getattr(asked, name), *_strings(name, given[name])) for name in _LISTS if name in given}
    return replace(asked, **{**given, **lists})


def _strings(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    found = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(one, str) for one in found):
        raise UsageError(f"@pytest.mark.wiretape({name}=…) takes a list of strings, and got {value!r}")
    return found
