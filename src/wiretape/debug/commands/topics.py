"""The lists that `info TOPIC` and its kin show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wiretape.debug.annotations import Remark
from wiretape.debug.commands.live import held_listing, live_of
from wiretape.debug.figures import first_line, place_words, short, span
from wiretape.debug.outline import Mark
from wiretape.debug.replies import Column, Listing, Part, Row, Said
from wiretape.debug.state import DebuggerState
from wiretape.debug.timeline import Frame
from wiretape.model.run import Step, ToolUse
from wiretape.model.wording import listed, plural

_SIGNS: dict[Mark, str] = {"breakpoint": "b", "disabled": "b", "note": "n", "finding": "!", "error": "x"}


def _breakpoints(debugger: DebuggerState) -> tuple[Part, ...]:
    rows = []
    for point in debugger.breakpoints.points:
        kind = "watch" if point.watch else "tbreak" if point.once else "break"
        calls = {stop.call for stop in debugger.breakpoints.places(point, debugger.world)}
        cells = (str(point.number), kind, "yes" if point.enabled else "no", str(len(calls)), str(point.hits))
        rows.append(Row((*cells, point.text)))
    columns = (Column("#", True), Column("kind"), Column("on"), Column("calls", True), Column("hits", True))
    return (Listing((*columns, Column("where", wide=True)), tuple(rows), empty="no breakpoint is set"),)


def _checkpoints(debugger: DebuggerState) -> tuple[Part, ...]:
    rows = [
        Row((str(number), place_words(debugger.line, stop)), here=stop == debugger.here)
        for number, stop in debugger.checkpoints.items()
    ]
    columns = (Column("#", True), Column("place", wide=True))
    return (Listing(columns, tuple(rows), empty="no checkpoint; checkpoint makes one"),)


def notes_listing(debugger: DebuggerState) -> Listing:
    rows = [
        Row((str(number), place_words(debugger.line, note.stop), note.text), here=note.stop == debugger.here)
        for number, note in enumerate(debugger.notes, 1)
    ]
    columns = (Column("#", True), Column("place", wide=True), Column("note", wide=True))
    return Listing(columns, tuple(rows), empty="no notes; note TEXT writes one")


def _notes(debugger: DebuggerState) -> tuple[Part, ...]:
    return (notes_listing(debugger),)


def _findings(debugger: DebuggerState) -> tuple[Part, ...]:
    if debugger.world.known.findings is None:
        return (Said("findings are unknown: nothing that judges was handed to this debugger", "dim"),)
    here = debugger.here.call
    remarks = sorted(debugger.world.all_remarks(), key=lambda remark: (remark.call is None, remark.call or 0))
    rows = tuple(
        Row(
            (str(remark.call) if remark.call is not None else "", remark.severity, finding_name(remark)),
            here=remark.call is not None and remark.call == here,
            below=tuple(finding_words(remark)),
        )
        for remark in remarks
    )
    hint = (Said("goto N goes to the call; break finding=KIND stops at each", "dim"),) if rows else ()
    return (
        Listing((Column("call", True), Column("level"), Column("finding", wide=True)), rows, empty="nothing was found"),
        *hint,
    )


def finding_name(remark: Remark) -> str:
    return f"{remark.kind} {remark.id}".strip() + (" (estimate)" if remark.estimate else "")


def finding_words(remark: Remark) -> Iterator[str]:
    """What a finding says: the sentence, the values, the next step."""
    yield remark.text
    yield from (f"{label}: {value}" for label, value in remark.values)
    if remark.mend:
        yield f"→ {remark.mend}"


def _agents(debugger: DebuggerState) -> tuple[Part, ...]:
    run = debugger.line.run
    rows = []
    for agent in run.agents:
        calls = [step.call.number for step in run.steps if step.agent == agent.number]
        parent = run.agents[agent.parent].name if agent.parent is not None else ""
        started = f"call {agent.started_by}" if agent.started_by is not None else ""
        span_of = f"{calls[0]}–{calls[-1]}" if len(calls) > 1 else str(calls[0]) if calls else ""
        rows.append(Row((agent.name, parent, started, str(len(calls)), span_of, agent.basis or "")))
    columns = (Column("agent", wide=True), Column("of", wide=True), Column("started by"), Column("calls", True))
    return (Listing((*columns, Column("from–to"), Column("known by")), tuple(rows)),)


def _turns(debugger: DebuggerState) -> tuple[Part, ...]:
    rows = []
    for turn in debugger.line.run.turns:
        numbers = [step.call.number for step in turn.steps]
        reach = f"{numbers[0]}–{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
        here = debugger.here.call in numbers
        rows.append(Row((str(turn.number), str(len(numbers)), reach, first_line(turn.user, 200)), here))
    columns = (Column("turn", True), Column("calls", True), Column("from–to"), Column("user", wide=True))
    return (Listing(columns, tuple(rows), empty="no turns"),)


def _tools(debugger: DebuggerState) -> tuple[Part, ...]:
    uses: dict[str, list[ToolUse]] = {}
    for use in debugger.line.run.tool_uses:
        uses.setdefault(use.call.name, []).append(use)
    rows = []
    for name, own in uses.items():
        errors = sum(1 for use in own if use.result is not None and use.result.is_error)
        calls = list(dict.fromkeys(str(use.call_number) for use in own))
        rows.append(Row((name, str(len(own)), str(errors), listed(calls, 8))))
    columns = (Column("tool", wide=True), Column("uses", True), Column("errors", True), Column("in calls", wide=True))
    return (Listing(columns, tuple(rows), empty="no tool was called"),)


def _tape(debugger: DebuggerState) -> tuple[Part, ...]:
    run, known = debugger.line.run, debugger.world.known
    held = (
        plural(len(run.steps), "call"),
        plural(len(run.turns), "turn"),
        plural(len(run.agents), "agent"),
        plural(len(run.tool_uses), "tool call"),
    )
    said = [known.name, ", ".join(held)]  # a path may be long: the figures stay in one piece
    if run.side_calls:
        said.append(f"{plural(len(run.side_calls), 'side call')} outside the loop")
    if run.other_exchanges:
        said.append(f"{plural(len(run.other_exchanges), 'exchange')} that are no model calls")
    if known.started is not None:
        said.append(f"started {known.started.strftime('%Y-%m-%d %H:%M:%S %Z').strip()}")
    return tuple(Said(line) for line in said)


def backtrace_listing(debugger: DebuggerState, only: int | None = None) -> Listing:
    """Who called whom; with `only`, that frame alone."""
    assert debugger.here.call is not None
    frames = debugger.line.frames(debugger.here.call)
    rows = [_frame_row(debugger, frame) for frame in frames if only is None or frame.number == only]
    return Listing((Column("#", True), Column("agent", wide=True), Column("call", True), Column("at", wide=True)),
                   tuple(rows))  # fmt: skip


def _frames(debugger: DebuggerState) -> tuple[Part, ...]:
    debugger.world.number(debugger.here)  # a frame needs a call
    return (backtrace_listing(debugger),)


def _frame_row(debugger: DebuggerState, frame: Frame) -> Row:
    agent = debugger.line.run.agents[frame.activation.agent].name + (" (side call)" if frame.activation.side else "")
    if frame.number == 0:
        at = place_words(debugger.line, debugger.here).partition(", ")[2]
    else:
        at = f"waits for its tool {frame.tool.call.name}" if frame.tool is not None else "started the frame below"
    return Row((f"#{frame.number}", agent, str(frame.call), at), here=frame.number == debugger.frame)


def calls_listing(debugger: DebuggerState, calls: Sequence[int]) -> Listing:
    """Calls, one a row: who, tokens, what they asked for or how they ended."""
    marked = debugger.marks()
    here, total = debugger.selected.call, len(debugger.line.calls)
    rows = []
    for number in calls:
        step = debugger.line.step(number)
        keys = [("call", number, 0), *(("tool", number, use.index) for use in debugger.line.uses(number))]
        signs = "".join(dict.fromkeys(_SIGNS[m] for key in keys for m in sorted(marked.get(key, ())) if m in _SIGNS))
        rows.append(Row((signs, str(number), *_call_cells(debugger, step)), here=number == here))
    columns = (Column(""), Column("call", True), Column("agent", wide=True), Column("in", True), Column("cached", True),
               Column("out", True), Column("time", True), Column("answer", wide=True))  # fmt: skip
    title = f"calls {calls[0]} to {calls[-1]} of {total}" if len(calls) < total else ""
    legend = {"b": "b breakpoint", "n": "n note", "!": "! finding", "x": "x error"}
    used = [word for sign, word in legend.items() if any(sign in row.cells[0] for row in rows)]
    if used and rows:
        rows[-1] = Row(rows[-1].cells, rows[-1].here, (", ".join(used),))
    return Listing(columns, tuple(rows), title)


def _call_cells(debugger: DebuggerState, step: Step) -> Iterator[str]:
    call, usage = step.call, step.call.usage
    depth = debugger.line.depth(call.number)
    yield "  " * max(0, depth - 1) + ("└ " if depth else "") + debugger.line.run.agents[step.agent].name
    for field in ("input", "cached", "output"):
        yield short(getattr(usage, field) if usage is not None else None)
    yield span(call.ended_at - call.at if call.ended_at is not None else None)
    yield ending(step)


def ending(step: Step) -> str:
    """What a call asked for, or how it ended."""
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
    help: str
    show: Callable[[DebuggerState], tuple[Part, ...]]
    aliases: tuple[str, ...] = ()


def _held(debugger: DebuggerState) -> tuple[Part, ...]:
    return (held_listing(debugger, live_of(debugger, "info held")),)


TOPICS: dict[str, Topic] = {
    "breakpoints": Topic("what stops a run", _breakpoints, ("b", "break", "watchpoints", "watch")),
    "checkpoints": Topic("places to go back to", _checkpoints),
    "notes": Topic("what was written down", _notes),
    "findings": Topic("what deserves a look", _findings, ("lint", "f")),
    "agents": Topic("who spoke, and who started whom", _agents),
    "turns": Topic("the user's messages", _turns),
    "tools": Topic("which tools were called", _tools),
    "frame": Topic("who called whom", _frames, ("stack", "frames")),
    "held": Topic("which calls of a program at work wait", _held),
    "tape": Topic("what the tape holds", _tape, ("program", "file")),
}


def overview(debugger: DebuggerState) -> tuple[Part, ...]:
    """What the tape holds, and the user's messages. What deserves a look is counted once that is known."""
    turns = TOPICS["turns"].show(debugger) if debugger.line.run.turns else ()
    return (*TOPICS["tape"].show(debugger), *_finding_count(debugger), *turns)


def _finding_count(debugger: DebuggerState) -> tuple[Part, ...]:
    if not debugger.judged or debugger.world.known.findings is None:
        return ()
    found = len(debugger.world.all_remarks())
    return (Said(f"{plural(found, 'finding')} about this run: info findings lists them", "bad"),) if found else ()
