"""An answer while it comes: how far it is, and what has been said by then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.debug.streamed import Streamed
from wiretape.model.wording import plural
from wiretape.views.blocks import message_view
from wiretape.views.prose import Heading

_DONE, _TO_COME = "━", "─"


def stream_view(stream: Streamed, events: int, ms: int) -> RenderableType:
    """After so many events, so many milliseconds after the request."""
    return _StreamView(stream, events, ms)


@dataclass(frozen=True, slots=True)
class _StreamView:
    stream: Streamed
    events: int
    ms: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(10, options.max_width - 34)
        done = round(width * self.ms / self.stream.lasts_ms) if self.stream.lasts_ms else width
        yield Text.assemble(
            (_DONE * done, "green"),
            (_TO_COME * (width - done), "dim"),
            f" {self.ms / 1000:.2f} s",
            (f" · {self.events} of {plural(len(self.stream), 'event')}", "dim"),
        )
        yield Heading("answer")
        yield from self._said()

    def _said(self) -> Iterator[RenderableType]:
        messages = self.stream.after(self.events)
        if not messages:
            yield Text("(nothing yet)", style="dim")
        for message in messages:
            yield from message_view(message, {}, full=True)
