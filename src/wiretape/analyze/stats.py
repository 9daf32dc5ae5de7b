"""Sums of a run: per turn, per agent, per model, and in total. Unknown numbers stay unknown, never 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.findings import cache_sum
from wiretape.analyze.cost import Price, PriceList, cost_sum, pricing
from wiretape.analyze.findings import findings
from wiretape.analyze.report import (
    AgentReport,
    CallReport,
    CauseReport,
    GroupReport,
    LinkReport,
    StatsReport,
    ToolRunReport,
    TurnReport,
    UsageSum,
)
from wiretape.analyze.why import why
from wiretape.model.call import ModelCall, Usage, sum_known
from wiretape.model.run import Run, Step, Turn


def stats(run: Run, warnings: Sequence[str] = (), listed: PriceList | None = None) -> StatsReport:
    """Analyze a run. `listed`: prices for calls whose answer does not report a cost."""
    price, cache = pricing(listed), diagnose(run, listed)
    calls = [step.call for step in run.steps]
    ran = _ran(run)
    return StatsReport(
        **sums(calls, price),
        not_inferences=dict(Counter(call.kind for call in calls if call.kind != "inference")),
        agents=len(run.agents),
        wall_ms=wall_ms(calls),
        turns=[_turn(turn, run, ran, price) for turn in run.turns],
        side_calls=[_step(step, run, ran, price) for step in run.side_calls],
        by_agent=_by_agent(run, price),
        links=_links(run),
        by_model=_by_model(run.steps, price),
        prices=listed.name if listed is not None else None,
        cache=cache_sum(cache),
        findings=findings(run, cache),
        other_exchanges=len(run.other_exchanges),
        warnings=list(warnings),
    )


def call_reports(run: Run, listed: PriceList | None = None) -> list[CallReport]:
    """Return the report of every call, by number."""
    price, ran = pricing(listed), _ran(run)
    return [_step(step, run, ran, price) for step in run.steps]


def wall_ms(calls: Sequence[ModelCall]) -> int | None:
    """Milliseconds from the first start to the last end; None if a call has no known end."""
    ends = [call.ended_at for call in calls]
    if not calls or None in ends:
        return None
    return max(end for end in ends if end is not None) - min(call.at for call in calls)


def first_token_ms(call: ModelCall) -> int | None:
    """Milliseconds from the start of a request to the first content of its stream."""
    first = call.response.first_token_at if call.response is not None else None
    return first - call.at if first is not None else None


def sums(calls: Sequence[ModelCall], price: Price) -> dict[str, Any]:
    """Return the members that every report of a group of calls has."""
    return {
        "calls": len(calls),
        "tool_calls": sum(len(call.tool_calls) for call in calls),
        "usage": usage_sum(calls),
        "hit_rate": hit_rate(calls),
        "cost": cost_sum(calls, price),
    }


def _ran(run: Run) -> dict[int, list[ToolRunReport]]:
    """Return the tool calls that a recorded tool server received, by call number."""
    found: dict[int, list[ToolRunReport]] = {}
    for use in run.tool_uses:
        if use.exchange is not None:
            report = ToolRunReport(tool=use.call.name, index=use.index, exchange=use.exchange, ms=use.ran_ms)
            found.setdefault(use.call_number, []).append(report)
    return found


def _turn(turn: Turn, run: Run, ran: Mapping[int, list[ToolRunReport]], price: Price) -> TurnReport:
    calls = [step.call for step in turn.steps]
    return TurnReport(
        turn=turn.number,
        user=turn.user,
        answer=turn.answer,
        **sums(calls, price),
        agents=len({step.agent for step in turn.steps}),
        wall_ms=wall_ms(calls),
        steps=[_step(step, run, ran, price) for step in turn.steps],
    )


def _step(step: Step, run: Run, ran: Mapping[int, list[ToolRunReport]], price: Price) -> CallReport:
    call, response, cause = step.call, step.call.response, step.cause
    return CallReport(
        call=call.number,
        exchange=call.exchange,
        agent=run.agents[step.agent].name,
        thread=step.thread,
        model=call.model,
        requested_model=call.request.model,
        format=call.format,
        finish=response.finish if response is not None else None,
        status=response.status if response is not None else None,
        ended=call.ended,
        usage=call_usage(call),
        hit_rate=hit_rate((call,)),
        cost=cost_sum((call,), price),
        tool_calls=[tool.name for tool in call.tool_calls],
        ran=ran.get(call.number, []),
        first_token_ms=first_token_ms(call),
        duration_ms=wall_ms((call,)),
        at_ms=call.at,
        why=why(step, run),
        cause=CauseReport(kind=cause.kind, call=cause.call, tools=list(cause.tools), basis=cause.basis),
    )


def _by_agent(run: Run, price: Price) -> list[AgentReport]:
    calls: dict[int, list[ModelCall]] = {agent.number: [] for agent in run.agents}
    for step in run.steps:
        calls[step.agent].append(step.call)
    return [
        AgentReport(
            name=agent.name,
            **sums(calls[agent.number], price),
            parent=run.agents[agent.parent].name if agent.parent is not None else None,
            started_by=agent.started_by,
            started_tool=agent.started_tool,
            basis=agent.basis,
            origin=agent.origin,
        )
        for agent in run.agents
    ]


def _links(run: Run) -> list[LinkReport]:
    names = {agent.number: agent.name for agent in run.agents}
    return [
        LinkReport(
            kind=link.kind,
            from_call=link.from_call,
            from_agent=names.get(link.from_agent) if link.from_agent is not None else None,
            tool=link.tool,
            tool_index=link.tool_index,
            to_call=link.to_call,
            to_agent=names.get(link.to_agent) if link.to_agent is not None else None,
            basis=link.basis,
            certainty=link.certainty,
            detail=link.detail,
        )
        for link in run.links
    ]


def _by_model(steps: Iterable[Step], price: Price) -> list[GroupReport]:
    calls: dict[str, list[ModelCall]] = {}
    for step in steps:
        calls.setdefault(step.call.model or "unknown", []).append(step.call)
    return [GroupReport(name=name, **sums(own, price)) for name, own in calls.items()]


FIELDS = ("input", "cached", "cache_write", "output", "reasoning")


def usage_sum(calls: Iterable[ModelCall]) -> UsageSum:
    """Sum the tokens of calls. A call without usage is left out if its kind is not inference."""
    usages = [call.usage for call in calls if call.usage is not None or call.kind == "inference"]
    values = {field: [_value(usage, field) for usage in usages] for field in FIELDS}
    sums = {field: sum_known(found) for field, found in values.items()}
    return UsageSum(
        **sums,
        unknown_calls=sum(_is_empty(usage) for usage in usages),
        unknown={field: found.count(None) for field, found in values.items() if None in found},
    )


def call_usage(call: ModelCall) -> UsageSum | None:
    """Return the tokens of one call; None if the provider reports none."""
    return None if _is_empty(call.usage) else usage_sum((call,))


def hit_rate(calls: Iterable[ModelCall]) -> float | None:
    """Return cached / input over the calls that report both; None if no call does."""
    known = [
        (usage.cached, usage.input)
        for call in calls
        if (usage := call.usage) is not None and usage.cached is not None and usage.input is not None
    ]
    total = sum(tokens for _, tokens in known)
    return sum(cached for cached, _ in known) / total if total else None


def _value(usage: Usage | None, field: str) -> int | None:
    value: int | None = getattr(usage, field) if usage is not None else None
    return value


def _is_empty(usage: Usage | None) -> bool:
    return all(_value(usage, field) is None for field in FIELDS)
