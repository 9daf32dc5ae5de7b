"""All that the model saw at a call: tools and messages in their order, marked as new, as cached, or both not.

Where the provider's cache ended is known in tokens alone. The place is estimated from the lengths of what was sent,
and called so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.debug.annotated_run import World
from wiretape.debug.expression.values import messages_text, to_json
from wiretape.debug.timeline import Stop
from wiretape.model.call import CallRequest, Message, ToolSpec

Served: TypeAlias = Literal["cached", "partly", "not", "unknown"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing that the model saw: a tool, or a message. `held`: the provider has it, the body does not."""

    path: str
    new: bool
    served: Served
    size: int  # characters
    message: Message | None = None
    tool: ToolSpec | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """`shown`: the part that was asked for. `total` counts all."""

    call: int
    shown: tuple[Seen, ...]
    total: int
    input: int | None
    cached: int | None
    full: bool = False


def context(world: World, stop: Stop, only: slice | None = None, full: bool = False) -> Context:
    """Raises UsageError at the start and the end."""
    step = world.step(stop)
    call, usage = step.call, step.call.usage
    seen = _seen(call.request, step.new_from, new_tools=world.line.thread_before(call.number) is None)
    cached = usage.cached if usage is not None else None
    total = usage.input if usage is not None else None
    marked = _marked(seen, total, cached)
    return Context(call.number, tuple(marked[only] if only is not None else marked), len(marked), total, cached, full)


def _seen(request: CallRequest, new_from: int, new_tools: bool) -> list[Seen]:
    tools = [
        Seen(f"tools[{place}]", new_tools, "unknown", _tool_size(tool), tool=tool)
        for place, tool in enumerate(request.tools)
    ]
    messages = [
        Seen(
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


def _marked(seen: list[Seen], total: int | None, cached: int | None) -> list[Seen]:
    """Say of each whether the cache served it, by where its characters lie among all."""
    if cached is None or not total:
        return seen
    characters = sum(one.size for one in seen)
    end, start, marked = characters * cached / total, 0, list[Seen]()
    for one in seen:
        stop = start + one.size
        served: Served = "cached" if stop <= end else "partly" if start < end else "not"
        marked.append(Seen(one.path, one.new, served if cached else "not", one.size, one.message, one.tool, one.held))
        start = stop
    return marked
