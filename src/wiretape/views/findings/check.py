"""Renders the result of budgets as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.analyze.budgets.judging import NO_PRICES
from wiretape.analyze.budgets.report import CheckReport, Judgement, TapeCheck
from wiretape.model.wording import plural
from wiretape.views.printable import one_line
from wiretape.views.prose import labelled
from wiretape.views.rows import TableColumn, fit, header_line, row_lines

WORDS = {"kept": "ok", "exceeded": "FAIL", "unknown": "UNKNOWN", "skipped": "-"}
COLOURS = {"kept": "green", "exceeded": "red", "unknown": "yellow", "skipped": "dim"}
_COLUMNS = [
    TableColumn(""),
    TableColumn("budget", flexible=True, least=14),
    TableColumn("where"),
    TableColumn("limit", flexible=True, least=12),
    TableColumn("actual", flexible=True, least=8),
]


def check_view(report: CheckReport) -> RenderableType:
    """Render what `wiretape check` shows."""
    return _CheckView(report)


@dataclass(frozen=True, slots=True)
class _CheckView:
    report: CheckReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for tape in self.report.tapes:
            if len(self.report.tapes) > 1 or tape.problem is not None:
                yield from labelled(
                    console, "", Text(one_line(tape.tape), style="bold"), options.max_width, label_width=0
                )
            yield from _tape(tape, console, options.max_width)
            yield Text()
        for detail in common_details(self.report):
            yield from labelled(console, "", Text(detail, style="yellow"), options.max_width, label_width=0)
        yield from labelled(
            console,
            "",
            Text(verdict(self.report), style="green" if self.report.passed else "red"),
            options.max_width,
            label_width=0,
        )


def verdict(report: CheckReport) -> str:
    """Return the result in one line."""
    found = []
    if report.exceeded:
        found.append(f"{plural(report.exceeded, 'budget')} exceeded")
    if report.unknown:
        found.append(
            f"{plural(report.unknown, 'budget')} cannot be judged{' (allowed)' if report.allow_unknown else ''}"
        )
    if report.skipped:
        compared = sum(one.budget.startswith("baseline") for tape in report.tapes for one in tape.judgements)
        found.append(f"{report.skipped} of {plural(compared, 'comparison')} with the baseline could not be made")
    if report.unreadable:
        found.append(f"{plural(report.unreadable, 'tape')} could not be read")
    if report.passed and found:
        return f"passed, but {', '.join(found)}"
    return f"{'passed' if report.passed else 'failed'}{': ' if found else ''}{', '.join(found)}"


def common_details(report: CheckReport) -> list[str]:
    """Return details that apply to all tapes: the missing price list."""
    details = [judged.detail for tape in report.tapes for judged in tape.judgements if judged.outcome != "kept"]
    return [NO_PRICES] if NO_PRICES in details else []


def own_detail(judged: Judgement) -> str | None:
    """Return the detail of a judgement, unless it applies to all tapes."""
    return judged.detail if judged.outcome != "kept" and judged.detail != NO_PRICES else None


def _tape(tape: TapeCheck, console: Console, width: int) -> Iterator[Text]:
    if tape.problem is not None:
        yield from labelled(console, "!", Text(one_line(tape.problem), style="red"), width, label_width=2)
        return
    judgements = shortened(tape.judgements)
    rows = [_row(judged) for judged in judgements]
    shape = fit(_COLUMNS, rows, width)
    if shape.fits:
        yield header_line(_COLUMNS, shape)
    for judged, row in zip(judgements, rows, strict=True):
        yield from row_lines(_COLUMNS, shape, row) if shape.fits else _in_words(row, console, width)
        if detail := own_detail(judged):
            yield from labelled(console, "", Text(one_line(detail), style="dim"), width, 9, label_width=0)
    for finding in tape.lint:
        said = f"{finding.rule} call {finding.call} {finding.path or ''}: {finding.text}"
        yield from labelled(console, "!", Text(one_line(said), style="red"), width, 2, label_width=2)


def _in_words(row: Sequence[Text], console: Console, width: int) -> Iterator[Text]:
    """The row as a sentence, for a narrow terminal."""
    word, budget, where, limit, actual = row
    said = Text.assemble(word, " ", budget, f" ({where}): ", actual, ", ", limit)
    yield from labelled(console, "", said, width, label_width=0)


def _row(judged: Judgement) -> list[Text]:
    word = Text(WORDS[judged.outcome], style=COLOURS[judged.outcome])
    return [word, *(Text(one_line(cell)) for cell in (judged.budget, judged.where, judged.limit, judged.actual))]


def shortened(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Combine the turns that keep a budget in one row. Failed judgements keep a row of their own."""
    told: list[Judgement] = []
    kept: dict[str, list[Judgement]] = {}
    for judged in judgements:
        if judged.outcome == "kept" and judged.where.startswith("turn "):
            kept.setdefault(judged.budget, []).append(judged)
        else:
            told.append(judged)
    for same in kept.values():
        if len(same) > _ALONE:
            told.append(
                same[0].model_copy(update={"where": f"{len(same)} turns", "actual": "all of them", "detail": None})
            )
        else:
            told += same
    places = {id(judged): place for place, judged in enumerate(judgements)}
    budgets = {judged.budget: place for place, judged in reversed(list(enumerate(judgements)))}
    return sorted(told, key=lambda judged: (budgets[judged.budget], places.get(id(judged), len(places))))


_ALONE = 3
