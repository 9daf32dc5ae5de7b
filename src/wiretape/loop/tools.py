"""Pairs tool calls with their results: by id, else by name and order, else by order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wiretape.loop.threads import Place, Strand
from wiretape.loop.words import is_result_as_text
from wiretape.model.call import Message, ModelCall, ServedToolCall, Text, ToolCall, ToolResult


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
    served: ServedToolCall | None = None  # what the tool's server got, if that is on the tape

    def is_open(self, number: int) -> bool:
        """Whether, when call `number` started, the tool was still at work as far as the wire shows."""
        return self.call_number < number and (self.result_call is None or self.result_call >= number)


def pair(calls: Sequence[ModelCall], links: Mapping[int, Place], strands: Sequence[Strand]) -> list[Asked]:
    """All tool calls that models asked for, in order, with the results that later calls of their threads carry."""
    asked: list[Asked] = []
    by_call: dict[int, list[Asked]] = {}
    waiting: dict[int, list[Asked]] = {strand.number: [] for strand in strands}
    for call in calls:
        link = links.get(call.number)
        if link is None:
            continue
        open_here = waiting[link.thread]
        if link.relation in ("fork", "handoff") and link.parent is not None:
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
    """Give the results in some messages to open tool calls: all that ids decide first, then the rest in order."""
    results = [block for message in messages for block in message.blocks if isinstance(block, ToolResult)]
    left = [result for result in results if not _give(result, _by_id(result, open_here), open_here, number)]
    for result in left:
        _give(result, _by_name_or_order(result, open_here), open_here, number)
    if not results:
        _answer_in_words(messages, open_here, number)


def _answer_in_words(messages: Sequence[Message], open_here: list[Asked], number: int) -> None:
    """One message of plain text that answers all tools at once, as some frameworks send it."""
    said = next((message for message in messages if is_result_as_text(message)), None)
    if said is not None:
        text = "\n".join(block.text for block in said.blocks if isinstance(block, Text))
        for use in list(open_here):
            _give(ToolResult(None, None, text), use, open_here, number)


def _give(result: ToolResult, use: Asked | None, open_here: list[Asked], number: int) -> bool:
    if use is None:
        return False
    open_here.remove(use)
    if use.result is None:
        use.result, use.result_call = result, number
    return True


def _by_id(result: ToolResult, open_here: Sequence[Asked]) -> Asked | None:
    """Ids may repeat, so the latest open call counts."""
    return next((use for use in reversed(open_here) if result.id is not None and use.call.id == result.id), None)


def _by_name_or_order(result: ToolResult, open_here: Sequence[Asked]) -> Asked | None:
    """Dialects without ids name the tool; clients that make ids anew keep the order."""
    if result.name is not None:
        return next((use for use in open_here if use.call.name == result.name), None)
    return next(iter(open_here), None)
