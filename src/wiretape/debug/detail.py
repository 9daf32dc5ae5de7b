"""All there is to say about one place: what the call's request added, its answer, usage, tools, what others know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wiretape.debug.annotated_run import World
from wiretape.debug.annotations import CacheVerdict, Remark
from wiretape.debug.breakpoints import Breakpoint, Breakpoints
from wiretape.debug.notes import Note
from wiretape.debug.timeline import Stop
from wiretape.model.call import Message, ModelCall, Usage
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
    remarks: tuple[Remark, ...]
    drift: tuple[str, ...]
    notes: tuple[Note, ...]
    points: tuple[Breakpoint, ...]
    goes_on: bool = False  # the run is still happening: what is not there may come

    @property
    def call(self) -> ModelCall:
        return self.step.call


def detail(
    world: World,
    stop: Stop,
    notes: Sequence[Note],
    breakpoints: Breakpoints,
    *,
    judged: bool = True,
    goes_on: bool = False,
) -> Detail:
    """Raises UsageError at the start and the end. `judged`: ask for findings, cache and drift as well."""
    step = world.step(stop)
    call, request = step.call, step.call.request
    places = enumerate(request.messages[step.new_from :], step.new_from)
    return Detail(
        stop=stop,
        step=step,
        agent=world.agent(stop),
        calls=len(world.line.calls),
        depth=world.line.depth(call.number),
        why=world.why(stop),
        added=tuple((request.path(place), message) for place, message in places),
        history=step.new_from,
        answer=call.response.messages if call.response is not None else (),
        usage=call.usage,
        most_input=most_input(world),
        uses=tuple(world.line.uses(call.number)),
        tool=world.line.use(stop),
        starts=started.calls[0] if (started := world.line.started_at(stop)) is not None else None,
        cache=world.cache_verdict(call.number) if judged else None,
        remarks=tuple(world.remarks(call.number)) if judged else (),
        drift=tuple(world.drifts(stop)) if judged else (),
        notes=tuple(note for note in notes if note.stop.call == call.number),
        points=tuple(point for point in breakpoints.points if breakpoints.matches(point, world, stop)),
        goes_on=goes_on,
    )


def most_input(world: World) -> int:
    """The largest input of the run."""
    if world.most_input is None:
        usages = (step.call.usage for step in world.line.run.steps)
        world.most_input = max((usage.input or 0 for usage in usages if usage is not None), default=0)
    return world.most_input
