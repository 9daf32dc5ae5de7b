"""What the debugger shows of a stop: the call in detail, and all that the model saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.annotations import CacheVerdict, CallFinding, Note
from wiretape.debug.breakpoints import Breakpoint, Breakpoints
from wiretape.debug.expression.values import messages_text, to_json
from wiretape.debug.timeline import Stop
from wiretape.model.call import CallRequest, Message, ModelCall, ToolSpec, Usage
from wiretape.model.run import Agent, Step, ToolUse


@dataclass(frozen=True, slots=True)
class Detail:
    """A stop with everything that is known of its call."""

    stop: Stop
    step: Step
    agent: Agent
    calls: int  # how many the run has
    depth: int
    why: str
    added: tuple[tuple[str, Message], ...]  # path in the request body, message
    history: int  # how many messages of the request are not new
    answer: tuple[Message, ...]
    usage: Usage | None
    most_input: int  # the largest input of the run, for usage bars
    uses: tuple[ToolUse, ...]
    tool: ToolUse | None  # at a `tool` stop
    starts: int | None  # the first call of the subagent that the tool started
    cache: CacheVerdict | None
    findings: tuple[CallFinding, ...]
    drift: tuple[str, ...]
    notes: tuple[Note, ...]
    points: tuple[Breakpoint, ...]
    running: bool = False  # the program still runs: a missing result may arrive later

    @property
    def call(self) -> ModelCall:
        return self.step.call


def detail(
    annotated: AnnotatedRun,
    stop: Stop,
    notes: Sequence[Note],
    breakpoints: Breakpoints,
    *,
    judged: bool = True,
    running: bool = False,
) -> Detail:
    """Return the detail of a stop. `judged`: with findings, cache verdict and drift. Raises UsageError at the ends."""
    step = annotated.step(stop)
    call, request = step.call, step.call.request
    places = enumerate(request.messages[step.new_from :], step.new_from)
    return Detail(
        stop=stop,
        step=step,
        agent=annotated.agent(stop),
        calls=len(annotated.timeline.calls),
        depth=annotated.timeline.depth(call.number),
        why=annotated.why(stop),
        added=tuple((request.path(place), message) for place, message in places),
        history=step.new_from,
        answer=call.response.messages if call.response is not None else (),
        usage=call.usage,
        most_input=annotated.most_input,
        uses=tuple(annotated.timeline.uses(call.number)),
        tool=annotated.timeline.use(stop),
        starts=started.calls[0] if (started := annotated.timeline.started_at(stop)) is not None else None,
        cache=annotated.cache_verdict(call.number) if judged else None,
        findings=tuple(annotated.findings(call.number)) if judged else (),
        drift=tuple(annotated.drift(stop)) if judged else (),
        notes=tuple(note for note in notes if note.stop.call == call.number),
        points=tuple(point for point in breakpoints.points if breakpoints.matches(point, annotated, stop)),
        running=running,
    )


Served: TypeAlias = Literal["cached", "partly", "not", "unknown"]


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A tool or a message that the model saw. `held`: the provider stores it, the request does not contain it."""

    path: str
    new: bool
    served: Served
    size: int  # characters
    message: Message | None = None
    tool: ToolSpec | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class ModelContext:
    """Tools and messages of a request, marked as new and as cached.

    A provider reports cached tokens only: which entries they cover is estimated from the lengths of the texts.
    """

    call: int
    shown: tuple[ContextEntry, ...]  # the entries that the command selected
    total: int  # how many entries there are
    input: int | None
    cached: int | None
    full: bool = False


def model_context(annotated: AnnotatedRun, stop: Stop, only: slice | None = None, full: bool = False) -> ModelContext:
    """Return what the model saw at a stop. Raises UsageError at the ends of the tape."""
    step = annotated.step(stop)
    call, usage = step.call, step.call.usage
    entries = _entries(call.request, step.new_from, new_tools=annotated.timeline.thread_before(call.number) is None)
    cached = usage.cached if usage is not None else None
    total = usage.input if usage is not None else None
    marked = _marked(entries, total, cached)
    return ModelContext(
        call.number, tuple(marked[only] if only is not None else marked), len(marked), total, cached, full
    )


def _entries(request: CallRequest, new_from: int, new_tools: bool) -> list[ContextEntry]:
    tools = [
        ContextEntry(f"tools[{place}]", new_tools, "unknown", _tool_size(tool), tool=tool)
        for place, tool in enumerate(request.tools)
    ]
    messages = [
        ContextEntry(
            request.path(place),
            place >= new_from,
            "unknown",
            len(messages_text([message])),
            message=message,
            held=place < request.held,
        )
        for place, message in enumerate(request.messages)
    ]
    return tools + messages


def _tool_size(tool: ToolSpec) -> int:
    return len(str(to_json(tool.raw))) if tool.raw else len(tool.name) + len(tool.description or "")


def _marked(entries: list[ContextEntry], total: int | None, cached: int | None) -> list[ContextEntry]:
    """The entries, each with an estimate of whether the cache served it."""
    if cached is None or not total:
        return entries
    characters = sum(entry.size for entry in entries)
    end, start, marked = characters * cached / total, 0, list[ContextEntry]()
    for entry in entries:
        stop = start + entry.size
        served: Served = "cached" if stop <= end else "partly" if start < end else "not"
        marked.append(replace(entry, served=served if cached else "not"))
        start = stop
    return marked
