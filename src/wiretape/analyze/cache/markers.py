"""Explicit cache markers: where a request has them, and which of them reach an entry that an earlier one wrote."""

from __future__ import annotations

from wiretape.analyze.cache.rules import CacheRule
from wiretape.analyze.prefix_breaks import PrefixBreak
from wiretape.model.call import CallRequest, Message, ToolSpec


def marks(request: CallRequest) -> list[int]:
    """Places of the markers among a request's elements: its tools, then its messages. One at the top marks the end."""
    found = [index for index, tool in enumerate(request.tools) if _is_marked(tool)]
    tools = len(request.tools)
    found += [tools + index for index, message in enumerate(request.messages) if message.cache_marked]
    if request.settings.get("cache_control"):
        found.append(tools + len(request.messages) - 1)
    return sorted({place for place in found if place >= 0})


def _is_marked(tool: ToolSpec) -> bool:
    return bool(tool.raw.get("cache_control")) or bool(tool.raw.get("cachePoint"))


def entry(request: CallRequest, shared: int) -> int | None:
    """The last place at which a request wrote an entry that lies in its first `shared` elements."""
    return max((place for place in marks(request) if place < shared), default=None)


def reaches(request: CallRequest, place: int, rule: CacheRule) -> bool:
    """Whether a marker of a request stands at an entry's place, or so near behind it that the entry is found."""
    lookback = rule.lookback
    return any(
        mark >= place and (lookback is None or _blocks(request, place, mark) <= lookback) for mark in marks(request)
    )


def _blocks(request: CallRequest, start: int, end: int) -> int:
    """Blocks after one element, up to another."""
    tools = len(request.tools)
    between = request.messages[max(0, start + 1 - tools) : max(0, end + 1 - tools)]
    return sum(max(1, _count(message)) for message in between) + max(0, min(end, tools - 1) - start)


def _count(message: Message) -> int:
    return len(message.blocks)


def marker_break(before: CallRequest, after: CallRequest, place: int) -> PrefixBreak:
    """The marker that wrote the entry, and where the markers stand now."""
    now = ", ".join(element_path(after, mark) for mark in marks(after))
    return PrefixBreak(element_path(before, place), "the cache marker", element_path(before, place), now or None)


def element_path(request: CallRequest, place: int) -> str:
    """Where an element stands in the request body."""
    tools = len(request.tools)
    return f"tools[{place}]" if place < tools else request.path(place - tools)
