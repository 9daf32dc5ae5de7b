"""A turn's calls as a tree: the calls of a subagent stand under the call that started it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wiretape.analyze.report import AgentReport, CallReport


@dataclass(frozen=True, slots=True)
class Placed:
    """A step and how deep it stands."""

    step: CallReport
    depth: int


def tree(steps: Sequence[CallReport], agents: Sequence[AgentReport]) -> list[Placed]:
    """Every step once. Within one branch the order stays that of the calls' numbers."""
    started_by = {agent.name: agent.started_by for agent in agents}
    numbers = {step.call for step in steps}
    children: dict[int | None, list[CallReport]] = {}
    branch: dict[str, int | None] = {}  # agent -> the call under which its steps stand now
    for step in steps:
        parent = _starter(step, started_by, first=step.agent not in branch)
        if parent is not None and parent in numbers and parent < step.call:
            branch[step.agent] = parent
        children.setdefault(branch.setdefault(step.agent, None), []).append(step)
    return list(_walk(children, None, 0))


def _starter(step: CallReport, started_by: dict[str, int | None], first: bool) -> int | None:
    """The call that set this agent going: what the step itself says, else what is known of the agent."""
    if step.cause.kind == "subagent":
        return step.cause.call
    return started_by.get(step.agent) if first else None


def _walk(children: dict[int | None, list[CallReport]], parent: int | None, depth: int) -> Iterator[Placed]:
    """Depth first. Of several subagents under one call, each one's steps stay together, in order of their starts."""
    branches: dict[str, list[CallReport]] = {}
    for step in children.get(parent, ()):
        # Roots share one branch: two root agents of one turn stay in the order of their calls.
        branches.setdefault(step.agent if parent is not None else "", []).append(step)
    for steps in branches.values():
        for step in steps:
            yield Placed(step, depth)
            yield from _walk(children, step.call, depth + 1)
