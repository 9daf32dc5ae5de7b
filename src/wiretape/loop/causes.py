"""Why each call was made, and which turn it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wiretape.loop.agents import Speaker
from wiretape.loop.dataflow import carried, overlap
from wiretape.loop.sidecalls import Aside
from wiretape.loop.threads import Link
from wiretape.loop.tools import Asked
from wiretape.loop.words import after_answer, answer_text, is_result_as_text, last_words, user_words
from wiretape.model.call import Message, ModelCall, Text, ToolResult
from wiretape.model.loop import Cause, LinkBasis

SUMMARY = "goes on from a summary of its history"
REPORT = "a subagent's report"
MESSAGE = "a message from its parent"
_SAYING = 8  # what an agent says must be so long to be recognised in a message to another


@dataclass(slots=True)
class OpenTurn:
    """A turn while its calls are gathered."""

    number: int
    user: str
    calls: list[int] = field(default_factory=list)


class Story:
    """Walks the calls in order of start and says of each why it was made and in which turn."""

    def __init__(
        self,
        calls: Sequence[ModelCall],
        links: Mapping[int, Link],
        speakers: Mapping[int, Speaker],
        asked: Sequence[Asked],
        aside: Mapping[int, Aside],
    ) -> None:
        self.causes: dict[int, Cause] = {}
        self.turn_of: dict[int, OpenTurn] = {}
        self.turns: list[OpenTurn] = []
        self._links, self._speakers, self._aside = links, speakers, aside
        self._answered: dict[int, list[Asked]] = {}
        self._asked_by: dict[int, list[Asked]] = {}
        for use in asked:
            self._asked_by.setdefault(use.call_number, []).append(use)
            if use.result_call is not None:
                self._answered.setdefault(use.result_call, []).append(use)
        self._sayings: dict[int, list[tuple[str, int, str | None]]] = {}  # agent -> what it said, unheard so far
        self._children: dict[int, list[Speaker]] = {}
        for other in dict.fromkeys(speakers.values()):
            if other.parent is not None:
                self._children.setdefault(other.parent.number, []).append(other)
        for call in calls:
            self._tell(call)

    def _tell(self, call: ModelCall) -> None:
        aside = self._aside.get(call.number)
        if aside is not None:
            self.causes[call.number] = Cause("side_call", aside.beside, detail=aside.detail)
            return
        speaker = self._speakers[self._links[call.number].thread]
        cause = self._cause(call, self._links[call.number], speaker)
        self.causes[call.number] = cause
        turn = self._turn(call, cause, speaker)
        turn.calls.append(call.number)
        self.turn_of[call.number] = turn
        self._remember(call, speaker)

    def _turn(self, call: ModelCall, cause: Cause, speaker: Speaker) -> OpenTurn:
        known = self._turn_before(call, cause, speaker)
        if known is not None:
            return known
        messages = call.request.messages
        user = last_words(messages[self._links[call.number].new_from :]) or last_words(messages) or _raw(messages)
        turn = OpenTurn(len(self.turns) + 1, user)
        self.turns.append(turn)
        return turn

    def _turn_before(self, call: ModelCall, cause: Cause, speaker: Speaker) -> OpenTurn | None:
        """The turn that a call belongs to if it opens none: its thread's, or for a subagent its starter's."""
        if cause.kind == "turn_start":
            return None
        origin = self._links[call.number].parent if speaker.parent is None else cause.call
        if origin is None:
            origin = speaker.started_by
        return self._last_turn(origin)

    def _last_turn(self, number: int | None) -> OpenTurn | None:
        """The turn of a call; of the call that it went on from, if it is a side call."""
        while number is not None and number in self._aside:
            link = self._links.get(number)
            number = link.parent if link is not None else None
        return self.turn_of.get(number) if number is not None else None

    def _cause(self, call: ModelCall, link: Link, speaker: Speaker) -> Cause:
        if link.relation == "retry":
            return Cause("retry", link.parent, detail=link.detail)
        first_of_agent = speaker.first_call is call
        if first_of_agent and speaker.parent is not None:
            tools = (speaker.use.call.name,) if speaker.use is not None else ()
            return Cause("subagent", speaker.started_by, tools, speaker.basis)
        fresh = call.request.messages[link.new_from if link.parent is not None else 0 :]
        if link.relation == "compaction":
            return self._compacted(call, link, speaker)
        trailing = fresh[after_answer(fresh) :]
        said = last_words(trailing)
        if said:
            message = self._from_agent(said, speaker)
            return message or self._new_words(call, link, speaker)
        notice = _raw(trailing) if not self._answered.get(call.number) else ""
        return self._from_agent(notice, speaker, whole=False) or self._results(call, link, trailing)

    def _new_words(self, call: ModelCall, link: Link, speaker: Speaker) -> Cause:
        if speaker.parent is not None:  # nobody but its parent speaks to a subagent
            return Cause("continuation", link.parent, basis=_basis(link), detail="a new message to the subagent")
        twin = f"the same request as call {link.twin}" if link.twin is not None else None
        return Cause("turn_start", link.parent, basis=_basis(link), detail=link.detail or twin)

    def _compacted(self, call: ModelCall, link: Link, speaker: Speaker) -> Cause:
        """A history that was summed up: the user may have said something after it, or an agent goes on by itself."""
        before = self._last_turn(link.parent)
        asked = [words for message in call.request.messages if (words := user_words(message))]
        if speaker.parent is None and len(asked) > 1 and before is not None and asked[-1] != before.user:
            return Cause("turn_start", link.parent, basis="data_flow", detail=SUMMARY)
        return Cause("continuation", link.parent, basis="data_flow", detail=SUMMARY)

    def _results(self, call: ModelCall, link: Link, trailing: Sequence[Message]) -> Cause:
        uses = self._answered.get(call.number, [])
        uses = [use for use in uses if use.call_number != call.number]
        if uses:
            names = tuple(use.call.name for use in uses)
            return Cause("tool_results", uses[-1].call_number, names, _basis(link), link.detail)
        if any(isinstance(block, ToolResult) for message in trailing for block in message.blocks):
            if link.parent is None:
                return Cause("turn_start", detail="the tape begins in the middle of the turn")
            return Cause("tool_results", link.parent, (), _basis(link), link.detail)
        if any(is_result_as_text(message) for message in trailing):
            return Cause("tool_results", link.parent, (), _basis(link), "as plain text")
        if link.parent is None:
            return Cause("turn_start")
        return Cause("continuation", link.parent, basis=_basis(link), detail=link.detail)

    # -- what agents say to one another ----------------------------------------------------------------------------

    def _remember(self, call: ModelCall, speaker: Speaker) -> None:
        """What other agents may hear later: a subagent's words reach its parent, a parent's tools its subagents."""
        answer = answer_text(call.response.messages) if call.response is not None else None
        said: list[tuple[str, int, str | None]] = [(answer.strip(), call.number, None)] if answer else []
        for use in self._asked_by.get(call.number, ()):
            if use.agent is None:
                said += [(text, call.number, use.call.name) for text in carried(use.call.arguments)[1:]]
        heard = [entry for entry in said if len(entry[0]) >= _SAYING]
        self._sayings.setdefault(speaker.number, []).extend(heard)

    def _from_agent(self, text: str, listener: Speaker, whole: bool = True) -> Cause | None:
        """The call and tool that a message came from, if it is another agent's. `whole`: it must be most of it."""
        if not text:
            return None
        if listener.parent is not None:
            return self._heard(text, listener.parent, listener, MESSAGE, whole)
        for child in self._children.get(listener.number, ()):
            cause = self._heard(text, child, listener, REPORT, whole)
            if cause is not None:
                return cause
        return None

    def _heard(self, text: str, teller: Speaker, listener: Speaker, detail: str, whole: bool) -> Cause | None:
        for entry in self._sayings.get(teller.number, ()):
            said, number, tool = entry
            if said == text or overlap(said, text) or (not whole and said in text):
                self._sayings[teller.number].remove(entry)
                tools = (tool,) if tool is not None else ()
                return Cause("subagent" if listener.parent else "continuation", number, tools, "data_flow", detail)
        return None


def _basis(link: Link) -> LinkBasis | None:
    return "id" if link.by_id else None


def _raw(messages: Sequence[Message]) -> str:
    """The last user message as it stands, where nothing in it looks like the user's own words."""
    texts = [b.text for m in messages if m.role == "user" for b in m.blocks if isinstance(b, Text)]
    return texts[-1].strip() if texts else ""
