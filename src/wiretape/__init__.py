"""wiretape: record what an LLM agent really sent over the wire, replay it exactly, and explain it.

The public names. Importing this module is cheap: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretape._version import __version__ as __version__
    from wiretape.adapters.inprocess.api import record as record
    from wiretape.adapters.inprocess.api import replay as replay
    from wiretape.adapters.inprocess.tools.decorator import tool as tool
    from wiretape.errors import MissError as MissError
    from wiretape.errors import MissInterrupt as MissInterrupt
    from wiretape.errors import ToolError as ToolError
    from wiretape.errors import WiretapeError as WiretapeError
    from wiretape.library import AnalyzedTape as Tape
    from wiretape.library import open as open
    from wiretape.library import open as read_tape

__all__ = [
    "MissError",
    "MissInterrupt",
    "Tape",
    "ToolError",
    "WiretapeError",
    "__version__",
    "open",
    "read_tape",
    "record",
    "replay",
    "tool",
]

_HOMES = {
    "MissError": "wiretape.errors:MissError",
    "MissInterrupt": "wiretape.errors:MissInterrupt",
    "Tape": "wiretape.library:AnalyzedTape",
    "ToolError": "wiretape.errors:ToolError",
    "WiretapeError": "wiretape.errors:WiretapeError",
    "__version__": "wiretape._version:__version__",
    "open": "wiretape.library:open",
    "read_tape": "wiretape.library:open",  # the name before `open`
    "record": "wiretape.adapters.inprocess.api:record",
    "replay": "wiretape.adapters.inprocess.api:replay",
    "tool": "wiretape.adapters.inprocess.tools.decorator:tool",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, member = _HOMES[name].partition(":")
    value = globals()[name] = getattr(import_module(module), member)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
