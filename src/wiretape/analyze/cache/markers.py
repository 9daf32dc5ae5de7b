"""Explicit cache markers of a request, and whether they reach the entry of an earlier request."""

from __future__ import annotations

from wiretape.analyze.cache.rules import CacheRule
from wiretape.analyze.prefix_breaks import PrefixBreak
from wiretape.model.call import CallRequest, ToolSpec


def marks(request: CallRequest) -> list[int]:
    """Return the indices of marked elements: tools, then messages. A marker of the whole request is at the last one."""
    found = [index for index, tool in enumerate(request.tools) if _is_marked(tool)]
    tools = len(request.tools)
    found += [tools + index for index, message in enumerate(request.messages) if message.cache_marked]
    if request.settings.get("cache_control"):
        found.append(tools + len(request.messages) - 1)
    return sorted({place for place in found if place >= 0})


def _is_marked(tool: ToolSpec) -> bool:
    return bool(tool.raw.get("cache_control")) or bool(tool.raw.get("cachePoint"))


def entry(request: CallRequest, shared: int) -> int | None:
    """Return the last marked element among the first `shared` elements: the end of a cache entry."""
    return max((place for place in marks(request) if place < shared), default=None)


def reaches(request: CallRequest, place: int, rule: CacheRule) -> bool:
    """True if a request has a marker at the end of an entry, or after it within the lookback."""
    lookback = rule.lookback
    return any(
        mark >= place and (lookback is None or _blocks(request, place, mark) <= lookback) for mark in marks(request)
    )


def _blocks(request: CallRequest, start: int, end: int) -> int:
    """Number of blocks after one element, up to another."""
    tools = len(request.tools)
    between = request.messages[max(0, start + 1 - tools) : max(0, end + 1 - tools)]
    return sum(max(1, len(message.blocks)) for message in between) + max(0, min(end, tools - 1) - start)


def marker_break(before: CallRequest, after: CallRequest, place: int) -> PrefixBreak:
    """Return the marker that wrote the entry, and the places of the markers now."""
    now = ", ".join(element_path(after, mark) for mark in marks(after))
    return PrefixBreak(element_path(before, place), "the cache marker", element_path(before, place), now or None)


def element_path(request: CallRequest, place: int) -> str:
    """Path of an element in the request body."""
    tools = len(request.tools)
    return f"tools[{place}]" if place < tools else request.path(place - tools)
