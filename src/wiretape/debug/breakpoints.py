"""Breakpoints and watchpoints: where a run stops when it continues, forward or back.

Both are predicates on a stop, so both directions stop at the same places. A breakpoint is evaluated at the one stop of
a call where all its names have values: `call=3` before the request, `finish=length` after the answer, `tool=x` at the
tool. A watchpoint compares a call with the previous call of the same agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.expression.expression import Expression, evaluate, holds, known_from
from wiretape.debug.timeline import Phase, Stop
from wiretape.errors import UsageError
from wiretape.model.wording import numbered


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A breakpoint, or a watchpoint if `watch`. `once`: it is removed when it is hit (tbreak)."""

    number: int
    text: str
    expression: Expression
    phase: Phase  # the stop of a call at which it is evaluated
    watch: bool = False
    once: bool = False
    enabled: bool = True
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A breakpoint that stopped the run. `before` and `now` are the values of a watchpoint."""

    point: Breakpoint
    before: Any = None
    now: Any = None


@dataclass(slots=True)
class Breakpoints:
    """All breakpoints and watchpoints. Results are cached until the run grows."""

    points: list[Breakpoint] = field(default_factory=list)
    _next: int = 1
    _memo: dict[tuple[int, Stop], bool] = field(default_factory=dict)
    _places: dict[int, tuple[Stop, ...]] = field(default_factory=dict)

    def add(self, text: str, expression: Expression, *, watch: bool = False, once: bool = False) -> Breakpoint:
        phase: Phase = "answer" if watch else known_from(expression)
        point = Breakpoint(self._next, text, expression, phase, watch, once)
        self._next += 1
        self.points.append(point)
        return point

    def find(self, number: int) -> Breakpoint:
        for point in self.points:
            if point.number == number:
                return point
        have = numbered("breakpoint", [point.number for point in self.points])
        raise UsageError(f"breakpoint {number} does not exist; {f'set: {have}' if self.points else 'none is set'}")

    def remove(self, number: int) -> Breakpoint:
        point = self.find(number)
        self.points.remove(point)
        return point

    def change(self, number: int, **values: Any) -> Breakpoint:
        point = self.find(number)
        changed = replace(point, **values)
        self.points[self.points.index(point)] = changed
        return changed

    def clear_cache(self) -> None:
        """Drop the cached results, because the run has grown."""
        self._memo.clear()
        self._places.clear()

    def hit_at(self, annotated: AnnotatedRun, stop: Stop) -> bool:
        """Whether an enabled breakpoint stops at a stop."""
        return any(point.enabled and self.matches(point, annotated, stop) for point in self.points)

    def hits(self, annotated: AnnotatedRun, stop: Stop) -> Iterator[Hit]:
        """The enabled breakpoints that stop at a stop, with the values of watchpoints."""
        for point in self.points:
            if point.enabled and self.matches(point, annotated, stop):
                values = watched(point.expression, annotated, stop) if point.watch else None
                yield Hit(point, *(values or (None, None)))

    def matches(self, point: Breakpoint, annotated: AnnotatedRun, stop: Stop) -> bool:
        """Whether a breakpoint, enabled or not, applies to a stop."""
        if stop.phase != point.phase:
            return False
        key = (point.number, stop)
        if key not in self._memo:
            self._memo[key] = _matches(point, annotated, stop)
        return self._memo[key]

    def places(self, point: Breakpoint, annotated: AnnotatedRun) -> Sequence[Stop]:
        """Every stop of the run to which a breakpoint applies."""
        if point.number not in self._places:
            self._places[point.number] = tuple(s for s in annotated.timeline.stops if self.matches(point, annotated, s))
        return self._places[point.number]


def _matches(point: Breakpoint, annotated: AnnotatedRun, stop: Stop) -> bool:
    if not point.watch:
        return holds(point.expression, annotated, stop)
    values = watched(point.expression, annotated, stop)
    return values is not None and values[0] != values[1]


def watched(expression: Expression, annotated: AnnotatedRun, stop: Stop) -> tuple[Any, Any] | None:
    """The value of an expression at the agent's previous call and now; None at an agent's first call."""
    before = annotated.timeline.call_before(annotated.number(stop))
    if before is None:
        return None
    return _value(expression, annotated, Stop("answer", before)), _value(expression, annotated, stop)


def _value(expression: Expression, annotated: AnnotatedRun, stop: Stop) -> Any:
    try:
        return evaluate(expression, annotated, stop)
    except UsageError:
        return None
