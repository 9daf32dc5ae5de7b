"""The calls of a turn as a tree of agents, and the messages between agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from wiretape.analyze.report import AgentReport, CallReport, LinkReport
from wiretape.model.run import Certainty, LinkBasis, LinkKind
from wiretape.views.printable import clip, one_line
from wiretape.views.prose import labelled


@dataclass(frozen=True, slots=True)
class TreeStep:
    """A call and its depth in the tree of agents."""

    step: CallReport
    depth: int


def tree(steps: Sequence[CallReport], agents: Sequence[AgentReport]) -> list[TreeStep]:
    """Return every call once, with the calls of a subagent under the call that started it."""
    started_by = {agent.name: agent.started_by for agent in agents}
    numbers = {step.call for step in steps}
    children: dict[int | None, list[CallReport]] = {}
    branch: dict[str, int | None] = {}  # agent -> the call that is the parent of its calls now
    for step in steps:
        parent = _starter(step, started_by, first=step.agent not in branch)
        if parent is not None and parent in numbers and parent < step.call:
            branch[step.agent] = parent
        children.setdefault(branch.setdefault(step.agent, None), []).append(step)
    return list(_walk(children, None, 0))


def _starter(step: CallReport, started_by: dict[str, int | None], first: bool) -> int | None:
    """Return the call that started this agent."""
    if step.cause.kind == "subagent":
        return step.cause.call
    return started_by.get(step.agent) if first else None


def _walk(children: dict[int | None, list[CallReport]], parent: int | None, depth: int) -> Iterator[TreeStep]:
    """Walk depth first. The calls of one subagent stay together; subagents are in the order of their starts."""
    branches: dict[str, list[CallReport]] = {}
    for step in children.get(parent, ()):
        # Root agents share one branch: their calls stay in the order of numbers.
        branches.setdefault(step.agent if parent is not None else "", []).append(step)
    for steps in branches.values():
        for step in steps:
            yield TreeStep(step, depth)
            yield from _walk(children, step.call, depth + 1)


MOST = 40  # lines; the rest is counted
_DETAIL = 160  # characters of a tool's text
# Other kinds of links are shown with their agent or call.
_SAYS: dict[LinkKind, str] = {
    "message": "message to",
    "report": "report to",
    "closing": "closing message to",
    "handoff": "hands over to",
    "listed": "list of agents:",
    "interrupted": "interrupts",
    "compacted": "summed up its history:",
}
_RESTS_ON: dict[LinkBasis, str] = {
    "header": "by a header",
    "id": "by an id",
    "data_flow": "by its text",
    "order": "by its order",
}
_SURE: dict[Certainty, str] = {"certain": "", "likely": "likely, ", "possible": "possibly, "}


def between(links: Sequence[LinkReport], console: Console, width: int) -> Iterator[Text]:
    """Yield the section of messages between agents; empty if agents only start each other and return results."""
    shown = [link for link in links if link.kind in _SAYS]
    if not shown:
        return
    yield Text()
    yield Text("Between agents", style="bold")
    for link in shown[:MOST]:
        label = f"call {link.from_call}" if link.from_call is not None else "?"
        yield from labelled(console, label, Text(_words(link)), width, label_width=10)
    if len(shown) > MOST:
        yield Text(f"{len(shown) - MOST:,} more: wiretape stats --json lists them", style="dim")


def _words(link: LinkReport) -> str:
    agent = one_line(link.to_agent) if link.to_agent is not None else "an agent without calls here"
    unnamed = link.kind == "listed" and link.to_agent is None
    said = _SAYS[link.kind] if unnamed else f"{_SAYS[link.kind]} {agent}"
    if link.to_call is not None:
        said += f", call {link.to_call}"
    if link.detail is not None:
        said += f"{'' if unnamed else ':' if link.kind == 'listed' else ','} {clip(link.detail, _DETAIL)}"
    if link.kind in ("listed", "interrupted"):
        return said
    return f"{said} ({_SURE[link.certainty]}{_RESTS_ON[link.basis]})"
