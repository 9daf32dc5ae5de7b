"""Puts a tape's model calls into their places: threads, agents, tool results, turns, causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wiretape.model.call import ModelCall, ServedToolCall
from wiretape.model.run import Agent, Link, Run, Step, Thread, ToolUse, Turn
from wiretape.runs.agents.agent_messages import AgentMessages, joins, parent_of
from wiretape.runs.agents.assigner import AgentAssigner, AgentDraft, named
from wiretape.runs.agents.links import LinkContext, gathered
from wiretape.runs.agents.names import AgentNames
from wiretape.runs.causes import CauseAssigner
from wiretape.runs.sidecalls import SideCall, find_side_calls
from wiretape.runs.threads import ThreadBuilder, ThreadPlace
from wiretape.runs.tools import RequestedTool, pair, pair_served
from wiretape.runs.words import answer_text


def build_run(
    calls: Sequence[ModelCall], other_exchanges: Sequence[int] = (), served: Sequence[ServedToolCall] = ()
) -> Run:
    """Which call continues which, who made it, why, and for which turn. Calls are taken by number.

    `served`: the tool calls that tool servers on the tape got.
    """
    ordered = sorted(calls, key=lambda call: call.number)
    weaver = ThreadBuilder(ordered)
    asked = pair(ordered, weaver.links, weaver.strands)
    aside = find_side_calls(ordered, weaver.links, weaver.identities, weaver.strands)
    by_number = {call.number: call for call in ordered}
    pair_served(asked, served, by_number)
    casting = AgentAssigner(by_number, weaver.links, weaver.identities, weaver.strands, asked, aside)
    casting.cast()
    kept = {number: why for number, why in aside.items() if number not in casting.linked}
    names = AgentNames(casting.speakers, weaver.identities)
    letters = AgentMessages(ordered, weaver.links, casting.by_thread, asked, names, kept)
    joined = joins(ordered, weaver.links, casting.by_thread, kept)
    story = CauseAssigner(ordered, weaver.links, casting.by_thread, asked, kept, letters, joined)
    calls_of = _calls_of(weaver, casting, kept)
    places, strands, by_thread = weaver.links, weaver.strands, casting.by_thread
    links = gathered(
        LinkContext(by_number, places, strands, by_thread, _placed(asked, kept), names, letters, joined, calls_of)
    )
    return _assemble(ordered, weaver, casting, asked, story, kept, links, other_exchanges)


def _calls_of(weaver: ThreadBuilder, casting: AgentAssigner, aside: Mapping[int, SideCall]) -> dict[int, list[int]]:
    """Per agent, the numbers of its calls, in order."""
    found: dict[int, list[int]] = {}
    for number in sorted(weaver.links):
        if number not in aside:
            found.setdefault(casting.by_thread[weaver.links[number].thread].number, []).append(number)
    return found


def _placed(asked: Sequence[RequestedTool], aside: Mapping[int, SideCall]) -> list[RequestedTool]:
    return [use for use in asked if use.call_number not in aside]


def _assemble(
    calls: Sequence[ModelCall],
    weaver: ThreadBuilder,
    casting: AgentAssigner,
    asked: Sequence[RequestedTool],
    story: CauseAssigner,
    aside: Mapping[int, SideCall],
    links: tuple[Link, ...],
    other_exchanges: Sequence[int],
) -> Run:
    threads = _threads(weaver, casting.by_thread, aside)
    places = {number: (thread.agent, thread.number) for thread in threads for number in thread.calls}
    agents = named(casting.speakers) or ((Agent(0, "root"),) if calls else ())
    for number in aside:
        places[number] = _place_beside(number, aside, places) or (0, len(threads))
    if any(thread == len(threads) for _, thread in places.values()):
        threads = (*threads, Thread(len(threads), 0, ()))  # side calls that stand beside nothing
    reached: dict[int, list[Link]] = {}
    for one in links:
        if one.to_call is not None:
            reached.setdefault(one.to_call, []).append(one)
    steps = {call.number: _step(call, weaver.links, places, story, reached) for call in calls}
    roots = {speaker.number for speaker in casting.speakers if parent_of(speaker) is None}
    return Run(
        steps=tuple(steps.values()),
        turns=tuple(_turn(turn.number, turn.user, [steps[n] for n in turn.calls], roots) for turn in story.turns),
        agents=agents,
        threads=threads,
        tool_uses=tuple(_tool_use(use) for use in asked),
        side_calls=tuple(steps[number] for number in sorted(aside)),
        other_exchanges=tuple(other_exchanges),
        links=links,
    )


def _threads(
    weaver: ThreadBuilder, speakers: Mapping[int, AgentDraft], aside: Mapping[int, SideCall]
) -> tuple[Thread, ...]:
    kept = [strand for strand in weaver.strands if strand.calls[0] not in aside]
    return tuple(
        Thread(number, speakers[strand.number].number, tuple(strand.calls), strand.from_call)
        for number, strand in enumerate(kept)
    )


def _place_beside(
    number: int, aside: Mapping[int, SideCall], places: Mapping[int, tuple[int, int]]
) -> tuple[int, int] | None:
    """Agent and thread of the call that a side call stands beside, if there is one."""
    beside = aside[number].beside
    if beside is not None and beside in aside:
        beside = aside[beside].beside
    return places.get(beside) if beside is not None else None


def _step(
    call: ModelCall,
    links: Mapping[int, ThreadPlace],
    places: Mapping[int, tuple[int, int]],
    story: CauseAssigner,
    reached: Mapping[int, Sequence[Link]],
) -> Step:
    agent, thread = places[call.number]
    link, turn = links.get(call.number), story.turn_of.get(call.number)
    new_from = link.new_from if link is not None and link.relation in ("continues", "retry") else 0
    return Step(
        call,
        agent,
        thread,
        turn.number if turn is not None else None,
        story.causes[call.number],
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
