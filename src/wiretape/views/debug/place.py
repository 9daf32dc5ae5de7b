"""Views of a stop: why the debugger stopped, what the call adds, what the model answered, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.debug.answer_stream import AnswerStream
from wiretape.debug.breakpoints import Hit
from wiretape.debug.commands.topics import finding_lines, finding_name
from wiretape.debug.detail import Detail
from wiretape.debug.expression.values import to_json
from wiretape.debug.replies import Arrival
from wiretape.model.call import Block, Message, Reasoning, ToolCall, ToolResult
from wiretape.model.call import Text as TextBlock
from wiretape.model.wording import duration_text, plural
from wiretape.views.blocks import message_view, pretty_arguments, shortened, tool_names
from wiretape.views.call_line import ending
from wiretape.views.figures import percent, usage_bar
from wiretape.views.printable import clip, json_text, name, one_line, visible
from wiretape.views.prose import Heading, Indented, labelled
from wiretape.views.show.call import error_words, ran_words, usage_sentence

LABEL = 9
_PHASES = {"request": "before its request", "answer": "after its answer", "tool": "at its tool"}


def place_view(arrived: Arrival) -> RenderableType:
    return _PlaceView(arrived)


@dataclass(frozen=True, slots=True)
class _PlaceView:
    arrived: Arrival

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, detail = options.max_width, self.arrived.detail
        for hit in self.arrived.hits:
            yield Indented(_hit(hit), 0)
        if self.arrived.returned is not None:
            tool, gave = self.arrived.returned
            said = Text.assemble((f"{name(tool)} returned: ", "green"), clip(gave, 200))
            yield Indented(said, 0)
        if detail is None:
            yield Text(f"at the {self.arrived.place} of the tape", style="bold")
            return
        yield Indented(_title(detail), 0)
        for label, said in facts(detail):
            yield from labelled(console, label, said, width, label_width=LABEL)
        yield from body(detail, self.arrived.full)


def _hit(hit: Hit) -> Text:
    point = hit.point
    kind = "watchpoint" if point.watch else "breakpoint"
    said = Text.assemble((f"{kind} {point.number}: ", "bold yellow"), (one_line(point.text), "yellow"))
    if point.watch:
        said.append(f": was {_short(hit.before)}, is {_short(hit.now)}")
    return said


def _short(value: object) -> str:
    return "unknown" if value is None else clip(json_text(to_json(value), indent=None), 60)


def _title(detail: Detail) -> Text:
    phase = _PHASES[detail.stop.phase]
    if detail.tool is not None:
        phase += f" {name(detail.tool.call.name)}"
    title = Text(f"call {detail.call.number} of {detail.calls}", style="bold")
    said = [phase, _who(detail), f"turn {detail.step.turn}" if detail.step.turn is not None else ""]
    return title.append("".join(f" · {word}" for word in said if word), style="not bold")


def _who(detail: Detail) -> str:
    who = name(detail.agent.name)
    if detail.step.cause.kind == "side_call":
        return f"side call beside {who}"
    return who if detail.depth == 0 else f"{who} (subagent)"


def facts(detail: Detail) -> Iterator[tuple[str, Text]]:
    """The labelled lines under the title: cause, tokens, cache, finish, error, findings, drift, notes."""
    if detail.stop.phase != "tool":
        yield "why", Text(one_line(detail.why))
    if detail.stop.phase == "answer":
        yield "tokens", _tokens(detail)
        if detail.cache:
            yield "cache", Text(one_line(f"{detail.cache.word.replace('_', ' ')}: {detail.cache.text}"))
        yield "finish", _finish(detail)
        error = detail.call.response.error if detail.call.response is not None else None
        if error is not None:
            yield "error", Text(error_words(error), style="red")
    for finding in detail.findings if detail.stop.phase != "tool" else ():
        said = "; ".join([*finding_lines(finding)][: 1 + len(finding.values)])
        yield "finding", Text(f"{one_line(finding_name(finding))}: {one_line(said)}", style="yellow")
    for drift in detail.drift:
        yield "drift", Text(one_line(drift), style="yellow")
    for note in detail.notes:
        yield "note", Text(one_line(note.text), style="cyan")


def _tokens(detail: Detail) -> Text:
    usage = detail.usage
    said = Text(usage_sentence(usage))
    if usage is not None and usage.input:
        bar = usage_bar(usage.input, usage.cached, detail.most_input)
        if usage.cached is not None:
            said.append(f" · {percent(usage.cached / usage.input)} cached")
        said.append("  ").append_text(bar)
    return said


def _finish(detail: Detail) -> Text:
    call = detail.call
    finish, bad = ending(call)
    said = Text(finish, style="red" if bad else "")
    if call.tool_calls:
        said.append(" → ").append(one_line(", ".join(tool.name for tool in call.tool_calls)), style="magenta")
    if call.ended_at is not None:
        said.append(f" · took {duration_text(call.ended_at - call.at)}", style="not red")
    return said


def body(detail: Detail, full: bool = False) -> Iterator[RenderableType]:
    """The messages of the stop, or its tool call."""
    if detail.stop.phase == "tool":
        yield from _tool(detail, full)
        return
    yield from _added(detail, full)
    if detail.stop.phase == "request":
        yield Text()
        yield Indented(Text("the model has not answered yet: stepi or step goes to its answer", style="dim"), 0)
        return
    yield from _answer(detail, full)


def _added(detail: Detail, full: bool) -> Iterator[RenderableType]:
    behind = f" to the {detail.history} before" if detail.history else ""
    yield Heading(f"adds {plural(len(detail.added), 'message')}{behind}")
    names = tool_names(detail.call.request) if _has_results(detail) else {}
    for path, message in detail.added:
        yield from _message(message, names, path, full)


def _has_results(detail: Detail) -> bool:
    return any(isinstance(block, ToolResult) for _, message in detail.added for block in message.blocks)


def _message(message: Message, names: dict[str, str], path: str, full: bool) -> Iterator[RenderableType]:
    return message_view(message if full else brief(message), names, path, full=True)


def _answer(detail: Detail, full: bool) -> Iterator[RenderableType]:
    yield Heading("answer")
    if not detail.answer:
        yield Text("(none)", style="dim")
    names = {tool.id: tool.name for tool in detail.call.tool_calls if tool.id}
    for message in detail.answer:
        yield from _message(message, names, "", full)
    response = detail.call.response
    if response is not None and not response.complete:
        yield Text("(cut short here)", style="red")


def _tool(detail: Detail, full: bool) -> Iterator[RenderableType]:
    use = detail.tool
    assert use is not None
    yield Heading(f"calls {name(use.call.name)}")
    yield Indented(shortened(brief_text(pretty_arguments(use.call.arguments), full), full=True), 2)
    if detail.starts is not None:
        yield Indented(Text("a subagent runs this tool: step enters it, next skips it", style="dim"), 2)
    if use.exchange is not None:
        yield Indented(Text(ran_words(use), style="dim"), 2)
    yield Heading("result" + (f", in call {use.result_call}" if use.result_call is not None else ""))
    if use.result is None:
        missing = "not there yet: the program is running" if detail.running else "no later call contains it"
        yield Text(f"({missing})", style="dim")
        return
    if use.result.is_error:
        yield Indented(Text("an error", style="red"), 2)
    yield Indented(Text(brief_text(visible(use.result.text), full) or "(empty)"), 2)
    for part in use.result.parts:
        yield Indented(Text(brief_text(json_text(part), full)), 2)


LINES, CHARACTERS = 8, 600
MOST_BLOCKS = 20
_LONG = 4  # arguments longer than this many times CHARACTERS are cut without formatting them first


def brief_text(text: str, full: bool = False) -> str:
    """The text, or its first lines and the number of characters left out."""
    if full:
        return text
    start = "\n".join(text[: CHARACTERS + 1].split("\n")[:LINES])[:CHARACTERS]
    if len(start) >= len(text):
        return text
    return f"{start.rstrip()}\n… {plural(len(text) - len(start), 'more character')}; show full shows all"


def brief(message: Message) -> Message:
    """The message with long blocks shortened; the same object if none is long."""
    blocks = tuple(_block(block) for block in message.blocks[:MOST_BLOCKS])
    left = len(message.blocks) - len(blocks)
    if left:
        blocks += (TextBlock(f"… {plural(left, 'more block')}; show full shows all"),)
    elif all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
        return message
    return replace(message, blocks=blocks)


def _block(block: Block) -> Block:
    match block:
        case TextBlock(text=text) | Reasoning(text=text) | ToolResult(text=text):
            short = brief_text(text)
            return block if short is text else replace(block, text=short)
        case ToolCall(arguments=arguments) if len(arguments) > CHARACTERS:
            spelled = pretty_arguments(arguments) if len(arguments) < _LONG * CHARACTERS else arguments
            return replace(block, arguments=brief_text(spelled))
        case _:
            return block


_DONE, _TO_COME = "━", "─"


def stream_view(stream: AnswerStream, events: int, ms: int) -> RenderableType:
    """The view of an answer after `events` events, `ms` after the request."""
    return _StreamView(stream, events, ms)


@dataclass(frozen=True, slots=True)
class _StreamView:
    stream: AnswerStream
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
