"""Parse `--fault WHAT@TARGET[:OPTION]...`. Errors list the allowed forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from wiretape.errors import UsageError
from wiretape.matching.faults.apply import (
    FOREVER_MS,
    ON_COMMAND_LINE,
    AtAgent,
    AtCall,
    AtTool,
    Everywhere,
    Fault,
    Target,
)
from wiretape.model.faults import Cut, Effect, ErrorStatus, Reset, Slow, Stall

_ALLOWED: Final = """\
  429@3            the first attempt at call 3 gets this status, 400 to 599
                   (:after=2s sets retry-after;
                   :handshake refuses the call's WebSocket)
  cut@2:event=5    the answer of call 2 is cut after its 5th event
                   (without event: half way)
  stall@2:event=5  the answer stalls after its 5th event, for ever
                   (without event: before its headers; :for=10s: for 10 seconds)
  reset@2:event=5  the connection is reset there (without event: at once)
  slow@2:x10       the recorded pauses, multiplied by ten
  instead of a call number: * (all calls), agent=NAME (its calls), tool=NAME
  (calls that request the tool); :times=3 applies to the first three attempts"""
_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "cut": frozenset({"event", "times"}),
    "reset": frozenset({"event", "times"}),
    "stall": frozenset({"event", "for", "times"}),
    "slow": frozenset({"x"}),
    "status": frozenset({"after", "handshake", "times"}),
}
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m)")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_UNITS: Final = {"ms": 1.0, "s": 1000.0, "m": 60_000.0}
_FACTOR: Final = re.compile(r"x(\d{1,9}(?:\.\d{1,9})?)")


class _SpecError(Exception):
    """A wrong spec; the text says why."""


def parse_fault(spec: str, written: str = ON_COMMAND_LINE) -> Fault:
    """Parse a spec. `written`: the option or argument around it, with `{}` in its place. Raises UsageError."""
    try:
        what, at, rest = spec.strip().partition("@")
        target, *options = rest.split(":")
        if not at or not target:
            raise _SpecError("the call is missing: WHAT@CALL")
        kind = "status" if _NUMBER.fullmatch(what) else what
        given = dict(_option(kind, option) for option in options)
        times = _number(given, "times", 1) or 1
        return Fault(spec.strip(), _effect(what, given), _target(target), times, "handshake" in given, written)
    except _SpecError as wrong:
        raise UsageError(f"{written.format(spec)}: {wrong}\n{_ALLOWED}") from None


def _effect(what: str, given: Mapping[str, str]) -> Effect:
    match what:
        case "cut":
            return Cut(_event(given))
        case "reset":
            return Reset(_event(given))
        case "stall":
            ms = _milliseconds(given, "for")
            return Stall(_event(given), None if ms is None else min(ms, FOREVER_MS))
        case "slow":
            if "x" not in given:
                raise _SpecError("the factor is missing: slow@2:x10")
            return Slow(float(given["x"]))
    is_status = _NUMBER.fullmatch(what)
    if is_status and 400 <= int(what) <= 599:
        after = _milliseconds(given, "after")
        return ErrorStatus(int(what), None if after is None else after / 1000)
    if is_status:
        raise _SpecError(f"{what} is not an error status: use 400 to 599")
    raise _SpecError(f"there is no fault {what!r}")


def _target(target: str) -> Target:
    named: Mapping[str, Callable[[str], Target]] = {"tool": AtTool, "agent": AtAgent}
    if target == "*":
        return Everywhere()
    if _NUMBER.fullmatch(target) and int(target):
        return AtCall(int(target))
    kind, equals, name = target.partition("=")
    if equals and name and kind in named:
        return named[kind](name)
    raise _SpecError(f"{target!r} is not a target: use a call number, *, tool=NAME or agent=NAME")


def _option(kind: str, option: str) -> tuple[str, str]:
    factor = _FACTOR.fullmatch(option)
    name, _, value = ("x", "=", factor[1]) if factor else option.partition("=")
    if kind in _OPTIONS and name not in _OPTIONS[kind]:
        shown = "a status" if kind == "status" else kind
        raise _SpecError(f"{shown} has no option {option!r}")
    if name == "handshake":
        if option != name:
            raise _SpecError("handshake takes no value")
        return name, ""
    if not value:
        raise _SpecError(f"option {option!r} has no value")
    return name, value


def _event(given: Mapping[str, str]) -> int | None:
    return _number(given, "event", 0)


def _number(given: Mapping[str, str], name: str, least: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not _NUMBER.fullmatch(value) or int(value) < least:
        raise _SpecError(f"{name}={value} is not a number from {least}")
    return int(value)


def _milliseconds(given: Mapping[str, str], name: str) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    found = _DURATION.fullmatch(value)
    if found is None:
        raise _SpecError(f"{name}={value} is not a duration: use 500ms, 10s or 2m")
    return float(found[1]) * _UNITS[found[2]]
