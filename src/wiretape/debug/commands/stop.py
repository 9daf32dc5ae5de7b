"""The commands that set and remove breakpoints and watchpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import partial

from wiretape.debug.breakpoints import Breakpoint
from wiretape.debug.command import DebugCommand
from wiretape.debug.commands.notes_and_forks import forget_checkpoint
from wiretape.debug.expression.expression import Expression, Literal, names_in
from wiretape.debug.expression.names import NAMES, name_of
from wiretape.debug.expression.parsing import parse
from wiretape.debug.replies import CommandReply, Sentence, reply, sentence
from wiretape.debug.state import DebuggerState
from wiretape.errors import UsageError
from wiretape.model.wording import numbered, plural

_NUMBERED = re.compile(r"([xX]?)(\d{1,9})(?=\s|$)")
_EXAMPLES = "break 3, break tool=schedule_event, break input>5000, break text~refund, break error"


def _set(debugger: DebuggerState, rest: str, once: bool) -> CommandReply:
    text = rest or _at_here(debugger)
    text = _expanded(debugger, text)
    point = debugger.breakpoints.add(text, parse(text), once=once)
    return CommandReply(parts=_confirmation(debugger, point))


def _at_here(debugger: DebuggerState) -> str:
    if debugger.here.call is None:
        raise UsageError(f"break takes a condition, such as: {_EXAMPLES}")
    return f"call={debugger.here.call}"


def _expanded(debugger: DebuggerState, text: str) -> str:
    """Expand short forms to conditions: `3` (call), `x3` (exchange), a quoted text, the name of a tool or an agent."""
    if match := _NUMBERED.match(text):
        number, name = int(match[2]), "exchange" if match[1] else "call"
        if name == "call" and debugger.live is None:
            debugger.timeline.step(number)
        return f"{name}={number}{text[match.end() :]}"
    if text[0] in "'\"":
        return f"text~{text}"
    word, blank, more = text.partition(" ")
    if name_of(word) is None and re.fullmatch(r"[\w.#:-]+", word) and (more[:2] in ("", "if", "an", "or")):
        return f"{_kind_of(debugger, word)}={word}{blank}{more}"
    return text


def _kind_of(debugger: DebuggerState, word: str) -> str:
    live = debugger.live
    runs = [debugger.timeline.run, *([live.expected] if live is not None and live.expected is not None else [])]
    if any(use.call.name == word for run in runs for use in run.tool_uses):
        return "tool"
    if any(agent.name == word for run in runs for agent in run.agents):
        return "agent"
    if word in ("not", "unknown", "true", "false"):
        raise UsageError(f"break takes a condition, such as: {_EXAMPLES}")
    there = [
        name for run in runs for name in (*(use.call.name for use in run.tool_uses), *(a.name for a in run.agents))
    ]
    there += NAMES
    near = get_close_matches(word, list(dict.fromkeys(there)), 2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(
        f"{word!r} is not a tool, an agent or a name of this {'tape' if live is None else 'run so far'}{hint} "
        f"({'info tools, info agents and' if live is None else f'write tool={word} or agent={word};'} "
        f"help names {'list' if live is None else 'lists'} them)"
    )


def _watch(debugger: DebuggerState, rest: str) -> CommandReply:
    if not rest:
        raise UsageError("watch takes an expression, such as: watch model, watch request.tools.length, watch system")
    expression = parse(rest)
    _must_vary(expression, rest)
    point = debugger.breakpoints.add(rest, expression, watch=True)
    return CommandReply(parts=_confirmation(debugger, point))


def _must_vary(expression: Expression, text: str) -> None:
    if isinstance(expression, Literal):
        raise UsageError(f"{text} is constant; watch a name, such as {', '.join(list(NAMES)[:4])}")


def _confirmation(debugger: DebuggerState, point: Breakpoint) -> tuple[Sentence, ...]:
    """The new breakpoint and the calls it applies to, so that a typing error is noticed."""
    places = debugger.breakpoints.places(point, debugger.annotated)
    kind = "watchpoint" if point.watch else "temporary breakpoint" if point.once else "breakpoint"
    number = len(dict.fromkeys(stop.call for stop in places))
    where = _where(debugger, point, [stop.call for stop in places if stop.call is not None])
    good = number or debugger.live is not None
    point_set = Sentence(f"{kind} {point.number}: {point.text} ({where})", "plain" if good else "bad")
    return (point_set, *(Sentence(words, "dim") for words in _unknown_names(debugger, point)))


def _unknown_names(debugger: DebuggerState, point: Breakpoint) -> Iterator[str]:
    """Warnings about names whose values are unknown in this debugger."""
    annotations, names = debugger.annotated.annotations, {name.name for name in names_in(point.expression)}
    if "drift" in names and annotations.drift is None:
        yield "drift is known only while a program is replayed"
    if "finding" in names and annotations.findings is None:
        yield "findings are unknown: this debugger was opened without them"


def _where(debugger: DebuggerState, point: Breakpoint, calls: Sequence[int]) -> str:
    found = list(dict.fromkeys(calls))
    verb = "changes" if point.watch else "true"
    if not found:
        return f"{verb} at no call {'of this tape' if debugger.live is None else 'so far'}"
    if len(found) <= 6:
        return f"{verb} at {numbered('call', found)}"
    return f"{verb} at {plural(len(found), 'call')}, first at call {found[0]}, last at call {found[-1]}"


def _numbers(debugger: DebuggerState, rest: str, command: str) -> list[int]:
    """Parse numbers of breakpoints; without any: all. Raises UsageError."""
    if not rest or rest == "all":
        return [point.number for point in debugger.breakpoints.points]
    numbers = []
    for word in re.split(r"[\s,]+", rest.removeprefix("breakpoints").strip()):
        if not (word.isascii() and word.isdecimal()):
            raise UsageError(f"{command} takes numbers of breakpoints (info breakpoints lists them), not {word!r}")
        numbers.append(debugger.breakpoints.find(int(word[:9])).number)
    return numbers


def _delete(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest.startswith("checkpoint"):
        return forget_checkpoint(debugger, rest.partition(" ")[2])
    gone = [debugger.breakpoints.remove(number) for number in dict.fromkeys(_numbers(debugger, rest, "delete"))]
    if not gone:
        return sentence("no breakpoint is set", "dim")
    return reply(*(Sentence(f"deleted {point.number}: {point.text}") for point in gone))


def _switch(debugger: DebuggerState, rest: str, on: bool) -> CommandReply:
    word = "enable" if on else "disable"
    points = [debugger.breakpoints.change(number, enabled=on) for number in _numbers(debugger, rest, word)]
    if not points:
        return sentence("no breakpoint is set", "dim")
    return reply(*(Sentence(f"{word}d {point.number}: {point.text}") for point in points))


COMMANDS = (
    DebugCommand(
        "break", "stopping", "stop where a condition is true",
        partial(_set, once=False), ("b", "br"), "[N | xN | TOOL | CONDITION]",
        "A number is a call. A condition compares names (help names) and combines them with and, or, not (help "
        "expressions). It is evaluated where all its names have values: before the request, after the answer, or at "
        "the tool. Without an argument: at this call.",
        ("break 3", "break tool=schedule_event", "break agent=root and input>5000", "break cached<0.5",
         "break finish=length", "break text~refund", "break finding", "break drift", "break error"),
        "expression",
    ),
    DebugCommand(
        "tbreak", "stopping", "stop once where a condition is true",
        partial(_set, once=True), ("tb",), "[N | xN | TOOL | CONDITION]",
        "Like break, but removed when it is hit.", ("tbreak error",), "expression",
    ),
    DebugCommand(
        "watch", "stopping", "stop where a value changes", _watch, ("wa",), "EXPRESSION",
        "Compares each call with the previous call of the same agent.",
        ("watch model", "watch system", "watch request.tools.length"), "expression",
    ),
    DebugCommand(
        "delete", "stopping", "remove breakpoints and watchpoints", _delete, ("del", "clear"), "[N…]",
        "Without numbers: all. delete checkpoint N removes a checkpoint.", ("delete 1", "delete"), "point",
    ),
    DebugCommand(
        "enable", "stopping", "turn breakpoints on again",
        partial(_switch, on=True), ("en",), "[N…]", "", ("enable 1",), "point",
    ),
    DebugCommand(
        "disable", "stopping", "turn breakpoints off without deleting them",
        partial(_switch, on=False), ("dis",), "[N…]", "",
        ("disable 1",), "point",
    ),
)  # fmt: skip
