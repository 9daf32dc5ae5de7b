"""All there is to say about one place: what the call's request added, its answer, usage, tools, what others know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    """A place, for the right pane of a screen and for what a move prints.

    `most_input` is the largest input of the run, for bars. `tool` is the tool use at a `tool` stop.
    """

    stop: Stop
    step: Step
    agent: Agent
    calls: int  # of the run
    depth: int
    why: str
    added: tuple[tuple[str, Message], ...]  # path in the request body, message
    history: int  # messages of the request that are not new
    answer: tuple[Message, ...]
    usage: Usage | None
    most_input: int
    uses: tuple[ToolUse, ...]
    tool: ToolUse | None
    starts: int | None  # the first call of the subagent that the tool use set going
    cache: CacheVerdict | None
    findings: tuple[CallFinding, ...]
    drift: tuple[str, ...]
    notes: tuple[Note, ...]
    points: tuple[Breakpoint, ...]
    goes_on: bool = False  # the run is still happening: what is not there may come

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
    goes_on: bool = False,
) -> Detail:
    """Raises UsageError at the start and the end. `judged`: ask for findings, cache and drift as well."""
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
        most_input=most_input(annotated),
        uses=tuple(annotated.timeline.uses(call.number)),
        tool=annotated.timeline.use(stop),
        starts=started.calls[0] if (started := annotated.timeline.started_at(stop)) is not None else None,
        cache=annotated.cache_verdict(call.number) if judged else None,
        findings=tuple(annotated.findings(call.number)) if judged else (),
        drift=tuple(annotated.drifts(stop)) if judged else (),
        notes=tuple(note for note in notes if note.stop.call == call.number),
        points=tuple(point for point in breakpoints.points if breakpoints.matches(point, annotated, stop)),
        goes_on=goes_on,
    )


def most_input(annotated: AnnotatedRun) -> int:
    """The largest input of the run."""
    if annotated.most_input is None:
        usages = (step.call.usage for step in annotated.timeline.run.steps)
        annotated.most_input = max((usage.input or 0 for usage in usages if usage is not None), default=0)
    return annotated.most_input


Served: TypeAlias = Literal["cached", "partly", "not", "unknown"]


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """One thing that the model saw: a tool, or a message. `held`: the provider has it, the body does not."""

    path: str
    new: bool
    served: Served
    size: int  # characters
    message: Message | None = None
    tool: ToolSpec | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class ModelContext:
    """`shown`: the part that was asked for. `total` counts all."""

    call: int
    shown: tuple[ContextEntry, ...]
    total: int
    input: int | None
    cached: int | None
    full: bool = False


def model_context(annotated: AnnotatedRun, stop: Stop, only: slice | None = None, full: bool = False) -> ModelContext:
    """Raises UsageError at the start and the end."""
    step = annotated.step(stop)
    call, usage = step.call, step.call.usage
    seen = _seen(call.request, step.new_from, new_tools=annotated.timeline.thread_before(call.number) is None)
    cached = usage.cached if usage is not None else None
    total = usage.input if usage is not None else None
    marked = _marked(seen, total, cached)
    return ModelContext(
        call.number, tuple(marked[only] if only is not None else marked), len(marked), total, cached, full
    )


def _seen(request: CallRequest, new_from: int, new_tools: bool) -> list[ContextEntry]:
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


def _marked(seen: list[ContextEntry], total: int | None, cached: int | None) -> list[ContextEntry]:
    """Say of each whether the cache served it, by where its characters lie among all."""
    if cached is None or not total:
        return seen
    characters = sum(one.size for one in seen)
    end, start, marked = characters * cached / total, 0, list[ContextEntry]()
    for one in seen:
        stop = start + one.size
        served: Served = "cached" if stop <= end else "partly" if start < end else "not"
        marked.append(
            ContextEntry(one.path, one.new, served if cached else "not", one.size, one.message, one.tool, one.held)
        )
        start = stop
    return marked
