"""The type of a parsed JSON value."""

from __future__ import annotations

from typing import Any, TypeAlias

# A recursive alias costs mypy minutes on code that walks JSON, and pydantic twice the time: see docs/decisions.
Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]
