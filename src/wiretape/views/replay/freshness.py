"""Renders `wiretape verify`: a row for each call with its changes, and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.matching.verify.freshness import CallChange, CallFreshness, Freshness, Verdict
from wiretape.model.wording import numbered, plural
from wiretape.views.printable import one_line
from wiretape.views.prose import labelled
from wiretape.views.replay.rows import Compared
from wiretape.views.rows import TableColumn, fit, header_line, row_lines

_MOST = 20  # calls; if there are more, unchanged calls are only counted
_INDENT = 4
_STYLES = {
    "same": "green",
    "changed": "bold yellow",
    "new": "bold yellow",
    "vanished": "bold yellow",
    "unanswered": "bold red",
}
_COUNTED: tuple[Verdict, ...] = ("changed", "new", "vanished", "unanswered", "same")
COLUMNS = [
    TableColumn("tape", right=True),
    TableColumn("live", right=True),
    TableColumn("call", flexible=True, least=12),
    TableColumn("request", flexible=True, least=10),
    TableColumn("verdict"),
]


def freshness_view(found: Freshness, mend: str, *, full: bool = False) -> RenderableType:
    """Render a comparison. `mend`: the command that records drifted calls again."""
    return _FreshnessView(found, mend, full)


@dataclass(frozen=True, slots=True)
class _FreshnessView:
    found: Freshness
    mend: str
    full: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found, width = self.found, options.max_width
        age = f", recorded {plural(found.age_days, 'day')} before" if found.age_days else ""
        yield Text(one_line(f"{found.tape}{age}, and {found.live}"), style="bold")
        shown = [call for call in found.calls if self.full or len(found.calls) <= _MOST or call.verdict != "same"]
        if shown:
            yield Text()
            yield from _table(console, shown, width)
        if found.versions:
            yield Text()
            for version in found.versions:
                said = f"{_values(version.recorded)} → {_values(version.live)}"
                yield from labelled(console, one_line(version.header), Text(one_line(said)), width, label_width=28)
        yield Text()
        for line in self._verdict():
            yield from labelled(console, "", line, width, label_width=0)
        if found.unanswered:
            which = numbered("live call", [call.live for call in found.unanswered], _MOST)
            said = f"{which} got no answer that tells: verify again before anything is recorded"
            yield from labelled(console, "", Text(said), width, label_width=0)
        elif found.drifted and self.mend:
            what = "it anew, since requests are answered otherwise now" if found.answered_otherwise else "what drifted"
            yield from labelled(console, "", Text(f"to record {what}:"), width, label_width=0)
            yield Text(f"  {self.mend}", overflow="ignore", no_wrap=True)
            gone = [call.recorded for call in found.calls if call.verdict == "vanished"]
            if gone:
                said = f"{numbered('call', gone, _MOST)} of the tape will be gone then: run all programs that made them"
                yield from labelled(console, "", Text(said), width, label_width=0)

    def _verdict(self) -> Iterator[Text]:
        found = self.found
        if found.tried_again:
            said = f"not compared: {plural(found.tried_again, 'attempt')} that failed, and were made again"
            yield Text(said if found.tried_again > 1 else said.replace("were", "was"), "dim")
        told = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in _COUNTED if found.count(verdict))
        if found.drifted:
            yield Text(f"drifted: {told}", "bold yellow")
        elif found.unanswered:
            yield Text(f"undecided: {told}", "bold yellow")
        elif found.not_reached:
            calls = plural(len(found.calls), "call")
            yield Text(
                f"fresh so far: {calls}, nothing has changed; {found.not_reached} of the tape not reached", "bold"
            )
        else:
            yield Text(f"fresh: {plural(len(found.calls), 'call')}, nothing has changed", "bold green")


def _table(console: Console, calls: Sequence[CallFreshness], width: int) -> Iterator[Text]:
    rows = [_row(call) for call in calls]
    shape = fit(COLUMNS, rows, width)
    yield header_line(COLUMNS, shape)
    for call, row in zip(calls, rows, strict=True):
        yield from row_lines(COLUMNS, shape, row)
        for change in call.changes:
            yield from _change(console, change, width)


def _row(call: CallFreshness) -> list[Text]:
    numbers = [Text("" if number is None else str(number)) for number in (call.recorded, call.live)]
    request = call.tier or ("" if None in (call.recorded, call.live) else _request_word(call))
    return [*numbers, Text(one_line(call.what)), Text(request), Text(call.verdict, style=_STYLES[call.verdict])]


def _request_word(call: CallFreshness) -> str:
    """Return how an unanswered request differs: `changed`, or `other words` if only the model's texts differ."""
    if call.again and not any(change.side == "request" for change in call.changes):
        return "as above"
    return "changed" if any(change.side == "request" for change in call.changes) else "other words"


def _change(console: Console, change: CallChange, width: int) -> Iterator[Text]:
    where = change.where if change.side in ("model", "usage") else f"{change.side}: {change.where}"
    if change.side != "request":
        said = Text(one_line(f"{where} {change.recorded} → {change.live}"))
        yield from labelled(console, "", said, width, indent=_INDENT, label_width=0)
        return
    yield from labelled(console, "", Text(one_line(where)), width, indent=_INDENT, label_width=0)
    yield from Compared(change.recorded, change.live, _INDENT + 2).lines(console, width)


def _values(values: Sequence[str]) -> str:
    return ", ".join(values) or "(nothing)"
