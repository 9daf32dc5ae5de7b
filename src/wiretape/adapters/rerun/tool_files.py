"""Tools from a Python file, for reruns: functions by name, called with the model's arguments."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wiretape.compare.tool_results import parsed_arguments
from wiretape.errors import UsageError
from wiretape.model.call import ToolCall, ToolResult

__all__ = ["ToolFile", "spelled"]


class ToolFile:
    """The functions that a file defines, or names in `__all__`. What they raise is their result, marked as an error."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._functions = _functions(path)

    def __call__(self, call: ToolCall) -> ToolResult | None:
        """What the function of that name gives; None where the file has none."""
        function = self._functions.get(call.name)
        if function is None:
            return None
        arguments = parsed_arguments(call.arguments)
        if not isinstance(arguments, dict):
            return ToolResult(call.id, call.name, f"the arguments are no JSON object: {call.arguments}", True)
        try:
            given = function(**arguments)
            if inspect.isawaitable(given):
                given = asyncio.run(_awaited(given))
        except Exception as error:
            return ToolResult(call.id, call.name, f"{type(error).__name__}: {error}", True, kind=call.kind)
        return ToolResult(call.id, call.name, spelled(given), kind=call.kind)


def spelled(value: Any) -> str:
    """A tool's result as text for a model: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


async def _awaited(given: Any) -> Any:
    return await given


def _functions(path: str) -> dict[str, Callable[..., Any]]:
    where = Path(path)
    spec = importlib.util.spec_from_file_location(where.stem, where)
    if not where.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"--tools {path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(where.parent))  # as python FILE.py has it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"--tools {path}: cannot be loaded: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(str(where.parent))
    # What it imports, it may need itself: a model must not be able to call that, unless `__all__` says so.
    own = [n for n, made in vars(module).items() if getattr(made, "__module__", None) == module.__name__]
    named = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    found = {name: getattr(module, name, None) for name in named}
    return {name: made for name, made in found.items() if callable(made) and not isinstance(made, type)}
