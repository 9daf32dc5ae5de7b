"""Helpers of commands that write tapes: ranges, protection of existing files, warnings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from wiretape.cli.tapes import say_warning
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.tape.editing.edit import Edited

# `--out` is the former name of `--output`.
OUT_IS_OUTPUT = {"token_normalize_func": lambda name: "output" if name == "out" else name}

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_TIME = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)(ms|s|m|h)")


def numbers(text: str, option: str) -> set[int]:
    """Return the numbers of `1-5,8`. An `x` before a number, as in a printed exchange, is allowed."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*x?(\d+)(?:\s*-\s*x?(\d+))?\s*", part)
        if match is None:
            raise UsageError(f"{option} {text}: {part.strip()!r} is not a number or range; write it like 1-5,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise UsageError(f"{option} {text}: {part.strip()} is reversed; write {last}-{first}")
        if last - first > 10_000_000:
            raise UsageError(f"{option} {text}: {part.strip()} is too long a range")
        found.update(range(first, last + 1))
    return found


def milliseconds(text: str, option: str) -> int:
    """Return the milliseconds of `90` (seconds), `1m30s` or `500ms`."""
    spelled = f"{text}s" if re.fullmatch(r"\d+(\.\d+)?", text) else text
    if not re.fullmatch(f"(?:{_TIME.pattern})+", spelled):
        raise UsageError(
            f"{option} {text}: is not a time; write it like 90s, 1m30s or 500ms, counted from the tape's start"
        )
    return round(sum(float(number) * _UNITS[unit] for number, unit in _TIME.findall(spelled)))


def refuse_existing(out: Path, force: bool) -> None:
    """Raise UsageError if a file exists and may not be replaced."""
    if out.is_dir():
        raise UsageError(f"{out} is a directory: name a tape in it, such as {out / 'new.tape'}")
    if out.exists() and not force:
        raise UsageError(f"{out} exists already, and nothing was written; --force replaces it")
    if not out.parent.is_dir():
        raise UsageError(f"cannot write {out}: the directory {out.parent} does not exist")


def warn(edited: Edited) -> None:
    """Print the warnings of the tapes that were read."""
    for warning in edited.warnings:
        say_warning(warning)
