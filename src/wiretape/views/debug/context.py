"""All that the model saw at a call: one entry per tool and message, marked as cached and as new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.debug.detail import ContextEntry, ModelContext, Served
from wiretape.debug.expression.values import messages_text
from wiretape.model.wording import plural
from wiretape.views.blocks import message_view
from wiretape.views.figures import tokens
from wiretape.views.printable import clip, json_text, name, visible
from wiretape.views.prose import Indented

_SIGNS: dict[Served, tuple[str, str]] = {
    "cached": ("█", "green"),
    "partly": ("▒", "green"),
    "not": ("░", "dim"),
    "unknown": ("┄", "dim"),
}
_LINES = 2  # of a message


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
        for seen in context.shown:
            yield from _entry(seen, options.max_width, context.full)
        yield Indented(_legend(context), 0)


def _entry(seen: ContextEntry, width: int, full: bool) -> Iterator[RenderableType]:
    sign, style = _SIGNS[seen.served]
    new = "+" if seen.new else " "
    head = Text.assemble((sign, style), (new, "bold green"), " ", (seen.path, "dim"))
    if seen.tool is not None:
        head.append(f"  tool {name(seen.tool.name)}", style="magenta")
    if seen.message is not None:
        head.append(f"  {name(seen.message.role)}", style="bold")
    head.append(f"  {plural(seen.size, 'character')}", style="dim")
    notes = [
        "held by the provider" if seen.held else "",
        "cache marker" if seen.message and seen.message.cache_marked else "",
    ]
    head.append("".join(f"  {note}" for note in notes if note), style="dim")
    head.no_wrap, head.overflow = True, "ellipsis"
    yield head
    yield from _content(seen, width, full)


def _content(seen: ContextEntry, width: int, full: bool) -> Iterator[RenderableType]:
    if full and seen.message is not None:
        for number, part in enumerate(message_view(seen.message, {}, full=True)):
            if number:  # the head is ours
                yield part
        return
    if full and seen.tool is not None:
        yield Indented(Text(visible(seen.tool.description or "")), 4)
        yield Indented(Text(json_text(seen.tool.schema), style="dim"), 4)
        return
    text = (
        seen.tool.description or "" if seen.tool is not None else messages_text([seen.message] if seen.message else [])
    )
    if text.strip():
        yield Indented(Text(clip(text, _LINES * (width - 5))), 4)


def _legend(context: ModelContext) -> Text:
    said = Text(style="dim")
    shown = {seen.served for seen in context.shown}
    words = {"cached": "cached", "partly": "partly cached", "not": "not cached", "unknown": "cache unknown"}
    for served, (sign, style) in _SIGNS.items():
        if served in shown:
            said.append(sign, style=style).append(f" {words[served]}   ")
    if any(seen.new for seen in context.shown):
        said.append("+", style="bold green").append(" new with this call   ")
    if context.cached is not None and context.input:
        said.append(
            f"({tokens(context.cached)} of {tokens(context.input)} input tokens were cached; "
            "where that ends is estimated from the lengths)"
        )
    else:
        said.append("(the provider does not report cached tokens)")
    return said
