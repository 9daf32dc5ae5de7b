"""Renders a cache diagnosis: a row for each call with its tokens, and the verdict below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.analyze.cache.report import CacheBreak, CacheCall, CacheReport, Verdict
from wiretape.model.wording import UNKNOWN, count_text, plural
from wiretape.views.figures import money, percent
from wiretape.views.printable import name, one_line, visible
from wiretape.views.prose import labelled, sentence
from wiretape.views.rows import TableColumn, fit, header_line, row_lines

BAR_WIDTH = 20
SERVED, MISSED, NEW, UNSAID = "█", "▒", "░", "┄"
INDENT = 6
WORDS: dict[Verdict, str] = {
    "served": "served",
    "first": "first",
    "not_asked": "not asked for",
    "below_minimum": "below the minimum",
    "broken": "broken",
    "expired": "expired",
    "too_early": "too early",
    "routed_elsewhere": "routed elsewhere",
    "unknown": "unknown",
}
_STYLES: dict[Verdict, str] = {
    "served": "green",
    "broken": "red",
    "expired": "yellow",
    "too_early": "yellow",
    "routed_elsewhere": "yellow",
    "not_asked": "yellow",
}
_EVIDENCE = {"provider": "reported by the provider", "wire": "", "inferred": "inferred"}
COLUMNS = [
    TableColumn("call", right=True),
    TableColumn("agent", flexible=True, least=6),
    TableColumn("in", right=True),
    TableColumn("sent before", right=True),
    TableColumn("predicted", right=True),
    TableColumn("reported", right=True),
    TableColumn("served".ljust(BAR_WIDTH)),
]


def cache_view(report: CacheReport) -> RenderableType:
    """Render the diagnosis of all calls."""
    return _CacheView(report)


@dataclass(frozen=True, slots=True)
class _CacheView:
    report: CacheReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report, width = self.report, options.max_width
        if not report.calls:
            yield Text("No model calls on this tape.")
            return
        most = max((one.input or 0 for one in report.calls), default=0)
        rows = [_row(one, most) for one in report.calls]
        columns = COLUMNS
        shape = fit(columns, rows, width)
        if not shape.fits:  # a narrow terminal has no room for the bar
            columns, rows = COLUMNS[:-1], [row[:-1] for row in rows]
            shape = fit(columns, rows, width)
        yield header_line(columns, shape) if shape.fits else Text("call", style="dim")
        for one, row in zip(report.calls, rows, strict=True):
            yield from row_lines(columns, shape, row) if shape.fits else [row[0]]
            yield from verdict_lines(one, console, width)
        yield Text()
        yield from _total(report, console, width)
        yield from _legend(report, bars=columns is COLUMNS)


def _row(one: CacheCall, most: int) -> list[Text]:
    about = "~" if one.estimate else ""
    return [
        Text(str(one.call), style="bold"),
        Text(name(one.agent)),
        Text(count_text(one.input)),
        Text(about + count_text(one.shared)),
        Text((about if one.predicted else "") + count_text(one.predicted)),
        Text(count_text(one.reported), style="dim" if one.reported is None else ""),
        bar(one, most),
    ]


def bar(one: CacheCall, most: int, width: int = BAR_WIDTH) -> Text:
    """Render served, missed and new input as a bar. `most`: the input of the longest bar."""
    whole = one.input
    if not whole or most <= 0:
        return Text()
    length = max(1, round(width * min(whole, most) / most))
    if one.reported is None:
        could = min(length, round(length * min(one.predicted or 0, whole) / whole))
        return Text.assemble((UNSAID * could, "dim"), (NEW * (length - could), "dim"))
    served = _cells(length, one.reported, whole)
    could = max(served, _cells(length, max(one.reported + (one.lost_tokens or 0), one.reported), whole))
    return Text.assemble(
        (SERVED * served, "green"), (MISSED * (could - served), "red"), (NEW * (length - could), "dim")
    )


def _cells(length: int, part: int, whole: int) -> int:
    """Return the cells of a part: at least one, and not all unless the part is the whole."""
    cells = round(length * min(part, whole) / whole)
    return min(max(cells, 1 if part else 0), length - 1 if part < whole and length > 1 else length)


def verdict_lines(one: CacheCall, console: Console, width: int) -> Iterator[Text]:
    """Yield the verdict, its cost, and the fix."""
    said = Text.assemble((WORDS[one.verdict], _STYLES.get(one.verdict, "")), f": {one_line(one.text)}")
    yield from labelled(console, "why", said, width, INDENT)
    if one.lost_tokens:
        for label, cost in _costs(one):
            yield from labelled(console, label, Text(cost), width, INDENT)
    if one.mend and one.verdict != "served":
        yield from labelled(console, "mend", Text(one_line(one.mend)), width, INDENT)


def _costs(one: CacheCall) -> Iterator[tuple[str, str]]:
    """Yield the missed tokens: all, those behind the break, and those in front of it."""
    guess = "up to " if one.reported is None else ""
    paid = f", {money(one.lost_usd)} more than it needed to be" if one.lost_usd is not None else ""
    yield "cost", f"{guess}{one.lost_tokens:,} tokens that the cache would have served{paid}"
    if one.lost_before and one.lost_behind is not None:
        yield "", f"{one.lost_behind:,} of them behind the break: what the mend gains"
        yield "", f"{one.lost_before:,} in front of it: predicted and not served; {one_line(one.why_before or '')}"


def _total(report: CacheReport, console: Console, width: int) -> Iterator[Text]:
    facts = [plural(len(report.calls), "call")]
    facts += [f"{number} {WORDS[verdict]}" for verdict, number in report.verdicts.items()]
    yield from labelled(console, "Total", Text(" · ".join(facts)), width)
    if report.predicted is not None and report.reported is not None:
        sums = f"predicted {report.predicted:,}, reported {report.reported:,}"
        yield from labelled(console, "", Text(sums), width)
    if report.lost_tokens:
        paid = f", {money(report.lost_usd)}" if report.lost_usd is not None else ""
        said = f"missed {report.lost_tokens:,} tokens{paid}"
        if report.lost_before:  # together with the served tokens, these are the predicted ones
            said += (
                f": {report.lost_before:,} in front of breaks, {report.lost_tokens - report.lost_before:,} elsewhere"
            )
        yield from labelled(console, "", Text(said), width)


def _legend(report: CacheReport, bars: bool) -> Iterator[RenderableType]:
    """Explain the signs in the table."""
    signs = [f"{SERVED} served", f"{MISSED} missed", f"{NEW} new"] if bars else []
    if bars and any(one.reported is None for one in report.calls):
        signs.append(f"{UNSAID} sent before, not said if served")
    if any(one.estimate for one in report.calls):
        signs.append("~ estimated")
    if signs:
        yield Text()
        yield sentence("  ".join(signs), "dim")


# -- one call ------------------------------------------------------------------------------------------------------


def cache_call_view(one: CacheCall) -> RenderableType:
    """Render one call with both texts at each prefix break."""
    return _CallView(one)


@dataclass(frozen=True, slots=True)
class _CallView:
    one: CacheCall

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        one, width = self.one, options.max_width
        head = Text.assemble((f"Call {one.call}", "bold"), f"  {name(one.agent)} · {name(one.model or UNKNOWN)}")
        yield from labelled(console, "", head, width, label_width=0)
        about = "about " if one.estimate else ""
        facts = {
            "rules": name(one.rules),
            "in": count_text(one.input),
            "sent before": about
            + count_text(one.shared)
            + (f" (call {one.compared_with})" if one.compared_with else ""),
            "predicted": (about if one.predicted else "") + count_text(one.predicted),
            "reported": count_text(one.reported) + _rate(one),
            "written": count_text(one.written),
        }
        for label, value in facts.items():
            yield from labelled(console, label, Text(value), width, label_width=13)
        yield from labelled(console, "", bar(one, one.input or 0, 2 * BAR_WIDTH), width, label_width=13)
        verdict = Text.assemble((WORDS[one.verdict], _STYLES.get(one.verdict, "")), f": {one_line(one.text)}")
        yield from labelled(console, "verdict", verdict, width, label_width=13)
        if _EVIDENCE[one.evidence]:
            yield from labelled(console, "evidence", Text(_EVIDENCE[one.evidence]), width, label_width=13)
        if one.lost_tokens:
            for label, said in _costs(one):
                yield from labelled(console, label, Text(said), width, label_width=13)
        if one.mend and one.verdict != "served":
            yield from labelled(console, "mend", Text(one_line(one.mend)), width, label_width=13)
        for found in one.breaks:
            yield Text()
            yield from _place(found, one, console, width)


def _rate(one: CacheCall) -> str:
    return f" ({percent(one.reported / one.input)})" if one.reported is not None and one.input else ""


def _place(found: CacheBreak, one: CacheCall, console: Console, width: int) -> Iterator[RenderableType]:
    where = found.path if found.character is None else f"{found.path}, character {found.character:,}"
    yield from labelled(console, "", Text.assemble((where, "bold"), f"  {found.what}"), width, label_width=0)
    earlier = f"call {one.compared_with}" if one.compared_with is not None else "before"
    if found.around is not None:
        old, new = (_marked(text, found.place) for text in found.around)
    else:
        old, new = (Text(visible(value) if value is not None else "(nothing)") for value in (found.before, found.after))
    label_width = max(len(earlier), len(f"call {one.call}")) + 2
    yield from labelled(console, earlier, old, width, 2, label_width)
    yield from labelled(console, f"call {one.call}", new, width, 2, label_width)


def _marked(text: str, place: int) -> Text:
    """Return a text on one line with a mark where the difference starts."""
    return Text.assemble((one_line(text[:place]), "dim"), ("▸", "bold"), one_line(text[place:]) or "(the end)")
