"""Pairs tool calls with their results: by id, else by name and order, else by order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wiretape.loop.threads import Link, Strand
from wiretape.model.call import Message, ModelCall, ToolCall, ToolResult


@dataclass(slots=True, eq=False)
class Asked:
    """A tool call while its result and the agent it started are being looked for."""

    call_number: int
    index: int
    call: ToolCall
    at: int | None  # no result or subagent can be earlier
    thread: int
    result: ToolResult | None = None
    result_call: int | None = None
    agent: int | None = None

    def is_open(self, number: int) -> bool:
        """Whether, when call `number` started, the tool was still at work as far as the wire shows."""
        return self.call_number < number and (self.result_call is None or self.result_call >= number)


def pair(calls: Sequence[ModelCall], links: Mapping[int, Link], strands: Sequence[Strand]) -> list[Asked]:
    """All tool calls that models asked for, in order, with the results that later calls of their threads carry."""
    asked: list[Asked] = []
    by_call: dict[int, list[Asked]] = {}
    waiting: dict[int, list[Asked]] = {strand.number: [] for strand in strands}
    for call in calls:
        link = links.get(call.number)
        if link is None:
            continue
        open_here = waiting[link.thread]
        if link.relation == "fork" and link.parent is not None:
            open_here += by_call.get(link.parent, [])
        _answer(call.request.messages[link.new_from :], open_here, call.number)
        for index, tool in enumerate(call.tool_calls):
            use = Asked(call.number, index, tool, answered_at(call), link.thread)
            for place in (asked, open_here, by_call.setdefault(call.number, [])):
                place.append(use)
        if call.response is not None:  # tools that the provider ran itself are answered in place
            _answer(call.response.messages, [use for use in open_here if use.call.kind == "server"], call.number)
            waiting[link.thread] = [use for use in open_here if use.result is None]
    return asked


def answered_at(call: ModelCall) -> int | None:
    """The earliest moment at which a call's answer can have been acted upon."""
    started = call.response.first_token_at if call.response is not None else None
    return started if started is not None else call.ended_at


def _answer(messages: Sequence[Message], open_here: list[Asked], number: int) -> None:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolResult):
                use = _match(block, open_here)
                if use is not None:
                    open_here.remove(use)
                    if use.result is None:
                        use.result, use.result_call = block, number


def _match(result: ToolResult, open_here: Sequence[Asked]) -> Asked | None:
    """The open tool call that a result answers. Ids may repeat, so the latest open one counts."""
    if result.id is not None:
        by_id = [use for use in open_here if use.call.id == result.id]
        if by_id:
            return by_id[-1]
    nameless = [use for use in open_here if result.id is None or use.call.id is None]
    if result.name is not None:
        by_name = [use for use in nameless if use.call.name == result.name]
        if by_name:
            return by_name[0]
    unnamed = [use for use in nameless if result.name is None]
    return unnamed[0] if unnamed else None
