"""Assign each call its cause and its turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wiretape.model.call import Control, Message, ModelCall, Text, ToolResult
from wiretape.model.run import Cause, CauseKind, Link, LinkBasis
from wiretape.runs.agents.agent_messages import AgentMessages, parent_of
from wiretape.runs.agents.assigner import AgentDraft
from wiretape.runs.caller_headers import identity
from wiretape.runs.side_calls import SideCall
from wiretape.runs.threads import ThreadPlace
from wiretape.runs.tools import RequestedTool
from wiretape.runs.user_text import after_answer, is_result_as_text, last_words, user_words

SUMMARY = "goes on from a summary of its history"
MESSAGE = "a message from its parent"

_BREATH = 1000  # ms between an answer and the same question to another agent: graphs start nodes one by one
_TOOLS = 600_000  # ms that an agent's tools may take


@dataclass(slots=True)
class OpenTurn:
    """A turn while its calls are collected."""

    number: int
    user: str
    calls: list[int] = field(default_factory=list)
    latest: dict[int, ModelCall] = field(default_factory=dict)  # per root agent, its latest call

    def is_going(self, at: int) -> bool:
        """Whether an agent of the turn was still at work at a time, or had just answered."""
        return any(call.ended_at is None or at < call.ended_at + _patience(call) for call in self.latest.values())


def _patience(call: ModelCall) -> int:
    """For how many ms after a call its agent counts as at work."""
    return _TOOLS if any(tool.kind != "server" for tool in call.tool_calls) else _BREATH


class CauseAssigner:
    """Assigns causes and turns to calls, in the order of their starts."""

    def __init__(
        self,
        calls: Sequence[ModelCall],
        links: Mapping[int, ThreadPlace],
        agents: Mapping[int, AgentDraft],
        requested: Sequence[RequestedTool],
        side_calls: Mapping[int, SideCall],
        agent_messages: AgentMessages,
        joined: Mapping[int, Sequence[Link]],
    ) -> None:
        self.causes: dict[int, Cause] = {}
        self.turn_of: dict[int, OpenTurn] = {}
        self.turns: list[OpenTurn] = []
        self._links, self._agents, self._side_calls, self._agent_messages = links, agents, side_calls, agent_messages
        self._joined = joined
        self._answered: dict[int, list[RequestedTool]] = {}
        for use in requested:
            if use.result_call is not None:
                self._answered.setdefault(use.result_call, []).append(use)
        for call in calls:
            self._assign(call)

    def _assign(self, call: ModelCall) -> None:
        side_call = self._side_calls.get(call.number)
        if side_call is not None:
            self.causes[call.number] = Cause("side_call", side_call.accompanies, detail=side_call.detail)
            return
        agent = self._agents[self._links[call.number].thread]
        cause = self._cause(call, self._links[call.number], agent)
        self.causes[call.number] = cause
        turn = self._turn(call, cause, agent)
        turn.calls.append(call.number)
        if parent_of(agent) is None:
            turn.latest[agent.number] = call
        self.turn_of[call.number] = turn

    def _turn(self, call: ModelCall, cause: Cause, agent: AgentDraft) -> OpenTurn:
        known = self._turn_before(call, cause, agent)
        if known is not None:
            return known
        messages = call.request.messages
        user = last_words(messages[self._links[call.number].new_from :]) or last_words(messages) or _raw(messages)
        accompanies = self._parallel_turn(user, call, agent)
        if accompanies is not None:
            return accompanies
        turn = OpenTurn(len(self.turns) + 1, user)
        self.turns.append(turn)
        return turn

    def _parallel_turn(self, user: str, call: ModelCall, agent: AgentDraft) -> OpenTurn | None:
        """The turn of another agent at work on the same user message: one question to several agents."""
        last = self.turns[-1] if self.turns else None
        if last is None or not user or last.user != user or agent.number in last.latest:
            return None
        if identity(call).key is not None or not last.is_going(call.at):
            return None
        return last

    def _turn_before(self, call: ModelCall, cause: Cause, agent: AgentDraft) -> OpenTurn | None:
        """The turn of a call that starts none: its thread's, or for a subagent that of the call that started it."""
        if cause.kind == "turn_start":
            return None
        origin = self._links[call.number].parent if parent_of(agent) is None else cause.call
        if origin is None:
            origin = cause.call if cause.kind == "report" else agent.started_by
        return self._last_turn(origin)

    def _last_turn(self, number: int | None) -> OpenTurn | None:
        """The turn of a call; for a side call, of the call that it continues."""
        while number is not None and number in self._side_calls:
            link = self._links.get(number)
            number = link.parent if link is not None else None
        return self.turn_of.get(number) if number is not None else None

    def _cause(self, call: ModelCall, link: ThreadPlace, agent: AgentDraft) -> Cause:
        if link.relation == "retry":
            return Cause("retry", link.parent, detail=link.detail)
        first_of_agent = agent.first_call is call
        if first_of_agent and agent.parent is not None:
            tools = (agent.use.call.name,) if agent.use is not None else ()
            kind: CauseKind = "handoff" if agent.handed else "subagent"
            return Cause(kind, agent.started_by, tools, agent.basis, MESSAGE if agent.resumed else None)
        fresh = call.request.messages[link.new_from if link.parent is not None else 0 :]
        if link.relation == "compaction":
            return self._compacted(call, link, agent)
        start = len(call.request.messages) - len(fresh)
        from_agents = self._agent_messages.from_agents.get(call.number, ())
        if call.number in self._joined:
            return Cause("report", self._joined[call.number][-1].from_call, (), "data_flow")
        trailing = fresh[after_answer(fresh) :]
        first = start + len(fresh) - len(trailing)
        own = tuple(message for index, message in enumerate(trailing, first) if index not in from_agents)
        if last_words(own):
            return self._new_words(call, link, agent)
        if from_agents and not self._answered.get(call.number):
            return self._received(call, agent)
        return self._results(call, link, trailing)

    def _received(self, call: ModelCall, agent: AgentDraft) -> Cause:
        """The cause of a call whose only new content is a message of another agent."""
        received = [
            link for link in self._agent_messages.received.get(call.number, ()) if link.to_agent == agent.number
        ]
        if not received:
            return Cause("continuation", self._links[call.number].parent, detail="another agent's message")
        last = received[-1]
        tools = (last.tool,) if last.tool is not None else ()
        if last.kind == "message" and parent_of(agent) is not None:
            return Cause("subagent", last.from_call, tools, last.basis, MESSAGE)
        return Cause("report", last.from_call, tools, last.basis)

    def _new_words(self, call: ModelCall, link: ThreadPlace, agent: AgentDraft) -> Cause:
        if parent_of(agent) is not None:  # only its parent sends messages to a subagent
            return Cause("continuation", link.parent, basis=_basis(link), detail="a new message to the subagent")
        twin = f"the same request as call {link.twin}" if link.twin is not None else None
        return Cause("turn_start", link.parent, basis=_basis(link), detail=link.detail or twin)

    def _compacted(self, call: ModelCall, link: ThreadPlace, agent: AgentDraft) -> Cause:
        """The cause of a call after a compaction: a new user message, or the agent continues by itself."""
        before = self._last_turn(link.parent)
        requested = [words for message in call.request.messages if (words := user_words(message))]
        summed = 0 if link.by_id else 1  # a user message has the summary, unless the provider made it
        if parent_of(agent) is None and len(requested) > summed and before is not None and requested[-1] != before.user:
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
    """Whether the only result of a call is a compaction item."""
    blocks = [block for m in call.response.messages for block in m.blocks] if call.response is not None else []
    return any(isinstance(b, Control) and b.kind == "compaction" for b in blocks) and not call.tool_calls


def _basis(link: ThreadPlace) -> LinkBasis | None:
    return "id" if link.by_id else None


def _raw(messages: Sequence[Message]) -> str:
    """The last user message, harness text included."""
    texts = [b.text for m in messages if m.role == "user" for b in m.blocks if isinstance(b, Text)]
    return texts[-1].strip() if texts else ""
