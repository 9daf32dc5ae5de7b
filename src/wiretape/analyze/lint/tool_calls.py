"""Rules about tool calls: without result, without call, repeated, and in a loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wiretape.analyze.lint.base import LintFinding, LintRule, Subject, tool_call_path
from wiretape.analyze.prefix_breaks import provider_holds_history
from wiretape.analyze.repeats import LONGEST_CYCLE, ROUNDS
from wiretape.analyze.why import listed
from wiretape.model.call import Control, Message, ModelCall, ToolCall, ToolResult
from wiretape.model.run import ToolUse
from wiretape.runs.threads import failed


class ToolCallWithoutResult(LintRule):
    id = "WT001"
    name = "tool-call-without-result"
    severity = "error"
    summary = "A tool call never got its result."
    explains = (
        "The model called a tool, and the thread continues without its result. Most providers reject such a history; "
        "with the others the model answers without the result. If the thread ends at the tool call, the finding is "
        "information: some tools end a run, and the recording may have been stopped. The rule ignores tools that the "
        "provider runs, and calls that failed or were cut."
    )
    mend = "append a result for every tool call before the next request; if the tool failed, the error as its text"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        unanswered: dict[int, list[ToolUse]] = {}
        for use in subject.run.tool_uses:
            if use.result is None and use.call.kind != "server" and _awaited(subject.steps[use.call_number].call):
                unanswered.setdefault(use.call_number, []).append(use)
        for number, uses in unanswered.items():
            yield self._finding(subject, subject.steps[number].call, uses)

    def _finding(self, subject: Subject, call: ModelCall, uses: list[ToolUse]) -> LintFinding:
        said = f"{listed([use.call.name for use in uses])} never got a result"
        path = f"answer.tool_calls[{uses[0].index}]"
        later = _next(subject, call)
        if later is None:
            text = f"{said}: the thread ends there"
            mend = "nothing, if the tool ends the run; else check how the program ended"
            return self.finding(text, call, path, severity="info", mend=mend)
        if not _carries(later, uses):
            text = f"{said}: call {later.number} goes on without the answer that asked for it"
            return self.finding(text, call, path, severity="warning")
        return self.finding(f"{said}: call {later.number} goes on without it", call, path)


def _awaited(call: ModelCall) -> bool:
    finish = call.response.finish if call.response is not None else None
    return not failed(call) and finish not in ("length", "content_filter")


def _next(subject: Subject, call: ModelCall) -> ModelCall | None:
    """Return the next call of the thread."""
    later = (number for number in subject.thread(call.number).calls if number > call.number)
    return next((subject.steps[number].call for number in later), None)


def _carries(later: ModelCall, uses: list[ToolUse]) -> bool:
    """True if a request still contains one of the tool calls."""
    if provider_holds_history(later.request):
        return True
    calls = {(use.call.id, use.call.name) for use in uses}
    return any(
        isinstance(block, ToolCall) and (block.id, block.name) in calls
        for message in reversed(later.request.messages)
        for block in message.blocks
    )


class ResultWithoutToolCall(LintRule):
    id = "WT002"
    name = "result-without-tool-call"
    severity = "error"
    summary = "A tool result has no tool call in its history."
    explains = (
        "A request has the result of a tool call whose id is in no earlier message of the same request. This happens "
        "when a history is trimmed or compacted between a call and its result; most providers reject it. The rule "
        "ignores results without ids, tools that the provider runs, and histories that only the provider has."
    )
    mend = "when a history is trimmed, drop tool calls and their results together"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        reported: set[tuple[int, str]] = set()
        for call in subject.calls:
            step = subject.steps[call.number]
            for index, place, result in _without_call(call, step.new_from):
                if (step.thread, result.id or "") in reported:
                    continue
                reported.add((step.thread, result.id or ""))
                status = call.response.status if call.response is not None else None
                refused = f"; the provider answered {status}" if status is not None and status >= 400 else ""
                text = f"a result of {result.name or 'a tool'} answers a tool call that the history does not hold"
                path = call.request.path(index) + _path(call.request.messages[index], place)
                values = {"id": result.id or "", "result": result.text}
                yield self.finding(text + refused, call, path, values=values)


def _without_call(call: ModelCall, start: int) -> Iterator[tuple[int, int, ToolResult]]:
    """Yield new results (message, block, result) whose tool call is in no message before them."""
    messages = call.request.messages
    if provider_holds_history(call.request):
        return
    calls = _EarlierCalls(messages, start)
    for index in range(start, len(messages)):
        calls.add(messages[index])
        if index and _calls_server_tool(messages[index - 1]):
            continue  # results of the provider's tools have ids of their own
        for place, block in enumerate(messages[index].blocks):
            if isinstance(block, ToolResult) and block.id and block.kind != "server" and not calls.has(block):
                yield index, place, block


class _EarlierCalls:
    """The tool calls of a request before a message.

    The history before `start` is read backwards, once, and only until the call of a result is found.
    """

    def __init__(self, messages: Sequence[Message], start: int) -> None:
        self._before = iter(reversed(messages[:start]))
        self._ids: set[str] = set()
        self._names: set[str] = set()  # of calls without id
        self._elsewhere = False  # part of the history is not in the request

    def add(self, message: Message) -> None:
        for block in message.blocks:
            if isinstance(block, ToolCall) and block.id:
                self._ids.add(block.id)
            elif isinstance(block, ToolCall):
                self._names.add(block.name)
            elif isinstance(block, Control) and block.kind in ("item_reference", "compaction"):
                self._elsewhere = True

    def has(self, result: ToolResult) -> bool:
        while not (found := self._has(result)) and (message := next(self._before, None)) is not None:
            self.add(message)
        return found

    def _has(self, result: ToolResult) -> bool:
        # Some clients invent ids for results of calls without id.
        same_name = bool(self._names) if result.name is None else result.name in self._names
        return self._elsewhere or result.id in self._ids or same_name


def _calls_server_tool(message: Message) -> bool:
    return any(isinstance(block, ToolCall) and block.kind == "server" for block in message.blocks)


def _path(message: Message, place: int) -> str:
    return message.block_paths[place] if place < len(message.block_paths) else ""


class RepeatedToolCall(LintRule):
    id = "WT007"
    name = "repeated-tool-call"
    severity = "warning"
    summary = "The same tool was called again with the same arguments, and had the same result."
    explains = (
        "A tool was called again in the same answer, or in the next one of the thread, with equal arguments (compared "
        "as JSON) and an equal result: the second call gave the model no new information. The rule ignores calls "
        "whose results differ (a clock, a poll), calls with other tool calls between them, tools without arguments "
        "(to wait, to list), and results of a few characters (`ok`): such tools are called for their effect."
    )
    mend = "cache the tool's result, or state in the result that it is the same as before"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for repeat in subject.repeats.repeats:
            last = repeat.last
            call = subject.steps[last.call_number].call
            values = {"arguments": last.call.arguments, "result": last.result.text if last.result is not None else ""}
            yield self.finding(repeat.text, call, tool_call_path(call, last.index), values=values)


class RunawayLoop(LintRule):
    id = "WT008"
    name = "runaway-loop"
    severity = "error"
    summary = f"The loop makes no progress: it repeats the same tool calls, {ROUNDS} times or more."
    explains = (
        f"Consecutive calls of a thread request the same tools with the same arguments, {ROUNDS} times or more, as one "
        f"call or as a cycle of up to {LONGEST_CYCLE} calls (read, edit, read, edit, …), without a new user message "
        "between them, and get the same results: the model sees nothing that could make the next round different. "
        "The rule ignores polls, whose results differ, and loops that wait while other agents make calls."
    )
    mend = "stop the loop when a round repeats, or tell the model in the result that it did this before"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for runaway in subject.repeats.runaways:
            call = subject.steps[runaway.calls[-1]].call
            values = {"arguments": runaway.arguments, "result": runaway.result}
            yield self.finding(runaway.text, call, tool_call_path(call, 0), values=values)
