"""wiretape: record what an LLM agent really sent over the wire, replay it exactly, and explain it.

The public face. Importing it is cheap: what it offers is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretape._version import __version__ as __version__
    from wiretape.adapters.inprocess.api import record as record
    from wiretape.adapters.inprocess.api import replay as replay
    from wiretape.adapters.inprocess.tools.decorator import tool as tool
    from wiretape.adapters.inprocess.tools.read_tape import read_tape as read_tape
    from wiretape.errors import MissError as MissError
    from wiretape.errors import MissInterrupt as MissInterrupt
    from wiretape.errors import ToolError as ToolError
    from wiretape.errors import WiretapeError as WiretapeError

__all__ = [
    "MissError",
    "MissInterrupt",
    "ToolError",
    "WiretapeError",
    "__version__",
    "read_tape",
    "record",
    "replay",
    "tool",
]

_HOMES = {
    "MissError": "wiretape.errors",
    "MissInterrupt": "wiretape.errors",
    "ToolError": "wiretape.errors",
    "WiretapeError": "wiretape.errors",
    "__version__": "wiretape._version",
    "read_tape": "wiretape.adapters.inprocess.tools.read_tape",
    "record": "wiretape.adapters.inprocess.api",
    "replay": "wiretape.adapters.inprocess.api",
    "tool": "wiretape.adapters.inprocess.tools.decorator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
