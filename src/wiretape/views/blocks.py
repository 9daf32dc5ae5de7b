"""Renders messages and their blocks: texts, reasoning, tool calls and results, each with a heading."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import assert_never

from rich.text import Text

from wiretape.model import call as model
from wiretape.model.jsonvalue import Json
from wiretape.model.wording import plural
from wiretape.views.printable import json_text, one_line, visible
from wiretape.views.prose import Indented

LONGEST = 4000  # characters of a block that are shown without --full
MOST_LINES = 60


def message_view(
    message: model.Message,
    names: Mapping[str, str],
    path: str = "",
    full: bool = False,
    ran: Mapping[int, str] | None = None,
) -> Iterator[Text | Indented]:
    """Render a message: its role, its path in the body, and its blocks.

    `ran`: `id()` of a tool call's block -> the exchange on which it ran.
    """
    head = Text(one_line(message.role), style="bold")
    notes = [path, "cache marker" if message.cache_marked else ""]
    head.append("".join(f"  {note}" for note in notes if note), style="dim not bold")
    yield head
    if not message.blocks:
        yield Indented(Text("(nothing)", style="dim"), 2)
    for block in message.blocks:
        yield from block_view(block, names, full)
        if ran and id(block) in ran:
            yield Indented(Text(ran[id(block)], style="dim"), 4)


def block_view(block: model.Block, names: Mapping[str, str], full: bool = False) -> Iterator[Indented]:
    """Render a block with its heading. `names`: id of a tool call -> name of the tool."""
    match block:
        case model.Text(text=text, refusal=refusal):
            if refusal:
                yield Indented(Text("refusal", style="red"), 2)
            yield _prose(text, full, 2)
        case model.Reasoning():
            yield from _reasoning(block, full)
        case model.ToolCall():
            note = "" if block.kind == "function" else f"{block.kind} tool"
            yield _heading("calls", block.name, block.id, Text(note, style="dim"))
            yield Indented(shortened(pretty_arguments(block.arguments), full), 4)
        case model.ToolResult():
            yield from _result(block, names, full)
        case model.Media(kind=kind, raw=raw):
            yield Indented(Text(f"{one_line(kind)} ({media_size(raw)})", style="magenta"), 2)
            if full:
                yield Indented(Text(json_text(raw)), 4)
        case model.Control(kind=kind, raw=raw):
            yield Indented(Text(one_line(kind).replace("_", " "), style="magenta"), 2)
            yield Indented(shortened(json_text(raw), full), 4)
        case model.Unknown(type=name, raw=raw):
            yield Indented(Text(f"block of unknown type {one_line(name)!r}", style="yellow"), 2)
            yield Indented(shortened(json_text(raw), full), 4)
        case _:
            assert_never(block)


def _reasoning(block: model.Reasoning, full: bool) -> Iterator[Indented]:
    yield Indented(Text("reasoning summary" if block.summary else "reasoning", style="magenta"), 2)
    if block.text:
        yield Indented(shortened(visible(block.text), full, style="italic"), 4)
    if block.opaque is not None:
        said = visible(block.opaque) if full else plural(len(block.opaque), "character")
        yield Indented(Text(f"opaque state: {said}", style="dim"), 4)


def _result(block: model.ToolResult, names: Mapping[str, str], full: bool) -> Iterator[Indented]:
    name = block.name or names.get(block.id or "", "") or "a tool"
    yield _heading("result of", name, block.id, Text("an error" if block.is_error else "", style="red"))
    if block.text or not block.parts:
        yield _prose(block.text, full, 4)
    for part in block.parts:
        yield Indented(shortened(json_text(part), full), 4)


def _heading(verb: str, name: str, id: str | None, note: Text) -> Indented:
    heading = Text.assemble((f"{verb} ", "magenta"), (one_line(name), "bold magenta"))
    if note:
        heading.append("  ").append_text(note)
    return Indented(heading.append(f"  {one_line(id)}", style="dim") if id else heading, 2)


def _prose(text: str, full: bool, indent: int) -> Indented:
    return Indented(shortened(visible(text), full) if text else Text("(empty)", style="dim"), indent)


def shortened(text: str, full: bool, style: str = "") -> Text:
    """Return the text, or its start and the number of characters left out."""
    lines = text.splitlines()
    if full or (len(text) <= LONGEST and len(lines) <= MOST_LINES):
        return Text(text.rstrip("\n"), style=style)
    start = "\n".join(lines[:MOST_LINES])[:LONGEST]
    more = plural(len(text) - len(start), "more character")
    return Text(start, style=style).append(f"\n… {more}; --full shows all", style="dim not italic")


def pretty_arguments(arguments: str) -> str:
    """Return the arguments as indented JSON; text that is not JSON is unchanged."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return visible(arguments) if arguments else "(no arguments)"
    return json_text(value)


def media_size(raw: Json) -> str:
    """Return the size of a media block."""
    return f"{plural(len(json.dumps(raw, ensure_ascii=False)), 'character')} of JSON"


def tool_names(request: model.CallRequest) -> dict[str, str]:
    """Return the names of the tool calls in a request's history, by id."""
    blocks = (block for message in request.messages for block in message.blocks)
    return {block.id: block.name for block in blocks if isinstance(block, model.ToolCall) and block.id}
