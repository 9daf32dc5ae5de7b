"""Renders the totals of several tapes: the sums, and a table for each grouping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.analyze.report import GroupReport
from wiretape.analyze.totals import TapeTotals, ToolTotals, TotalsReport
from wiretape.model.wording import plural
from wiretape.views.printable import name, one_line
from wiretape.views.prose import labelled
from wiretape.views.rows import TableColumn, fit, header_line, row_lines
from wiretape.views.stats.groups import groups, sum_lines

BY = ("tape", "model", "agent", "tool", "day")


def totals_view(report: TotalsReport, by: Sequence[str] = BY) -> RenderableType:
    """Render what `wiretape stats` shows for several tapes. `by`: the tables to show."""
    return _TotalsView(report, by)


@dataclass(frozen=True, slots=True)
class _TotalsView:
    report: TotalsReport
    by: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report, width = self.report, options.max_width
        yield from _total(report, console, width)
        tables: dict[str, Sequence[GroupReport]] = {
            "tape": _shortened(report.by_tape),
            "model": report.by_model,
            "agent": report.by_agent,
            "day": report.by_day,
        }
        for kind in self.by:
            if kind == "tool":
                yield from _tools(report.by_tool, width)
            else:
                yield from groups(kind, tables[kind], console, width, least=1)
        if report.unreadable:
            yield Text()
            yield Text("Not read", style="bold")
            for tape in report.unreadable:
                said = one_line(f"{tape.tape}: {tape.problem}")
                yield from labelled(console, "!", Text(said, style="red"), width, label_width=2)


def _shortened(tapes: Sequence[TapeTotals]) -> list[TapeTotals]:
    """Remove the common directory from the names of tapes."""
    first = tapes[0].name if tapes else ""
    start = first.rfind("/") + 1
    while start and not all(tape.name.startswith(first[:start]) for tape in tapes):
        start = first.rfind("/", 0, start - 1) + 1
    return [tape.model_copy(update={"name": tape.name[start:]}) for tape in tapes]


def _total(report: TotalsReport, console: Console, width: int) -> Iterator[Text]:
    others = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in report.not_inferences.items())
    calls = plural(report.calls, "call") + (f" ({others})" if others else "")
    facts = [plural(report.tapes, "tape"), plural(report.turns, "turn"), calls, plural(report.tool_calls, "tool call")]
    yield from labelled(console, "Total", Text(" · ".join(facts)), width)
    yield from sum_lines(report)


def _tools(tools: Sequence[ToolTotals], width: int) -> Iterator[Text]:
    if not tools:
        return
    columns = [TableColumn("By tool", flexible=True, least=10)]
    columns += [TableColumn(title, right=True) for title in ("calls", "failed", "no result", "tapes")]
    rows = [
        [Text(name(tool.name))]
        + [Text(f"{number:,}") for number in (tool.calls, tool.failed, tool.unanswered, tool.tapes)]
        for tool in tools
    ]
    shape = fit(columns, rows, width)
    yield Text()
    yield header_line(columns, shape, style="bold")
    for row in rows:
        yield from row_lines(columns, shape, row)
