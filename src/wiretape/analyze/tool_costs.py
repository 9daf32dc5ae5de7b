"""Cost of each tool: its definition in every request, and the tokens that its calls and results add.

A number is measured if two reported token counts differ only by it. Otherwise it is an estimate, divided by the length
of the texts, and marked as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from pydantic import Field

from wiretape.analyze.cache.prefix_tree import Elements, Sent, whole_tokens
from wiretape.analyze.prefix_breaks import breaks, provider_holds_history
from wiretape.analyze.report import Report
from wiretape.model.call import Message, ToolCall, ToolResult
from wiretape.model.run import Run, ToolUse
from wiretape.runs.threads import failed

Numbers = tuple[int, ...]


class ToolCost(Report):
    """The cost of the tools with one name."""

    tool: str
    agents: list[str] = Field(description="agents that were offered the tool, or called it")
    requests: int = Field(description="requests with its definition")
    schema_tokens: int | None = Field(default=None, description="tokens of its definition, in each request")
    schema_measured: bool = Field(default=False, description="measured: two requests differ only by the definition")
    schema_total: int | None = Field(default=None, description="tokens of its definition in all requests together")
    schema_stable: bool | None = Field(default=None, description="all requests have the same definition")
    calls: int
    results: int
    added_tokens: int | None = Field(
        default=None, description="tokens that its calls and results added to the context, counted once"
    )
    added_calls: int = Field(default=0, description="number of calls in `added_tokens`; the others are unknown")
    added_measured: bool = Field(default=False, description="measured: the compared requests differ only by them")
    append_only: bool | None = Field(
        default=None, description="every request with one of its results starts with the whole request before it"
    )
    broken_in: list[int] = Field(default_factory=list, description="calls whose request does not")


class ToolReport(Report):
    tools: list[ToolCost]


@dataclass(slots=True)
class _Tally:
    agents: dict[str, None] = field(default_factory=dict)  # in order
    requests: int = 0
    definitions: set[int] = field(default_factory=set)
    schema: int | None = None
    measured: bool = False
    uses: list[ToolUse] = field(default_factory=list)
    added: float = 0
    known: int = 0
    alone: bool = True
    compared: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)


def tool_costs(run: Run) -> ToolReport:
    """Return the cost of every tool that was offered or called, the most expensive first."""
    tallies: dict[str, _Tally] = {}
    elements = Elements()
    sent: dict[int, Sent] = {}
    for step in run.steps:
        if step.call.kind != "inference":
            continue
        sent[step.call.number] = one = elements.sent(step.call)
        for index, tool in enumerate(step.call.request.tools):
            tally = tallies.setdefault(tool.name, _Tally())
            tally.agents[run.agents[step.agent].name] = None
            tally.requests += 1
            tally.definitions.add(one.numbers[index])
            if tally.schema is None:
                tally.schema = _share(one, (one.numbers[index],), elements)
    _measure(sent.values(), tallies)
    agents = {step.call.number: run.agents[step.agent].name for step in run.steps}
    for use in run.tool_uses:
        tally = tallies.setdefault(use.call.name, _Tally())
        tally.agents[agents[use.call_number]] = None
        tally.uses.append(use)
    _add_contexts(run, sent, tallies, elements)
    costs = [_cost(name, tally) for name, tally in tallies.items()]
    return ToolReport(tools=sorted(costs, key=lambda one: -((one.schema_total or 0) + (one.added_tokens or 0))))


def _share(one: Sent, numbers: Numbers, elements: Elements) -> int | None:
    """Estimate the tokens of some elements of a request by their share of its text."""
    whole, size = whole_tokens(one), elements.size(one.numbers)
    return round(whole * elements.size(numbers) / size) if whole is not None and size else None


def _measure(sent: Iterable[Sent], tallies: dict[str, _Tally]) -> None:
    """Measure definitions: two requests with equal messages whose tools differ by one definition."""
    alike: dict[Numbers, dict[frozenset[int], Sent]] = {}
    for one in sent:
        if whole_tokens(one) is not None and not failed(one.call):
            alike.setdefault(one.numbers[one.tools :], {})[frozenset(one.numbers[: one.tools])] = one
    for offers in alike.values():
        for with_it, more in offers.items() if len(offers) > 1 else ():
            for index, tool in enumerate(more.call.request.tools):
                less = offers.get(with_it - {more.numbers[index]})
                difference = (whole_tokens(more) or 0) - (whole_tokens(less) or 0) if less is not None else 0
                if difference > 0:
                    tallies[tool.name].schema, tallies[tool.name].measured = difference, True


def _add_contexts(run: Run, sent: dict[int, Sent], tallies: dict[str, _Tally], elements: Elements) -> None:
    """For each request with tool results: add its new tokens, and note whether it starts with the request before it."""
    calls = {step.call.number: step.call for step in run.steps}
    before = {later: earlier for thread in run.threads for earlier, later in pairwise(thread.calls)}
    uses: dict[int, list[ToolUse]] = {}
    for use in run.tool_uses:
        if use.result_call is not None and use.call.kind != "server":
            uses.setdefault(use.result_call, []).append(use)
    for number, answered in uses.items():
        earlier = before.get(number)
        while earlier is not None and failed(calls[earlier]):
            earlier = before.get(earlier)
        request = calls[number].request
        if earlier is None or number not in sent or earlier not in sent or provider_holds_history(request):
            continue
        intact = not breaks(calls[earlier].request, request)
        for use in answered:
            tally = tallies[use.call.name]
            tally.compared.add(number)
            if not intact:
                tally.broken.add(number)
        if intact:
            _share_out(sent[earlier], sent[number], answered, tallies, elements)


def _share_out(
    earlier: Sent, later: Sent, answered: list[ToolUse], tallies: dict[str, _Tally], elements: Elements
) -> None:
    """Divide the difference of two inputs among the tools whose calls and results are new."""
    one, other = whole_tokens(earlier), whole_tokens(later)
    if one is None or other is None or other <= one or earlier.tools != later.tools:
        return
    new = later.call.request.messages[len(earlier.call.request.messages) :]
    sizes: dict[str, int] = {}
    for use in answered:
        said = len(use.call.name) + len(use.call.arguments) + len(use.result.text.encode() if use.result else b"")
        sizes[use.call.name] = sizes.get(use.call.name, 0) + max(1, said)
    rest = sum(_other_text(message) for message in new)
    whole = sum(sizes.values()) + rest
    for name, size in sizes.items():
        tally = tallies[name]
        tally.added += (other - one) * size / whole
        tally.known += sum(use.call.name == name for use in answered)
        tally.alone = tally.alone and len(sizes) == 1 and not rest


def _other_text(message: Message) -> int:
    """Bytes of the texts outside tool calls and results."""
    texts = (block for block in message.blocks if not isinstance(block, ToolCall | ToolResult))
    return sum(len(getattr(block, "text", "").encode(errors="surrogatepass")) for block in texts)


def _cost(name: str, tally: _Tally) -> ToolCost:
    stable = len(tally.definitions) == 1 if tally.definitions else None
    return ToolCost(
        tool=name,
        agents=list(tally.agents),
        requests=tally.requests,
        schema_tokens=tally.schema,
        schema_measured=tally.measured,
        schema_total=tally.schema * tally.requests if tally.schema is not None else None,
        schema_stable=stable,
        calls=len(tally.uses),
        results=sum(use.result is not None for use in tally.uses),
        added_tokens=round(tally.added) if tally.known else None,
        added_calls=tally.known,
        added_measured=bool(tally.known) and tally.alone,
        append_only=not tally.broken if tally.compared else None,
        broken_in=sorted(tally.broken),
    )
