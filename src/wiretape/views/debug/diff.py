"""View of the differences between two calls: tokens, request, answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.debug.difference import CallComparison, CallDifference
from wiretape.model.wording import plural, window
from wiretape.views.debug.place import brief_text
from wiretape.views.printable import one_line, visible
from wiretape.views.prose import Heading, Indented, labelled

_BEFORE, _AROUND = 30, 160  # characters before the first difference, and in all
_MOST = 40  # changes shown of a request or an answer


def comparison_view(comparison: CallComparison) -> RenderableType:
    return _ComparisonView(comparison)


@dataclass(frozen=True, slots=True)
class _ComparisonView:
    comparison: CallComparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.comparison
        yield Indented(Text(one_line(f"from {found.first} to {found.second}"), style="bold"), 0)
        if found.note:
            yield Indented(Text(one_line(found.note)), 0)
        for what, before, after in found.figures:
            arrow = before if before == after else f"{before} → {after}"
            yield Text.assemble((what.ljust(12), "dim"), arrow)
        same = f"; the first {plural(found.same_messages, 'message')} are the same" if found.same_messages else ""
        width = options.max_width
        yield from _changes(console, width, "request", found.request, same)
        yield from _changes(console, width, "answer", found.answer)


def _changes(
    console: Console, width: int, title: str, changes: tuple[CallDifference, ...], same: str = ""
) -> Iterator[RenderableType]:
    yield Heading(f"{title}: {plural(len(changes), 'difference') if changes else 'no difference'}{same}")
    for change in changes[:_MOST]:
        yield from _change(console, width, change)
    if len(changes) > _MOST:
        yield Text(f"… {plural(len(changes) - _MOST, 'more difference')}", style="dim")


def _change(console: Console, width: int, change: CallDifference) -> Iterator[RenderableType]:
    sign, style = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}[change.how]
    where = one_line(change.path)
    if change.character is not None:
        where += f", character {change.character}"
    yield Indented(Text(f"{sign} {where}", style=style), 0)
    if change.how == "changed":
        start = max(0, (change.character or 0) - _BEFORE)
        for label, text, colour in (("-", change.before, "red"), ("+", change.after, "green")):
            said = Text(_around(text, start), style=colour)
            yield from labelled(console, label, said, width, indent=4, label_width=2)
        return
    text = change.after if change.how == "added" else change.before
    yield Indented(Text(brief_text(visible(text or "")) or "(empty)"), 4)


def _around(text: str | None, start: int) -> str:
    if text is None:
        return "(nothing)"
    return one_line(window(text, start, _AROUND))
