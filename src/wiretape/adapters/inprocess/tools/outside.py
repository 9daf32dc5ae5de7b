"""Whether this program was started by `wiretape record` or `wiretape replay`, for the tools that it wraps.

Asked at every call of a wrapped tool: what asks over HTTP is imported only where there is somebody to ask.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wiretape.adapters.routing.tool_route import VARIABLE, is_own
from wiretape.errors import MissError

if TYPE_CHECKING:
    from wiretape.adapters.inprocess.tools.asking import Outside


def outside() -> Outside | None:
    """What started this program, if that was wiretape; None where the variable is absent, or leads to ourselves.

    Raises MissError where it says that this is a replay, and not where to ask.
    """
    value = os.environ.get(VARIABLE)
    return _known(value) if value else None


@lru_cache(8)
def _parsed(value: str) -> Outside | None:
    from wiretape.adapters.inprocess.tools.asking import Outside

    way, _, url = value.partition("+")
    place = _place(url) if way in ("record", "replay") else None
    if place is not None:
        return Outside(way == "replay", *place)
    if way.startswith("replay"):
        raise MissError(f"{VARIABLE} leads nowhere: {value}\n  without it tools run; in a replay they do not")
    with suppress(OSError, ValueError):  # a program whose stderr is closed goes on
        print(f"wiretape: {VARIABLE} leads nowhere: {value}", file=sys.stderr)
    return None


def _place(url: str) -> tuple[str, int] | None:
    """Host and port; None where a URL has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port beyond all ports, half an IPv6 address
        return None
    return (parts.hostname, port) if parts.scheme == "http" and parts.hostname and port else None


def _known(value: str) -> Outside | None:
    found = _parsed(value)
    return None if found is None or is_own(found.port) else found
