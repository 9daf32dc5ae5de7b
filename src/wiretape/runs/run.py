"""Build the run of a tape: threads, agents, tool results, turns and causes of its model calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wiretape.model.call import ModelCall, ServedToolCall
from wiretape.model.run import Agent, Link, Run, Step, Thread, ToolUse, Turn
from wiretape.runs.agents.agent_messages import AgentMessages, joins, parent_of
from wiretape.runs.agents.assigner import AgentAssigner, AgentDraft, named_agents
from wiretape.runs.agents.links import LinkContext, collect_links
from wiretape.runs.agents.names import AgentNames
from wiretape.runs.side_calls import SideCall, find_side_calls
from wiretape.runs.threads import ThreadBuilder, ThreadPlace
from wiretape.runs.tools import RequestedTool, pair, pair_served
from wiretape.runs.turns_and_causes import CauseAssigner
from wiretape.runs.user_text import answer_text


def build_run(
    calls: Sequence[ModelCall], other_exchanges: Sequence[int] = (), served: Sequence[ServedToolCall] = ()
) -> Run:
    """Link model calls into a run. `served`: the tool calls that tool servers on the tape received."""
    ordered = sorted(calls, key=lambda call: call.number)
    builder = ThreadBuilder(ordered)
    requested = pair(ordered, builder.links, builder.drafts)
    side_calls = find_side_calls(ordered, builder.links, builder.identities, builder.drafts)
    by_number = {call.number: call for call in ordered}
    pair_served(requested, served, by_number)
    assigner = AgentAssigner(by_number, builder.links, builder.identities, builder.drafts, requested, side_calls)
    assigner.assign()
    kept = {number: why for number, why in side_calls.items() if number not in assigner.linked}
    names = AgentNames(assigner.agents, builder.identities)
    agent_messages = AgentMessages(ordered, builder.links, assigner.by_thread, requested, names, kept)
    joined = joins(ordered, builder.links, assigner.by_thread, kept)
    cause_assigner = CauseAssigner(ordered, builder.links, assigner.by_thread, requested, kept, agent_messages, joined)
    calls_of = _calls_of(builder, assigner, kept)
    places, drafts, by_thread = builder.links, builder.drafts, assigner.by_thread
    links = collect_links(
        LinkContext(
            by_number, places, drafts, by_thread, _placed(requested, kept), names, agent_messages, joined, calls_of
        )
    )
    return _assemble(ordered, builder, assigner, requested, cause_assigner, kept, links, other_exchanges)


def _calls_of(
    builder: ThreadBuilder, assigner: AgentAssigner, side_calls: Mapping[int, SideCall]
) -> dict[int, list[int]]:
    """The call numbers of each agent, in order."""
    found: dict[int, list[int]] = {}
    for number in sorted(builder.links):
        if number not in side_calls:
            found.setdefault(assigner.by_thread[builder.links[number].thread].number, []).append(number)
    return found


def _placed(requested: Sequence[RequestedTool], side_calls: Mapping[int, SideCall]) -> list[RequestedTool]:
    return [use for use in requested if use.call_number not in side_calls]


def _assemble(
    calls: Sequence[ModelCall],
    builder: ThreadBuilder,
    assigner: AgentAssigner,
    requested: Sequence[RequestedTool],
    cause_assigner: CauseAssigner,
    side_calls: Mapping[int, SideCall],
    links: tuple[Link, ...],
    other_exchanges: Sequence[int],
) -> Run:
    threads = _threads(builder, assigner.by_thread, side_calls)
    places = {number: (thread.agent, thread.number) for thread in threads for number in thread.calls}
    agents = named_agents(assigner.agents) or ((Agent(0, "root"),) if calls else ())
    for number in side_calls:
        places[number] = _place_of_accompanied(number, side_calls, places) or (0, len(threads))
    if any(thread == len(threads) for _, thread in places.values()):
        threads = (*threads, Thread(len(threads), 0, ()))  # side calls that accompany no call
    reached: dict[int, list[Link]] = {}
    for one in links:
        if one.to_call is not None:
            reached.setdefault(one.to_call, []).append(one)
    steps = {call.number: _step(call, builder.links, places, cause_assigner, reached) for call in calls}
    roots = {agent.number for agent in assigner.agents if parent_of(agent) is None}
    return Run(
        steps=tuple(steps.values()),
        turns=tuple(
            _turn(turn.number, turn.user, [steps[n] for n in turn.calls], roots) for turn in cause_assigner.turns
        ),
        agents=agents,
        threads=threads,
        tool_uses=tuple(_tool_use(use) for use in requested),
        side_calls=tuple(steps[number] for number in sorted(side_calls)),
        other_exchanges=tuple(other_exchanges),
        links=links,
    )


def _threads(
    builder: ThreadBuilder, agents: Mapping[int, AgentDraft], side_calls: Mapping[int, SideCall]
) -> tuple[Thread, ...]:
    kept = [draft for draft in builder.drafts if draft.calls[0] not in side_calls]
    return tuple(
        Thread(number, agents[draft.number].number, tuple(draft.calls), draft.from_call)
        for number, draft in enumerate(kept)
    )


def _place_of_accompanied(
    number: int, side_calls: Mapping[int, SideCall], places: Mapping[int, tuple[int, int]]
) -> tuple[int, int] | None:
    """Agent and thread of the call that a side call accompanies; None if it accompanies none."""
    accompanies = side_calls[number].accompanies
    if accompanies is not None and accompanies in side_calls:
        accompanies = side_calls[accompanies].accompanies
    return places.get(accompanies) if accompanies is not None else None


def _step(
    call: ModelCall,
    links: Mapping[int, ThreadPlace],
    places: Mapping[int, tuple[int, int]],
    cause_assigner: CauseAssigner,
    reached: Mapping[int, Sequence[Link]],
) -> Step:
    agent, thread = places[call.number]
    link, turn = links.get(call.number), cause_assigner.turn_of.get(call.number)
    new_from = link.new_from if link is not None and link.relation in ("continues", "retry") else 0
    return Step(
        call,
        agent,
        thread,
        turn.number if turn is not None else None,
        cause_assigner.causes[call.number],
        new_from,
        tuple(reached.get(call.number, ())),
    )


def _turn(number: int, user: str, steps: Sequence[Step], roots: set[int]) -> Turn:
    last = next((step.call for step in reversed(steps) if step.agent in roots), None)
    answer = answer_text(last.response.messages) if last is not None and last.response is not None else None
    return Turn(number, user, tuple(steps), answer)


def _tool_use(use: RequestedTool) -> ToolUse:
    served = use.served
    ended = served.ended_at if served is not None else None
    return ToolUse(
        use.call_number,
        use.index,
        use.call,
        use.result,
        use.result_call,
        use.agent,
        served.exchange if served is not None else None,
        ended - served.at if served is not None and ended is not None else None,
    )
