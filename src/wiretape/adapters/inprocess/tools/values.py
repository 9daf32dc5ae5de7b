"""Converts arguments, results and exceptions of Python functions to JSON on a tape, and back."""

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
NOTHING: Final = object()  # the function has no return annotation


def answer_of(value: Any) -> ToolAnswer:
    """The recorded form of a result."""
    made, kept = as_json(value)
    if made is value:
        return ToolAnswer(_text(value), value)
    return ToolAnswer(_text(made), made if kept else None, kept, _name(type(value)))


def answer_of_error(error: BaseException) -> ToolAnswer:
    """The recorded form of an exception."""
    args = [as_json(value)[0] for value in error.args]
    return ToolAnswer(f"{type(error).__name__}: {error}", None, False, _name(type(error)), True, tuple(args))


def arguments(values: Mapping[str, Any], ignored: Iterable[str] = ()) -> dict[str, Json]:
    """The arguments of a call as JSON. A value that has no JSON form is replaced by the name of its type."""
    return {name: as_json(value)[0] for name, value in values.items() if name not in ignored}


def is_json(value: Any) -> bool:
    """True if JSON keeps the value exactly: only JSON types, string keys, numbers that JSON can express."""
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
    """The value as JSON, and True if nothing was lost."""
    try:
        if is_json(value):
            return value, True
        from pydantic_core import to_jsonable_python

        made = to_jsonable_python(value)
        if is_json(made):
            return made, True
    except Exception:  # code of the value's class failed, or the value contains itself
        pass
    return f"<{_name(type(value))}>", False


def returned(answer: ToolAnswer, returns: Any = NOTHING) -> Any:
    """The result of a replayed call. Raises what the tool raised.

    `returns`: the return annotation, which decides the type if the tape has only text.
    """
    if answer.raised:
        raise _error(answer)
    if answer.kept:
        return _restored(answer.value, answer.type, returns)
    if answer.type is not None:
        raise ToolError(
            f"the result of the tool, a {answer.type}, could not be recorded as JSON: {answer.text}\n"
            "  return a dataclass, a pydantic model or plain values"
        )
    return _from_text(answer.text, returns)


def _from_text(text: str, returns: Any) -> Any:
    """The value whose text the model received: programs pass values to models as JSON."""
    if returns is str:
        return text
    try:
        value = orjson.loads(text)
    except ValueError:
        return text
    return _restored(value, None, returns)


def _restored(value: Json, name: str | None, returns: Any) -> Any:
    """A value in its recorded type, if that is imported; else in the annotated type."""
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
    """A class by name, if the program has imported its module. A tape never imports a module."""
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
    """The recorded exception, in its own class if the program has imported it."""
    kind = _class(answer.type)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(*answer.args)
        except Exception:  # the constructor takes other arguments than `args`
            pass
    return ToolError(answer.text)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _text(value: Json) -> str:
    """A value as programs pass it to a model."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
