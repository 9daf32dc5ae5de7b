"""The lists of `info TOPIC`, and the overview of a tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wiretape.debug.annotations import CallFinding
from wiretape.debug.commands.live import live_program, pending_listing
from wiretape.debug.figures import describe_stop, first_line
from wiretape.debug.outline import Mark
from wiretape.debug.replies import Listing, ListingRow, Part, Sentence, listing
from wiretape.debug.state import DebuggerState
from wiretape.debug.timeline import StackFrame
from wiretape.model.run import Step, ToolUse
from wiretape.model.wording import count_text, duration_text, listed, plural

_SIGNS: dict[Mark, str] = {"breakpoint": "b", "disabled": "b", "note": "n", "finding": "!", "error": "x"}


def _breakpoints(debugger: DebuggerState) -> tuple[Part, ...]:
    rows = []
    for point in debugger.breakpoints.points:
        kind = "watch" if point.watch else "tbreak" if point.once else "break"
        calls = {stop.call for stop in debugger.breakpoints.places(point, debugger.annotated)}
        cells = (str(point.number), kind, "yes" if point.enabled else "no", str(len(calls)), str(point.hits))
        rows.append(ListingRow((*cells, point.text)))
    return (listing("#>|kind|on|calls>|hits>|where*", rows, empty="no breakpoint is set"),)


def _checkpoints(debugger: DebuggerState) -> tuple[Part, ...]:
    rows = [
        ListingRow((str(number), describe_stop(debugger.timeline, stop)), here=stop == debugger.here)
        for number, stop in debugger.checkpoints.items()
    ]
    return (listing("#>|place*", rows, empty="no checkpoint is set; checkpoint sets one"),)


def notes_listing(debugger: DebuggerState) -> Listing:
    rows = [
        ListingRow(
            (str(number), describe_stop(debugger.timeline, note.stop), note.text), here=note.stop == debugger.here
        )
        for number, note in enumerate(debugger.notes, 1)
    ]
    return listing("#>|place*|note*", rows, empty="no notes; note TEXT writes one")


def _notes(debugger: DebuggerState) -> tuple[Part, ...]:
    return (notes_listing(debugger),)


def _findings(debugger: DebuggerState) -> tuple[Part, ...]:
    if debugger.annotated.annotations.findings is None:
        return (Sentence("findings are unknown: this debugger was opened without them", "dim"),)
    here = debugger.here.call
    findings = sorted(debugger.annotated.all_findings(), key=lambda finding: (finding.call is None, finding.call or 0))
    rows = tuple(
        ListingRow(
            (str(finding.call) if finding.call is not None else "", finding.severity, finding_name(finding)),
            here=finding.call is not None and finding.call == here,
            below=tuple(finding_lines(finding)),
        )
        for finding in findings
    )
    hint = (Sentence("goto N goes to the call; break finding=KIND stops at each", "dim"),) if rows else ()
    return (listing("call>|level|finding*", rows, empty="no findings"), *hint)


def finding_name(finding: CallFinding) -> str:
    return f"{finding.kind} {finding.id}".strip() + (" (estimate)" if finding.estimate else "")


def finding_lines(finding: CallFinding) -> Iterator[str]:
    """The lines of a finding: its text, its values, the next step."""
    yield finding.text
    yield from (f"{label}: {value}" for label, value in finding.values)
    if finding.fix:
        yield f"→ {finding.fix}"


def _agents(debugger: DebuggerState) -> tuple[Part, ...]:
    run = debugger.timeline.run
    rows = []
    for agent in run.agents:
        calls = [step.call.number for step in run.steps if step.agent == agent.number]
        parent = run.agents[agent.parent].name if agent.parent is not None else ""
        started = f"call {agent.started_by}" if agent.started_by is not None else ""
        rows.append(ListingRow((agent.name, parent, started, str(len(calls)), _extent(calls), agent.basis or "")))
    return (listing("agent*|of*|started by|calls>|from–to|known by", rows),)


def _turns(debugger: DebuggerState) -> tuple[Part, ...]:
    rows = []
    for turn in debugger.timeline.run.turns:
        numbers = [step.call.number for step in turn.steps]
        cells = (str(turn.number), str(len(numbers)), _extent(numbers), first_line(turn.user, 200))
        rows.append(ListingRow(cells, here=debugger.here.call in numbers))
    return (listing("turn>|calls>|from–to|user*", rows, empty="no turns"),)


def _extent(calls: Sequence[int]) -> str:
    return f"{calls[0]}–{calls[-1]}" if len(calls) > 1 else listed(calls)


def _tools(debugger: DebuggerState) -> tuple[Part, ...]:
    uses: dict[str, list[ToolUse]] = {}
    for use in debugger.timeline.run.tool_uses:
        uses.setdefault(use.call.name, []).append(use)
    rows = []
    for name, own in uses.items():
        errors = sum(1 for use in own if use.result is not None and use.result.is_error)
        calls = list(dict.fromkeys(str(use.call_number) for use in own))
        rows.append(ListingRow((name, str(len(own)), str(errors), listed(calls, 8))))
    return (listing("tool*|uses>|errors>|in calls*", rows, empty="no tool was called"),)


def _tape(debugger: DebuggerState) -> tuple[Part, ...]:
    run, annotations = debugger.timeline.run, debugger.annotated.annotations
    counts = (
        plural(len(run.steps), "call"),
        plural(len(run.turns), "turn"),
        plural(len(run.agents), "agent"),
        plural(len(run.tool_uses), "tool call"),
    )
    lines = [annotations.name, ", ".join(counts)]
    if run.side_calls:
        lines.append(f"{plural(len(run.side_calls), 'side call')} outside the loop")
    if run.other_exchanges:
        verb = "is not a model call" if len(run.other_exchanges) == 1 else "are not model calls"
        lines.append(f"{plural(len(run.other_exchanges), 'exchange')} that {verb}")
    if annotations.started is not None:
        lines.append(f"started {annotations.started.strftime('%Y-%m-%d %H:%M:%S %Z').strip()}")
    return tuple(Sentence(line) for line in lines)


def backtrace_listing(debugger: DebuggerState, only: int | None = None) -> Listing:
    """The backtrace, or one frame of it."""
    assert debugger.here.call is not None
    frames = debugger.timeline.frames(debugger.here.call)
    rows = [_frame_row(debugger, frame) for frame in frames if only is None or frame.number == only]
    return listing("#>|agent*|call>|at*", rows)


def _frames(debugger: DebuggerState) -> tuple[Part, ...]:
    debugger.annotated.number(debugger.here)  # a frame needs a call
    return (backtrace_listing(debugger),)


def _frame_row(debugger: DebuggerState, frame: StackFrame) -> ListingRow:
    agent = debugger.timeline.run.agents[frame.activation.agent].name
    agent += " (side call)" if frame.activation.side else ""
    if frame.number == 0:
        at = describe_stop(debugger.timeline, debugger.here).partition(", ")[2]
    else:
        at = f"waits for its tool {frame.tool.call.name}" if frame.tool is not None else "started the frame below"
    return ListingRow((f"#{frame.number}", agent, str(frame.call), at), here=frame.number == debugger.frame)


def calls_listing(debugger: DebuggerState, calls: Sequence[int]) -> Listing:
    """A row for each call: agent, tokens, time, and the tools it called or how it ended."""
    marked = debugger.marks()
    here, total = debugger.selected.call, len(debugger.timeline.calls)
    rows = []
    for number in calls:
        step = debugger.timeline.step(number)
        keys = [("call", number, 0), *(("tool", number, use.index) for use in debugger.timeline.uses(number))]
        signs = "".join(dict.fromkeys(_SIGNS[m] for key in keys for m in sorted(marked.get(key, ())) if m in _SIGNS))
        rows.append(ListingRow((signs, str(number), *_call_cells(debugger, step)), here=number == here))
    columns = "|call>|agent*|in>|cached>|out>|time>|answer*"
    title = f"calls {calls[0]} to {calls[-1]} of {total}" if len(calls) < total else ""
    legend = {"b": "b breakpoint", "n": "n note", "!": "! finding", "x": "x error"}
    used = [word for sign, word in legend.items() if any(sign in row.cells[0] for row in rows)]
    if used and rows:
        rows[-1] = ListingRow(rows[-1].cells, rows[-1].here, (", ".join(used),))
    return listing(columns, rows, title)


def _call_cells(debugger: DebuggerState, step: Step) -> Iterator[str]:
    call, usage = step.call, step.call.usage
    depth = debugger.timeline.depth(call.number)
    yield "  " * max(0, depth - 1) + ("└ " if depth else "") + debugger.timeline.run.agents[step.agent].name
    for field in ("input", "cached", "output"):
        yield count_text(getattr(usage, field) if usage is not None else None)
    yield duration_text(call.ended_at - call.at if call.ended_at is not None else None)
    yield outcome(step)


def outcome(step: Step) -> str:
    """The tools that a call's answer calls, or how the call ended."""
    response = step.call.response
    if response is None:
        return f"no answer ({step.call.ended or 'still open'})"
    if response.error is not None or response.status >= 400:
        return f"error {response.status}"
    if step.call.tool_calls:
        return "→ " + ", ".join(tool.name for tool in step.call.tool_calls)
    return response.finish or ("done" if response.complete else "cut")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of `info`."""

    help: str
    show: Callable[[DebuggerState], tuple[Part, ...]]
    aliases: tuple[str, ...] = ()


def _held(debugger: DebuggerState) -> tuple[Part, ...]:
    return (pending_listing(debugger, live_program(debugger, "info held")),)


TOPICS: dict[str, Topic] = {
    "breakpoints": Topic("what stops a run", _breakpoints, ("b", "break", "watchpoints", "watch")),
    "checkpoints": Topic("places to go back to", _checkpoints),
    "notes": Topic("your notes", _notes),
    "findings": Topic("lint findings", _findings, ("lint", "f")),
    "agents": Topic("agents, and who started whom", _agents),
    "turns": Topic("the user's messages", _turns),
    "tools": Topic("tools that were called", _tools),
    "frame": Topic("who called whom", _frames, ("stack", "frames")),
    "held": Topic("held calls of a running program", _held),
    "tape": Topic("what the tape holds", _tape, ("program", "file")),
}


def overview(debugger: DebuggerState) -> tuple[Part, ...]:
    """What the tape contains and the user's messages; the number of findings once they are computed."""
    turns = TOPICS["turns"].show(debugger) if debugger.timeline.run.turns else ()
    return (*TOPICS["tape"].show(debugger), *_finding_count(debugger), *turns)


def _finding_count(debugger: DebuggerState) -> tuple[Part, ...]:
    if not debugger.judged or debugger.annotated.annotations.findings is None:
        return ()
    found = len(debugger.annotated.all_findings())
    return (Sentence(f"{plural(found, 'finding')} about this run: info findings lists them", "bad"),) if found else ()
