"""Validates values with a tool's JSON Schema, in each provider's dialect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from wiretape.analyze.prefix_breaks import compact_json
from wiretape.model.call import ToolSpec
from wiretape.model.jsonvalue import Json, JsonObject

_MOST = 3  # reported misfits of one tool call
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")  # their members are schemas


@dataclass(frozen=True, slots=True)
class Misfit:
    """A place where a value does not fit: its path, its value, and the schema's requirement."""

    path: str
    problem: str
    value: str
    wanted: str


class Schemas:
    """One validator for each schema. An invalid schema has none."""

    def __init__(self) -> None:
        self._by_spec: dict[int, tuple[ToolSpec, Any]] = {}
        self._by_text: dict[bytes, Any] = {}

    def misfits(self, spec: ToolSpec, value: Json) -> Iterator[Misfit]:
        """Yield the first places where a value does not fit."""
        validator = self._validator(spec)
        if validator is None:
            return
        from referencing.exceptions import Unresolvable

        try:
            found = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
        except (Unresolvable, RecursionError):
            return
        for error in found[:_MOST]:
            yield _misfit(error)

    def _validator(self, spec: ToolSpec) -> Any:
        known = self._by_spec.get(id(spec))
        if known is None:
            known = self._by_spec[id(spec)] = (spec, self._read(spec.schema))
        return known[1]

    def _read(self, schema: Json) -> Any:
        if not isinstance(schema, dict) or not schema:
            return None
        try:
            text = orjson.dumps(schema)
        except (TypeError, orjson.JSONEncodeError):
            return None
        if text not in self._by_text:
            self._by_text[text] = _validator_of(plain(schema))
        return self._by_text[text]


def _validator_of(schema: JsonObject) -> Any:
    """Return a validator that fetches no references; None if the schema is invalid."""
    from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]
    from referencing import Registry

    kind: Any = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        return kind(schema, registry=Registry())
    except (SchemaError, RecursionError):
        return None


def plain(schema: JsonObject) -> JsonObject:
    """Return a schema in standard form: types in lower case, `nullable` as a type, null members removed.

    Some dialects write an absent member as null, such as `"required": null`, which is invalid.
    """
    made: JsonObject = {}
    for key, value in schema.items():
        if value is None and key not in ("default", "const", "example"):
            continue
        if key == "pattern" and not _compiles(value):
            continue  # a regular expression of another language: \p{L}, (?<name>…)
        if key in _NAMED and isinstance(value, dict):
            kept = {name: inner for name, inner in value.items() if key != "patternProperties" or _compiles(name)}
            made[key] = {name: _schema(inner) for name, inner in kept.items()}
        elif key in ("items", "additionalProperties", "not", "contains", "propertyNames"):
            made[key] = _schema(value)
        elif key in ("anyOf", "allOf", "oneOf", "prefixItems") and isinstance(value, list):
            made[key] = [_schema(inner) for inner in value]
        elif key == "type":
            made[key] = _types(value)
        else:
            made[key] = value
    return _nullable(made) if made.get("nullable") is True else made


def _compiles(pattern: Json) -> bool:
    try:
        re.compile(pattern)
    except (re.error, TypeError, RecursionError, OverflowError):
        return False
    return True


def _schema(value: Json) -> Json:
    return plain(value) if isinstance(value, dict) else value


def _types(value: Json) -> Json:
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, list):
        return [item.lower() if isinstance(item, str) else item for item in value]
    return value


def _nullable(schema: JsonObject) -> JsonObject:
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _misfit(error: Any) -> Misfit:
    rule, wanted = error.validator, error.validator_value
    if rule == "required" and isinstance(error.instance, dict):
        gone = [name for name in wanted if name not in error.instance]
        return Misfit(
            _path(error.absolute_path), f"{_names(gone)} is missing", "(absent)", f"required: {_names(wanted)}"
        )
    if rule == "additionalProperties" and wanted is False and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        more = [name for name in error.instance if name not in known]
        problem = f"{_names(more)} is not in the schema"
        return Misfit(_path(error.absolute_path), problem, compact_json(error.instance), f"properties: {_names(known)}")
    problem = {"type": f"it must be {_kinds(wanted)}", "enum": "it is not an allowed value"}.get(
        rule, f"it violates {rule}"
    )
    return Misfit(_path(error.absolute_path), problem, compact_json(error.instance), f"{rule}: {compact_json(wanted)}")


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(str, names)) or "(none)"


def _kinds(wanted: Json) -> str:
    return " or ".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)


def _path(parts: Iterable[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
