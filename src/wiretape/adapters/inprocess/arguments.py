"""What `wiretape.replay`, `wiretape.record` and `wiretape.tool` were given: what cannot be meant is told at the call.

Type checkers say most of it before; notebooks, settings that were read from files and plain slips do not. Every
function raises UsageError, which names the argument, what was given, and what is wanted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from wiretape.errors import UsageError
from wiretape.model.wording import clip
from wiretape.tape.reading.reader import Tape

T = TypeVar("T")
_LONGEST: Final = 60  # characters of a value that a message repeats


def shown(given: object) -> str:
    """A value as Python spells it, however long."""
    return clip(repr(given), _LONGEST)


def place(given: object, call: str) -> Path:
    """A tape's file. `call`: how the person asked for it, with `{}` for the tape."""
    example = call.format('"captures/agent.tape"')
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{call.format(shown(given))}: a tape is named by its path: {example}")
    text = os.fspath(given)
    if not isinstance(text, str):
        raise UsageError(f"{call.format(shown(given))}: a tape's path is text, and this is bytes: {example}")
    if not text.strip() or not Path(text).name:
        what = "no tape is named" if text.strip() in ("", ".") else "is a directory, not a tape"
        raise UsageError(f"{call.format(shown(text))}: {what}; name one: {example}")
    if "\0" in text:
        raise UsageError(f"{call.format(shown(text))}: no file can have a name with a NUL character in it")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise UsageError(f"{call.format(shown(text))}: no file can have a name with half a character in it") from None
    return Path(text)


def tapes(given: Sequence[T]) -> Sequence[T]:
    """What is to be replayed: paths, and tapes that have been read. They are given back as they are."""
    if not given:
        raise UsageError("name a tape to replay: wiretape.replay('captures/agent.tape')")
    for one in given:
        if isinstance(one, list | tuple | set | frozenset):
            how = "wiretape.replay(*tapes)" if one else 'wiretape.replay("captures/agent.tape")'
            raise UsageError(f"wiretape.replay({shown(one)}): tapes are given one by one, not as a list: {how}")
        if callable(one):
            raise UsageError(
                f"wiretape.replay({shown(one)}): as a decorator it needs to know its tape:\n"
                '  @wiretape.replay("captures/agent.tape")'
            )
        if not isinstance(one, Tape):
            place(one, "wiretape.replay({})")
    return given


def words(name: str, given: object, what: str) -> tuple[str, ...]:
    """An argument that takes strings; one that is given alone is meant as a whole, not as its letters."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, bytes | dict) or not isinstance(given, Iterable):
        raise UsageError(f"{name} is {shown(given)}: give {what}, or a list of them")
    several = tuple(given)
    for one in several:
        if not isinstance(one, str):
            more = f"; its text is {one.pattern!r}" if isinstance(one, re.Pattern) else ""
            raise UsageError(f"{name} has {shown(one)} in it: each is {what}, as text{more}")
    return several


def hosts(name: str, given: object) -> tuple[str, ...]:
    """Globs over hosts."""
    globs = words(name, given, 'a host such as "*.corp.example"')
    for glob in globs:
        if not glob.strip():
            raise UsageError(f"{name} has an empty host in it: leave it out")
        scheme, found, rest = glob.partition("://")
        if found:
            host = rest.partition("/")[0].rpartition("@")[2] or scheme
            raise UsageError(f'{name} has {shown(glob)} in it, which is a URL: name its host, "{host}"')
    return globs


def switch(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise UsageError(f"{name} is {shown(given)}: use True or False")
    return given


def pace(given: object) -> float:
    """How much slower than at once: a finite number, not below 0."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= sys.float_info.max:  # type: ignore[operator]
        raise UsageError(f"pace is {shown(given)}: 0 plays at once, 1 as recorded, 2 twice as slowly")
    return given  # type: ignore[return-value]


def text(name: str, given: object) -> str | None:
    if given is not None and not isinstance(given, str):
        raise UsageError(f"{name} is {shown(given)}: it is text")
    return given


def function(name: str, given: object) -> None:
    if given is not None and not callable(given):
        raise UsageError(f"{name} is {shown(given)}: it is called with each exchange, and this cannot be called")
