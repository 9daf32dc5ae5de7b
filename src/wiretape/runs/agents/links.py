"""Everything that goes from one agent to another, gathered: starts, handoffs, messages, lists, interruptions."""

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
from wiretape.runs.toolnames import forks, is_lister, is_stopper
from wiretape.runs.tools import RequestedTool

_CERTAINTY: dict[LinkBasis | None, Certainty] = {"header": "certain", "id": "certain", "data_flow": "likely"}


@dataclass(frozen=True, slots=True)
class LinkContext:
    """What is known when the links are gathered. `calls_of`: per agent, its calls' numbers in order."""

    calls: Mapping[int, ModelCall]
    places: Mapping[int, ThreadPlace]
    strands: Sequence[ThreadDraft]
    speakers: Mapping[int, AgentDraft]  # by thread
    asked: Sequence[RequestedTool]
    names: AgentNames
    letters: AgentMessages
    joined: Mapping[int, Sequence[Link]]
    calls_of: Mapping[int, Sequence[int]]


def gathered(scene: LinkContext) -> tuple[Link, ...]:
    """All links, by the calls that they came from."""
    found = [*_starts(scene), *_turnings(scene), *(lost(saying) for saying in scene.letters.unheard)]
    found += [link for heard in (*scene.letters.heard.values(), *scene.joined.values()) for link in heard]
    for use in scene.asked:
        if is_lister(use.call.name):
            found += _listed(use, scene)
        elif is_stopper(use.call.name):
            found += _interrupted(use, scene)
    found += _silent_results(scene, found)
    return tuple(sorted(found, key=lambda link: (link.from_call or 0, link.tool_index or 0, link.to_call or 0)))


def _starts(scene: LinkContext) -> Iterator[Link]:
    for speaker in dict.fromkeys(scene.speakers.values()):
        if speaker.parent is None:
            continue
        use, kind = speaker.use, _kind(speaker)
        yield Link(
            kind,
            speaker.started_by,
            speaker.first_call.number,
            speaker.parent.number,
            speaker.number,
            speaker.basis or "order",
            _CERTAINTY.get(speaker.basis, "possible"),
            use.call.name if use is not None else None,
            use.index if use is not None else None,
            _how(speaker),
        )


def _kind(speaker: AgentDraft) -> LinkKind:
    if speaker.handed:
        return "handoff"
    if speaker.resumed:
        return "message"
    return "fork" if speaker.forked or (speaker.use is not None and forks(speaker.use.call.name)) else "started"


def _how(speaker: AgentDraft) -> str | None:
    if speaker.resumed:
        return "its start is not on the tape"
    if speaker.forked:
        return "with the history so far"
    return "the client names the parent, not the call" if speaker.use is None else None


def _turnings(scene: LinkContext) -> Iterator[Link]:
    """Threads of one agent that go on from another one of its own: a second way on, or a summary."""
    for strand in scene.strands:
        speaker = scene.speakers.get(strand.number)
        if speaker is None or strand.from_call is None:
            continue
        first = strand.calls[0]
        place = scene.places[first]
        origin = scene.speakers.get(scene.places[strand.from_call].thread)
        if place.relation not in ("fork", "compaction") or (origin is not speaker and place.relation == "fork"):
            continue
        basis: LinkBasis = "id" if place.by_id else "data_flow"
        kind: LinkKind = "compacted" if place.relation == "compaction" else "fork"
        from_agent = origin.number if origin is not None else speaker.number
        yield Link(kind, strand.from_call, first, from_agent, speaker.number, basis, _CERTAINTY[basis])


def _silent_results(scene: LinkContext, found: Sequence[Link]) -> Iterator[Link]:
    """Subagents that were done when the tool that started them answered, though not in their words."""
    told = {link.from_agent for link in found if link.kind in ("result", "closing")}
    for speaker in dict.fromkeys(scene.speakers.values()):
        use, parent = speaker.use, parent_of(speaker)
        if use is None or parent is None or speaker.number in told or use.result_call is None or speaker.resumed:
            continue
        last, back = scene.calls[scene.calls_of[speaker.number][-1]], scene.calls[use.result_call]
        done = last.number < back.number and last.ended_at is not None and last.ended_at <= back.at
        if done and use.agent == speaker.number:
            ends = (last.number, back.number, speaker.number, parent.number)
            yield Link("result", *ends, "order", "possible", use.call.name, use.index, "not in the agent's own words")


# -- lists ---------------------------------------------------------------------------------------------------------


def _listed(use: RequestedTool, scene: LinkContext) -> Iterator[Link]:
    """What a list of agents says of each, against what the tape knows; and whom it leaves out."""
    asker = scene.speakers[use.thread]
    if use.result is None or use.result_call is None:
        return
    seen: set[int] = set()
    moment = scene.calls[use.result_call]
    for name, state in rows(use.result.text):
        child = scene.names.called(name)
        if child is asker:
            continue
        seen |= {child.number} if child is not None else set()
        said = (
            f"{state}; {_known(child, moment, scene)}"
            if child is not None
            else f"{name} {state}; no call of it is on the tape"
        )
        yield _row(use, asker, child, said, "certain")
    for child in dict.fromkeys(scene.speakers.values()):
        at_work = child.use is not None and child.use.call_number < use.call_number and child.number not in seen
        if parent_of(child) is asker and at_work and not _came_back(child, scene):
            yield _row(use, asker, child, f"not in the list; {_known(child, moment, scene)}", "likely")


def _row(use: RequestedTool, asker: AgentDraft, child: AgentDraft | None, said: str, certainty: Certainty) -> Link:
    to = child.number if child is not None else None
    basis: LinkBasis = "id" if certainty == "certain" else "order"
    return Link("listed", use.call_number, None, asker.number, to, basis, certainty, use.call.name, use.index, said)


def _known(child: AgentDraft, moment: ModelCall, scene: LinkContext) -> str:
    """What the tape has of an agent at a moment: calls before it, one under way, calls after it."""
    numbers = scene.calls_of[child.number]
    before = bisect_left(numbers, moment.number)
    last = scene.calls[numbers[before - 1]] if before else None
    under_way = last is not None and (last.ended_at is None or last.ended_at > moment.at)
    said = [f"{before} of its calls had begun", f"{len(numbers) - before} came later"]
    if under_way and last is not None:
        said.append(f"call {last.number} was under way")
    return ", ".join(said)


def _came_back(child: AgentDraft, scene: LinkContext) -> bool:
    """Whether it was an agent for one task, whose answer was the tool's result: lists leave those out."""
    use = child.use
    if use is None or use.result_call is None:
        return False
    return any(
        link.kind == "result" and link.from_agent == child.number
        for link in scene.letters.heard.get(use.result_call, ())
    )


def _interrupted(use: RequestedTool, scene: LinkContext) -> Iterator[Link]:
    asker, child = scene.speakers[use.thread], scene.names.addressed(use.call.arguments)
    if child is None:
        return
    cut = next((n for n in reversed(scene.calls_of[child.number]) if _was_cut(scene.calls[n], use)), None)
    ends = (use.call_number, cut, asker.number, child.number)
    yield Link("interrupted", *ends, "id", "certain", use.call.name, use.index, None if cut else "no call was cut")


def _was_cut(call: ModelCall, use: RequestedTool) -> bool:
    ended = call.ended_at is None or use.at is None or call.ended_at >= use.at
    return ended and call.ended in (Ended.CLIENT_CLOSED, None) and (use.at is None or call.at <= use.at)
