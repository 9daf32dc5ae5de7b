"""Why each call was made, and which turn it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wiretape.model.call import Control, Message, ModelCall, Text, ToolResult
from wiretape.model.run import Cause, CauseKind, Link, LinkBasis
from wiretape.runs.agents.agent_messages import AgentMessages, parent_of
from wiretape.runs.agents.assigner import AgentDraft
from wiretape.runs.evidence import identity
from wiretape.runs.sidecalls import SideCall
from wiretape.runs.threads import ThreadPlace
from wiretape.runs.tools import RequestedTool
from wiretape.runs.words import after_answer, is_result_as_text, last_words, user_words

SUMMARY = "goes on from a summary of its history"
MESSAGE = "a message from its parent"

_BREATH = 1000  # ms between an answer and the same question to another agent: graphs start their nodes one by one
_TOOLS = 600_000  # ms that an agent's tools may take


@dataclass(slots=True)
class OpenTurn:
    """A turn while its calls are gathered."""

    number: int
    user: str
    calls: list[int] = field(default_factory=list)
    latest: dict[int, ModelCall] = field(default_factory=dict)  # per root agent, its latest call

    def is_going(self, at: int) -> bool:
        """Whether some agent still had to go on at a moment, or had only just answered: no user is so quick."""
        return any(call.ended_at is None or at < call.ended_at + _patience(call) for call in self.latest.values())


def _patience(call: ModelCall) -> int:
    """How long after its end an agent may still be at it, in ms."""
    return _TOOLS if any(tool.kind != "server" for tool in call.tool_calls) else _BREATH


class CauseAssigner:
    """Walks the calls in order of start and says of each why it was made and in which turn."""

    def __init__(
        self,
        calls: Sequence[ModelCall],
        links: Mapping[int, ThreadPlace],
        speakers: Mapping[int, AgentDraft],
        asked: Sequence[RequestedTool],
        aside: Mapping[int, SideCall],
        letters: AgentMessages,
        joined: Mapping[int, Sequence[Link]],
    ) -> None:
        self.causes: dict[int, Cause] = {}
        self.turn_of: dict[int, OpenTurn] = {}
        self.turns: list[OpenTurn] = []
        self._links, self._speakers, self._aside, self._letters = links, speakers, aside, letters
        self._joined = joined
        self._answered: dict[int, list[RequestedTool]] = {}
        for use in asked:
            if use.result_call is not None:
                self._answered.setdefault(use.result_call, []).append(use)
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
        if parent_of(speaker) is None:
            turn.latest[speaker.number] = call
        self.turn_of[call.number] = turn

    def _turn(self, call: ModelCall, cause: Cause, speaker: AgentDraft) -> OpenTurn:
        known = self._turn_before(call, cause, speaker)
        if known is not None:
            return known
        messages = call.request.messages
        user = last_words(messages[self._links[call.number].new_from :]) or last_words(messages) or _raw(messages)
        beside = self._beside(user, call, speaker)
        if beside is not None:
            return beside
        turn = OpenTurn(len(self.turns) + 1, user)
        self.turns.append(turn)
        return turn

    def _beside(self, user: str, call: ModelCall, speaker: AgentDraft) -> OpenTurn | None:
        """The turn that another agent is at, with the very same words of the user: one question to several agents."""
        last = self.turns[-1] if self.turns else None
        if last is None or not user or last.user != user or speaker.number in last.latest:
            return None
        if identity(call).key is not None or not last.is_going(call.at):
            return None
        return last

    def _turn_before(self, call: ModelCall, cause: Cause, speaker: AgentDraft) -> OpenTurn | None:
        """The turn that a call belongs to if it opens none: its thread's, or for a subagent its starter's."""
        if cause.kind == "turn_start":
            return None
        origin = self._links[call.number].parent if parent_of(speaker) is None else cause.call
        if origin is None:
            origin = cause.call if cause.kind == "report" else speaker.started_by
        return self._last_turn(origin)

    def _last_turn(self, number: int | None) -> OpenTurn | None:
        """The turn of a call; of the call that it went on from, if it is a side call."""
        while number is not None and number in self._aside:
            link = self._links.get(number)
            number = link.parent if link is not None else None
        return self.turn_of.get(number) if number is not None else None

    def _cause(self, call: ModelCall, link: ThreadPlace, speaker: AgentDraft) -> Cause:
        if link.relation == "retry":
            return Cause("retry", link.parent, detail=link.detail)
        first_of_agent = speaker.first_call is call
        if first_of_agent and speaker.parent is not None:
            tools = (speaker.use.call.name,) if speaker.use is not None else ()
            kind: CauseKind = "handoff" if speaker.handed else "subagent"
            return Cause(kind, speaker.started_by, tools, speaker.basis, MESSAGE if speaker.resumed else None)
        fresh = call.request.messages[link.new_from if link.parent is not None else 0 :]
        if link.relation == "compaction":
            return self._compacted(call, link, speaker)
        start = len(call.request.messages) - len(fresh)
        spoken = self._letters.spoken.get(call.number, ())
        if call.number in self._joined:
            return Cause("report", self._joined[call.number][-1].from_call, (), "data_flow")
        trailing = fresh[after_answer(fresh) :]
        first = start + len(fresh) - len(trailing)
        own = tuple(message for index, message in enumerate(trailing, first) if index not in spoken)
        if last_words(own):
            return self._new_words(call, link, speaker)
        if spoken and not self._answered.get(call.number):
            return self._heard(call, speaker)
        return self._results(call, link, trailing)

    def _heard(self, call: ModelCall, speaker: AgentDraft) -> Cause:
        """Nothing is new but what another agent said."""
        heard = [link for link in self._letters.heard.get(call.number, ()) if link.to_agent == speaker.number]
        if not heard:
            return Cause("continuation", self._links[call.number].parent, detail="another agent's message")
        last = heard[-1]
        tools = (last.tool,) if last.tool is not None else ()
        if last.kind == "message" and parent_of(speaker) is not None:
            return Cause("subagent", last.from_call, tools, last.basis, MESSAGE)
        return Cause("report", last.from_call, tools, last.basis)

    def _new_words(self, call: ModelCall, link: ThreadPlace, speaker: AgentDraft) -> Cause:
        if parent_of(speaker) is not None:  # nobody but its parent speaks to a subagent
            return Cause("continuation", link.parent, basis=_basis(link), detail="a new message to the subagent")
        twin = f"the same request as call {link.twin}" if link.twin is not None else None
        return Cause("turn_start", link.parent, basis=_basis(link), detail=link.detail or twin)

    def _compacted(self, call: ModelCall, link: ThreadPlace, speaker: AgentDraft) -> Cause:
        """A history that was summed up: the user may have said something after it, or an agent goes on by itself."""
        before = self._last_turn(link.parent)
        asked = [words for message in call.request.messages if (words := user_words(message))]
        summed = 0 if link.by_id else 1  # the summary itself stands in a user message, unless the provider made it
        if parent_of(speaker) is None and len(asked) > summed and before is not None and asked[-1] != before.user:
            return Cause("turn_start", link.parent, basis=_basis(link) or "data_flow", detail=SUMMARY)
        return Cause("continuation", link.parent, basis=_basis(link) or "data_flow", detail=SUMMARY)

    def _results(self, call: ModelCall, link: ThreadPlace, trailing: Sequence[Message]) -> Cause:
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
        detail = "sums up its history" if _sums_up(call) else link.detail
        return Cause("continuation", link.parent, basis=_basis(link), detail=detail)


def _sums_up(call: ModelCall) -> bool:
    """Whether all that a call gave is a summary for the provider's own use."""
    blocks = [block for m in call.response.messages for block in m.blocks] if call.response is not None else []
    return any(isinstance(b, Control) and b.kind == "compaction" for b in blocks) and not call.tool_calls


def _basis(link: ThreadPlace) -> LinkBasis | None:
    return "id" if link.by_id else None


def _raw(messages: Sequence[Message]) -> str:
    """The last user message as it stands, where nothing in it looks like the user's own words."""
    texts = [b.text for m in messages if m.role == "user" for b in m.blocks if isinstance(b, Text)]
    return texts[-1].strip() if texts else ""
