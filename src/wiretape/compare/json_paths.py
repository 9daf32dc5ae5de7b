"""Paths in a request body, as wiretape prints them: `messages[0].content`, `input[-1].output`."""

from __future__ import annotations

import re
from typing import Any

from wiretape.errors import UsageError
from wiretape.model.jsonvalue import Json

_STEP = re.compile(r"""\.?([^.\[\]"]+)|\[(-?[0-9]+)\]|\[("(?:[^"\\]|\\.)*")\]""")


def with_value(body: Json, path: str, value: Json) -> Any:
    """A copy of the body with `value` at a path; unchanged parts are the same objects.

    The path may name a new member of an object. Raises UsageError for any other path that does not exist.
    """
    return _put(body, steps(path), value, path)


def steps(path: str) -> list[str | int]:
    """The member names and indexes of a path. Raises UsageError if it is not a path."""
    import json

    found: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise UsageError(f"{path!r} is no path: write it like messages[0].content")
        name, number, quoted = match.groups()
        found.append(name if name is not None else int(number) if number is not None else str(json.loads(quoted)))
        at = match.end()
    if not found:
        raise UsageError("a path names what is to change, like messages[0].content")
    return found


def _put(value: Json, parts: list[str | int], new: Json, path: str) -> Json:
    if not parts:
        return new
    step, rest = parts[0], parts[1:]
    if isinstance(value, dict) and isinstance(step, str) and (step in value or not rest):
        return {**value, step: _put(value.get(step), rest, new, path)}
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        made = list(value)
        made[step] = _put(value[step], rest, new, path)
        return made
    raise UsageError(f"{path} leads nowhere: {step!r} is not in {_kind(value)}")


def _kind(value: Json) -> str:
    match value:
        case dict():
            return "an object with " + (", ".join(list(value)[:8]) or "no members")
        case list():
            return f"a list of {len(value)}"
        case _:
            return "a value without parts"
