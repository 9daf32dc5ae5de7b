"""Another tape beside this one: which of its calls answers to one of ours, and where the two part."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from wiretape.debug.expression.values import block_text
from wiretape.debug.timeline import Timeline
from wiretape.errors import UsageError
from wiretape.model.call import ModelCall
from wiretape.model.run import Run, Step


@dataclass(frozen=True, slots=True)
class Other:
    path: str
    run: Run


def counterpart(line: Timeline, number: int, other: Other, theirs: int | None) -> tuple[ModelCall, str]:
    """The call of the other tape to compare with, and a sentence on where the tapes part. Raises UsageError."""
    if theirs is not None:
        found = next((step.call for step in other.run.steps if step.call.number == theirs), None)
        if found is None:
            raise UsageError(f"{other.path} has no call {theirs}; it has {Timeline(other.run).extent()}")
        return found, parting(line.run, other, number)
    place = next(place for place, step in _places(line.run) if step.call.number == number)
    match = next((step.call for there, step in _places(other.run) if there == place), None)
    if match is None:
        agent, order = place
        raise UsageError(f"{other.path} has no call {order} of agent {agent}; name one: diff {other.path} N")
    return match, parting(line.run, other, number)


def _places(run: Run) -> Iterator[tuple[tuple[str, int], Step]]:
    """Each call by its agent's name and its order among that one's calls."""
    counts: Counter[str] = Counter()
    for step in run.steps:
        name = run.agents[step.agent].name + (" (side call)" if step.cause.kind == "side_call" else "")
        counts[name] += 1
        yield (name, counts[name]), step


def parting(run: Run, other: Other, here: int | None = None) -> str:
    """Where the two runs first say something else; and how to see it, where that is not call `here`."""
    theirs = dict(_places(other.run))
    for place, step in _places(run):
        match = theirs.get(place)
        if match is None:
            return f"the tapes part at call {step.call.number}: {other.path} has no call like it"
        if _brought(step) != _brought(match):
            found = f"the tapes part at call {step.call.number} (call {match.call.number} of {other.path})"
            way = f"; to see it: goto {step.call.number}, then diff {shlex.quote(other.path)}"
            return found if step.call.number == here else found + way
    more = len(other.run.steps) - len(run.steps)
    return f"all calls say the same; {other.path} goes on for {more} more" if more > 0 else "all calls say the same"


def _brought(step: Step) -> list[tuple[str, str]]:
    """What a call brings, as texts: what its request adds, and the answer."""
    response = step.call.response
    messages = (*step.call.request.messages[step.new_from :], *(response.messages if response is not None else ()))
    return [(message.role, block_text(block)) for message in messages for block in message.blocks]
