"""Tools of a rerun that are functions in a Python file, called by name with the model's arguments."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wiretape.errors import UsageError
from wiretape.model.call import ToolCall, ToolResult
from wiretape.model.jsonwalk import parsed

__all__ = ["ToolFile", "result_text"]


class ToolFile:
    """The functions that a file defines, or lists in `__all__`. An exception becomes a result marked as an error."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._functions = _functions(path)

    def __call__(self, call: ToolCall) -> ToolResult | None:
        """Return the result of the function with the call's name, or None if the file has no such function."""
        function = self._functions.get(call.name)
        if function is None:
            return None
        arguments = parsed(call.arguments)
        if not isinstance(arguments, dict):
            return ToolResult(call.id, call.name, f"the arguments are not a JSON object: {call.arguments}", True)
        try:
            value = function(**arguments)
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value))
        except Exception as error:
            return ToolResult(call.id, call.name, f"{type(error).__name__}: {error}", True, kind=call.kind)
        return ToolResult(call.id, call.name, result_text(value), kind=call.kind)


def result_text(value: Any) -> str:
    """Return a tool's result as text for a model: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


async def _awaited(value: Any) -> Any:
    return await value


def _functions(path: str) -> dict[str, Callable[..., Any]]:
    where = Path(path)
    spec = importlib.util.spec_from_file_location(where.stem, where)
    if not where.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"--tools {path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(where.parent))  # as `python FILE.py` does
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"--tools {path}: cannot be loaded: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(str(where.parent))
    # A model must not call functions that the file only imports, unless `__all__` lists them.
    own = [n for n, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    public = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    found = {name: getattr(module, name, None) for name in public}
    return {name: value for name, value in found.items() if callable(value) and not isinstance(value, type)}
