"""The tree of a run for the screen: turns, their calls, the tools of a call, and the subagent that a tool started.

The tree does not change while the debugger moves; the marks of its nodes do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.annotations import Note
from wiretape.debug.breakpoints import Breakpoints
from wiretape.debug.figures import first_line
from wiretape.debug.timeline import Activation, Stop, Timeline
from wiretape.model.run import Step, ToolUse

NodeKind: TypeAlias = Literal["turn", "agent", "call", "tool", "side"]
Mark: TypeAlias = Literal["current", "breakpoint", "disabled", "note", "finding", "error"]
Key: TypeAlias = tuple[str, int, int]  # kind, number, index: stable while the run grows


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree. `stop`: where selecting it goes. A call's node covers its request and its answer."""

    key: Key
    kind: NodeKind
    label: str
    stop: Stop
    step: Step | None = None
    use: ToolUse | None = None
    children: tuple[Node, ...] = ()


def outline(timeline: Timeline) -> tuple[Node, ...]:
    """Build the tree: every call once, side calls in a group at the end."""
    tree = _Tree(timeline)
    turns = [node for turn in timeline.run.turns if (node := tree.turn(turn.number, turn.user)) is not None]
    rest = [
        tree.agent(activation) for activation in timeline.activations if not activation.side and tree.left(activation)
    ]
    side = [tree.call(number) for activation in timeline.activations if activation.side for number in activation.calls]
    found = [*turns, *rest]
    if side:
        assert side[0].step is not None
        found.append(Node(("side", 0, 0), "side", "side calls", side[0].stop, children=tuple(side)))
    return tuple(found)


class _Tree:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._placed: set[int] = set()
        self._started: dict[int, list[Activation]] = {}
        self._turn_calls = {turn.number: [step.call.number for step in turn.steps] for turn in timeline.run.turns}
        for activation in timeline.activations:
            if activation.starter is not None and not activation.side:
                self._started.setdefault(activation.starter, []).append(activation)

    def left(self, activation: Activation) -> bool:
        return any(number not in self._placed for number in activation.calls)

    def turn(self, number: int, user: str) -> Node | None:
        calls = self._turn_calls[number]
        roots = [n for n in calls if self._timeline.activation(n).starter is None]
        children = [self.call(n) for n in roots or calls[:1] if n not in self._placed]
        late = [self.agent(a) for a in self._here(calls) if self.left(a)]  # started by a call of another turn
        if not children and not late:
            return None
        label = f"turn {number}: {first_line(user, 200)}" if user.strip() else f"turn {number}"
        stop = (children or late)[0].stop
        return Node(("turn", number, 0), "turn", label, stop, children=(*children, *late))

    def _here(self, calls: Sequence[int]) -> list[Activation]:
        return list(dict.fromkeys(self._timeline.activation(n) for n in calls if n not in self._placed))

    def call(self, number: int) -> Node:
        self._placed.add(number)
        step, started = self._timeline.step(number), self._started.get(number, [])
        by_use: dict[int, list[Activation]] = {}
        for activation in started:
            use = self._timeline.started_by(activation)
            by_use.setdefault(use.index if use is not None else -1, []).append(activation)
        children = [self._tool(number, use, by_use.get(use.index, [])) for use in self._timeline.uses(number)]
        children += [self.agent(activation) for activation in by_use.get(-1, []) if self.left(activation)]
        label = step.call.model or step.call.request.model or "unknown model"
        return Node(("call", number, 0), "call", label, Stop("answer", number), step, children=tuple(children))

    def _tool(self, number: int, use: ToolUse, started: Sequence[Activation]) -> Node:
        children = tuple(self.agent(activation) for activation in started if self.left(activation))
        stop = Stop("tool", number, use.index)
        return Node(("tool", number, use.index), "tool", use.call.name, stop, use=use, children=children)

    def agent(self, activation: Activation) -> Node:
        calls = [n for n in activation.calls if n not in self._placed]
        self._placed.update(calls)
        children = tuple(self.call(n) for n in calls)
        name = self._timeline.run.agents[activation.agent].name
        return Node(("agent", activation.agent, calls[0]), "agent", name, children[0].stop, children=children)


def marks(
    annotated: AnnotatedRun, here: Stop, breakpoints: Breakpoints, notes: Sequence[Note], *, judged: bool = True
) -> Mapping[Key, frozenset[Mark]]:
    """The marks of the nodes that have any. `judged`: with findings, which are computed on first use."""
    found: dict[Key, set[Mark]] = {}
    if here.call is not None:
        found.setdefault(key_of(here), set()).add("current")
    for point in breakpoints.points:
        for stop in breakpoints.places(point, annotated):
            found.setdefault(key_of(stop), set()).add("breakpoint" if point.enabled else "disabled")
    for note in notes:
        if note.stop.call is not None:
            found.setdefault(key_of(note.stop), set()).add("note")
    for finding in annotated.all_findings() if judged else ():
        if finding.call is not None:
            found.setdefault(("call", finding.call, 0), set()).add("finding")
    for number in annotated.failed:
        found.setdefault(("call", number, 0), set()).add("error")
    return {key: frozenset(marked) for key, marked in found.items()}


def key_of(stop: Stop) -> Key:
    """The key of the node that covers a stop."""
    assert stop.call is not None
    return ("tool", stop.call, stop.tool) if stop.tool is not None else ("call", stop.call, 0)
