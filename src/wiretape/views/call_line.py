"""One line for each model call: record and replay print it, and the overview of a tape lists it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from rich.cells import cell_len
from rich.text import Span, Text

from wiretape.model.call import ModelCall, Usage
from wiretape.model.wording import count_text, duration_text
from wiretape.views.printable import clip, name, one_line

SEPARATOR = "  "
WIDE, NARROW = 100, 60  # terminal widths from which parts are shown, the same for all rows


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the line.

    If the line is too long, its parts are clipped to `least` cells, or replaced by `less`, in the order of `gives`.
    `least` None: the part is never clipped.
    """

    text: str
    style: str = ""
    gives: int = 0
    least: int | None = None
    less: str | None = None

    def shorter(self, by: int, least: int) -> _Part:
        if self.less is not None:
            return replace(self, text=self.less)
        return replace(self, text=clip(self.text, max(least, cell_len(self.text) - by)))


def call_line(call: ModelCall, width: int, *, beside: int = 0) -> Text:
    """Render a call on one line: number, model, tokens, tools, finish reason, time.

    `width` of the terminal decides which parts are shown; `beside`: cells that other text uses.
    """
    parts = list(_parts(call, width))
    if _excess(parts, width - beside) <= 0:
        return _line(parts)
    for bound in (None, _FLOOR):
        for gives in (_MODEL, _TOOLS, _TOKENS, _FINISH):
            _shorten(parts, gives, width - beside, bound)
    line = _line(parts)
    line.truncate(max(1, width - beside), overflow="ellipsis")
    return line


def _line(parts: Sequence[_Part]) -> Text:
    """Join the parts in one text. A Text for each part would be slow for thousands of lines a second."""
    spans: list[Span] = []
    at = 0
    for part in parts:
        if part.style:
            spans.append(Span(at, at + len(part.text), part.style))
        at += len(part.text) + len(SEPARATOR)
    return Text(SEPARATOR.join([part.text for part in parts]), no_wrap=True, overflow="ellipsis", spans=spans)


_NEVER, _MODEL, _TOOLS, _TOKENS, _FINISH = range(5)  # the order in which parts are shortened
_FLOOR = 6  # cells of a name in a very narrow terminal


def _shorten(parts: list[_Part], gives: int, room: int, bound: int | None) -> None:
    """Shorten the parts of one kind if the line is too long."""
    excess = _excess(parts, room)
    for at, part in enumerate(parts):
        if excess > 0 and part.gives == gives and (part.least is not None or part.less is not None):
            parts[at] = part.shorter(excess, bound or part.least or 0)


def _excess(parts: Sequence[_Part], room: int) -> int:
    return sum([cell_len(part.text) for part in parts]) + len(SEPARATOR) * (len(parts) - 1) - room


def _parts(call: ModelCall, width: int) -> Iterable[_Part]:
    number = f"{call.number:>3}" if call.number else f"{'x' + str(call.exchange):>3}"
    yield _Part(number, "bold")
    yield _Part(name(call.model or host(call.url) or "unknown model"), "cyan", _MODEL, 14)
    if call.kind != "inference":
        yield _Part(call.kind.replace("_", " "), "dim", _FINISH, 8)
    else:
        if width >= WIDE:
            yield _Part(call.format, "dim")
        if width >= NARROW:
            yield _tokens(call.usage)
    asked = one_line(", ".join(tool.name for tool in call.tool_calls))
    if asked:
        yield _Part(f"→ {asked}", "magenta", _TOOLS, 12)
    finish, bad = ending(call)
    if bad or not (asked and finish == "tool_calls"):  # the names of the tools show it
        yield _Part(finish, "red" if bad else "green", _FINISH, 9)
    if call.ended_at is not None:
        yield _Part(duration_text(call.ended_at - call.at), "dim")


def _tokens(usage: Usage | None) -> _Part:
    whole = usage_text(usage)
    less = usage_text(replace(usage, cached=None)) if usage is not None and usage.cached is not None else None
    return _Part(whole, "", _TOKENS, less=less)


def host(url: str) -> str:
    """Return the host of a URL; empty if the URL is invalid."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def usage_text(usage: Usage | None) -> str:
    """Return `462 in (256 cached) 31 out`; unknown cached tokens are left out."""
    if usage is None or (usage.input is None and usage.output is None):
        return "tokens unknown"
    cached = f" ({usage.cached:,} cached)" if usage.cached is not None else ""
    return f"{count_text(usage.input)} in{cached} {count_text(usage.output)} out"


def ending(call: ModelCall) -> tuple[str, bool]:
    """Return how a call ended, and True if it failed."""
    response = call.response
    if response is None:
        return (f"no response ({call.ended})", True) if call.ended is not None else ("still open", False)
    if response.error is not None:
        kind = response.error.code or response.error.type
        return one_line(f"error {response.error.status}" + (f" {kind}" if kind else "")), True
    if response.status >= 400:
        return f"error {response.status}", True
    if not response.complete and call.ended is None:
        return "still open", False
    if not response.complete:
        return f"cut ({call.ended})" if call.ended not in (None, "complete") else "cut", True
    return response.finish or "done", response.finish == "error"
