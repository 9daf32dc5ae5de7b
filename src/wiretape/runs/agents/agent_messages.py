"""What agents say to one another: a parent's messages, a subagent's reports, its last words.

There is no record of it on the wire. What one agent said (in a tool's arguments, or as its answer) is looked for in
what another one hears later: in a message that its harness wrote for it, or in a tool's result. An id of the agent in
the same text makes it certain; the text alone makes it likely; the order of messages alone makes it possible.
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
from wiretape.runs.toolnames import is_messenger
from wiretape.runs.tools import RequestedTool, answered_at
from wiretape.runs.words import after_answer, answer_text, text_of, words

_SAYING = 8  # what was said must be so long to be recognised as a part of something longer
_WAITING = 1000  # sayings that nobody heard yet, latest kept
_AGENT = "agent"  # the role of messages that a client marks as another agent's


@dataclass(slots=True, eq=False)
class AgentMessage:
    """Something that an agent said and that another may hear."""

    call: ModelCall
    at: int | None
    teller: AgentDraft
    texts: tuple[str, ...]
    use: RequestedTool | None = None  # the tool call whose arguments hold it; None: it is the answer itself
    to: AgentDraft | None = None


@dataclass(frozen=True, slots=True)
class _Heard:
    """A saying, or only its teller, found in a text."""

    saying: AgentMessage
    basis: LinkBasis
    certainty: Certainty


class AgentMessages:
    """Walks the calls in order of start; keeps what was said until somebody hears it."""

    def __init__(
        self,
        calls: Sequence[ModelCall],
        places: Mapping[int, ThreadPlace],
        speakers: Mapping[int, AgentDraft],
        asked: Sequence[RequestedTool],
        names: AgentNames,
        aside: Mapping[int, object],
    ) -> None:
        self.heard: dict[int, list[Link]] = {}  # per call, what reached it
        self.spoken: dict[int, set[int]] = {}  # per call, the indices of request messages that other agents wrote
        self.unheard: list[AgentMessage] = []  # messages to agents that arrived nowhere
        self._places, self._names = places, names
        self._asked_by: dict[int, list[RequestedTool]] = {}
        self._answered: dict[int, list[RequestedTool]] = {}
        for use in asked:
            self._asked_by.setdefault(use.call_number, []).append(use)
            if use.result_call is not None and use.result_call != use.call_number:
                self._answered.setdefault(use.result_call, []).append(use)
        self._last = {
            speakers[places[c.number].thread].number: c for c in calls if c.number in places and c.number not in aside
        }
        self._arrived: set[int] = set()  # ids of tool uses whose message somebody heard
        self._inbox: dict[int, deque[AgentMessage]] = {}
        self._to_children: dict[int, deque[AgentMessage]] = {}  # what a parent said to no child by name
        self._by_number = {speaker.number: speaker for speaker in speakers.values()}
        for speaker in self._by_number.values():
            parent = parent_of(speaker)
            if parent is not None:
                self._inbox.setdefault(speaker.number, deque(maxlen=_WAITING))
                self._inbox.setdefault(parent.number, deque(maxlen=_WAITING))
                self._to_children.setdefault(parent.number, deque(maxlen=_WAITING))
        if self._inbox:
            for call in calls:
                if call.number in places and call.number not in aside:
                    self._pass(call, speakers[places[call.number].thread])
        by_number = {call.number: call for call in calls}
        for use in asked:
            if is_messenger(use.call.name) and id(use) not in self._arrived and use.call_number not in aside:
                call = by_number[use.call_number]
                self.unheard.append(self._saying(call, answered_at(call), speakers[use.thread], use))

    def _pass(self, call: ModelCall, speaker: AgentDraft) -> None:
        if speaker.number in self._inbox:
            self._hear_results(call, speaker)
            if speaker.first_call is not call or parent_of(speaker) is None:
                self._hear_messages(call, speaker)
            elif speaker.resumed:  # a message set it going again: it is heard
                self._arrived.add(id(speaker.use))
            self._say(call, speaker)

    # -- saying ----------------------------------------------------------------------------------------------------

    def _say(self, call: ModelCall, speaker: AgentDraft) -> None:
        at = answered_at(call)
        for use in self._asked_by.get(call.number, ()):
            if use.agent is None or is_messenger(use.call.name):
                self._post(self._saying(call, at, speaker, use))
        answer = answer_text(call.response.messages) if call.response is not None else None
        parent = parent_of(speaker)
        if answer and parent is not None and not any(tool.kind != "server" for tool in call.tool_calls):
            self._inbox[parent.number].append(AgentMessage(call, at, speaker, (answer.strip(),), None, parent))

    def _saying(self, call: ModelCall, at: int | None, speaker: AgentDraft, use: RequestedTool) -> AgentMessage:
        texts = tuple(text for text in carried(use.call.arguments)[1:] if self._names.called(text) is None)
        return AgentMessage(call, at, speaker, texts, use, self._names.addressed(use.call.arguments))

    def _post(self, saying: AgentMessage) -> None:
        to, parent = saying.to, parent_of(saying.teller)
        if to is not None and to is not saying.teller and to.number in self._inbox:
            self._inbox[to.number].append(saying)
            return
        if parent is not None:
            self._inbox[parent.number].append(saying)
        if saying.teller.number in self._to_children:
            self._to_children[saying.teller.number].append(saying)

    # -- hearing ---------------------------------------------------------------------------------------------------

    def _hear_results(self, call: ModelCall, listener: AgentDraft) -> None:
        """A subagent's last words as a tool's result: of the tool that started it, or of one that waits for it."""
        for use in self._answered.get(call.number, ()):
            if use.result is None or not self._inbox[listener.number]:
                continue
            child = self._by_number.get(use.agent) if use.agent is not None else None
            found = [s for s in self._found(use.result.text, call, listener, own=False) if self._is_last(s.saying)]
            if child is not None:
                found = [heard for heard in found if heard.saying.teller is child]
            for heard in found:
                kind: LinkKind = "result" if heard.saying.teller is child else "closing"
                self._note(call, listener, heard, kind, use)

    def _is_last(self, saying: AgentMessage) -> bool:
        """Whether it is an answer: words, or what a tool was handed that ends the run."""
        return saying.use is None or (saying.use.result is None and self._last[saying.teller.number] is saying.call)

    def _hear_messages(self, call: ModelCall, listener: AgentDraft) -> None:
        place = self._places[call.number]
        start = place.new_from if place.parent is not None else 0
        fresh = call.request.messages[start:]
        begin = after_answer(fresh)
        for index, message in enumerate(fresh[begin:], start + begin):
            if message.role not in ("user", _AGENT):
                continue
            found = self._in_message(message, call, listener)
            for heard in found:
                self._note(call, listener, heard, _kind(heard.saying, listener))
            if found or message.role == _AGENT:
                self.spoken.setdefault(call.number, set()).add(index)

    def _in_message(self, message: Message, call: ModelCall, listener: AgentDraft) -> list[_Heard]:
        text = text_of(message)
        if not text:
            return []
        own = message.role == "user" and bool(words(text))
        author = self._author(message)
        found = self._found(text, call, listener, own, author)
        if not found and not own:
            tellers = [author] if author is not None else self._names.named_in(text)
            found = [heard for teller in tellers if (heard := self._by_name(teller, call, listener))]
        if not found and own and parent_of(listener) is not None:
            found = self._by_order(call, listener)
        return found

    def _author(self, message: Message) -> AgentDraft | None:
        said = next((value for name, value in message.extra if name == "author"), None)
        return self._names.called(said) if message.role == _AGENT and isinstance(said, str) else None

    def _found(
        self, text: str, call: ModelCall, listener: AgentDraft, own: bool, author: AgentDraft | None = None
    ) -> list[_Heard]:
        """The sayings that stand in a text, each text once, oldest first. `own`: it may be the user's own words."""
        whole, taken = text.strip(), set[str]()
        named: list[AgentDraft] | None = None
        alone = own and parent_of(listener) is None  # a user speaks to it, too
        found: list[_Heard] = []
        for saying in self._waiting(listener):
            if saying.at is None or saying.at > call.at or (author is not None and saying.teller is not author):
                continue
            texts = [text for text in saying.texts if text in whole or whole in text]
            said = max(texts, key=len) if texts else ""
            if not said or said in taken:
                continue
            if named is None:
                named = [*self._names.named_in(whole), *((author,) if author is not None else ())]
            by_name = saying.teller in named or (saying.to is listener and saying.use is not None)
            if _stands_in(said, whole, by_name, alone):
                taken.add(said)
                found.append(_Heard(saying, "id" if by_name else "data_flow", "certain" if by_name else "likely"))
        return found

    def _waiting(self, listener: AgentDraft) -> list[AgentMessage]:
        parent = parent_of(listener)
        shared = self._to_children.get(parent.number, ()) if parent is not None else ()
        waiting = [
            s for s in (*self._inbox[listener.number], *shared) if id(s.use) not in self._arrived or s.use is None
        ]
        return sorted(waiting, key=lambda saying: saying.call.number) if shared else waiting

    def _by_name(self, teller: AgentDraft, call: ModelCall, listener: AgentDraft) -> _Heard | None:
        """A harness names an agent, and says nothing that the tape has: it can only be the latest that it said."""
        if parent_of(teller) is not listener and parent_of(listener) is not teller:
            return None
        sayings = [s for s in self._waiting(listener) if s.teller is teller and s.at is not None and s.at <= call.at]
        if parent_of(listener) is teller:  # its messages come in the order in which they were sent
            sayings = [s for s in sayings if s.to is listener and _is_message(s)][:1]
        else:
            sayings = [s for s in sayings if s.use is None]
        return _Heard(sayings[-1], "id", "likely") if sayings else None

    def _by_order(self, call: ModelCall, listener: AgentDraft) -> list[_Heard]:
        """A subagent hears something that nobody said in these words: the first message that waits for it."""
        waiting = [s for s in self._waiting(listener) if s.to is listener and _is_message(s) and not refusal(s.use)]
        sent = [s for s in waiting if s.at is not None and s.at <= call.at]
        return [_Heard(sent[0], "order", "possible")] if sent else []

    # -- remembering -----------------------------------------------------------------------------------------------

    def _note(
        self, call: ModelCall, listener: AgentDraft, heard: _Heard, kind: LinkKind, by: RequestedTool | None = None
    ) -> None:
        saying = heard.saying
        carrier = by if by is not None else saying.use
        link = Link(
            kind,
            saying.call.number,
            call.number,
            saying.teller.number,
            listener.number,
            heard.basis,
            heard.certainty,
            carrier.call.name if carrier is not None else None,
            carrier.index if carrier is not None else None,
        )
        self.heard.setdefault(call.number, []).append(link)
        self._drop(saying)
        self._arrived.add(id(saying.use))

    def _drop(self, saying: AgentMessage) -> None:
        for box in self._boxes(saying):
            if saying in box:
                box.remove(saying)

    def _boxes(self, saying: AgentMessage) -> list[deque[AgentMessage]]:
        parent = parent_of(saying.teller)
        owners = [who.number for who in (saying.to, parent) if who is not None and who.number in self._inbox]
        boxes = [self._inbox[number] for number in dict.fromkeys(owners)]
        return [*boxes, self._to_children[saying.teller.number]] if saying.teller.number in self._to_children else boxes


def _stands_in(said: str, whole: str, by_name: bool, alone: bool) -> bool:
    """Whether a text says what an agent said: all of it, or too much for chance. `alone`: it may be the user's text."""
    if len(said) >= _SAYING and said in whole and (by_name or not alone):
        return True
    return (len(said) >= _SAYING or by_name or not alone) and (said == whole or overlap(said, whole) > 0)


def parent_of(speaker: AgentDraft) -> AgentDraft | None:
    """The agent that a subagent works for. Who was handed a conversation works for nobody."""
    return None if speaker.handed else speaker.parent


def _kind(saying: AgentMessage, listener: AgentDraft) -> LinkKind:
    if parent_of(saying.teller) is not listener:
        return "message"
    return "closing" if saying.use is None else "report"


def _is_message(saying: AgentMessage) -> bool:
    return saying.use is not None and is_messenger(saying.use.call.name)


_REFUSED = ("not delivered", "undelivered", "could not be delivered", "未送达")


def refusal(use: RequestedTool | None) -> str | None:
    """What a tool said if it did not deliver a message."""
    if use is None or use.result is None:
        return None
    text = use.result.text.strip()
    plain = text.lower()
    refused = use.result.is_error or plain.startswith("error") or any(sign in plain for sign in _REFUSED)
    return (text.splitlines() or [""])[0] if refused else None


def lost(saying: AgentMessage) -> Link:
    """A message that nobody heard on this tape."""
    use = saying.use
    assert use is not None
    why = refusal(use)
    said = f"not delivered: {why}" if why is not None else "its turn is not on the tape"
    if why is None and use.result is None:
        said = "whether it was delivered is not on the tape"
    to = saying.to.number if saying.to is not None else None
    link = Link(
        "message", saying.call.number, None, saying.teller.number, to, "id", "certain", use.call.name, use.index
    )
    return replace(link, detail=said)


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
