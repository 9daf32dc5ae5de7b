"""Whether this program was started by `wiretape record` or `wiretape replay`, for the tools that it wraps.

Asked at every call of a wrapped tool: what asks over HTTP is imported only where there is somebody to ask.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wiretape.adapters.tool_route import VARIABLE, is_own

if TYPE_CHECKING:
    from wiretape.adapters.tool_asking import Outside


def outside() -> Outside | None:
    """What started this program, if that was wiretape; None where the variable is absent, or leads to ourselves."""
    value = os.environ.get(VARIABLE)
    return _known(value) if value else None


@lru_cache(8)
def _parsed(value: str) -> Outside | None:
    from wiretape.adapters.tool_asking import Outside

    way, plus, url = value.partition("+")
    parts = urlsplit(url)
    if not plus or way not in ("record", "replay") or parts.scheme != "http" or not parts.hostname or not parts.port:
        print(f"wiretape: {VARIABLE} leads nowhere: {value}", file=sys.stderr)
        return None
    return Outside(way == "replay", parts.hostname, parts.port)


def _known(value: str) -> Outside | None:
    found = _parsed(value)
    return None if found is None or is_own(found.port) else found
