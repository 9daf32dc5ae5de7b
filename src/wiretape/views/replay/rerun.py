"""Renders a rerun: each request compared with the one that its format builds, and where the runs diverge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from wiretape.compare.excerpt import LIVE
from wiretape.model.wording import plural
from wiretape.rerun.report import RerunCall, RerunGiven, RerunReport
from wiretape.views.printable import clip, name, one_line, visible
from wiretape.views.prose import sentence
from wiretape.views.replay.rows import Compared

_SHOWN = 3  # differences shown for a call; --json has all
_NARROWEST = 24
_AGENT_WIDTH = 8  # cells of an agent's name while the run goes on
_STYLES = {"equal": "green", "differs": "bold red", "given": "", "new": "yellow", "not reached": "yellow"}
_OWN = {
    "message": "adds {where}",
    "beside": "adds {where}",
    "prompt": "gives another prompt ({where})",
    "tools": "offers other tools",
    "setting": "sets {where} anew",
    "left out": "leaves out some of {where}",
    "member": "sets {where}",
}


def rerun_line(row: RerunCall, width: int = 80) -> Text:
    """Return one line for a call of a live rerun."""
    text = Text.assemble((_head(row, _AGENT_WIDTH), _STYLES.get(row.outcome, "dim")))
    said = row.parts or ", ".join(tool.name for tool in row.asks) or row.said
    return text.append(clip(said, max(_NARROWEST, width - text.cell_len)))


def _head(row: RerunCall, agents: int) -> str:
    number = str(row.call) if row.call is not None else "+"
    return f"{number:>5}  {set_cell_size(name(row.agent), agents)}  {row.outcome:<11}  "


class RerunView:
    """A block for each call with its differences, and a summary."""

    def __init__(self, report: RerunReport) -> None:
        self._report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self._report
        against = f"sent to {report.live}" if report.live is not None else "against itself"
        yield sentence(f"rerun of {one_line(report.tape)}, {against}", "bold")
        agents = min(16, max((cell_len(name(row.agent)) for row in report.calls), default=4))
        for row in report.calls:
            yield from self._row(console, options.max_width, row, agents)
        for stop in report.stopped:
            after = f" after call {stop.after}" if stop.after is not None else ""
            yield sentence(f"stopped{after}: {visible(stop.why)}", "bold red")
        if report.lacks_results:
            yield sentence("  --tools FILE.py has functions that answer what the tape cannot")
        for gap in report.gaps:
            yield sentence(f"the tape is incomplete, only its exchanges were compared: {one_line(gap)}", "bold red")
        yield sentence(_summary(report), "bold green" if report.equal and not report.gaps else "bold red")

    def _row(self, console: Console, width: int, row: RerunCall, agents: int) -> Iterator[Text]:
        head = _head(row, agents)
        room = max(_NARROWEST, width - cell_len(head))
        style = _STYLES.get(row.outcome, "dim")
        for position, line in enumerate(_lines(console, "; ".join(_said(row, self._report.live is not None)), room)):
            line.rstrip()
            shown = Text.assemble((head if not position else " " * cell_len(head), style), line)
            shown.rstrip()
            yield shown
        other = LIVE if self._report.live is not None else "grown     "
        for apart in row.differences[:_SHOWN]:
            yield Text(f"       at {visible(apart.where)}")
            yield from Compared(visible(apart.recorded_excerpt), visible(apart.grown_excerpt), 9, other).lines(
                console, width
            )
        if len(row.differences) > _SHOWN:
            yield Text(f"       and at {len(row.differences) - _SHOWN} more places (--json lists them)")


def _lines(console: Console, text: str, room: int) -> list[Text]:
    return list(Text(visible(text)).wrap(console, room, overflow="fold")) or [Text("")]


def _said(row: RerunCall, live: bool) -> Iterator[str]:
    """Yield the notes about a call. `live`: a model answers instead of the tape."""
    if row.note:
        yield row.note
    if row.tier == "masked":
        yield "equal except for dates, times and ids"
    if row.given:
        yield "the program " + _own(row.given)
    if row.parts:
        asks = ", ".join(f"{tool.name}({clip(tool.arguments, 40)})" for tool in row.asks)
        yield f"the runs part: {row.parts}: {asks or clip(row.said, 60)}"
    elif row.outcome == "new" and row.asks:
        yield "asks for " + ", ".join(tool.name for tool in row.asks)
    elif row.outcome == "new" or (live and row.said and not row.asks):
        yield f"says {clip(row.said, 60)}"


def _own(given: tuple[RerunGiven, ...]) -> str:
    """Return `adds messages[3], another prompt at system`, each once."""
    told = dict.fromkeys(_OWN.get(one.kind, "decides {where}").format(where=one.where) for one in given)
    listed = list(told)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more


def _summary(report: RerunReport) -> str:
    counts = Counter(row.outcome for row in report.calls)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    verdict = "the runs part" if not report.equal else "equal as far as the tape goes" if report.gaps else "equal"
    parted = next((row for row in report.calls if row.parts or row.outcome == "differs"), None)
    where = f" at call {parted.call}" if not report.equal and parted is not None and parted.call is not None else ""
    wrote = f"; recorded as {one_line(report.wrote)}" if report.wrote else ""
    return f"{plural(len(report.calls), 'call')} ({told}): {verdict}{where}{wrote}"
