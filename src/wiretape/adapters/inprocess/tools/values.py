"""What Python functions take, give and raise, as JSON on a tape, and back again."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from wiretape.errors import ToolError
from wiretape.model.jsonvalue import Json
from wiretape.wire.mcp.tool_exchange import ToolAnswer

_PLAIN: Final = (dict, list, str, int, float, bool, type(None))
_PLAIN_MODULES: Final = ("builtins", "datetime", "decimal", "uuid", "pathlib")
NOTHING: Final = object()  # a function that does not say what it returns


def given(value: Any) -> ToolAnswer:
    """What a function returned."""
    made, kept = as_json(value)
    if made is value:
        return ToolAnswer(_text(value), value)
    return ToolAnswer(_text(made), made if kept else None, kept, _name(type(value)))


def raised(error: BaseException) -> ToolAnswer:
    """What a function raised."""
    args = [as_json(value)[0] for value in error.args]
    return ToolAnswer(f"{type(error).__name__}: {error}", None, False, _name(type(error)), True, tuple(args))


def arguments(values: Mapping[str, Any], ignored: Iterable[str] = ()) -> dict[str, Json]:
    """A call's arguments by name. What is no JSON and cannot be made any stands there as its type's name."""
    return {name: as_json(value)[0] for name, value in values.items() if name not in ignored}


def is_json(value: Any) -> bool:
    """Whether a value comes back from JSON as it went in: exact types, names as keys, numbers that JSON has."""
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and is_json(item) for key, item in value.items())
    if kind is list:
        return all(map(is_json, value))
    if kind is int:
        return bool(-(2**63) < value < 2**63)
    if kind is float:
        return value == value and value not in (float("inf"), float("-inf"))
    return kind in (str, bool, type(None)) and (kind is not str or _is_utf8(value))


def as_json(value: Any) -> tuple[Json, bool]:
    """The value as JSON, and whether that says all of it."""
    try:
        if is_json(value):
            return value, True
        from pydantic_core import to_jsonable_python

        made = to_jsonable_python(value)
        if is_json(made):
            return made, True
    except Exception:  # a value's own code may run, and fail as it likes; or the value holds itself
        pass
    return f"<{_name(type(value))}>", False


def returned(answer: ToolAnswer, returns: Any = NOTHING) -> Any:
    """What the function gives in a replay. `returns`: what it says it returns; it decides where only text is known."""
    if answer.raised:
        raise _error(answer)
    if answer.kept:
        return _restored(answer.value, answer.type, returns)
    if answer.type is not None:
        raise ToolError(
            f"what the tool returned, a {answer.type}, could not be kept as JSON when it was recorded: {answer.text}\n"
            "  let it return a dataclass, a pydantic model or plain values"
        )
    return _told(answer.text, returns)


def _told(text: str, returns: Any) -> Any:
    """What the model was told, as what the function must have returned: programs write values as JSON for a model."""
    if returns is str:
        return text
    try:
        value = orjson.loads(text)
    except ValueError:
        return text
    return _restored(value, None, returns)


def _restored(value: Json, name: str | None, returns: Any) -> Any:
    """A value in its own type again: that of what was recorded, if it is at hand, else what the function returns."""
    for kind in (_class(name), returns):
        if kind is None or kind is NOTHING or kind is Any or kind in _PLAIN:
            continue
        made = _validated(value, kind)
        if made is not NOTHING:
            return made
    return value


def _validated(value: Json, kind: Any) -> Any:
    from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(kind).validate_python(value)
    except (ValidationError, PydanticSchemaGenerationError, PydanticUserError, TypeError):
        return NOTHING


def _class(name: str | None) -> Any:
    """A class by its name, of a module that the program has imported. A tape never imports anything."""
    module, _, path = (name or "").partition(":")
    found: Any = sys.modules.get(module)
    for step in path.split(".") if path else ():
        found = getattr(found, step, None)
    if not isinstance(found, type) or found is sys.modules.get(module):
        return None
    plain = dataclasses.is_dataclass(found) or issubclass(found, enum.Enum | BaseException) or _is_model(found)
    return found if plain or module in _PLAIN_MODULES else None


def _is_model(kind: type) -> bool:
    return hasattr(kind, "model_validate") and hasattr(kind, "model_fields")


def _error(answer: ToolAnswer) -> Exception:
    """The recorded exception, of its own class where the program has that."""
    kind = _class(answer.type)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(*answer.args)
        except Exception:  # a class whose arguments are not those of its instances
            pass
    return ToolError(answer.text)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _text(value: Json) -> str:
    """A value as programs write it for a model."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
