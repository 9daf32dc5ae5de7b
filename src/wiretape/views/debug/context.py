"""View of what the model saw at a call: a line for each tool and message, marked as cached and as new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.debug.detail import ContextEntry, ModelContext, Served
from wiretape.debug.expression.values import messages_text
from wiretape.model.wording import count_text, plural
from wiretape.views.blocks import message_view
from wiretape.views.printable import clip, json_text, name, visible
from wiretape.views.prose import Indented

_SIGNS: dict[Served, tuple[str, str]] = {
    "cached": ("█", "green"),
    "partly": ("▒", "green"),
    "not": ("░", "dim"),
    "unknown": ("┄", "dim"),
}
_LINES = 2  # shown of a message


def context_view(context: ModelContext) -> RenderableType:
    return _ContextView(context)


@dataclass(frozen=True, slots=True)
class _ContextView:
    context: ModelContext

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        context = self.context
        yield Text(f"what the model saw at call {context.call}", style="bold")
        if len(context.shown) < context.total:
            yield Text(f"{len(context.shown)} of {plural(context.total, 'entry', 'entries')}", style="dim")
        for entry in context.shown:
            yield from _entry(entry, options.max_width, context.full)
        yield Indented(_legend(context), 0)


def _entry(entry: ContextEntry, width: int, full: bool) -> Iterator[RenderableType]:
    sign, style = _SIGNS[entry.served]
    new = "+" if entry.new else " "
    head = Text.assemble((sign, style), (new, "bold green"), " ", (entry.path, "dim"))
    if entry.tool is not None:
        head.append(f"  tool {name(entry.tool.name)}", style="magenta")
    if entry.message is not None:
        head.append(f"  {name(entry.message.role)}", style="bold")
    head.append(f"  {plural(entry.size, 'character')}", style="dim")
    notes = [
        "stored by the provider" if entry.held else "",
        "cache marker" if entry.message and entry.message.cache_marked else "",
    ]
    head.append("".join(f"  {note}" for note in notes if note), style="dim")
    head.no_wrap, head.overflow = True, "ellipsis"
    yield head
    yield from _content(entry, width, full)


def _content(entry: ContextEntry, width: int, full: bool) -> Iterator[RenderableType]:
    if full and entry.message is not None:
        for number, part in enumerate(message_view(entry.message, {}, full=True)):
            if number:  # the first part is its own head
                yield part
        return
    if full and entry.tool is not None:
        yield Indented(Text(visible(entry.tool.description or "")), 4)
        yield Indented(Text(json_text(entry.tool.schema), style="dim"), 4)
        return
    text = (
        entry.tool.description or ""
        if entry.tool is not None
        else messages_text([entry.message] if entry.message else [])
    )
    if text.strip():
        yield Indented(Text(clip(text, _LINES * (width - 5))), 4)


def _legend(context: ModelContext) -> Text:
    legend = Text(style="dim")
    shown = {entry.served for entry in context.shown}
    words = {"cached": "cached", "partly": "partly cached", "not": "not cached", "unknown": "cache unknown"}
    for served, (sign, style) in _SIGNS.items():
        if served in shown:
            legend.append(sign, style=style).append(f" {words[served]}   ")
    if any(entry.new for entry in context.shown):
        legend.append("+", style="bold green").append(" new with this call   ")
    if context.cached is not None and context.input:
        legend.append(
            f"({count_text(context.cached)} of {count_text(context.input)} input tokens were cached; "
            "which entries they cover is estimated from the lengths)"
        )
    else:
        legend.append("(the provider does not report cached tokens)")
    return legend
