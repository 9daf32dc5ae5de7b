"""Where two requests' bodies differ, with tools beside the tools of their names: one more does not shift the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile

from wiretape.compare.difference import ABSENT, Difference
from wiretape.compare.json import differences
from wiretape.matching.lookup.index import Probe
from wiretape.model.jsonvalue import Json
from wiretape.wire.tool_lists import TOOLS, tools_by_name, without_tools


def differences_of_bodies(recorded: Probe, live: Probe) -> Iterator[Difference]:
    """The differences of two bodies. Tools that came, went or changed their places are told once, after the rest."""
    one = tools_by_name(recorded.value, recorded.decoded)
    other = tools_by_name(live.value, live.decoded)
    if list(one) == list(other) or not one or not other:
        yield from differences(recorded.value, live.value)
        return
    yield from differences(without_tools(recorded.value), without_tools(live.value))
    yield from _tools(one, other)


def _tools(recorded: dict[str, Json], live: dict[str, Json]) -> Iterator[Difference]:
    now = list(live)
    places = {name: place for place, name in enumerate(now)}
    renamed = set()
    for place, (name, tool) in enumerate(recorded.items()):
        there = now[place] if place < len(now) else name
        if name in live:
            yield from differences(tool, live[name], f"{TOOLS}[{places[name]}]")
        elif there not in recorded:
            renamed.add(there)
            yield from differences(tool, live[there], f"{TOOLS}[{place}]")
        else:
            yield Difference(f"{TOOLS}[{place}]", tool, ABSENT)
    for name, tool in live.items():
        if name not in recorded and name not in renamed:
            yield Difference(f"{TOOLS}[{places[name]}]", ABSENT, tool)
    pairs = zip((name for name in recorded if name in live), (name for name in live if name in recorded), strict=True)
    moved = list(dropwhile(lambda pair: pair[0] == pair[1], pairs))
    if moved:
        yield Difference(f"{TOOLS} (order)", *(", ".join(names) for names in zip(*moved, strict=True)))
