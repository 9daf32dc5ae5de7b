"""The commands that look at the current stop: values, context, cache, differences, callers."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta

from wiretape.debug.command import DebugCommand
from wiretape.debug.commands.topics import TOPICS, backtrace_listing, calls_listing, overview
from wiretape.debug.detail import model_context
from wiretape.debug.difference import OtherTape, compare_calls, counterpart, divergence
from wiretape.debug.expression.expression import UNKNOWN, evaluate
from wiretape.debug.expression.names import found_by_jsonpath
from wiretape.debug.expression.parsing import parse
from wiretape.debug.expression.values import to_json
from wiretape.debug.figures import describe_stop
from wiretape.debug.replies import Arrival, CommandReply, ListingRow, Sentence, Value, listing, reply, sentence
from wiretape.debug.state import DebuggerState
from wiretape.errors import UsageError
from wiretape.model.wording import count_text, duration_text

_PRINTS = "print usage, print request.messages[-1], print response.blocks[0], print $.request.messages[*].role"


def _print(debugger: DebuggerState, rest: str) -> CommandReply:
    if not rest:
        raise UsageError(f"print takes an expression, such as: {_PRINTS} (help names lists the names)")
    stop = debugger.selected
    if rest.startswith("$"):
        return reply(Value(rest, found_by_jsonpath(debugger.annotated, stop, rest)))
    value = evaluate(parse(rest), debugger.annotated, stop)
    return reply(Value(rest, None if value is UNKNOWN else to_json(value)))


def _show(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest not in ("", "full"):
        raise UsageError(f"show takes full or nothing; to show another stop: goto {rest}")
    stop = debugger.selected
    detail = debugger.detail() if stop.call is not None else None
    arrived = Arrival(detail, place=stop.phase, full=rest == "full")
    return reply(arrived, *(overview(debugger) if stop.phase == "start" else ()))


_RANGE = re.compile(r"(\d{1,6})\s*(?:-|,|\.\.)\s*(\d{1,6})")


def _context(debugger: DebuggerState, rest: str) -> CommandReply:
    words = rest.split()
    full = "full" in words
    text = " ".join(word for word in words if word != "full")
    only = None
    if match := _RANGE.fullmatch(text):
        only = slice(int(match[1]), int(match[2]) + 1)
    elif text.isascii() and text.isdecimal() and len(text) < 7 and int(text):
        only = slice(-int(text), None)
    elif text == "new":
        seen = model_context(debugger.annotated, debugger.selected, None, full)
        first = next((place for place, one in enumerate(seen.shown) if one.new), seen.total)
        only = slice(first, None)
    elif text:
        raise UsageError(
            f"context takes full, new, a number of last entries (context 5) or a range (context 2-4), not {text!r}"
        )
    return reply(model_context(debugger.annotated, debugger.selected, only, full))


# -- diff --------------------------------------------------------------------------------------------------------------


def _diff(debugger: DebuggerState, rest: str) -> CommandReply:
    words = rest.rsplit(None, 1) if rest.count(" ") else [rest]
    if debugger.selected.call is None and rest and not all(map(_is_number, words)):
        return _diff_runs(debugger, _unquoted(rest))
    call = debugger.annotated.call(debugger.selected)
    if not rest:
        return _diff_before(debugger, call.number)
    if _is_number(rest):
        other = debugger.timeline.step(int(rest)).call
        return reply(compare_calls(other, call, (f"call {other.number}", f"call {call.number}")))
    if len(words) == 2 and all(map(_is_number, words)):
        first, second = (debugger.timeline.step(int(word)).call for word in words)
        return reply(compare_calls(first, second, (f"call {first.number}", f"call {second.number}")))
    number = int(words[1]) if len(words) == 2 and _is_number(words[1]) else None
    return _diff_tape(debugger, words[0] if number is not None else rest, number)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10


def _diff_before(debugger: DebuggerState, number: int) -> CommandReply:
    before = debugger.timeline.thread_before(number)
    if before is None:
        before = debugger.timeline.call_before(number)
        if before is None:
            raise UsageError(f"call {number} is the first of its thread; diff N compares it with call N")
    first, second = debugger.timeline.step(before).call, debugger.timeline.step(number).call
    return reply(compare_calls(first, second, (f"call {before}", f"call {number}")))


def _diff_runs(debugger: DebuggerState, path: str) -> CommandReply:
    """Compare two whole runs: at the ends of the tape, no call is selected."""
    return sentence(divergence(debugger.timeline.run, OtherTape(path, debugger.annotated.annotations.open_tape(path))))


def _diff_tape(debugger: DebuggerState, path: str, number: int | None) -> CommandReply:
    path = _unquoted(path)
    other = OtherTape(path, debugger.annotated.annotations.open_tape(path))
    here = debugger.annotated.number(debugger.selected)
    theirs, note = counterpart(debugger.timeline, here, other, number)
    names = (f"call {here}", f"call {theirs.number} of {path}")
    return reply(compare_calls(debugger.timeline.step(here).call, theirs, names, note))


def _unquoted(path: str) -> str:
    """A path without the quotes around it."""
    return path[1:-1] if len(path) > 2 and path[0] == path[-1] and path[0] in "'\"" else path


# -- around ------------------------------------------------------------------------------------------------------------

PAGE = 10


def _list(debugger: DebuggerState, rest: str) -> CommandReply:
    calls = debugger.timeline.calls
    if not calls:
        raise UsageError("the tape has no model calls")
    first, last = _window(debugger, rest, len(calls))
    debugger.listed = (first, last)
    return reply(calls_listing(debugger, calls[first:last]))


def _window(debugger: DebuggerState, rest: str, count: int) -> tuple[int, int]:
    """The range of calls to list: around the current one, then the calls after them; `-` lists the calls before."""
    if match := _RANGE.fullmatch(rest):
        first, last = int(match[1]) - 1, int(match[2])
        if not 0 <= first < min(last, count):
            raise UsageError(f"list {rest}: the tape has {debugger.timeline.extent()}")
        return first, min(last, count)
    if rest == "-":
        end = debugger.listed[0] if debugger.listed else _here(debugger)
        return (max(0, end - PAGE), end) if end > 0 else (0, min(count, PAGE))
    if rest and not _is_number(rest):
        raise UsageError(f"list takes a call, a range (list 2-4) or - for the calls before, not {rest!r}")
    if rest:
        debugger.timeline.step(int(rest))
        centre = debugger.timeline.calls.index(int(rest))
    elif debugger.listed and debugger.listed[1] < count:
        return debugger.listed[1], min(count, debugger.listed[1] + PAGE)
    else:
        centre = _here(debugger)
    first = max(0, min(centre - PAGE // 2, count - PAGE))
    return first, min(count, first + PAGE)


def _here(debugger: DebuggerState) -> int:
    number = debugger.selected.call
    if number is None:
        return 0 if debugger.here.phase == "start" else len(debugger.timeline.calls)
    return debugger.timeline.calls.index(number)


def _backtrace(debugger: DebuggerState, rest: str) -> CommandReply:
    debugger.annotated.number(debugger.here)
    return reply(backtrace_listing(debugger))


def _up(debugger: DebuggerState, rest: str) -> CommandReply:
    return _select(debugger, debugger.frame + _steps(rest, "up"))


def _down(debugger: DebuggerState, rest: str) -> CommandReply:
    return _select(debugger, debugger.frame - _steps(rest, "down"))


def _steps(rest: str, command: str) -> int:
    if rest and not _is_number(rest):
        raise UsageError(f"{command} takes a number of frames, not {rest!r}")
    return int(rest or 1)


def _frame(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest and not _is_number(rest):
        raise UsageError(f"frame takes the number of a frame (bt lists them), not {rest!r}")
    return _select(debugger, int(rest) if rest else debugger.frame)


def _select(debugger: DebuggerState, frame: int) -> CommandReply:
    frames = debugger.timeline.frames(debugger.annotated.number(debugger.here))
    if frame < 0:
        raise UsageError("this is the innermost frame: down has no frame to go to")
    if frame >= len(frames):
        raise UsageError(f"the outermost frame is {len(frames) - 1}: a root agent has no caller")
    debugger.frame = frame
    return CommandReply(
        parts=(backtrace_listing(debugger, only=frame), Arrival(debugger.detail(), place=debugger.selected.phase))
    )


def _when(debugger: DebuggerState, rest: str) -> CommandReply:
    line, here = debugger.timeline, debugger.here
    words = [describe_stop(line, here), f"stop {debugger.at} of {line.end}"]
    at = _time(debugger)
    if at is not None:
        words.append(f"{duration_text(at)} into the tape")
        started = debugger.annotated.annotations.started
        if started is not None:
            words.append((started + timedelta(milliseconds=at)).strftime("%Y-%m-%d %H:%M:%S %Z").strip())
    return sentence(" · ".join(words))


def _time(debugger: DebuggerState) -> int | None:
    here = debugger.here
    if here.call is None:
        return 0 if here.phase == "start" else None
    call = debugger.annotated.call(here)
    return call.at if here.phase == "request" else call.ended_at


def _info(debugger: DebuggerState, rest: str) -> CommandReply:
    if not rest:
        rows = tuple(ListingRow((f"info {name}", topic.help)) for name, topic in TOPICS.items())
        return reply(listing("topic|what it lists*", rows))
    word = rest.split()[0].lower()
    found = [name for name in TOPICS if name.startswith(word) or word in TOPICS[name].aliases]
    exact = [name for name in found if name == word or word in TOPICS[name].aliases]
    if len(exact or found) != 1:
        raise UsageError(f"info takes {', '.join(found or TOPICS)}; {word!r} is {'ambiguous' if found else 'unknown'}")
    return CommandReply(parts=TOPICS[(exact or found)[0]].show(debugger))


def _cache(debugger: DebuggerState, rest: str) -> CommandReply:
    if rest:
        raise UsageError(f"cache takes no argument: it shows the current call (goto {rest} changes it)")
    here = debugger.annotated.number(debugger.selected)
    thread = debugger.timeline.run.threads[debugger.timeline.step(here).thread]
    calls = [number for number in thread.calls if debugger.timeline.has(number)] or [here]
    before = debugger.timeline.thread_before(calls[0])  # the call that the thread forked from
    rows = [_row(debugger, number, here) for number in ([before] if before is not None else []) + calls]
    columns = "call>|input>|cached>|hit>"
    verdict = debugger.annotated.cache_verdict(here)
    broken = verdict is not None and verdict.word == "broken"
    more = f"wiretape cache {shlex.quote(debugger.annotated.annotations.name)}"
    more += f" --call {here} shows both texts at the break" if broken else " shows all calls"
    table = listing(columns + "|cache*", rows)
    return reply(table, *((Sentence(more, "dim"),) if debugger.live is None else ()))


def _row(debugger: DebuggerState, number: int, here: int) -> ListingRow:
    usage, verdict = debugger.timeline.step(number).call.usage, debugger.annotated.cache_verdict(number)
    total, cached = (usage.input, usage.cached) if usage is not None else (None, None)
    hit = "?" if cached is None or not total else f"{cached / total:.0%}"
    word = verdict.word.replace("_", " ") if verdict is not None else "unknown"
    below = (verdict.text,) if verdict is not None and number == here else ()
    return ListingRow((str(number), count_text(total), count_text(cached), hit, word), here=number == here, below=below)


COMMANDS = (
    DebugCommand(
        "show", "looking", "show the current stop again", _show, ("here", "."), "[full]",
        "full: show long texts in full.", ("show full",),
    ),
    DebugCommand(
        "print", "looking", "print a value: a path, a calculation or JSONPath", _print, ("p", "inspect"),
        "EXPRESSION | $JSONPATH",
        "help names lists the names. wire.request.body is the request as it crossed the wire. A path that begins with "
        "$ is JSONPath (RFC 9535) over all names.",
        ("print usage", "print request.messages[-1]", "print response.blocks[0].arguments.title",
         "print cached / input", "print $.request.messages[*].role"),
        "expression",
    ),
    DebugCommand(
        "context", "looking", "show all that the model saw, what was new and what was cached", _context, ("ctx",),
        "[full | new | N | FROM-TO]",
        "N: the last N entries. Which entries were cached is estimated from their lengths: "
        "providers report tokens only.",
        ("context", "context new", "context 5 full"),
    ),
    DebugCommand(
        "diff", "looking", "compare with the previous call, another call, or another tape", _diff, (),
        "[N | N M | TAPE [N]]",
        "Without an argument: with the previous call of the thread. With a tape: with its call N, or its call of the "
        "same agent and order; it also shows where the tapes diverge. At the start it shows only that.",
        ("diff", "diff 1", "diff other.tape"), "call",
    ),
    DebugCommand(
        "list", "looking", "list the calls around this one", _list, ("l", "ls"), "[N | FROM-TO | -]",
        "Again: the calls after those; list -: the calls before.", ("list", "list 1-20", "list -"), "call",
    ),
    DebugCommand(
        "backtrace", "looking", "show who called whom, from here to the root agent", _backtrace, ("bt", "where", "w"),
        examples=("bt",),
    ),
    DebugCommand("up", "looking", "select the caller's frame", _up, ("u",), "[N]",
            "print, context, diff and finish then use that frame, until the next move.", ("up",)),
    DebugCommand("down", "looking", "select the frame that was called", _down, ("d",), "[N]", examples=("down",)),
    DebugCommand("frame", "looking", "select a frame of the backtrace", _frame, ("f",), "[N]", examples=("frame 1",)),
    DebugCommand("when", "looking", "show where and when this is", _when, examples=("when",)),
    DebugCommand(
        "info", "looking", "list breakpoints, agents, findings, …", _info, ("i",), "[TOPIC]",
        "", ("info breakpoints", "info findings"), "topic",
    ),
    DebugCommand(
        "cache", "looking", "show what the prompt cache served of this call, and why not more", _cache, (), "",
        "Lists the calls of its thread, with the reason for this one. context shows which messages were served.",
        ("cache",),
    ),
)  # fmt: skip
