"""Pair tool calls with their results, and with the tool servers' exchanges."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wiretape.model.call import Message, ModelCall, ServedToolCall, Text, ToolCall, ToolResult
from wiretape.runs.content_keys import canonical, spelled
from wiretape.runs.threads import ThreadDraft, ThreadPlace
from wiretape.runs.user_text import is_result_as_text


@dataclass(slots=True, eq=False)
class RequestedTool:
    """A tool call while its result and the agent that it starts are searched."""

    call_number: int
    index: int
    call: ToolCall
    at: int | None  # the earliest time of its result or its subagent
    thread: int
    result: ToolResult | None = None
    result_call: int | None = None
    agent: int | None = None
    served: ServedToolCall | None = None  # the tool server's exchange, if it is on the tape

    def is_open(self, number: int) -> bool:
        """Whether the tool had no result when call `number` started."""
        return self.call_number < number and (self.result_call is None or self.result_call >= number)


class _OpenTools:
    """Tool calls without a result, in order. Each is found by id, name or position in constant time."""

    __slots__ = ("_by_id", "_by_name", "_order", "_settled", "_uses")

    def __init__(self) -> None:
        self._uses: set[RequestedTool] = set()
        self._order: deque[RequestedTool] = (
            deque()
        )  # here and below, entries that are not in `_uses` any more are dropped later
        self._by_id: dict[str, list[RequestedTool]] = {}
        self._by_name: dict[str, deque[RequestedTool]] = {}
        self._settled: list[RequestedTool] = []

    def __iter__(self) -> Iterator[RequestedTool]:
        self._order = deque(use for use in dict.fromkeys(self._order) if use in self._uses)
        return iter(list(self._order))

    def add(self, use: RequestedTool) -> None:
        self._uses.add(use)
        self._order.append(use)
        if use.call.id is not None:
            self._by_id.setdefault(use.call.id, []).append(use)
        self._by_name.setdefault(use.call.name, deque()).append(use)

    def remove(self, use: RequestedTool) -> None:
        self._uses.discard(use)

    def of_id(self, id: str | None) -> RequestedTool | None:
        """The latest tool call with this id: ids may repeat."""
        found = self._by_id.get(id, []) if id is not None else []
        while found and found[-1] not in self._uses:
            found.pop()
        return found[-1] if found else None

    def of_name_or_first(self, name: str | None) -> RequestedTool | None:
        """The first tool call with this name, or the first of all: for dialects without ids."""
        found = self._order if name is None else self._by_name.get(name, deque())
        while found and found[0] not in self._uses:
            found.popleft()
        return found[0] if found else None

    def answered_elsewhere(self, use: RequestedTool) -> None:
        """Note that another thread has the result. The tool call counts as open until `settle`."""
        self._settled.append(use)

    def settle(self) -> None:
        self._uses.difference_update(self._settled)
        self._settled.clear()


class _Pairing:
    """The open tool calls of each thread. A fork has those of the call that it forks from, too."""

    def __init__(self, drafts: Sequence[ThreadDraft]) -> None:
        self.waiting = {draft.number: _OpenTools() for draft in drafts}
        self.served = {draft.number: _OpenTools() for draft in drafts}  # tool calls that the provider runs
        self._places: dict[RequestedTool, list[_OpenTools]] = {}

    def wait(self, use: RequestedTool, thread: int) -> None:
        for place in (self.waiting, self.served) if use.call.kind == "server" else (self.waiting,):
            place[thread].add(use)
            self._places.setdefault(use, []).append(place[thread])

    def answer(self, messages: Sequence[Message], open_here: _OpenTools, number: int) -> None:
        """Assign the results in messages to open tool calls: by id first, then the rest in order."""
        results = [block for message in messages for block in message.blocks if isinstance(block, ToolResult)]
        left = [result for result in results if not self._give(result, open_here.of_id(result.id), open_here, number)]
        for result in left:
            self._give(result, open_here.of_name_or_first(result.name), open_here, number)
        if not results:
            self._answer_in_words(messages, open_here, number)

    def _answer_in_words(self, messages: Sequence[Message], open_here: _OpenTools, number: int) -> None:
        """Assign a plain text message to all open tool calls: some frameworks send results in this way."""
        said = next((message for message in messages if is_result_as_text(message)), None)
        if said is not None:
            text = "\n".join(block.text for block in said.blocks if isinstance(block, Text))
            for use in open_here:
                self._give(ToolResult(None, None, text), use, open_here, number)

    def _give(self, result: ToolResult, use: RequestedTool | None, open_here: _OpenTools, number: int) -> bool:
        if use is None:
            return False
        open_here.remove(use)
        if use.result is None:
            use.result, use.result_call = result, number
            for place in self._places[use]:
                place.answered_elsewhere(use)
        return True


def pair(
    calls: Sequence[ModelCall], links: Mapping[int, ThreadPlace], drafts: Sequence[ThreadDraft]
) -> list[RequestedTool]:
    """All requested tool calls in order, with the results in later calls of their threads."""
    requested: list[RequestedTool] = []
    by_call: dict[int, list[RequestedTool]] = {}
    pairing = _Pairing(drafts)
    for call in calls:
        link = links.get(call.number)
        if link is None:
            continue
        open_here, served_here = pairing.waiting[link.thread], pairing.served[link.thread]
        if link.relation in ("fork", "handoff") and link.parent is not None:
            for use in by_call.get(link.parent, []):
                pairing.wait(use, link.thread)
        pairing.answer(call.request.messages[link.new_from :], open_here, call.number)
        for index, tool in enumerate(call.tool_calls):
            use = RequestedTool(call.number, index, tool, answered_at(call), link.thread)
            requested.append(use)
            by_call.setdefault(call.number, []).append(use)
            pairing.wait(use, link.thread)
        if call.response is not None:  # the response has the results of tools that the provider ran
            served_here.settle()
            pairing.answer(call.response.messages, served_here, call.number)
            open_here.settle()
    return requested


def answered_at(call: ModelCall) -> int | None:
    """The earliest time at which a client can act on a call's answer."""
    started = call.response.first_token_at if call.response is not None else None
    return started if started is not None else call.ended_at


_OTHER = re.compile(r"[^0-9A-Za-z]+")
_LONG = 60  # clients cut names at 64 characters
_CUT = 8  # characters of a truncated name that must be present


def pair_served(
    requested: Sequence[RequestedTool], served: Sequence[ServedToolCall], calls: Mapping[int, ModelCall]
) -> None:
    """Set `served` of every tool call whose server is on the tape.

    Both have no id in common. They are paired if their arguments are equal as JSON, the names match (clients add
    prefixes), and the server received the call after its request and before its result. Each served call is used once.
    """
    if not served:
        return
    waiting: dict[str, list[RequestedTool]] = {}
    for use in requested:
        if use.call.kind != "server":  # not those that the provider ran
            waiting.setdefault(canonical(use.call.arguments), []).append(use)
    for one in sorted(served, key=lambda one: (one.at, one.exchange)):
        fitting = [use for use in waiting.get(spelled(one.arguments), ()) if _fits(use, one, calls)]
        if fitting:
            fitting.sort(key=lambda use: use.call.name != one.name)  # stable: then the first requested
            fitting[0].served = one


def _fits(use: RequestedTool, one: ServedToolCall, calls: Mapping[int, ModelCall]) -> bool:
    if use.served is not None or not is_named(use.call.name, one.name):
        return False
    since = use.at if use.at is not None else calls[use.call_number].at
    until = calls[use.result_call].at if use.result_call is not None else None
    return since <= one.at and (until is None or one.at <= until)


def is_named(name: str, tool: str) -> bool:
    """Whether a model may know a server's tool by this name: equal, truncated, `mcp__server__tool` or `server-tool`."""
    ours, theirs = _OTHER.sub("_", name), _OTHER.sub("_", tool)
    if not theirs:
        return False
    if ours == theirs or ours.endswith(f"_{theirs}"):
        return True
    if len(name) < _LONG:
        return False
    starts = (at + 1 for at, character in enumerate(ours) if character == "_")
    return any(len(ours) - start >= _CUT and theirs.startswith(ours[start:]) for start in (0, *starts))
