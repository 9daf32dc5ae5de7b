"""The shape of an answer: what stays the same although models never give the same text twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import orjson

from wiretape.compare.difference import Difference
from wiretape.model.call import (
    Block,
    CallResponse,
    Control,
    Media,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

_FLOOR = 50  # tokens: smaller differences do not count
_COUNTED = ("input", "output", "reasoning")  # cached tokens depend on earlier requests


@dataclass(frozen=True, slots=True)
class AnswerShape:
    status: int | None
    finish: str | None
    blocks: tuple[str, ...]  # kinds in order, without repetitions
    tools: tuple[str, ...]  # `name(argument, argument)` of each tool call
    error: str | None


def answer_shape(response: CallResponse | None) -> AnswerShape:
    if response is None:
        return AnswerShape(None, None, (), (), None)
    blocks = [block for message in response.messages for block in message.blocks]
    error = response.error.type or response.error.code or "error" if response.error else None
    finish = response.finish if response.complete else "cut off"
    return AnswerShape(response.status, finish, block_kinds(blocks), requested_tools(blocks), error)


def block_kinds(blocks: list[Block]) -> tuple[str, ...]:
    return tuple(kind for kind, _ in groupby(_kind(block) for block in blocks if not _is_empty(block)))


def requested_tools(blocks: list[Block]) -> tuple[str, ...]:
    """The requested tool calls, sorted: the order of parallel calls does not count."""
    return tuple(sorted(_signature(block) for block in blocks if isinstance(block, ToolCall)))


def answer_differences(recorded: ModelCall, live: ModelCall) -> Iterator[Difference]:
    """The differences of two answers' shapes. A failed answer has only a status and an error."""
    was, now = answer_shape(recorded.response), answer_shape(live.response)
    if was.status != now.status:
        yield Difference("status", was.status or _unanswered(recorded), now.status or _unanswered(live))
    failed = any(one.status is None or one.error is not None or one.status >= 400 for one in (was, now))
    for name in ("error",) if failed else ("finish",):
        if getattr(was, name) != getattr(now, name):
            yield Difference(name, getattr(was, name), getattr(now, name))
    if not failed:
        yield from _of_blocks(was.blocks, now.blocks, was.tools, now.tools)


def message_differences(recorded: Message, live: Message) -> Iterator[Difference]:
    """The differences of two answers' shapes in a history."""
    was, now = list(recorded.blocks), list(live.blocks)
    yield from _of_blocks(block_kinds(was), block_kinds(now), requested_tools(was), requested_tools(now))


def _of_blocks(
    was: tuple[str, ...], now: tuple[str, ...], tools_was: tuple[str, ...], tools_now: tuple[str, ...]
) -> Iterator[Difference]:
    if was != now:
        yield Difference("blocks", ", ".join(was) or None, ", ".join(now) or None)
    if tools_was != tools_now:
        yield Difference("tool calls", ", ".join(tools_was) or None, ", ".join(tools_now) or None)


def _unanswered(call: ModelCall) -> str:
    return f"no response ({call.ended.value})" if call.ended is not None else "no response"


def usage_differences(recorded: Usage | None, live: Usage | None, tolerance: float) -> Iterator[Difference]:
    """Counts that differ by more than the fraction `tolerance`, or that only one side reports."""
    for name in _COUNTED:
        was, now = getattr(recorded, name, None), getattr(live, name, None)
        if was is None or now is None:
            # A provider without reasoning reports 0 or nothing.
            if (was is None) != (now is None) and (was or now or name == "input"):
                yield Difference(f"usage {name}", was, now)
        elif abs(now - was) > max(_FLOOR, tolerance * was):
            yield Difference(f"usage {name}", was, now)


def _signature(call: ToolCall) -> str:
    try:
        arguments = orjson.loads(call.arguments or "{}")
    except ValueError:
        return f"{call.name}(…)"
    return f"{call.name}({', '.join(sorted(arguments)) if isinstance(arguments, dict) else '…'})"


def _is_empty(block: Block) -> bool:
    """Whether a block is empty text or opaque reasoning, which answers may or may not have."""
    return isinstance(block, Text | Reasoning) and not block.text.strip()


def _kind(block: Block) -> str:
    match block:
        case Text(refusal=refusal):
            return "refusal" if refusal else "text"
        case Reasoning():
            return "reasoning"
        case ToolCall():
            return "tool call"
        case ToolResult():
            return "tool result"
        case Media(kind=kind) | Control(kind=kind):
            return str(kind)
    return block.type
