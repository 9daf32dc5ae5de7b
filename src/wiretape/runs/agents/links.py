"""Collect the links between agents: starts, handoffs, messages, lists, interruptions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wiretape.model.call import ModelCall
from wiretape.model.http import Ended
from wiretape.model.run import Certainty, Link, LinkBasis, LinkKind
from wiretape.runs.agents.agent_messages import AgentMessages, lost, parent_of
from wiretape.runs.agents.assigner import AgentDraft
from wiretape.runs.agents.names import AgentNames, rows
from wiretape.runs.threads import ThreadDraft, ThreadPlace
from wiretape.runs.tool_names import forks, is_lister, is_stopper
from wiretape.runs.tools import RequestedTool

_CERTAINTY: dict[LinkBasis | None, Certainty] = {"header": "certain", "id": "certain", "data_flow": "likely"}


@dataclass(frozen=True, slots=True)
class LinkContext:
    """The facts from which links are made. `calls_of`: the call numbers of each agent, in order."""

    calls: Mapping[int, ModelCall]
    places: Mapping[int, ThreadPlace]
    drafts: Sequence[ThreadDraft]
    agents: Mapping[int, AgentDraft]  # by thread
    requested: Sequence[RequestedTool]
    names: AgentNames
    agent_messages: AgentMessages
    joined: Mapping[int, Sequence[Link]]
    calls_of: Mapping[int, Sequence[int]]


def collect_links(context: LinkContext) -> tuple[Link, ...]:
    """All links, ordered by the calls from which they start."""
    found = [*_starts(context), *_continuations(context), *(lost(sent) for sent in context.agent_messages.unreceived)]
    found += [
        link for received in (*context.agent_messages.received.values(), *context.joined.values()) for link in received
    ]
    for use in context.requested:
        if is_lister(use.call.name):
            found += _listed(use, context)
        elif is_stopper(use.call.name):
            found += _interrupted(use, context)
    found += _silent_results(context, found)
    return tuple(sorted(found, key=lambda link: (link.from_call or 0, link.tool_index or 0, link.to_call or 0)))


def _starts(context: LinkContext) -> Iterator[Link]:
    for agent in dict.fromkeys(context.agents.values()):
        if agent.parent is None:
            continue
        use, kind = agent.use, _kind(agent)
        yield Link(
            kind,
            agent.started_by,
            agent.first_call.number,
            agent.parent.number,
            agent.number,
            agent.basis or "order",
            _CERTAINTY.get(agent.basis, "possible"),
            use.call.name if use is not None else None,
            use.index if use is not None else None,
            _how(agent),
        )


def _kind(agent: AgentDraft) -> LinkKind:
    if agent.handed:
        return "handoff"
    if agent.resumed:
        return "message"
    return "fork" if agent.forked or (agent.use is not None and forks(agent.use.call.name)) else "started"


def _how(agent: AgentDraft) -> str | None:
    if agent.resumed:
        return "its start is not on the tape"
    if agent.forked:
        return "with the history so far"
    return "the client names the parent, not the call" if agent.use is None else None


def _continuations(context: LinkContext) -> Iterator[Link]:
    """Links of threads that continue another thread of the same agent: forks and compactions."""
    for draft in context.drafts:
        agent = context.agents.get(draft.number)
        if agent is None or draft.from_call is None:
            continue
        first = draft.calls[0]
        place = context.places[first]
        origin = context.agents.get(context.places[draft.from_call].thread)
        if place.relation not in ("fork", "compaction") or (origin is not agent and place.relation == "fork"):
            continue
        basis: LinkBasis = "id" if place.by_id else "data_flow"
        kind: LinkKind = "compacted" if place.relation == "compaction" else "fork"
        from_agent = origin.number if origin is not None else agent.number
        yield Link(kind, draft.from_call, first, from_agent, agent.number, basis, _CERTAINTY[basis])


def _silent_results(context: LinkContext, found: Sequence[Link]) -> Iterator[Link]:
    """Results of subagents that had finished when the tool that started them returned another text."""
    reported = {link.from_agent for link in found if link.kind in ("result", "closing")}
    for agent in dict.fromkeys(context.agents.values()):
        use, parent = agent.use, parent_of(agent)
        if use is None or parent is None or agent.number in reported or use.result_call is None or agent.resumed:
            continue
        last, back = context.calls[context.calls_of[agent.number][-1]], context.calls[use.result_call]
        done = last.number < back.number and last.ended_at is not None and last.ended_at <= back.at
        if done and use.agent == agent.number:
            ends = (last.number, back.number, agent.number, parent.number)
            yield Link("result", *ends, "order", "possible", use.call.name, use.index, "not in the agent's own words")


# -- lists ---------------------------------------------------------------------------------------------------------


def _listed(use: RequestedTool, context: LinkContext) -> Iterator[Link]:
    """The entries of a list of agents, compared with the tape, and the agents that it omits."""
    asker = context.agents[use.thread]
    if use.result is None or use.result_call is None:
        return
    seen: set[int] = set()
    moment = context.calls[use.result_call]
    for name, state in rows(use.result.text):
        child = context.names.called(name)
        if child is asker:
            continue
        seen |= {child.number} if child is not None else set()
        said = (
            f"{state}; {_known(child, moment, context)}"
            if child is not None
            else f"{name} {state}; no call of it is on the tape"
        )
        yield _row(use, asker, child, said, "certain")
    for child in dict.fromkeys(context.agents.values()):
        at_work = child.use is not None and child.use.call_number < use.call_number and child.number not in seen
        if parent_of(child) is asker and at_work and not _returned_result(child, context):
            yield _row(use, asker, child, f"not in the list; {_known(child, moment, context)}", "likely")


def _row(use: RequestedTool, asker: AgentDraft, child: AgentDraft | None, said: str, certainty: Certainty) -> Link:
    to = child.number if child is not None else None
    basis: LinkBasis = "id" if certainty == "certain" else "order"
    return Link("listed", use.call_number, None, asker.number, to, basis, certainty, use.call.name, use.index, said)


def _known(child: AgentDraft, moment: ModelCall, context: LinkContext) -> str:
    """The calls of an agent before, at and after the time of a call, in words."""
    numbers = context.calls_of[child.number]
    before = bisect_left(numbers, moment.number)
    last = context.calls[numbers[before - 1]] if before else None
    under_way = last is not None and (last.ended_at is None or last.ended_at > moment.at)
    said = [f"{before} of its calls had begun", f"{len(numbers) - before} came later"]
    if under_way and last is not None:
        said.append(f"call {last.number} was under way")
    return ", ".join(said)


def _returned_result(child: AgentDraft, context: LinkContext) -> bool:
    """Whether the agent's answer was the tool's result: lists omit agents for one task."""
    use = child.use
    if use is None or use.result_call is None:
        return False
    return any(
        link.kind == "result" and link.from_agent == child.number
        for link in context.agent_messages.received.get(use.result_call, ())
    )


def _interrupted(use: RequestedTool, context: LinkContext) -> Iterator[Link]:
    asker, child = context.agents[use.thread], context.names.addressed(use.call.arguments)
    if child is None:
        return
    cut = next((n for n in reversed(context.calls_of[child.number]) if _was_cut(context.calls[n], use)), None)
    ends = (use.call_number, cut, asker.number, child.number)
    yield Link("interrupted", *ends, "id", "certain", use.call.name, use.index, None if cut else "no call was cut")


def _was_cut(call: ModelCall, use: RequestedTool) -> bool:
    ended = call.ended_at is None or use.at is None or call.ended_at >= use.at
    return ended and call.ended in (Ended.CLIENT_CLOSED, None) and (use.at is None or call.at <= use.at)
