"""What a wrapped tool asked itself while it ran: by the clock, as far as conversations do not say otherwise.

A tape does not say on whose behalf a request was made. What began while a tool ran was asked by the tool, or by another
task of the program beside it. A conversation that also went on while no tool ran is such a task's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wiretape.model.http import Exchange
from wiretape.runs.run import build_run
from wiretape.wire.mcp.tool_exchange import is_tool_exchange
from wiretape.wire.registry import decode


def asked_within(exchanges: Sequence[Exchange], kept: Collection[int]) -> list[int]:
    """The numbers of those exchanges, in order, that began while one of the `kept` ones, a tool, was at work."""
    tools = [one for one in exchanges if is_tool_exchange(one)]
    at_work = [tool for tool in tools if tool.number in kept]
    found = [one.number for one in exchanges if _began_within(one, at_work)]
    if not found:
        return []
    others = _in_conversations_beside(exchanges, tools)
    return [number for number in found if number not in others]


def _in_conversations_beside(exchanges: Sequence[Exchange], tools: Sequence[Exchange]) -> set[int]:
    """Exchanges of conversations that went on while no tool ran, too."""
    inside = {one.number for one in exchanges if _began_within(one, tools)}
    calls = decode(exchanges)
    exchange_of = {call.number: call.exchange for call in calls}
    of_threads = [{exchange_of[number] for number in thread.calls} for thread in build_run(calls).threads]
    return set().union(*(asked for asked in of_threads if not asked <= inside))


def _began_within(one: Exchange, tools: Sequence[Exchange]) -> bool:
    return any(
        one.number > tool.number and tool.at <= one.at < (tool.ended_at if tool.ended_at is not None else tool.at)
        for tool in tools
    )
