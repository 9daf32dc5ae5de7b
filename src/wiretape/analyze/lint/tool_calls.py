"""Rules about tool calls and results that have lost each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wiretape.analyze.lint.base import LintFinding, LintRule, Subject, asked_path
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
        "The model asked for a tool, and the thread goes on without an answer to it. Most providers refuse such a "
        "history; where they take it, the model answers without what it asked for. Where the thread ends at the tool "
        "call this is only information: some tools are meant to end a run, and a recording may have been cut short. "
        "Tools that the provider runs itself, and calls that failed or were cut, are not waited for."
    )
    mend = "append a result for every tool call before the next request, an error as its text if the tool failed"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        lost: dict[int, list[ToolUse]] = {}
        for use in subject.run.tool_uses:
            if use.result is None and use.call.kind != "server" and _awaited(subject.steps[use.call_number].call):
                lost.setdefault(use.call_number, []).append(use)
        for number, uses in lost.items():
            yield self._finding(subject, subject.steps[number].call, uses)

    def _finding(self, subject: Subject, call: ModelCall, uses: list[ToolUse]) -> LintFinding:
        said = f"{listed([use.call.name for use in uses])} never got a result"
        path = f"answer.tool_calls[{uses[0].index}]"
        later = _next(subject, call)
        if later is None:
            text = f"{said}: the thread ends there"
            mend = "nothing, if the tool is meant to end the run; else see how the program ended"
            return self.finding(text, call, path, severity="info", mend=mend)
        if not _carries(later, uses):
            text = f"{said}: call {later.number} goes on without the answer that asked for it"
            return self.finding(text, call, path, severity="warning")
        return self.finding(f"{said}: call {later.number} goes on without it", call, path)


def _awaited(call: ModelCall) -> bool:
    finish = call.response.finish if call.response is not None else None
    return not failed(call) and finish not in ("length", "content_filter")


def _next(subject: Subject, call: ModelCall) -> ModelCall | None:
    """The call that goes on from this one in its thread."""
    later = (number for number in subject.thread(call.number).calls if number > call.number)
    return next((subject.steps[number].call for number in later), None)


def _carries(later: ModelCall, uses: list[ToolUse]) -> bool:
    """Whether a request still holds the tool calls themselves."""
    if provider_holds_history(later.request):
        return True
    asked = {(use.call.id, use.call.name) for use in uses}
    return any(
        isinstance(block, ToolCall) and (block.id, block.name) in asked
        for message in reversed(later.request.messages)
        for block in message.blocks
    )


class ResultWithoutToolCall(LintRule):
    id = "WT002"
    name = "result-without-tool-call"
    severity = "error"
    summary = "A tool result answers a call that its history does not hold."
    explains = (
        "A request carries the result of a tool call with an id that no earlier message of the same request asked "
        "with. It happens when a history is trimmed or compacted between a call and its result; most providers "
        "refuse it. Results without ids, of tools that the provider runs, and histories that only the provider has "
        "cannot be judged."
    )
    mend = "when history is trimmed, drop tool calls and their results together"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        told: set[tuple[int, str]] = set()
        for call in subject.calls:
            step = subject.steps[call.number]
            for index, place, result in _unasked(call, step.new_from):
                if (step.thread, result.id or "") in told:
                    continue
                told.add((step.thread, result.id or ""))
                status = call.response.status if call.response is not None else None
                refused = f"; the provider answered {status}" if status is not None and status >= 400 else ""
                text = f"a result of {result.name or 'a tool'} answers a tool call that the history does not hold"
                path = call.request.path(index) + _path(call.request.messages[index], place)
                values = {"id": result.id or "", "result": result.text}
                yield self.finding(text + refused, call, path, values=values)


def _unasked(call: ModelCall, start: int) -> Iterator[tuple[int, int, ToolResult]]:
    """New results (message, block) for whose ids no message before them asked."""
    messages = call.request.messages
    if provider_holds_history(call.request):
        return
    asked = _Asked(messages, start)
    for index in range(start, len(messages)):
        asked.add(messages[index])
        if index and _asks_the_server(messages[index - 1]):
            continue  # the provider's own calls, under ids of the results' own
        for place, block in enumerate(messages[index].blocks):
            if isinstance(block, ToolResult) and block.id and block.kind != "server" and not asked.has(block):
                yield index, place, block


class _Asked:
    """The tool calls of a request up to a message.

    The history before `start` is read backwards, once, and only as far as a result needs: its call stands near it.
    """

    def __init__(self, messages: Sequence[Message], start: int) -> None:
        self._before = iter(reversed(messages[:start]))
        self._ids: set[str] = set()
        self._names: set[str] = set()  # of the calls that have no id
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
        # Some clients make up ids for results of calls that have none.
        named_alike = bool(self._names) if result.name is None else result.name in self._names
        return self._elsewhere or result.id in self._ids or named_alike


def _asks_the_server(message: Message) -> bool:
    return any(isinstance(block, ToolCall) and block.kind == "server" for block in message.blocks)


def _path(message: Message, place: int) -> str:
    return message.block_paths[place] if place < len(message.block_paths) else ""


class RepeatedToolCall(LintRule):
    id = "WT007"
    name = "repeated-tool-call"
    severity = "warning"
    summary = "The same tool was asked for with the same arguments again, and said the same."
    explains = (
        "In one answer, or in the next one of the thread, a tool was called again with equal arguments (compared as "
        "JSON), and its result was the same: the second call taught the model nothing. Where the results differ (a "
        "clock, a poll), or other tools were at work in between, there is nothing wrong. Tools without arguments (to "
        "wait, to list) and answers of a few characters (`ok`) are left out: those are called for their effect."
    )
    mend = "cache the tool's result, or say in the result that it is the same as before"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for repeat in subject.repeats.repeats:
            last = repeat.last
            call = subject.steps[last.call_number].call
            values = {"arguments": last.call.arguments, "result": last.result.text if last.result is not None else ""}
            yield self.finding(repeat.text, call, asked_path(call, last.index), values=values)


class RunawayLoop(LintRule):
    id = "WT008"
    name = "runaway-loop"
    severity = "error"
    summary = f"The loop goes round: the same tool calls, {ROUNDS} times or more, one after the other."
    explains = (
        f"Consecutive calls of a thread ask for the same tools with the same arguments, {ROUNDS} times or more, alone "
        f"or as a cycle of up to {LONGEST_CYCLE} calls (read, edit, read, edit, …), with no new word of the user in "
        "between, and get the same results: nothing that the model sees makes the next round different. Polls, whose "
        "results differ, are none; nor is waiting while other agents are at work."
    )
    mend = "stop the loop when a round repeats itself, or tell the model in the result that it did this before"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for runaway in subject.repeats.runaways:
            call = subject.steps[runaway.calls[-1]].call
            values = {"arguments": runaway.arguments, "result": runaway.result}
            yield self.finding(runaway.text, call, asked_path(call, 0), values=values)
