"""Find messages between agents: a parent's messages, a subagent's reports, its last answer.

The wire does not mark them. Texts of one agent (tool arguments, answers) are searched in later requests of others: in
messages of a harness, and in tool results. A link is certain if the text has an id of the agent, likely by the text
alone, and possible by the order of messages alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wiretape.model.call import Message, ModelCall
from wiretape.model.run import Certainty, Link, LinkBasis, LinkKind
from wiretape.runs.agents.assigner import AgentDraft
from wiretape.runs.agents.names import AgentNames
from wiretape.runs.dataflow import carried, overlap
from wiretape.runs.threads import ThreadPlace
from wiretape.runs.tool_names import is_messenger
from wiretape.runs.tools import RequestedTool, answered_at
from wiretape.runs.user_text import after_answer, answer_text, text_of, words

_SAYING = 8  # characters of the shortest text that is recognized inside a longer one
_WAITING = 1000  # undelivered messages that are kept, latest first
_AGENT = "agent"  # the role that a client gives to another agent's messages


@dataclass(slots=True, eq=False)
class AgentMessage:
    """A text of an agent that another one may receive."""

    call: ModelCall
    at: int | None
    sender: AgentDraft
    texts: tuple[str, ...]
    use: RequestedTool | None = None  # the tool call with the text in its arguments; None: the text is an answer
    to: AgentDraft | None = None


@dataclass(frozen=True, slots=True)
class _FoundMessage:
    """A message, or only its sender, found in a text."""

    sent: AgentMessage
    basis: LinkBasis
    certainty: Certainty


class AgentMessages:
    """Follows the calls in the order of their starts, and keeps each message until it is received."""

    def __init__(
        self,
        calls: Sequence[ModelCall],
        places: Mapping[int, ThreadPlace],
        agents: Mapping[int, AgentDraft],
        requested: Sequence[RequestedTool],
        names: AgentNames,
        side_calls: Mapping[int, object],
    ) -> None:
        self.received: dict[int, list[Link]] = {}  # by call: the links to it
        self.from_agents: dict[int, set[int]] = {}  # by call: indexes of the request messages from other agents
        self.unreceived: list[AgentMessage] = []  # messages that were not received
        self._places, self._names = places, names
        self._asked_by: dict[int, list[RequestedTool]] = {}
        self._answered: dict[int, list[RequestedTool]] = {}
        for use in requested:
            self._asked_by.setdefault(use.call_number, []).append(use)
            if use.result_call is not None and use.result_call != use.call_number:
                self._answered.setdefault(use.result_call, []).append(use)
        self._last = {
            agents[places[c.number].thread].number: c
            for c in calls
            if c.number in places and c.number not in side_calls
        }
        self._arrived: set[int] = set()  # ids of tool calls whose message was received
        self._inbox: dict[int, deque[AgentMessage]] = {}
        self._to_children: dict[int, deque[AgentMessage]] = {}  # a parent's messages that name no subagent
        self._by_number = {agent.number: agent for agent in agents.values()}
        for agent in self._by_number.values():
            parent = parent_of(agent)
            if parent is not None:
                self._inbox.setdefault(agent.number, deque(maxlen=_WAITING))
                self._inbox.setdefault(parent.number, deque(maxlen=_WAITING))
                self._to_children.setdefault(parent.number, deque(maxlen=_WAITING))
        if self._inbox:
            for call in calls:
                if call.number in places and call.number not in side_calls:
                    self._pass(call, agents[places[call.number].thread])
        by_number = {call.number: call for call in calls}
        for use in requested:
            if is_messenger(use.call.name) and id(use) not in self._arrived and use.call_number not in side_calls:
                call = by_number[use.call_number]
                self.unreceived.append(self._saying(call, answered_at(call), agents[use.thread], use))

    def _pass(self, call: ModelCall, agent: AgentDraft) -> None:
        if agent.number in self._inbox:
            self._hear_results(call, agent)
            if agent.first_call is not call or parent_of(agent) is None:
                self._hear_messages(call, agent)
            elif agent.resumed:  # it continues because of a message
                self._arrived.add(id(agent.use))
            self._say(call, agent)

    # -- sent texts ----------------------------------------------------------------------------------------------------

    def _say(self, call: ModelCall, agent: AgentDraft) -> None:
        at = answered_at(call)
        for use in self._asked_by.get(call.number, ()):
            if use.agent is None or is_messenger(use.call.name):
                self._post(self._saying(call, at, agent, use))
        answer = answer_text(call.response.messages) if call.response is not None else None
        parent = parent_of(agent)
        if answer and parent is not None and not any(tool.kind != "server" for tool in call.tool_calls):
            self._inbox[parent.number].append(AgentMessage(call, at, agent, (answer.strip(),), None, parent))

    def _saying(self, call: ModelCall, at: int | None, agent: AgentDraft, use: RequestedTool) -> AgentMessage:
        texts = tuple(text for text in carried(use.call.arguments)[1:] if self._names.called(text) is None)
        return AgentMessage(call, at, agent, texts, use, self._names.addressed(use.call.arguments))

    def _post(self, sent: AgentMessage) -> None:
        to, parent = sent.to, parent_of(sent.sender)
        if to is not None and to is not sent.sender and to.number in self._inbox:
            self._inbox[to.number].append(sent)
            return
        if parent is not None:
            self._inbox[parent.number].append(sent)
        if sent.sender.number in self._to_children:
            self._to_children[sent.sender.number].append(sent)

    # -- received texts -----------------------------------------------------------------------------------------------

    def _hear_results(self, call: ModelCall, receiver: AgentDraft) -> None:
        """A subagent's last answer as a tool result: of the tool that started it, or of one that waits for it."""
        for use in self._answered.get(call.number, ()):
            if use.result is None or not self._inbox[receiver.number]:
                continue
            child = self._by_number.get(use.agent) if use.agent is not None else None
            found = [s for s in self._found(use.result.text, call, receiver, own=False) if self._is_last(s.sent)]
            if child is not None:
                found = [received for received in found if received.sent.sender is child]
            for received in found:
                kind: LinkKind = "result" if received.sent.sender is child else "closing"
                self._note(call, receiver, received, kind, use)

    def _is_last(self, sent: AgentMessage) -> bool:
        """Whether the text is an answer, or an argument of a tool that ends the run."""
        return sent.use is None or (sent.use.result is None and self._last[sent.sender.number] is sent.call)

    def _hear_messages(self, call: ModelCall, receiver: AgentDraft) -> None:
        place = self._places[call.number]
        start = place.new_from if place.parent is not None else 0
        fresh = call.request.messages[start:]
        begin = after_answer(fresh)
        for index, message in enumerate(fresh[begin:], start + begin):
            if message.role not in ("user", _AGENT):
                continue
            found = self._in_message(message, call, receiver)
            for received in found:
                self._note(call, receiver, received, _kind(received.sent, receiver))
            if found or message.role == _AGENT:
                self.from_agents.setdefault(call.number, set()).add(index)

    def _in_message(self, message: Message, call: ModelCall, receiver: AgentDraft) -> list[_FoundMessage]:
        text = text_of(message)
        if not text:
            return []
        own = message.role == "user" and bool(words(text))
        author = self._author(message)
        found = self._found(text, call, receiver, own, author)
        if not found and not own:
            tellers = [author] if author is not None else self._names.named_in(text)
            found = [received for sender in tellers if (received := self._by_name(sender, call, receiver))]
        if not found and own and parent_of(receiver) is not None:
            found = self._by_order(call, receiver)
        return found

    def _author(self, message: Message) -> AgentDraft | None:
        said = next((value for name, value in message.extra if name == "author"), None)
        return self._names.called(said) if message.role == _AGENT and isinstance(said, str) else None

    def _found(
        self, text: str, call: ModelCall, receiver: AgentDraft, own: bool, author: AgentDraft | None = None
    ) -> list[_FoundMessage]:
        """The messages that a text contains, each text once, oldest first. `own`: the text may be the user's."""
        whole, taken = text.strip(), set[str]()
        named: list[AgentDraft] | None = None
        alone = own and parent_of(receiver) is None  # its user writes to it, too
        found: list[_FoundMessage] = []
        for sent in self._waiting(receiver):
            if sent.at is None or sent.at > call.at or (author is not None and sent.sender is not author):
                continue
            texts = [text for text in sent.texts if text in whole or whole in text]
            said = max(texts, key=len) if texts else ""
            if not said or said in taken:
                continue
            if named is None:
                named = [*self._names.named_in(whole), *((author,) if author is not None else ())]
            by_name = sent.sender in named or (sent.to is receiver and sent.use is not None)
            if _stands_in(said, whole, by_name, alone):
                taken.add(said)
                found.append(_FoundMessage(sent, "id" if by_name else "data_flow", "certain" if by_name else "likely"))
        return found

    def _waiting(self, receiver: AgentDraft) -> list[AgentMessage]:
        parent = parent_of(receiver)
        shared = self._to_children.get(parent.number, ()) if parent is not None else ()
        waiting = [
            s for s in (*self._inbox[receiver.number], *shared) if id(s.use) not in self._arrived or s.use is None
        ]
        return sorted(waiting, key=lambda sent: sent.call.number) if shared else waiting

    def _by_name(self, sender: AgentDraft, call: ModelCall, receiver: AgentDraft) -> _FoundMessage | None:
        """The latest message of an agent that a harness names without one of its texts."""
        if parent_of(sender) is not receiver and parent_of(receiver) is not sender:
            return None
        sayings = [s for s in self._waiting(receiver) if s.sender is sender and s.at is not None and s.at <= call.at]
        if parent_of(receiver) is sender:  # its messages arrive in the order in which they were sent
            sayings = [s for s in sayings if s.to is receiver and _is_message(s)][:1]
        else:
            sayings = [s for s in sayings if s.use is None]
        return _FoundMessage(sayings[-1], "id", "likely") if sayings else None

    def _by_order(self, call: ModelCall, receiver: AgentDraft) -> list[_FoundMessage]:
        """The first pending message to a subagent that receives an unknown text."""
        waiting = [s for s in self._waiting(receiver) if s.to is receiver and _is_message(s) and not refusal(s.use)]
        sent = [s for s in waiting if s.at is not None and s.at <= call.at]
        return [_FoundMessage(sent[0], "order", "possible")] if sent else []

    # -- remembering -----------------------------------------------------------------------------------------------

    def _note(
        self,
        call: ModelCall,
        receiver: AgentDraft,
        received: _FoundMessage,
        kind: LinkKind,
        by: RequestedTool | None = None,
    ) -> None:
        sent = received.sent
        carrier = by if by is not None else sent.use
        link = Link(
            kind,
            sent.call.number,
            call.number,
            sent.sender.number,
            receiver.number,
            received.basis,
            received.certainty,
            carrier.call.name if carrier is not None else None,
            carrier.index if carrier is not None else None,
        )
        self.received.setdefault(call.number, []).append(link)
        self._drop(sent)
        self._arrived.add(id(sent.use))

    def _drop(self, sent: AgentMessage) -> None:
        for box in self._boxes(sent):
            if sent in box:
                box.remove(sent)

    def _boxes(self, sent: AgentMessage) -> list[deque[AgentMessage]]:
        parent = parent_of(sent.sender)
        owners = [who.number for who in (sent.to, parent) if who is not None and who.number in self._inbox]
        boxes = [self._inbox[number] for number in dict.fromkeys(owners)]
        return [*boxes, self._to_children[sent.sender.number]] if sent.sender.number in self._to_children else boxes


def _stands_in(said: str, whole: str, by_name: bool, alone: bool) -> bool:
    """Whether a text contains an agent's text as a whole or in a long part. `alone`: it may be the user's text."""
    if len(said) >= _SAYING and said in whole and (by_name or not alone):
        return True
    return (len(said) >= _SAYING or by_name or not alone) and (said == whole or overlap(said, whole) > 0)


def parent_of(agent: AgentDraft) -> AgentDraft | None:
    """The parent of a subagent; None for an agent that took a conversation over."""
    return None if agent.handed else agent.parent


def _kind(sent: AgentMessage, receiver: AgentDraft) -> LinkKind:
    if parent_of(sent.sender) is not receiver:
        return "message"
    return "closing" if sent.use is None else "report"


def _is_message(sent: AgentMessage) -> bool:
    return sent.use is not None and is_messenger(sent.use.call.name)


_REFUSED = ("not delivered", "undelivered", "could not be delivered", "未送达")


def refusal(use: RequestedTool | None) -> str | None:
    """The error of a tool that did not deliver a message."""
    if use is None or use.result is None:
        return None
    text = use.result.text.strip()
    plain = text.lower()
    refused = use.result.is_error or plain.startswith("error") or any(sign in plain for sign in _REFUSED)
    return (text.splitlines() or [""])[0] if refused else None


def lost(sent: AgentMessage) -> Link:
    """The link of a message that was not received on this tape."""
    use = sent.use
    assert use is not None
    why = refusal(use)
    said = f"not delivered: {why}" if why is not None else "its turn is not on the tape"
    if why is None and use.result is None:
        said = "whether it was delivered is not on the tape"
    to = sent.to.number if sent.to is not None else None
    link = Link("message", sent.call.number, None, sent.sender.number, to, "id", "certain", use.call.name, use.index)
    return replace(link, detail=said)


def joins(
    calls: Sequence[ModelCall],
    places: Mapping[int, ThreadPlace],
    agents: Mapping[int, AgentDraft],
    side_calls: Mapping[int, object],
) -> dict[int, list[Link]]:
    """Links from answers of other agents in the history of a root agent's first call, by call.

    Some frameworks do not forward an answer: the next agent gets it as part of its history.
    """
    answers: dict[str, list[tuple[ModelCall, AgentDraft]]] = {}
    found: dict[int, list[Link]] = {}
    for call in calls:
        place = places.get(call.number)
        if place is None or call.number in side_calls:
            continue
        agent = agents[place.thread]
        if agent.first_call is call and agent.parent is None and place.relation in ("first", "fork"):
            received = _received(call, agent, answers)
            if received:
                found[call.number] = received
        said = answer_text(call.response.messages) if call.response is not None else None
        if said and not call.tool_calls:
            answers.setdefault(said.strip(), []).append((call, agent))
    return found


def _received(
    call: ModelCall, agent: AgentDraft, answers: Mapping[str, list[tuple[ModelCall, AgentDraft]]]
) -> list[Link]:
    links: list[Link] = []
    taken: set[int] = set()
    for message in call.request.messages:
        if message.role != "assistant":
            continue
        for earlier, sender in answers.get(text_of(message), ()):
            at = answered_at(earlier)
            if sender is not agent and earlier.number not in taken and at is not None and at <= call.at:
                taken.add(earlier.number)
                ends = (earlier.number, call.number, sender.number, agent.number)
                links.append(Link("result", *ends, "data_flow", "likely", detail="as part of its history"))
                break
    return links
