"""Where agents that nobody started flow together: a call whose history holds what other agents answered.

Graphs of agents do this: two run beside one another on the same question, and a third one gets both answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wiretape.model.call import ModelCall
from wiretape.model.run import Link
from wiretape.runs.agents.assigner import AgentDraft
from wiretape.runs.threads import ThreadPlace
from wiretape.runs.tools import answered_at
from wiretape.runs.words import answer_text, text_of


def joins(
    calls: Sequence[ModelCall],
    places: Mapping[int, ThreadPlace],
    speakers: Mapping[int, AgentDraft],
    aside: Mapping[int, object],
) -> dict[int, list[Link]]:
    """Per call that begins a root's thread: the answers of other agents in its history."""
    answers: dict[str, list[tuple[ModelCall, AgentDraft]]] = {}
    found: dict[int, list[Link]] = {}
    for call in calls:
        place = places.get(call.number)
        if place is None or call.number in aside:
            continue
        speaker = speakers[place.thread]
        if speaker.first_call is call and speaker.parent is None and place.relation in ("first", "fork"):
            heard = _heard(call, speaker, answers)
            if heard:
                found[call.number] = heard
        said = answer_text(call.response.messages) if call.response is not None else None
        if said and not call.tool_calls:
            answers.setdefault(said.strip(), []).append((call, speaker))
    return found


def _heard(
    call: ModelCall, speaker: AgentDraft, answers: Mapping[str, list[tuple[ModelCall, AgentDraft]]]
) -> list[Link]:
    links: list[Link] = []
    taken: set[int] = set()
    for message in call.request.messages:
        if message.role != "assistant":
            continue
        for earlier, teller in answers.get(text_of(message), ()):
            at = answered_at(earlier)
            if teller is not speaker and earlier.number not in taken and at is not None and at <= call.at:
                taken.add(earlier.number)
                ends = (earlier.number, call.number, teller.number, speaker.number)
                links.append(Link("result", *ends, "data_flow", "likely", detail="as part of its history"))
                break
    return links
