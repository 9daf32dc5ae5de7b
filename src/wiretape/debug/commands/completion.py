"""Completion of command lines: commands, names and values of this run, members, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from wiretape.debug.command import DebugCommand
from wiretape.debug.commands.registry import COMMANDS, named
from wiretape.debug.commands.topics import TOPICS
from wiretape.debug.expression.expression import evaluate
from wiretape.debug.expression.names import NAMES
from wiretape.debug.expression.parsing import parse
from wiretape.debug.expression.values import members
from wiretape.debug.state import DebuggerState
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError

MOST = 100
_WORD = re.compile(r"[^\s=<>~!,()+*/]*$")
_BESIDE = re.compile(r"(?<!\w)(\w++)\s*(?:=|!=|~|!~)\s*[\"']?([^\s\"'=<>~!]*)$")
_FINISHES = ("stop", "tool_calls", "length", "content_filter", "pause", "error")


@dataclass(frozen=True, slots=True)
class Completion:
    """Candidates that can replace the text from `start` to the cursor."""

    start: int
    candidates: tuple[str, ...]


def complete(debugger: DebuggerState, line: str, cursor: int) -> Completion:
    head = line[:cursor]
    word, blank, rest = head.lstrip().partition(" ")
    if not blank:
        start = len(head) - len(word)
        return Completion(start, tuple(sorted(name for name in COMMANDS if name.startswith(word))))
    try:
        command = named(word)
    except UsageError:
        return Completion(cursor, ())
    start, candidates = _argument(debugger, command, head, rest)
    typed = head[start:]
    return Completion(start, tuple(dict.fromkeys(c for c in candidates if c.startswith(typed)))[:MOST])


def _argument(debugger: DebuggerState, command: DebugCommand, head: str, rest: str) -> tuple[int, Iterable[str]]:
    match = _WORD.search(head)
    assert match is not None
    start = match.start()
    match command.completes:
        case "expression":
            return _expression(debugger, head, start)
        case "call":
            return start, map(str, debugger.timeline.calls)
        case "place":
            turns = [f"turn {turn.number}" for turn in debugger.timeline.run.turns]
            return len(head) - len(rest), ["start", "end", *turns, *map(str, debugger.timeline.calls)]
        case "point":
            return start, [str(point.number) for point in debugger.breakpoints.points]
        case "held":
            return start, [str(one.number) for one in debugger.live.pending] if debugger.live is not None else ()
        case "checkpoint":
            return start, map(str, debugger.checkpoints)
        case "topic":
            return start, TOPICS
        case "command":
            return start, [*COMMANDS, "names", "expressions"]
        case _:
            return start, ()


def _expression(debugger: DebuggerState, head: str, start: int) -> tuple[int, Iterable[str]]:
    beside = _BESIDE.search(head)
    if beside is not None and (values := _values(debugger, beside[1])):
        return beside.start(2), values
    typed = head[start:]
    if "." in typed:
        return _members(debugger, typed, start)
    return start, NAMES


def _values(debugger: DebuggerState, name: str) -> list[str]:
    """The values of a name in this run."""
    run = debugger.timeline.run
    match name:
        case "tool" | "asks":
            return sorted({use.call.name for use in run.tool_uses})
        case "agent":
            return [agent.name if " " not in agent.name else f'"{agent.name}"' for agent in run.agents]
        case "finish":
            return list(_FINISHES)
        case "model":
            return sorted({step.call.model for step in run.steps if step.call.model})
        case "finding" | "lint":
            return sorted({finding.kind for finding in debugger.annotated.all_findings()})
        case "cache":
            verdicts = (debugger.annotated.cache_verdict(number) for number in debugger.timeline.calls)
            return sorted({verdict.word for verdict in verdicts if verdict is not None})
        case "call":
            return [str(number) for number in debugger.timeline.calls]
        case "turn":
            return [str(turn.number) for turn in run.turns]
        case _:
            return []


def _members(debugger: DebuggerState, typed: str, start: int) -> tuple[int, Iterable[str]]:
    """The members of the value before the last dot, at the current stop."""
    path, _, _ = typed.rpartition(".")
    stop = debugger.selected
    if stop.call is None and debugger.timeline.calls:
        stop = Stop("answer", debugger.timeline.calls[0])
    try:
        value = evaluate(parse(path), debugger.annotated, stop)
    except UsageError:
        return start, ()
    return start, [f"{path}.{name}" for name in members(value)]
