"""The calls of a report as rows, each with its cause. All turns share one set of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from wiretape.analyze.report import CallReport, StatsReport, ToolRunReport, UsageSum
from wiretape.model.wording import UNKNOWN, count_text, duration_text
from wiretape.views.figures import BAR_WIDTH, short_cost, usage_bar
from wiretape.views.printable import name, one_line
from wiretape.views.prose import labelled
from wiretape.views.rows import TableColumn, fit, header_line, row_lines
from wiretape.views.stats.agents import TreeStep, tree

WIDE = 110  # terminal width with room for the bar and the time to the first token
INDENT = 6  # of the lines under a call
IDENTITY = [
    TableColumn("call", right=True),
    TableColumn("agent", flexible=True),
    TableColumn("model", flexible=True, least=10),
]
TOKENS = [TableColumn(title, right=True) for title in ("in", "cached", "out", "reasoning")]
NO_USAGE = UsageSum(unknown_calls=1)
TIME = TableColumn("time", right=True)


class StepTable:
    """Fits the columns to all calls of a report, and renders any of its calls."""

    def __init__(self, report: StatsReport, console: Console, width: int) -> None:
        self._agents, self._console, self._width = report.by_agent, console, width
        steps = [step for turn in report.turns for step in turn.steps] + report.side_calls
        self._most = max((step.usage.input or 0 for step in steps if step.usage), default=0)
        self._first_token = any(step.first_token_ms is not None for step in steps)
        self._cost = any(step.cost.usd is not None for step in steps)
        placed = [place for turn in report.turns for place in tree(turn.steps, report.by_agent)]
        placed += [TreeStep(step, 0) for step in report.side_calls]
        for self._wide, self._stacked in ((width >= WIDE, False), (False, False), (False, True)):
            self._columns = self._chosen()
            self._fit = fit(self._columns, [self._cells(place) for place in placed], width)
            if self._fit.fits:
                break

    def _chosen(self) -> list[TableColumn]:
        """Return the columns for a wide terminal, for 80 columns, or for a narrow one (tokens in a line below)."""
        columns = IDENTITY + ([] if self._stacked else TOKENS)
        if self._wide:
            columns = [*columns, TableColumn("cached / in".ljust(BAR_WIDTH))]
            columns += [TableColumn("cost", right=True)] if self._cost else []
            columns += [TableColumn("first token", right=True)] if self._first_token else []
        return [*columns, TIME]

    def _cells(self, place: TreeStep) -> list[Text]:
        step = place.step
        cells = [Text(str(step.call), style="bold"), agent_cell(step.agent, place.depth)]
        cells.append(Text(name(step.model or UNKNOWN)))
        usage = step.usage or NO_USAGE
        if not self._stacked:
            numbers = (usage.input, usage.cached, usage.output, usage.reasoning)
            cells += [Text(count_text(n), style="dim" if n is None else "") for n in numbers]
        if self._wide:
            cells.append(usage_bar(usage.input, usage.cached, self._most))
            cells += [Text(short_cost(step.cost).removesuffix(" +1?"))] if self._cost else []
            cells += [Text(duration_text(step.first_token_ms))] if self._first_token else []
        return [*cells, Text(duration_text(step.duration_ms))]

    def lines(self, steps: Sequence[CallReport]) -> Iterator[Text]:
        """Yield a header, and for each call its numbers, its cause and its end."""
        yield header_line(self._columns, self._fit)
        for place in tree(steps, self._agents):
            yield from row_lines(self._columns, self._fit, self._cells(place))
            if self._stacked:
                yield from self._say("tokens", Text(usage_words(place.step.usage)))
            yield from self._say("why", Text(one_line(place.step.why)))
            yield from self._say("finish", self._ending(place.step))
            if place.step.ran:
                yield from self._say("ran", Text(one_line(", ".join(map(_run_words, place.step.ran)))))

    def _ending(self, step: CallReport) -> Text:
        ending = finish_text(step)
        if step.tool_calls:
            ending.append(" → ").append(one_line(", ".join(step.tool_calls)), style="magenta")
        if step.first_token_ms is not None and not self._wide:
            ending.append(f" · first token after {duration_text(step.first_token_ms)}", style="dim")
        return ending

    def _say(self, label: str, said: Text) -> Iterator[Text]:
        return labelled(self._console, label, said, self._width, INDENT)


def _run_words(ran: ToolRunReport) -> str:
    took = duration_text(ran.ms) if ran.ms is not None else "not answered"
    return f"{ran.tool} on x{ran.exchange} ({took})"


def usage_words(usage: UsageSum | None) -> str:
    """`in 347, cached ?, out 75, reasoning 18`."""
    if usage is None:
        return "unknown"
    numbers = {"in": usage.input, "cached": usage.cached, "out": usage.output, "reasoning": usage.reasoning}
    return ", ".join(f"{name} {count_text(number)}" for name, number in numbers.items())


def agent_cell(agent: str, depth: int) -> Text:
    """Return an agent's name, indented under its parent."""
    return Text.assemble(("  " * (depth - 1) + "└ " if depth else "", "dim"), name(agent))


def finish_text(step: CallReport) -> Text:
    """Return the finish reason of a call, or its failure."""
    if step.status is None:
        return Text(f"no response ({step.ended or 'still open'})", style="red")
    if step.status >= 400:
        return Text(f"error {step.status}", style="red")
    if step.ended not in (None, "complete"):
        return Text(f"{step.finish or 'cut'} ({step.ended})", style="yellow")
    return Text(step.finish or "unknown", style="red" if step.finish == "error" else "")
