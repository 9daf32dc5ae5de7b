"""Rules about loops that do not get on: the same tool call again, and again."""

from __future__ import annotations

from collections.abc import Iterable

from wiretape.analyze.lint.base import LintFinding, Rule, Subject, asked_path
from wiretape.analyze.repeats import LONGEST_CYCLE, ROUNDS


class RepeatedToolCall(Rule):
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


class RunawayLoop(Rule):
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
