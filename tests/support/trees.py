"""The analysis of a run in lines that two runs of one program share: turns, agents, links, side calls."""

from __future__ import annotations

from wiretape.model.http import Exchange
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode


def tree_of(exchanges: tuple[Exchange, ...]) -> tuple[str, ...]:
    """The tree of what a tape holds."""
    return tree(build_run(decode(exchanges)))


def tree(run: Run) -> tuple[str, ...]:
    """One line for the turns, one for each agent, each kind of link between two agents, each kind of side call.

    `Agent #2` matches any of several agents, because their order differs from run to run.
    """
    names = {agent.number: agent.name.partition(" #")[0] for agent in run.agents}
    parents = [(names[a.parent] if a.parent is not None else "", names[a.number], a) for a in run.agents]
    agents = sorted(
        f"{parent} > {name}: {agent.origin} by {agent.started_tool or '?'} ({agent.basis})" if parent else f"{name}"
        for parent, name, agent in parents
    )
    links = {
        f"{link.kind}: {names.get(link.from_agent or 0)} > {names[link.to_agent]} ({link.basis}, {link.certainty})"
        for link in run.links
        if link.to_agent is not None and (link.to_call is not None or link.kind == "listed")
        if link.kind not in ("started", "handoff")
    }
    aside = {f"aside: {step.cause.detail}" for step in run.side_calls}
    return (f"{len(run.turns)} turns", *agents, *sorted(links), *sorted(aside))
