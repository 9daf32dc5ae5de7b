"""Renders a fork: one line for each live call, and the result."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.model.wording import plural
from wiretape.rerun.report import RerunCall, RerunReport
from wiretape.views.printable import clip, name, one_line, visible
from wiretape.views.prose import Indented, labelled, sentence


def fork_line(row: RerunCall, width: int) -> Text:
    """Render a live call: the tools that it calls, or its text."""
    number = str(row.call) if row.call is not None else "+"
    head = f"{number:>4}  {name(row.agent)}  "
    if row.outcome == "not reached":
        return Text(f"{head}not reached", style="yellow")
    asks = "→ " + ", ".join(tool.name for tool in row.asks) if row.asks else ""
    return Text(head).append(clip(asks or one_line(row.said), max(20, width - cell_len(head) - 1)))


def fork_view(report: RerunReport, kept: int, edited: bool) -> RenderableType:
    """Render a fork. `kept`: exchanges that it shares with its tape; `edited`: it has a changed answer."""
    return _ForkView(report, kept, edited)


@dataclass(frozen=True, slots=True)
class _ForkView:
    report: RerunReport
    kept: int
    edited: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self.report
        live = sum(row.outcome not in ("not reached", "not sent") for row in report.calls)
        parts = [f"{plural(self.kept, 'exchange')} kept", "1 answer changed" if self.edited else ""]
        parts.append(f"{plural(live, 'call')} asked live" if live else "nothing left to ask")
        yield sentence(f"forked to {one_line(report.wrote or '')}: {', '.join(part for part in parts if part)}", "bold")
        yield from self._stops()
        answer = next((row.said for row in reversed(report.calls) if row.said and row.agent == "root"), "")
        if answer and not report.stopped:
            yield from labelled(console, "answer", Text(clip(one_line(answer), 400)), options.max_width)
        command = shlex.join(["wiretape", "diff", report.tape, report.wrote or ""])
        yield Indented(Text(f"next: {command}"), 0)

    def _stops(self) -> Iterator[RenderableType]:
        for stop in self.report.stopped:
            after = f" after call {stop.after}" if stop.after is not None else ""
            yield sentence(f"stopped{after}: {visible(stop.why)}", "bold red")
        if self.report.lacks_results:
            yield Indented(Text("--result TEXT gives what the tool says, --tools FILE.py has functions that answer"), 2)
