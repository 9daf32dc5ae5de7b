"""Renders one model call: its facts, its new messages, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.model.call import CallError, CallResponse, ModelCall, ToolSpec, Usage
from wiretape.model.run import Run, Step, ToolUse
from wiretape.model.wording import count_text, duration_text, plural
from wiretape.views.blocks import message_view, tool_names
from wiretape.views.call_line import ending
from wiretape.views.printable import clip, json_text, one_line, visible
from wiretape.views.prose import Heading, Indented, labelled

LABEL = 10


def call_view(step: Step, run: Run, why: str, *, full: bool = False) -> RenderableType:
    """Render what `wiretape show TAPE CALL` shows. `full`: the whole history and the tools, nothing shortened."""
    return _CallView(step, run, why, full)


@dataclass(frozen=True, slots=True)
class _CallView:
    step: Step
    run: Run
    why: str
    full: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _title(self.step, self.run)
        for label, said in facts(self.step, self.why, self.full):
            yield from labelled(console, label, said, options.max_width, label_width=LABEL)
        if self.full:
            yield from _tools(self.step.call.request.tools)
        yield from _request(self.step, self.full)
        yield from _response(self.step.call, self.run, self.full)


def _title(step: Step, run: Run) -> Text:
    call = step.call
    where = "side call" if step.turn is None and step.cause.kind == "side_call" else ""
    where = f"turn {step.turn}" if step.turn is not None else where
    part = f" (its call {call.part})" if call.part is not None else ""
    said = [f"x{call.exchange}{part}", _agent(step, run), where]
    title = Text(f"Call {call.number} of {len(run.steps)}", style="bold")
    return title.append("".join(f" · {word}" for word in said if word), style="not bold")


def _agent(step: Step, run: Run) -> str:
    agent = next((agent for agent in run.agents if agent.number == step.agent), None)
    if agent is None:
        return "agent unknown"
    started = f" (started by call {agent.started_by})" if agent.started_by is not None else ""
    return f"agent {one_line(agent.name)}{started}"


def facts(step: Step, why: str, full: bool) -> Iterator[tuple[str, Text]]:
    """Yield the labelled lines above the messages."""
    call, response = step.call, step.call.response
    yield "why", Text(one_line(why))
    yield "url", Text(one_line(call.url))
    yield "format", Text(call.format + (f", {call.dialect}" if call.dialect else ""))
    yield "model", Text(_models(call))
    finish, bad = ending(call)
    if response is not None and response.raw_finish and response.raw_finish != finish:
        finish += f" (on the wire: {one_line(response.raw_finish)})"
    status = f"{response.status} · " if response is not None else ""
    yield "finish", Text(status + finish, style="red" if bad else "")
    if response is not None and response.error is not None:
        yield "error", Text(error_words(response.error), style="red")
    yield "tokens", Text(usage_sentence(call.usage))
    yield "time", Text(timing(call, response))
    yield "tools", Text(_offered(call.request.tools))
    if call.request.settings:
        settings = json_text(call.request.settings) if full else setting_words(call.request.settings)
        yield "settings", Text(settings)
    if call.request.previous_response_id:
        yield "continues", Text(f"response {one_line(call.request.previous_response_id)}")


def _models(call: ModelCall) -> str:
    asked = call.request.model
    if call.model is None:
        return "unknown"
    return one_line(call.model + (f" (asked for {asked})" if asked and asked != call.model else ""))


def usage_sentence(usage: Usage | None) -> str:
    """Return the token counts of a call; unknown ones are `?`."""
    if usage is None:
        return "unknown: the wire gives no usage"
    said = [f"{count_text(usage.input)} in", f"{count_text(usage.cached)} cached"]
    if usage.cache_write is not None:
        said.append(f"{count_text(usage.cache_write)} written to the cache")
    said += [f"{count_text(usage.output)} out", f"{count_text(usage.reasoning)} reasoning"]
    return ", ".join(said) + ("" if usage.consistent else "; these counts contradict each other")


def timing(call: ModelCall, response: CallResponse | None) -> str:
    """Return the start, the time to the first token, and the duration."""
    said = [f"started at {duration_text(call.at)}"]
    if response is not None and response.first_token_at is not None:
        said.append(f"first token after {duration_text(response.first_token_at - call.at)}")
    said.append(f"took {duration_text(call.ended_at - call.at)}" if call.ended_at is not None else "not ended")
    return ", ".join(said) + (", streamed" if response is not None and response.streamed else "")


def error_words(error: CallError) -> str:
    """Return the provider's error on one line."""
    name = " ".join(part for part in (error.type, error.code) if part)
    said = f"{name}: {error.message}" if name else error.message
    retry = f"; retry after {duration_text(error.retry_after_ms)}" if error.retry_after_ms is not None else ""
    phase = "" if error.phase == "before_stream" else f" ({error.phase.replace('_', ' ')})"
    return one_line(said + phase + retry)


def _offered(tools: tuple[ToolSpec, ...]) -> str:
    if not tools:
        return "none offered"
    return f"{len(tools)} offered: " + one_line(", ".join(tool.name for tool in tools))


def setting_words(settings: Mapping[str, object]) -> str:
    """Return `temperature 0.8 · stream true`: every setting, long values shortened."""
    return " · ".join(f"{name} {clip(json_text(value, indent=None), 60)}" for name, value in settings.items())


def _tools(tools: tuple[ToolSpec, ...]) -> Iterator[RenderableType]:
    if not tools:
        return
    yield Heading(f"offers {plural(len(tools), 'tool')}")
    for tool in tools:
        yield Text(one_line(tool.name), style="bold magenta")
        if tool.description:
            yield Indented(Text(visible(tool.description)), 2)
        yield Indented(Text(json_text(tool.schema), style="dim"), 2)


def _request(step: Step, full: bool) -> Iterator[RenderableType]:
    request = step.call.request
    start = 0 if full else step.new_from
    new = len(request.messages) - start
    title = f"sends {plural(new, 'message')}" if full else f"adds {plural(new, 'message')}"
    yield Heading(title + (f" to the {start} of its thread" if start else ""))
    names = tool_names(request)
    for number, message in enumerate(request.messages[start:], start):
        mark = "  new" if full and number >= step.new_from > 0 else ""
        yield from message_view(message, names, request.path(number) + mark, full)


def ran_words(use: ToolUse) -> str:
    """Return the exchange on which a tool ran, and its duration at the server."""
    return f"ran on x{use.exchange}, " + (duration_text(use.ran_ms) if use.ran_ms is not None else "not answered")


def _response(call: ModelCall, run: Run, full: bool) -> Iterator[RenderableType]:
    yield Heading("answer")
    if call.response is None or not call.response.messages:
        yield Text("(none)", style="dim")
        return
    names = tool_names(call.request) | {tool.id: tool.name for tool in call.tool_calls if tool.id}
    ran = {id(use.call): ran_words(use) for use in run.tool_uses if use.call_number == call.number and use.exchange}
    for message in call.response.messages:
        yield from message_view(message, names, full=full, ran=ran)
    if not call.response.complete:
        yield Text("(cut short here)", style="red")
