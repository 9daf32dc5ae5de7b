"""Link calls that continue each other into threads, in the order of their starts; the times of their ends do not count.

Evidence, best first: ids (such as `previous_response_id`), the same history, ids of tool results, the same last answer
(a trimmed history), a request with an edited answer. A second continuation of a call is a fork: a new thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from wiretape.model.call import Control, Message, ModelCall, ToolResult
from wiretape.model.common_prefix import common_prefix
from wiretape.runs.agent_identity import same_agent, same_system, system_text, tool_names
from wiretape.runs.caller_headers import Identity, identity, retry_count
from wiretape.runs.content_keys import ContentKeys
from wiretape.runs.histories import HistoryPath, HistoryTree
from wiretape.runs.tool_names import hands_over
from wiretape.runs.user_text import after_answer, answer_text, side_call_purpose, user_words

Relation: TypeAlias = Literal["first", "continues", "retry", "fork", "compaction", "handoff"]
_SUMMARY = 40  # characters of the shortest answer that is recognized in a later first message
_LATEST = 100  # threads whose last answer is compared with a first message


@dataclass(frozen=True, slots=True)
class ThreadPlace:
    """How a call continues earlier ones. `parent`: a call number; `twin`: an earlier call with the same request."""

    relation: Relation
    parent: int | None = None
    new_from: int = 0
    thread: int = 0
    by_id: bool = False
    twin: int | None = None
    detail: str | None = None


@dataclass(slots=True)
class ThreadDraft:
    """A thread while its calls are collected."""

    number: int
    calls: list[int] = field(default_factory=list)
    from_call: int | None = None


def failed(call: ModelCall) -> bool:
    """Whether a call has no complete answer: an error, a cut answer, or none."""
    response = call.response
    return response is None or response.error is not None or response.status >= 400 or not response.complete


def conversation(call: ModelCall) -> str | None:
    """The id of the conversation that the provider stores, if the request names one."""
    held = call.request.settings.get("conversation")
    found = held.get("id") if isinstance(held, dict) else held
    return found if isinstance(found, str) and found else None


def _answer_before(messages: tuple[Message, ...], end: int) -> tuple[Message, ...]:
    """The adjacent assistant messages that end just before index `end`."""
    start = end
    while start and messages[start - 1].role == "assistant":
        start -= 1
    return messages[start:end]


def _summaries(messages: Sequence[Message]) -> Iterator[str]:
    """The opaque items with which the provider compacted a history."""
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Control) and block.kind == "compaction":
                found = block.raw.get("encrypted_content") or block.raw.get("content")
                if isinstance(found, str) and found:
                    yield found


class ThreadBuilder:
    """Places model calls, in the order of their starts, into threads."""

    def __init__(self, calls: Iterable[ModelCall] = ()) -> None:
        self.links: dict[int, ThreadPlace] = {}
        self.drafts: list[ThreadDraft] = []
        self.identities: dict[int, Identity] = {}
        self._calls: dict[int, ModelCall] = {}
        self._keys = ContentKeys()
        self._histories = HistoryTree(self._keys)
        self._next: dict[int, int] = {}  # by call: the call that continues or retries it in its thread
        self._ends: dict[int, int] = {}  # by call: the node after its answer
        self._by_response: dict[str, int] = {}
        self._by_conversation: dict[str, int] = {}
        self._by_tool_id: dict[str, int] = {}
        self._by_summary: dict[str, int] = {}
        self._words: dict[int, str] = {}
        self._by_answer: dict[tuple[int, ...], int] = {}
        for call in calls:
            self.add(call)

    def add(self, call: ModelCall) -> ThreadPlace | None:
        """Place one call. Calls that are not inferences have no thread."""
        self._calls[call.number] = call
        self.identities[call.number] = identity(call)
        if call.kind != "inference":
            self._remember_id(call)
            if call.kind == "prewarm":
                self._ends[call.number] = self._histories.walk(call).end
            return None
        previous = self._previous(call)
        whole = previous is None or call.request.held  # else only the provider has the history
        path = self._histories.walk(call, 0 if whole or previous is None else self._ends.get(previous, 0))
        link = self._place(call, path, previous)
        if self._handed_over(link, call):
            link = replace(link, relation="handoff", detail=None)
        elif link.relation == "continues" and side_call_purpose(call.request.messages):
            link = replace(link, relation="fork")  # a later call continues the earlier one
        self._commit(call, link, path)
        return self.links[call.number]

    # -- finding the call before ---------------------------------------------------------------------------------

    def _place(self, call: ModelCall, path: HistoryPath, previous: int | None) -> ThreadPlace:
        by_id = previous is not None and previous in self.links
        if previous is not None and by_id and previous not in self._next:
            return self._continue(previous, call.request.held, by_id=True)
        retried = self._retried(call, path)
        if previous is not None and by_id and retried is None:
            return self._continue(previous, call.request.held, by_id=True)
        if retried is not None:
            return ThreadPlace("retry", retried, self.links[retried].new_from)
        return (
            self._by_history(call, path)
            or self._by_tool_results(call, path)
            or self._sealed(call)
            or self._by_last_answer(call, path)
            or self._by_request(call, path)
            or self._forked(call, path)
            or self._compacted(call)
            or ThreadPlace("first")
        )

    def _previous(self, call: ModelCall) -> int | None:
        """The call that a request names as its predecessor, by response id or conversation id."""
        thread = call.request.settings.get("thread")
        named = thread.get("previous_message_id") if isinstance(thread, dict) else None
        wanted = call.request.previous_response_id or named
        if isinstance(wanted, str) and wanted in self._by_response:
            return self._by_response[wanted]
        held = conversation(call)
        return self._by_conversation.get(held) if held is not None else None

    def _continue(self, parent: int, new_from: int, *, by_id: bool = False) -> ThreadPlace:
        relation: Relation = "fork" if parent in self._next else "continues"
        return ThreadPlace(relation, parent, new_from, by_id=by_id)

    def _akin(self, number: int, call: ModelCall) -> bool:
        """Whether the client's ids allow both calls in one thread."""
        return self.identities[number].key == self.identities[call.number].key

    def _retried(self, call: ModelCall, path: HistoryPath) -> int | None:
        same = [
            number
            for number in self._histories.requests_at(path.end)
            if number not in self._next and self._akin(number, call) and self._is_same_request(number, call)
        ]
        # A call that started before the other one failed is parallel to it, not a retry.
        lost = [n for n in same if failed(self._calls[n]) and (self._calls[n].ended_at or 0) <= call.at]
        if lost:
            return lost[0]
        return same[-1] if same and retry_count(call) else None

    def _is_same_request(self, number: int, call: ModelCall) -> bool:
        earlier = self._calls[number]
        if not failed(earlier) and not retry_count(call):
            return False
        same_length = len(earlier.request.messages) == len(call.request.messages)
        return same_length and same_system(earlier.request, call.request)

    def _by_history(self, call: ModelCall, path: HistoryPath) -> ThreadPlace | None:
        """The last earlier answer of the same agent on the request's path."""
        for mark in path.marks():
            answers = self._histories.answers_at(mark.node)
            fits = [n for n in answers if self._akin(n, call) and same_agent(self._calls[n], call)]
            if fits:
                return self._continue(self._best(fits, call), mark.index)
        return None

    def _best(self, numbers: Sequence[int], call: ModelCall) -> int:
        """Choose among calls with equal histories: same prompt, then not yet continued, then similar prompt."""
        prompt = system_text(call.request)

        def rank(number: int) -> tuple[bool, bool, bool, int]:
            earlier, used = self._calls[number], number in self._next
            exact = system_text(earlier.request) == prompt
            alike = exact or same_system(earlier.request, call.request)
            return (not exact, used, not alike, -number if used else number)

        return min(numbers, key=rank)

    def _by_tool_results(self, call: ModelCall, path: HistoryPath) -> ThreadPlace | None:
        """The call whose tool calls the results answer by id: the history was rewritten."""
        messages = call.request.messages
        start = after_answer(messages)
        for message in messages[start:]:
            for block in message.blocks:
                requested = self._by_tool_id.get(block.id or "") if isinstance(block, ToolResult) else None
                if requested is not None and requested not in self._next and self._akin(requested, call):
                    return ThreadPlace(
                        "continues",
                        requested,
                        start,
                        by_id=True,
                        detail=self._changed(requested, path, messages[:start]),
                    )
        return None

    def _handed_over(self, place: ThreadPlace, call: ModelCall) -> bool:
        """Whether another agent continues: it has another prompt and other tools, and a tool call hands over."""
        if place.relation != "continues" or place.parent is None or self.identities[call.number].key is not None:
            return False
        before = self._calls[place.parent]
        handing = any(hands_over(tool.name) for tool in before.tool_calls)
        return handing and not same_agent(before, call)

    def _by_last_answer(self, call: ModelCall, path: HistoryPath) -> ThreadPlace | None:
        """The call of the same agent with the last answer in the request: the history was trimmed."""
        start = after_answer(call.request.messages)
        answer = self._keys.of_all(_answer_before(call.request.messages, start))
        found = self._by_answer.get(answer) if answer else None
        if found is None or found in self._next or not self._akin(found, call):
            return None
        if not same_system(self._calls[found].request, call.request):
            return None
        return ThreadPlace("continues", found, start, detail=self._changed(found, path, call.request.messages[:start]))

    def _changed(self, number: int, path: HistoryPath, kept: tuple[Message, ...]) -> str:
        """How the request changed the history and answer that it continues."""
        marks = list(path.marks())
        if any(number in self._histories.answers_at(mark.node) for mark in marks):
            return "with another system prompt and other tools"
        if any(number in self._histories.requests_at(mark.node) for mark in marks):
            return "its answer was changed"
        earlier = self._calls[number]
        whole = self._keys.of_all(earlier.request.messages)
        whole += self._keys.of_all(earlier.response.messages) if earlier.response is not None else ()
        left = self._keys.of_all(kept)
        start, end = common_prefix(left, whole), common_prefix(left[::-1], whole[::-1])
        if len(left) < len(whole) and start + end >= len(left):
            return "messages were left out of its history" if start else "the beginning of its history was left out"
        return "its history was rewritten"

    def _by_request(self, call: ModelCall, path: HistoryPath) -> ThreadPlace | None:
        """The call whose request is a prefix of this one, although its answer was changed."""
        for mark in path.marks():
            for number in reversed(self._histories.requests_at(mark.node)):
                if self._went_on(number, mark.index, call):
                    lost = failed(self._calls[number])
                    return ThreadPlace(
                        "continues", number, mark.index, detail=None if lost else "its answer was changed"
                    )
        return None

    def _went_on(self, number: int, index: int, call: ModelCall) -> bool:
        messages = call.request.messages
        if number in self._next or not self._akin(number, call) or not same_agent(self._calls[number], call):
            return False
        if index >= len(messages):
            return False
        return messages[index].role == "assistant" or failed(self._calls[number])

    def _forked(self, call: ModelCall, path: HistoryPath) -> ThreadPlace | None:
        origin = self._histories.recorded_at(path.known)
        return ThreadPlace("fork", origin, path.known_index) if origin is not None else None

    def _sealed(self, call: ModelCall) -> ThreadPlace | None:
        """The call that returned the compaction item in this request."""
        known = (self._by_summary.get(key) for key in _summaries(call.request.messages))
        found = next((number for number in known if number is not None and self._akin(number, call)), None)
        return ThreadPlace("compaction", found, by_id=True) if found is not None else None

    def _compacted(self, call: ModelCall) -> ThreadPlace | None:
        """The call whose answer is in the first message of this request: the client compacted the history."""
        opening = "\n".join(user_words(message) for message in call.request.messages)
        for draft in reversed(self.drafts[-_LATEST:]):
            earlier = self._calls[draft.calls[-1]]
            summary = self._said(earlier)
            if len(summary) < _SUMMARY or summary not in opening or not self._akin(earlier.number, call):
                continue
            if self._speaks_for(earlier, call):
                return ThreadPlace("compaction", earlier.number)
        return None

    def _said(self, call: ModelCall) -> str:
        """The text of a call's answer, cached."""
        found = self._words.get(call.number)
        if found is None:
            said = answer_text(call.response.messages) if call.response is not None else None
            found = self._words[call.number] = (said or "").strip()
        return found

    def _speaks_for(self, earlier: ModelCall, call: ModelCall) -> bool:
        """Whether the same agent made the summary, or another one from its history."""
        origin = self.links[earlier.number].parent
        return same_agent(earlier, call) or (origin is not None and same_agent(self._calls[origin], call))

    # -- remembering -----------------------------------------------------------------------------------------------

    def _commit(self, call: ModelCall, link: ThreadPlace, path: HistoryPath) -> None:
        twin = self._twin(call, path) if link.relation in ("first", "fork") else None
        draft = self._strand(call, link)
        draft.calls.append(call.number)
        self.links[call.number] = ThreadPlace(
            link.relation,
            link.parent,
            link.new_from,
            draft.number,
            link.by_id,
            twin,
            link.detail,
        )
        self._ends[call.number] = self._histories.record(call.number, call, path)
        self._remember_id(call)
        self._remember_answer(call)

    def _twin(self, call: ModelCall, path: HistoryPath) -> int | None:
        """The last earlier call with the same request."""
        prompt, offered = system_text(call.request), tool_names(call.request)
        for number in reversed(self._histories.requests_at(path.end)):
            earlier = self._calls[number].request
            if self._akin(number, call) and system_text(earlier) == prompt and tool_names(earlier) == offered:
                return number
        return None

    def _strand(self, call: ModelCall, link: ThreadPlace) -> ThreadDraft:
        if link.parent is not None and link.relation in ("continues", "retry"):
            self._next[link.parent] = call.number
            return self.drafts[self.links[link.parent].thread]
        draft = ThreadDraft(len(self.drafts), from_call=link.parent)
        self.drafts.append(draft)
        return draft

    def _remember_id(self, call: ModelCall) -> None:
        if call.response is not None and call.response.id:
            self._by_response[call.response.id] = call.number
        held = conversation(call)
        if held is not None:
            self._by_conversation[held] = call.number

    def _remember_answer(self, call: ModelCall) -> None:
        if call.response is None:
            return
        for tool in call.tool_calls:
            if tool.id:
                self._by_tool_id[tool.id] = call.number
        for summary in _summaries(call.response.messages):
            self._by_summary[summary] = call.number
        answer = self._keys.of_all(call.response.messages)
        if answer and not failed(call):
            self._by_answer[answer] = call.number
