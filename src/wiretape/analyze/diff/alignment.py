"""Pairs the turns and calls of two runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from wiretape.model.run import Run, Step, Turn

T = TypeVar("T")


def aligned(a: Sequence[T], b: Sequence[T], key: Callable[[T], Hashable]) -> Iterator[tuple[T | None, T | None]]:
    """Yield pairs in order. Items with equal keys are paired; items between them are paired one by one."""
    matcher = SequenceMatcher(None, [key(one) for one in a], [key(one) for one in b], autojunk=False)
    for _, a1, a2, b1, b2 in matcher.get_opcodes():
        for step in range(max(a2 - a1, b2 - b1)):
            yield (a[a1 + step] if a1 + step < a2 else None), (b[b1 + step] if b1 + step < b2 else None)


def aligned_turns(a: Run, b: Run, settle: Callable[[str], str]) -> list[tuple[Turn | None, Turn | None]]:
    """Pair turns by the user's message."""

    def key(turn: Turn) -> str:
        return settle(turn.user).strip()

    found = aligned(a.turns, b.turns, key)
    return list(found)


def aligned_steps(
    a: Sequence[Step], b: Sequence[Step], names_a: Callable[[Step], str], names_b: Callable[[Step], str]
) -> list[tuple[Step | None, Step | None]]:
    """Pair calls agent by agent, because the order between agents may differ. The pairs are sorted by start."""
    mine, theirs = _by_agent(a, names_a), _by_agent(b, names_b)
    pairs: list[tuple[Step | None, Step | None]] = []
    for agent in dict.fromkeys((*mine, *theirs)):
        found = aligned(mine.get(agent, []), theirs.get(agent, []), _shape)
        pairs += list(found)
    return sorted(pairs, key=_place)


def _by_agent(steps: Sequence[Step], name: Callable[[Step], str]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(name(step), []).append(step)
    return found


def _shape(step: Step) -> tuple[str, str, tuple[str, ...]]:
    """The cause of a call without call numbers."""
    return step.call.kind, step.cause.kind, tuple(sorted(step.cause.tools))


def _place(pair: tuple[Step | None, Step | None]) -> tuple[int, int]:
    one, other = pair
    number = other.call.number if other is not None else 0
    return (one.call.number if one is not None else number, number)
