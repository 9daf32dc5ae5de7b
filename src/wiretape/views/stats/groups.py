"""Tables of sums: by agent, model, tape and day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from wiretape.analyze.report import AgentReport, GroupReport, StatsReport
from wiretape.analyze.totals import TotalsReport
from wiretape.model.wording import UNKNOWN, plural
from wiretape.views.figures import long_cost, long_sum, money, percent, short_cost, short_sum
from wiretape.views.printable import one_line
from wiretape.views.prose import labelled
from wiretape.views.rows import TableColumn, fit, header_line, row_lines
from wiretape.views.stats.steps import agent_cell

FIELDS = ("input", "cached", "output", "reasoning")
TITLES = ("calls", "tools", "in", "cached", "out", "reasoning", "hit")


def groups(kind: str, reports: Sequence[GroupReport], console: Console, width: int, least: int = 2) -> Iterator[Text]:
    """Yield a row for each group. An agent has a second line with the call that started it."""
    if len(reports) < least:
        return
    depths = _depths(reports)
    for priced in (True, False) if any(report.cost.usd is not None for report in reports) else (False,):
        titles = (*TITLES, "cost") if priced else TITLES
        columns = [
            TableColumn(f"By {kind}", flexible=True, least=12),
            *(TableColumn(title, right=True) for title in titles),
        ]
        rows = [_row(report, depths.get(report.name, 0))[: len(columns)] for report in reports]
        shape = fit(columns, rows, width)
        if shape.fits:
            break
    yield Text()
    yield header_line(columns, shape, style="bold") if shape.fits else Text(f"By {kind}", style="bold")
    for report, row in zip(reports, rows, strict=True):
        if shape.fits:
            yield from row_lines(columns, shape, row)
        else:
            yield row[0]
            yield from labelled(
                console, "", Text(_words(report)), width, indent=2 + 2 * depths.get(report.name, 0), label_width=0
            )
        if isinstance(report, AgentReport) and report.started_by is not None:
            indent = 2 * depths[report.name]
            yield from labelled(console, "", Text(_started(report), style="dim"), width, indent, label_width=0)


def sum_lines(report: StatsReport | TotalsReport, rate_note: str = "") -> Iterator[Text]:
    """Yield the sums of a whole report: tokens, hit rate and cost, a line each."""
    fields = ["input", "cached", "output", "reasoning"]
    if report.usage.cache_write is not None:  # most providers do not charge cache writes
        fields.insert(2, "cache_write")
    for field in fields:
        yield _sum_line(field.replace("_", " "), long_sum(report.usage, field, report.calls))
    yield _sum_line("hit rate", percent(report.hit_rate) + rate_note)
    if isinstance(report, StatsReport) and report.cache.lost_tokens:
        paid = f" ({money(report.cache.lost_usd)})" if report.cache.lost_usd is not None else ""
        yield _sum_line("missed", f"{report.cache.lost_tokens:,} that the cache would have served{paid}")
    if report.prices is not None or report.cost.usd is not None:  # without prices, the line is left out
        yield _sum_line("cost", long_cost(report.cost))


def _sum_line(label: str, value: str) -> Text:
    return Text.assemble(" " * 8, (label.ljust(13), "dim"), value)


def _row(report: GroupReport, depth: int) -> list[Text]:
    cells = [agent_cell(report.name, depth), Text(str(report.calls)), Text(str(report.tool_calls))]
    cells += [Text(short_sum(report.usage, field, report.calls)) for field in FIELDS]
    cells.append(Text(UNKNOWN if report.hit_rate is None else percent(report.hit_rate)))
    return [*cells, Text(short_cost(report.cost))]


def _words(report: GroupReport) -> str:
    """The row as a sentence, for a narrow terminal."""
    sums = [f"{title} {short_sum(report.usage, f, report.calls)}" for title, f in zip(TITLES[2:6], FIELDS, strict=True)]
    return " · ".join([plural(report.calls, "call"), plural(report.tool_calls, "tool call"), *sums])


def _depths(reports: Sequence[GroupReport]) -> dict[str, int]:
    """Return the depth of each agent in the tree of agents. Parents come before their children."""
    depths: dict[str, int] = {}
    for report in reports:
        if isinstance(report, AgentReport):
            depths[report.name] = depths[report.parent] + 1 if report.parent in depths else 0
    return depths


_BASIS = {
    "header": "linked by a request header",
    "id": "linked by an id",
    "data_flow": "linked by the text that flows between them",
    "order": "inferred from the order of calls",
}


def _started(agent: AgentReport) -> str:
    tool = f"'s {one_line(agent.started_tool)}" if agent.started_tool else ""
    basis = f"; {_BASIS[agent.basis]}" if agent.basis else ""
    verb = "was handed the conversation by" if agent.origin == "handoff" else "started by"
    return f"{verb} call {agent.started_by}{tool}{basis}"
