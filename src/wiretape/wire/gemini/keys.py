"""Members of Gemini's JSON by name: it is spelled in camel and in snake case, and one request may mix them."""

from __future__ import annotations

import re
from functools import lru_cache

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import number, string

_CAPITAL = re.compile(r"[A-Z]")


@lru_cache(256)
def snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[0].lower(), name)


@lru_cache(1024)
def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def spelled(value: JsonObject, name: str) -> str:
    """The key under which an object holds a member, given its name in camel case; that name if it holds none."""
    if value.get(name) is None:
        other = snake(name)
        if value.get(other) is not None:
            return other
    return name


def get(value: JsonObject, name: str) -> Json:
    """A member by its name in camel case, however it is spelled."""
    found = value.get(name)
    return found if found is not None else value.get(snake(name))


def enum(value: Json) -> str | None:
    """An enum's name; some clients ask for its number."""
    if isinstance(value, str):
        return string(value)
    whole = number(value)
    return None if whole is None else str(whole)
