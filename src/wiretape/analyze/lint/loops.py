"""Rules about loops that do not get on: the same tool call again, and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wiretape.analyze.lint.base import LintFinding, Rule, Subject, asked_path
from wiretape.loop.keys import canonical, spelled
from wiretape.model.loop import ToolUse

ROUNDS = 3  # so many times the same: a loop that does not end by itself
LONGEST_CYCLE = 4  # model calls that repeat as one


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
        asked: dict[tuple[int, str, str], list[ToolUse]] = {}
        for use in subject.run.tool_uses:
            if use.call.kind != "server" and use.result is not None:
                key = (subject.steps[use.call_number].thread, use.call.name, canonical(use.call.arguments))
                asked.setdefault(key, []).append(use)
        runaways = {number for runaway in _runaways(subject) for number in runaway.calls}  # told by the next rule
        for (_, name, arguments), uses in asked.items():
            if arguments == "{}":
                continue
            again = [use for use in _at_once(subject, uses) if use.call_number not in runaways]
            if len(again) > 1:
                yield self._finding(subject, name, again)

    def _finding(self, subject: Subject, name: str, uses: Sequence[ToolUse]) -> LintFinding:
        last = uses[-1]
        numbers = list(dict.fromkeys(use.call_number for use in uses))
        where = f"call{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        text = f"{name} was asked for {len(uses)} times with the same arguments and said the same ({where})"
        call = subject.steps[last.call_number].call
        values = {"arguments": last.call.arguments, "result": last.result.text if last.result is not None else ""}
        return self.finding(text, call, asked_path(call, last.index), values=values)


_EMPTY = 12  # a result of so few characters acknowledges, and says nothing


def _at_once(subject: Subject, uses: Sequence[ToolUse]) -> list[ToolUse]:
    """The first run of uses that follow one another at once and got the same result, if it says anything."""
    same = [uses[0]]
    for use in uses[1:]:
        if _follows(subject, same[-1], use) and _result(use) == _result(same[-1]):
            same.append(use)
        elif len(same) > 1:
            break
        else:
            same = [use]
    return same if len(_result(same[0])) >= _EMPTY else []


def _follows(subject: Subject, one: ToolUse, other: ToolUse) -> bool:
    """Whether a tool was asked for in the same answer as another, or in the next one of the thread."""
    return subject.places[other.call_number] - subject.places[one.call_number] <= 1


def _result(use: ToolUse) -> str:
    if use.result is None:
        return ""
    return use.result.text.strip() + "".join(spelled(part) for part in use.result.parts)


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
        for runaway in _runaways(subject):
            call = subject.steps[runaway.calls[-1]].call
            cycle = "call" if runaway.length == 1 else f"cycle of {runaway.length} calls"
            first, last = runaway.calls[0], runaway.calls[-1]
            text = f"the same {cycle} {runaway.rounds} times in a row (calls {first} to {last}): {runaway.said}"
            yield self.finding(text, call, asked_path(call, 0), values=runaway.values)


@dataclass(frozen=True, slots=True)
class _Round:
    """What one call of a thread asked for, and what it got."""

    call: int
    asked: tuple[tuple[str, str], ...]  # name, arguments
    got: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Runaway:
    calls: tuple[int, ...]
    length: int
    rounds: int
    said: str
    values: dict[str, str]


def _runaways(subject: Subject) -> Iterator[_Runaway]:
    for rounds in _stretches(subject):
        at = 0
        while at < len(rounds):
            found = next((f for length in range(1, LONGEST_CYCLE + 1) if (f := _cycle(rounds, at, length))), None)
            if found is None:
                at += 1
                continue
            if not _others_at_work(subject, found):
                yield found
            at += len(found.calls)


def _others_at_work(subject: Subject, runaway: _Runaway) -> bool:
    """Whether calls of other agents lie between the rounds: then it may be waiting for them."""
    first, last = runaway.calls[0], runaway.calls[-1]
    agent = subject.steps[first].agent
    return any(subject.steps[n].agent != agent for n in range(first, last) if n in subject.steps)


def _stretches(subject: Subject) -> Iterator[list[_Round]]:
    """Per thread and turn, the calls that asked for tools, in order."""
    uses: dict[int, list[ToolUse]] = {}
    for use in subject.run.tool_uses:
        if use.call.kind != "server":
            uses.setdefault(use.call_number, []).append(use)
    for thread in subject.run.threads:
        stretch: list[_Round] = []
        for number in thread.calls:
            asked = uses.get(number)
            if asked is None or subject.steps[number].cause.kind in ("turn_start", "subagent"):
                yield stretch
                stretch = []
            if asked is not None:
                named = tuple((use.call.name, canonical(use.call.arguments)) for use in asked)
                stretch.append(_Round(number, named, tuple(_result(use) for use in asked)))
        yield stretch


def _cycle(rounds: Sequence[_Round], at: int, length: int) -> _Runaway | None:
    """The cycle of this length that begins here, if it goes round often enough."""
    end = at + length
    while end < len(rounds) and _alike(rounds[end - length], rounds[end], last=end == len(rounds) - 1):
        end += 1
    times = (end - at) // length
    if times < ROUNDS:
        return None
    own = rounds[at : at + times * length]
    names = [name for one in own[:length] for name, _ in one.asked]
    last = own[-1]
    values = {"arguments": last.asked[0][1], "result": own[0].got[0]}
    return _Runaway(tuple(one.call for one in own), length, times, ", ".join(names), values)


def _alike(one: _Round, other: _Round, last: bool) -> bool:
    """Whether a round repeats another; the last one of a recording may have no results yet."""
    if one.asked != other.asked:
        return False
    return one.got == other.got or (last and not any(other.got))
