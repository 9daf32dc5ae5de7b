"""Assign an agent to each thread, and find its parent: by headers, then by data flow, else it is a root agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from wiretape.model.call import ModelCall, ToolCall
from wiretape.model.run import Agent, AgentOrigin, LinkBasis
from wiretape.runs.agent_identity import same_agent, same_prompt, system_text, tool_names
from wiretape.runs.caller_headers import Identity
from wiretape.runs.dataflow import TOKEN, Tasks, carried, overlap
from wiretape.runs.side_calls import SideCall
from wiretape.runs.threads import ThreadDraft, ThreadPlace
from wiretape.runs.tool_names import forks, hands_over, is_messenger, is_starter, taker
from wiretape.runs.tools import RequestedTool
from wiretape.runs.user_text import after_answer, answer_text, user_words

_ROOTS = 50  # root agents whose prompts are compared, if no prompt is equal
_ANSWER = 8  # characters of the shortest answer that is recognized in a tool's result


@dataclass(slots=True, eq=False)
class AgentDraft:
    """An agent while its threads are searched."""

    first_call: ModelCall
    parent: AgentDraft | None = None
    use: RequestedTool | None = None  # the tool call that started it
    started_by: int | None = None
    basis: LinkBasis | None = None
    name: str | None = None
    forked: bool = False  # it started with its parent's history
    handed: bool = False  # it took the conversation with the user over from its parent
    resumed: bool = False  # its start is not on the tape; a message continued it
    threads: list[int] = field(default_factory=list)
    number: int = -1


class AgentAssigner:
    """Assigns an agent to each thread, in the order of their first calls."""

    def __init__(
        self,
        calls: Mapping[int, ModelCall],
        links: Mapping[int, ThreadPlace],
        identities: Mapping[int, Identity],
        drafts: Sequence[ThreadDraft],
        requested: Sequence[RequestedTool],
        side_calls: Mapping[int, SideCall],
    ) -> None:
        self._calls, self._links, self._identities = calls, links, identities
        self._drafts, self._requested, self._side_calls = drafts, requested, side_calls
        self.by_thread: dict[int, AgentDraft] = {}
        self.linked: set[int] = set()  # calls that looked like side calls but are subagents
        self._by_identity: dict[tuple[str | None, str | None], AgentDraft] = {}
        self.agents: list[AgentDraft] = []
        self._tasks = Tasks()
        self._fed = 0
        self._given_out: dict[
            str, RequestedTool
        ] = {}  # words in tool results, with the first tool call that returned each
        self._roots: dict[str, AgentDraft] = {}  # by prompt
        firsts = [calls[draft.calls[0]] for draft in drafts if draft.calls[0] not in side_calls]
        self._begun = Counter(
            text for first in firsts for text in set(tasks(first))
        )  # the tasks with which threads start
        self._named = any(who.key is not None for who in identities.values())

    def assign(self) -> None:
        """Fill `by_thread` and `agents`. Threads of side calls get no agent."""
        for draft in self._drafts:
            first = self._calls[draft.calls[0]]
            self._feed(first.number)
            agent = self._agent(draft, first)
            if agent is None:
                continue
            agent.threads.append(draft.number)
            self.by_thread[draft.number] = agent
            key = self._identities[first.number].key
            if key is not None:
                self._by_identity.setdefault(key, agent)

    def _feed(self, number: int) -> None:
        while self._fed < len(self._requested) and self._requested[self._fed].call_number < number:
            use = self._requested[self._fed]
            self._tasks.add(use)
            if self._named and use.result is not None:
                for token in TOKEN.findall(use.result.text):
                    if len(token) >= _ANSWER:
                        self._given_out.setdefault(token.rstrip("./-#"), use)
            self._fed += 1

    def _agent(self, draft: ThreadDraft, first: ModelCall) -> AgentDraft | None:
        who = self._identities[first.number]
        if first.number in self._side_calls:
            return self._supposed_side_call(draft, first, who)
        if who.key in self._by_identity and who.key is not None and (who.agent or who.parent):
            return self._by_identity[who.key]
        return (
            self._handed(draft, first)
            or self._by_header(first, who)
            or self._by_task(draft, first, who)
            or self._same_agent(draft, first, who)
            or self._by_result(draft, first, who)
            or self._root(first, who)
        )

    def _supposed_side_call(self, draft: ThreadDraft, first: ModelCall, who: Identity) -> AgentDraft | None:
        """The subagent of a supposed side call, if something links it to a tool call."""
        accompanies = self._side_calls[first.number].accompanies
        if who.key is not None and accompanies is not None and self._identities[accompanies].key == who.key:
            return None
        agent = self._by_header(first, who)
        if agent is None and not self._side_calls[first.number].plain and not self._prepares(first):
            agent = self._by_task(draft, first, who) or self._by_result(draft, first, who)
        if agent is not None:
            self.linked.add(first.number)
        return agent

    def _prepares(self, first: ModelCall) -> bool:
        """Whether a supposed side call prepares the call that it accompanies: both have the same task."""
        accompanies = self._side_calls[first.number].accompanies
        return (
            accompanies is not None and accompanies > first.number and tasks(self._calls[accompanies]) == tasks(first)
        )

    def _handed(self, draft: ThreadDraft, first: ModelCall) -> AgentDraft | None:
        """The agent that takes a conversation over: a new one, or one that had it before."""
        place = self._links[first.number]
        if place.relation != "handoff" or place.parent is None:
            return None
        giver = self.by_thread[self._links[place.parent].thread]
        before: AgentDraft | None = giver
        while before is not None:
            if same_prompt(before.first_call.request, first.request):
                return before
            before = before.parent if before.handed else None
        use = next(
            (u for u in reversed(self._requested) if u.call_number == place.parent and hands_over(u.call.name)), None
        )
        name = taker(use.call.name) if use is not None else None
        agent = AgentDraft(first, giver, use, place.parent, "id" if place.by_id else "data_flow", name, handed=True)
        return self._add(agent)

    # -- evidence, best first --------------------------------------------------------------------------------------

    def _by_header(self, first: ModelCall, who: Identity) -> AgentDraft | None:
        """The subagent whose parent the client names, or whose id is in the result of the tool that started it."""
        parent = self._parent(who)
        if parent is not None:
            use = self._announced(first, who.agent or who.session, who.name) or self._starter(parent, first)
            return self._child(first, parent, use, "header", who.name)
        if who.session is None or who.key in self._by_identity or not self._by_identity:
            return None
        use = self._announced(first, who.session)
        return self._child(first, self.by_thread[use.thread], use, "header", who.name) if use else None

    def _announced(self, first: ModelCall, *own: str | None) -> RequestedTool | None:
        """The tool call whose result has a subagent's id or name: `started subagent <id>`."""
        for name in own:
            use = self._given_out.get(name) if name is not None and len(name) >= _ANSWER else None
            if use is not None and use.call_number < first.number:
                return use
        return None

    def _parent(self, who: Identity) -> AgentDraft | None:
        if who.parent is not None:
            candidates = [(who.session, who.parent), (who.parent, None), (None, who.parent)]
        elif who.agent is not None:
            candidates = [(who.session, None)]
        else:
            return None
        return next((self._by_identity[key] for key in candidates if key in self._by_identity), None)

    def _starter(self, parent: AgentDraft, first: ModelCall) -> RequestedTool | None:
        """The parent's tool call that started its subagent."""
        use = self._tasks.started_by(tasks(first), first.number, first.at)
        if use is not None and self.by_thread[use.thread] is parent:
            return use
        at_work = [u for u in self._tasks.open_at(first.number) if self.by_thread[u.thread] is parent]
        free = [u for u in reversed(at_work) if u.agent is None]
        named = [u for u in free if is_starter(u.call.name)]
        return next(iter(named), free[0] if len(free) == 1 else None)

    def _by_task(self, draft: ThreadDraft, first: ModelCall, who: Identity) -> AgentDraft | None:
        """The subagent whose first message is in the arguments of a tool call that was open when the thread started."""
        if draft.from_call is not None and self._links[first.number].relation == "compaction":
            return None
        use = self._tasks.started_by(tasks(first), first.number, first.at)
        if use is None:
            return None
        return self._child(first, self.by_thread[use.thread], use, "data_flow", who.name)

    def _same_agent(self, draft: ThreadDraft, first: ModelCall, who: Identity) -> AgentDraft | None:
        """The agent of a fork, a compaction, or another thread with the same client id."""
        if draft.from_call is not None:
            origin = self.by_thread.get(self._links[draft.from_call].thread)  # None for a side call
            alike = who.key is not None or same_agent(self._calls[draft.from_call], first)
            if origin is not None and alike and self._identities[draft.from_call].key == who.key:
                return origin
        if who.key is not None:
            return self._by_identity.get(who.key)
        return None

    def _by_result(self, draft: ThreadDraft, first: ModelCall, who: Identity) -> AgentDraft | None:
        """The subagent whose last answer is in the result of a tool call that was open during the thread."""
        last, own = self._calls[draft.calls[-1]], tasks(first)
        answers = [said for said in final_words(last) if len(said) >= _ANSWER]
        for use in reversed(self._tasks.open_at(first.number)) if answers else ():
            if use.agent is None and use.result is not None and (use.at is None or use.at <= first.at):
                came_after = use.result_call is not None and use.result_call > last.number
                others = any(text not in own and self._begun[text] for text in carried(use.call.arguments))
                if others:
                    continue  # it has another thread's task, so it started that one
                if came_after and any(overlap(a, value) for a in answers for value in self._tasks.result_of(use)):
                    return self._child(first, self.by_thread[use.thread], use, "data_flow", who.name)
        return None

    def _root(self, first: ModelCall, who: Identity) -> AgentDraft:
        if who.key is not None:
            return self._add(AgentDraft(first))
        prompt = system_text(first.request)
        known = self._roots.get(prompt) if prompt else None
        if known is None:
            latest = dict.fromkeys(islice(reversed(self._roots.values()), _ROOTS))
            known = next((root for root in reversed(latest) if _same_agent(root.first_call, first)), None)
        if known is None:
            known = self._add(AgentDraft(first))
        return self._roots.setdefault(prompt or f"#{known.number}", known)

    def _child(
        self, first: ModelCall, parent: AgentDraft, use: RequestedTool | None, basis: LinkBasis, name: str | None
    ) -> AgentDraft:
        started_by = use.call_number if use is not None else self._latest_before(parent, first.number)
        agent = AgentDraft(first, parent, use, started_by, basis, name)
        agent.forked = self._links[first.number].relation == "fork"
        messaged = use is not None and is_messenger(use.call.name) and not agent.forked
        if messaged and after_answer(first.request.messages):
            agent.resumed, agent.name = True, name or self._started_before(parent, first)
        return self._add(agent)

    def _started_before(self, parent: AgentDraft, first: ModelCall) -> str | None:
        """The tool in the parent's history that started an agent before the tape."""
        task = next((said for message in first.request.messages if (said := user_words(message))), "")
        for message in parent.first_call.request.messages:
            for block in message.blocks:
                if isinstance(block, ToolCall) and task and task in carried(block.arguments)[1:]:
                    return block.name
        return None

    def _latest_before(self, parent: AgentDraft, number: int) -> int | None:
        earlier = [call for thread in parent.threads for call in self._drafts[thread].calls if call < number]
        return max(earlier, default=None)

    def _add(self, agent: AgentDraft) -> AgentDraft:
        agent.number = len(self.agents)
        if agent.use is not None and agent.use.agent is None:
            agent.use.agent = agent.number
        self.agents.append(agent)
        return agent


def _same_agent(a: ModelCall, b: ModelCall) -> bool:
    """Whether one agent has two unrelated conversations: same prompt; without prompts, same tools."""
    prompts = system_text(a.request) or system_text(b.request)
    return same_prompt(a.request, b.request) if prompts else tool_names(a.request) == tool_names(b.request)


def tasks(first: ModelCall) -> tuple[str, ...]:
    """The task of a thread: the user's texts after the last answer."""
    messages = first.request.messages
    said = [words for message in messages[after_answer(messages) :] if (words := user_words(message))]
    return tuple(dict.fromkeys((*reversed(said), "\n".join(said)))) if said else ()


def final_words(last: ModelCall) -> list[str]:
    """The texts of an agent's last call: its answer, and the arguments of a tool that ends the run."""
    text = answer_text(last.response.messages) if last.response is not None else None
    handed = [value for tool in last.tool_calls for value in carried(tool.arguments)[1:]]
    return [text.strip(), *handed] if text is not None else handed


def named_agents(agents: Sequence[AgentDraft]) -> tuple[Agent, ...]:
    """The agents, with unique names."""
    counts: dict[str, int] = {}
    taken: set[str] = set()
    made: list[Agent] = []
    for agent in agents:
        tool = agent.use.call.name if agent.use is not None else None
        base = "root" if agent.parent is None else agent.name or tool or "subagent"
        name = base
        while name in taken:
            counts[base] = counts.get(base, 1) + 1
            name = f"{base} #{counts[base]}"
        counts.setdefault(base, 1)
        taken.add(name)
        parent = agent.parent.number if agent.parent is not None else None
        made.append(Agent(agent.number, name, parent, agent.started_by, tool, agent.basis, _origin(agent)))
    return tuple(made)


def _origin(agent: AgentDraft) -> AgentOrigin:
    if agent.parent is None:
        return "root"
    if agent.handed:
        return "handoff"
    return "fork" if agent.forked or (agent.use is not None and forks(agent.use.call.name)) else "subagent"
