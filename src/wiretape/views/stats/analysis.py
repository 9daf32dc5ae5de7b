"""Renders the analysis of a tape: turn by turn, each call with its numbers and its cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.analyze.report import StatsReport, TurnReport
from wiretape.model.wording import duration_text, plural
from wiretape.views.figures import percent, short_cost, short_sum
from wiretape.views.printable import clip, one_line
from wiretape.views.prose import Indented, labelled, sentence
from wiretape.views.stats.agents import between
from wiretape.views.stats.groups import groups, sum_lines
from wiretape.views.stats.steps import StepTable


def stats_view(report: StatsReport) -> RenderableType:
    """Render what `wiretape stats` shows for one tape."""
    return _StatsView(report)


@dataclass(frozen=True, slots=True)
class _StatsView:
    report: StatsReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report, width = self.report, options.max_width
        if not report.calls and not report.side_calls:
            yield Text("No model calls on this tape.")
            yield from _others(report)
            return
        table = StepTable(report, console, width)
        for turn in report.turns:
            yield from _turn(turn, table, width)
        if report.side_calls:
            yield Text("Side calls", style="bold")
            yield from table.lines(report.side_calls)
            yield Text()
        yield from _total(report, console, width)
        yield from groups("agent", report.by_agent, console, width)
        yield from between(report.links, console, width)
        yield from groups("model", report.by_model, console, width)
        yield from _findings(report, console, width)
        yield from _legend(report)
        yield from _others(report)


SUMMED = (("in", "input"), ("cached", "cached"), ("out", "output"), ("reasoning", "reasoning"))


def _turn(turn: TurnReport, table: StepTable, width: int) -> Iterator[Text | Indented]:
    label = f"Turn {turn.turn}  "
    words = clip(turn.user, width - len(label)) or "(no text)"
    yield Text.assemble((label, "bold"), (words, "bold cyan"))
    facts = [plural(turn.calls, "call"), plural(turn.tool_calls, "tool call"), plural(turn.agents, "agent")]
    facts += [duration_text(turn.wall_ms)] if turn.wall_ms is not None else []
    facts += [short_cost(turn.cost)] if turn.cost.usd is not None else []
    yield sentence(" · ".join(facts))
    sums = [f"{title} {short_sum(turn.usage, field, turn.calls)}" for title, field in SUMMED]
    yield sentence(" · ".join([*sums, f"hit rate {percent(turn.hit_rate)}"]))
    yield from table.lines(turn.steps)
    if turn.answer:
        yield Text.assemble(("answer  ", "dim"), (clip(turn.answer, width - 8), "cyan"))
    yield Text()


def _total(report: StatsReport, console: Console, width: int) -> Iterator[Text]:
    others = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in report.not_inferences.items())
    calls = plural(report.calls, "call") + (f" ({others})" if others else "")
    facts = [plural(len(report.turns), "turn"), calls, plural(report.tool_calls, "tool call")]
    facts += [plural(report.agents, "agent")]
    facts += [duration_text(report.wall_ms)] if report.wall_ms is not None else []
    yield from labelled(console, "Total", Text(" · ".join(facts)), width)
    partly = report.hit_rate is not None and report.usage.unknown.get("cached")
    # With unknown numbers, the rate is not the quotient of the sums.
    yield from sum_lines(report, ", over the calls that give both" if partly else "")


def _findings(report: StatsReport, console: Console, width: int) -> Iterator[Text]:
    if not report.findings:
        return
    yield Text()
    yield Text("Findings", style="bold")
    for finding in report.findings:
        named = finding.call is None or re.search(rf"\bcalls? {finding.call}\b", finding.text.lower()) is not None
        said = ("" if named else f"call {finding.call}: ") + one_line(finding.text)
        said += " (estimate)" if finding.estimate else ""
        yield from labelled(console, "!", Text(said, style="yellow"), width, label_width=2)


def _legend(report: StatsReport) -> Iterator[Text | Indented]:
    """Explain the question marks, if there are any."""
    usage = report.usage
    unknown = {field: max(usage.unknown.get(field, 0), usage.unknown_calls) for _, field in SUMMED}
    if not any(unknown.values()):
        return
    partly = any(calls and getattr(usage, field) is not None for field, calls in unknown.items())
    yield Text()
    yield sentence("?  the wire does not say" + ("      +2?  and 2 calls that do not say" if partly else ""), "dim")


def _others(report: StatsReport) -> Iterator[Text | Indented]:
    if report.other_exchanges:
        verb = "is not a model call" if report.other_exchanges == 1 else "are not model calls"
        yield Text()
        yield sentence(f"{plural(report.other_exchanges, 'exchange')} {verb}; wiretape show lists them.", "dim")
