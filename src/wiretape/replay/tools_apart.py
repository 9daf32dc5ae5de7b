"""Where two requests' bodies differ, with tools beside the tools of their names: one more does not shift the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile

from wiretape.model.jsonvalue import Json
from wiretape.replay.compare import differences
from wiretape.replay.index import Probe
from wiretape.replay.values import ABSENT, Difference

_MEMBER = "tools"


def differences_of_bodies(recorded: Probe, live: Probe) -> Iterator[Difference]:
    """The differences of two bodies. Tools that came, went or changed their places are told once, after the rest."""
    one, other = _by_name(recorded), _by_name(live)
    if list(one) == list(other) or not one or not other:
        yield from differences(recorded.value, live.value)
        return
    yield from differences(_without_tools(recorded.value), _without_tools(live.value))
    yield from _tools(one, other)


def _by_name(probe: Probe) -> dict[str, Json]:
    """The tools of a body by their names, in their order; empty where they have none, or one stands there twice."""
    tools = probe.value.get(_MEMBER) if isinstance(probe.value, dict) else None
    call = probe.decoded
    if call is None or not isinstance(tools, list) or len(tools) != len(call.tools):
        return {}
    named = {spec.name: tool for spec, tool in zip(call.tools, tools, strict=True)}
    return named if len(named) == len(tools) else {}


def _without_tools(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != _MEMBER} if isinstance(body, dict) else body


def _tools(recorded: dict[str, Json], live: dict[str, Json]) -> Iterator[Difference]:
    now = list(live)
    places = {name: place for place, name in enumerate(now)}
    renamed = set()
    for place, (name, tool) in enumerate(recorded.items()):
        there = now[place] if place < len(now) else name
        if name in live:
            yield from differences(tool, live[name], f"{_MEMBER}[{places[name]}]")
        elif there not in recorded:
            renamed.add(there)
            yield from differences(tool, live[there], f"{_MEMBER}[{place}]")
        else:
            yield Difference(f"{_MEMBER}[{place}]", tool, ABSENT)
    for name, tool in live.items():
        if name not in recorded and name not in renamed:
            yield Difference(f"{_MEMBER}[{places[name]}]", ABSENT, tool)
    pairs = zip((name for name in recorded if name in live), (name for name in live if name in recorded), strict=True)
    moved = list(dropwhile(lambda pair: pair[0] == pair[1], pairs))
    if moved:
        yield Difference(f"{_MEMBER} (order)", *(", ".join(names) for names in zip(*moved, strict=True)))
