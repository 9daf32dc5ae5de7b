"""Compares two runs, turn by turn and call by call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from wiretape.analyze.cost import Price, pricing
from wiretape.analyze.diff.alignment import aligned_steps, aligned_turns
from wiretape.analyze.diff.calls import CallComparer, Spot
from wiretape.analyze.diff.report import CallSide, DiffReport, RunDifference, Sums, TurnPair
from wiretape.analyze.stats import sums, wall_ms
from wiretape.analyze.why import why
from wiretape.compare.mask import Masker
from wiretape.model.run import Run, Step, Turn
from wiretape.model.wording import clip
from wiretape.wire.base import Volatile
from wiretape.wire.registry import default_registry

_SHOWN = 300  # characters of a value


def compare_runs(
    a: Run, b: Run, masks: Sequence[str] = (), price_a: Price | None = None, price_b: Price | None = None
) -> DiffReport:
    """Compare two runs of one agent. `masks`: patterns of text to ignore, besides clocks and ids."""
    settle = Masker(masks).without_secrets
    side = _Sides(a, b, settle, pricing(price_a), pricing(price_b))
    turns = [side.turns(one, other) for one, other in aligned_turns(a, b, settle)]
    for name, of in (("outside of turns", _outside), ("side calls", lambda run: run.side_calls)):
        mine, theirs = of(a), of(b)
        if mine or theirs:
            turns.append(side.pair(name, mine, theirs, ""))
    found = list(chain.from_iterable(turn.differences for turn in turns))
    return DiffReport(same=not found, first=found[0] if found else None, turns=turns)


def _outside(run: Run) -> tuple[Step, ...]:
    aside = {step.call.number for step in run.side_calls}
    return tuple(step for step in run.steps if step.turn is None and step.call.number not in aside)


class _Sides:
    def __init__(self, a: Run, b: Run, settle: Callable[[str], str], price_a: Price, price_b: Price) -> None:
        self._a, self._b = a, b
        self._price_a, self._price_b = price_a, price_b
        self._comparer = CallComparer(settle)
        self._diverged: set[str] = set()  # agents whose histories differ

    def turns(self, one: Turn | None, other: Turn | None) -> TurnPair:
        known = one or other
        assert known is not None
        numbers = (one.number if one is not None else None, other.number if other is not None else None)
        steps_a, steps_b = one.steps if one is not None else (), other.steps if other is not None else ()
        return self.pair(f"turn {known.number}", steps_a, steps_b, known.user, numbers)

    def pair(
        self,
        name: str,
        a: Sequence[Step],
        b: Sequence[Step],
        user: str,
        numbers: tuple[int | None, int | None] = (None, None),
    ) -> TurnPair:
        pairs: list[tuple[int, int]] = []
        only_a: list[CallSide] = []
        only_b: list[CallSide] = []
        spots: list[tuple[Step | None, Step | None, Spot]] = []
        for one, other in aligned_steps(a, b, self._name_a, self._name_b):
            if one is not None and other is not None:
                pairs.append((one.call.number, other.call.number))
                spots += [(one, other, spot) for spot in self._compared(one, other)]
            elif one is not None:
                only_a.append(_alone(one, self._a, self._name_a))
                spots.append((one, None, Spot("", only_a[-1].why, None, "call")))
                self._diverged.add(self._name_a(one))
            elif other is not None:
                only_b.append(_alone(other, self._b, self._name_b))
                spots.append((None, other, Spot("", None, only_b[-1].why, "call")))
                self._diverged.add(self._name_b(other))
        return TurnPair(
            name=name,
            turn_a=numbers[0],
            turn_b=numbers[1],
            user=user,
            a=_sums(a, self._price_a) if a else None,
            b=_sums(b, self._price_b) if b else None,
            pairs=pairs,
            only_a=only_a,
            only_b=only_b,
            differences=[_difference(*spot) for spot in spots if not spot[2].volatile],
            varied=[_difference(*spot) for spot in spots if spot[2].volatile],
        )

    def _compared(self, one: Step, other: Step) -> list[Spot]:
        agent = self._name_a(one)
        spots = list(self._comparer.spots(one, other, _volatile(one.call.format), agent in self._diverged))
        if any(not spot.volatile for spot in spots):
            self._diverged.add(agent)
        return spots

    def _name_a(self, step: Step) -> str:
        return self._a.agents[step.agent].name

    def _name_b(self, step: Step) -> str:
        return self._b.agents[step.agent].name


def _volatile(form: str) -> Volatile:
    found = default_registry().named(form)
    return found.volatile if found is not None else Volatile()


def _alone(step: Step, run: Run, name: Callable[[Step], str]) -> CallSide:
    tools = [tool.name for tool in step.call.tool_calls]
    return CallSide(call=step.call.number, agent=name(step), why=why(step, run), tool_calls=tools)


def _difference(one: Step | None, other: Step | None, spot: Spot) -> RunDifference:
    return RunDifference(
        call_a=one.call.number if one is not None else None,
        call_b=other.call.number if other is not None else None,
        path=spot.path,
        a=_cut(spot.a),
        b=_cut(spot.b),
        what=spot.what,
    )


def _cut(value: str | None) -> str | None:
    return value if value is None else clip(value, _SHOWN)


def _sums(steps: Sequence[Step], price: Price) -> Sums:
    calls = [step.call for step in steps]
    return Sums(
        **sums(calls, price),
        agents=len({step.agent for step in steps}),
        wall_ms=wall_ms(calls),
    )
