"""Checks the arguments of `wiretape.replay`, `wiretape.record`, `wiretape.read_tape` and `wiretape.tool`.

Type checkers find most mistakes earlier, but not in notebooks or in values that were read from files. Every function
raises UsageError, which names the argument, its value, and a value that is possible.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from wiretape.errors import UsageError
from wiretape.model.wording import clip

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])
_LONGEST: Final = 60  # characters of a value that a message repeats


def shown(given: object) -> str:
    """The `repr` of a value, shortened."""
    return clip(repr(given), _LONGEST)


def tape_path(given: object, call: str) -> Path:
    """The path of a tape. `call`: the call that takes it, with `{}` for the path."""
    example = call.format('"captures/agent.tape"')
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{call.format(shown(given))}: a tape is named by its path: {example}")
    text = os.fspath(given)
    if not isinstance(text, str):
        raise UsageError(f"{call.format(shown(given))}: a tape's path is text, not bytes: {example}")
    if not text.strip() or not Path(text).name:
        what = "the name of the tape is missing" if text.strip() in ("", ".") else "is a directory, not a tape"
        raise UsageError(f"{call.format(shown(text))}: {what}; name one: {example}")
    if "\0" in text:
        raise UsageError(f"{call.format(shown(text))}: a file name cannot contain a NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise UsageError(f"{call.format(shown(text))}: a file name cannot contain half a character") from None
    return Path(text)


def tapes(given: Sequence[T]) -> Sequence[T]:
    """The tapes to replay: paths, and tapes that were read before."""
    if not given:
        raise UsageError("name a tape to replay: wiretape.replay('captures/agent.tape')")
    for one in given:
        if isinstance(one, list | tuple | set | frozenset):
            how = "wiretape.replay(*tapes)" if one else 'wiretape.replay("captures/agent.tape")'
            raise UsageError(f"wiretape.replay({shown(one)}): tapes are given one by one, not as a list: {how}")
        if callable(one):
            raise UsageError(
                f'wiretape.replay({shown(one)}): the decorator needs a tape:\n  @wiretape.replay("captures/agent.tape")'
            )
        if not hasattr(one, "exchanges"):  # a Tape: to import its class takes a while
            tape_path(one, "wiretape.replay({})")
    return given


def words(name: str, given: object, what: str) -> tuple[str, ...]:
    """An argument that takes several strings. A single string counts as one."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, bytes | dict) or not isinstance(given, Iterable):
        raise UsageError(f"{name} is {shown(given)}: give {what}, or a list of them")
    several = tuple(given)
    for one in several:
        if not isinstance(one, str):
            more = f"; its text is {one.pattern!r}" if isinstance(one, re.Pattern) else ""
            raise UsageError(f"{name} contains {shown(one)}: each is {what}, as text{more}")
    return several


def hosts(name: str, given: object) -> tuple[str, ...]:
    """Globs over hosts."""
    globs = words(name, given, 'a host such as "*.corp.example"')
    for glob in globs:
        if not glob.strip():
            raise UsageError(f"{name} contains an empty host: leave it out")
        scheme, found, rest = glob.partition("://")
        if found:
            host = rest.partition("/")[0].rpartition("@")[2] or scheme
            raise UsageError(f'{name} contains {shown(glob)}, which is a URL: name its host, "{host}"')
    return globs


def switch(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise UsageError(f"{name} is {shown(given)}: use True or False")
    return given


def pace(given: object) -> float:
    """A factor for recorded pauses: a finite number, 0 or more."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= sys.float_info.max:  # type: ignore[operator]
        raise UsageError(f"pace is {shown(given)}: 0 plays at once, 1 as recorded, 2 twice as slowly")
    return given  # type: ignore[return-value]


def text(name: str, given: object) -> str | None:
    if given is not None and not isinstance(given, str):
        raise UsageError(f"{name} is {shown(given)}: give a text")
    return given


def function(name: str, given: F | None) -> F | None:
    if given is not None and not callable(given):
        raise UsageError(f"{name} is {shown(given)}: give a function that takes an exchange")
    return given
