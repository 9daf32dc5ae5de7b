"""Renders the comparison of two runs: the numbers of each turn, the calls of only one run, and the first difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.analyze.diff.report import CallSide, DiffReport, RunDifference, Sums, TurnPair
from wiretape.model.wording import duration_text, plural
from wiretape.views.figures import percent, short_cost, short_sum
from wiretape.views.printable import clip, one_line
from wiretape.views.prose import labelled
from wiretape.views.rows import TableColumn, fit, header_line, row_lines

_VALUE = 400  # cells of a value before it is cut


def diff_view(comparison: DiffReport, name_a: str, name_b: str, everything: bool = False) -> RenderableType:
    """Render what `wiretape diff` shows. `everything`: every difference, volatile values included."""
    return _DiffView(comparison, name_a, name_b, everything)


@dataclass(frozen=True, slots=True)
class _DiffView:
    comparison: DiffReport
    name_a: str
    name_b: str
    everything: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        comparison, width = self.comparison, options.max_width
        yield from labelled(console, "A", Text(one_line(self.name_a)), width, label_width=3)
        yield from labelled(console, "B", Text(one_line(self.name_b)), width, label_width=3)
        for turn in comparison.turns:
            yield Text()
            yield from _turn(turn, console, width, self.everything)
        yield Text()
        yield from self._verdict(console, width)

    def _verdict(self, console: Console, width: int) -> Iterator[Text]:
        comparison = self.comparison
        varied = sum(len(turn.varied) for turn in comparison.turns)
        found = sum(len(turn.differences) for turn in comparison.turns)
        if comparison.first is None:
            yield Text("The runs are the same.", style="bold green")
        elif not self.everything:
            yield Text("First difference", style="bold")
            yield from _difference(comparison.first, console, width)
        rest = []
        if found > 1 and not self.everything:
            rest.append(f"{plural(found - 1, 'more difference')}")
        if varied and not self.everything:
            rest.append(f"{plural(varied, 'value')} that change from run to run (clocks, ids)")
        if rest:
            said = Text(f"{' and '.join(rest)}: --all shows them", style="dim")
            yield from labelled(console, "", said, width, label_width=0)


def _turn(turn: TurnPair, console: Console, width: int, everything: bool) -> Iterator[Text]:
    label = turn.name[:1].upper() + turn.name[1:]
    if turn.turn_a is not None and turn.turn_b is not None and turn.turn_a != turn.turn_b:
        label = f"Turn {turn.turn_a} of A, turn {turn.turn_b} of B"
    words = clip(turn.user, width - len(label) - 2)
    yield Text.assemble((f"{label}  ", "bold"), (words, "bold cyan")) if words else Text(label, style="bold")
    yield from _numbers(turn.a, turn.b, width)
    for name, side in (("A", turn.only_a), ("B", turn.only_b)):
        for call in side:
            yield from labelled(console, f"only {name}", Text(_alone(call), style="yellow"), width, indent=2)
    if everything:
        for difference in turn.differences:
            yield from _difference(difference, console, width, indent=2)
        for difference in turn.varied:
            yield from _difference(difference, console, width, indent=2, style="dim")


def _alone(call: CallSide) -> str:
    asks = f", asks for {', '.join(call.tool_calls)}" if call.tool_calls else ""
    return one_line(f"call {call.call} ({call.agent}): {call.why}{asks}")


FIELDS = (("input", "input"), ("cached", "cached"), ("output", "output"), ("reasoning", "reasoning"))


def _numbers(a: Sums | None, b: Sums | None, width: int) -> Iterator[Text]:
    """Yield the numbers of both runs, and their difference."""
    rows = [
        _row("calls", _of(a, "calls"), _of(b, "calls")),
        _row("tool calls", _of(a, "tool_calls"), _of(b, "tool_calls")),
    ]
    if max(side.agents if side is not None else 0 for side in (a, b)) > 1:
        rows.append(_row("agents", _of(a, "agents"), _of(b, "agents")))
    for title, field in FIELDS:
        rows.append(_row(title, *(_tokens(side, field) for side in (a, b))))
    rates = [side.hit_rate if side is not None else None for side in (a, b)]
    points = (rates[1] - rates[0]) * 100 if rates[0] is not None and rates[1] is not None else 0
    change = f"{points:+.0f} points" if abs(points) >= 0.5 else ""
    rows.append(["hit rate", *("-" if side is None else percent(side.hit_rate) for side in (a, b)), change])
    if any(side is not None and side.cost.usd is not None for side in (a, b)):
        rows.append(["cost", *("-" if side is None else short_cost(side.cost) for side in (a, b)), ""])
    rows.append(["time", *("-" if side is None else duration_text(side.wall_ms) for side in (a, b)), ""])
    sides = [TableColumn(title, right=True, flexible=True, least=6) for title in ("A", "B", "B-A")]
    columns = [TableColumn(""), *sides]
    cells = [[Text("  " + row[0], style="dim"), *map(Text, row[1:3]), Text(row[3], style="bold")] for row in rows]
    shape = fit(columns, cells, width)
    yield header_line(columns, shape)
    for row in cells:
        yield from row_lines(columns, shape, row)


def _of(side: Sums | None, name: str) -> tuple[str, int | None]:
    if side is None:
        return "-", None
    number: int = getattr(side, name)
    return f"{number:,}", number


def _tokens(side: Sums | None, field: str) -> tuple[str, int | None]:
    """Return a sum as text, and its number if every call reports it."""
    if side is None:
        return "-", None
    whole = not side.usage.unknown.get(field) and not side.usage.unknown_calls
    return short_sum(side.usage, field, side.calls), getattr(side.usage, field) if whole else None


def _row(title: str, a: tuple[str, int | None], b: tuple[str, int | None]) -> list[str]:
    change = f"{b[1] - a[1]:+,}" if a[1] is not None and b[1] is not None and a[1] != b[1] else ""
    return [title, a[0], b[0], change]


def _difference(found: RunDifference, console: Console, width: int, indent: int = 0, style: str = "") -> Iterator[Text]:
    if found.what == "call":
        run, number, said = ("A", found.call_a, found.a) if found.call_a is not None else ("B", found.call_b, found.b)
        text = Text(one_line(f"call {number} is only in {run}: {said}"), style=style)
        yield from labelled(console, "", text, width, indent=indent, label_width=0)
        return
    calls = f"call {found.call_a}" if found.call_a == found.call_b else f"calls {found.call_a} and {found.call_b}"
    head = Text(one_line(f"{calls} at {found.path} ({found.what})"), style=style)
    yield from labelled(console, "", head, width, indent=indent, label_width=0)
    for label, value in (("A", found.a), ("B", found.b)):
        shown = Text("(nothing)" if value is None else clip(value, _VALUE) or "(empty)", style=style or "cyan")
        yield from labelled(console, label, shown, width, indent=indent + 2, label_width=3)
