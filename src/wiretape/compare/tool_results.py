"""Recorded tool results by tool name and arguments: for stubs, replayed tools and reruns.

Arguments are compared in the tiers of requests: exact, normalized, masked. Each recorded result is given once; equal
calls get their results in the recorded order. A result is in a tool's own exchange (see `wiretape.tool`), in the model
request after the tool call, or in the answer of an MCP server.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge

from wiretape.compare.canonical import canonical, has_placeholder, same
from wiretape.compare.difference import Difference, Tier, differences
from wiretape.compare.mask import Masker
from wiretape.compare.normalize import loose
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import parsed
from wiretape.model.run import Run, ToolUse
from wiretape.wire.mcp.tool_exchange import ToolAnswer, is_tool_exchange, tool_answer_of, tool_call_of
from wiretape.wire.mcp.traffic import served_tool_calls


@dataclass(frozen=True, slots=True, eq=False)
class RecordedToolResult:
    """The result of one tool call, as the model received it."""

    name: str
    arguments: Json
    text: str
    parts: tuple[Json, ...] = ()
    is_error: bool | None = None
    answer: ToolAnswer | None = None  # what the function returned or raised, if recorded
    tape: str = ""
    exchange: int = 0  # the tool's own exchange, or that of the model call
    call: int | None = None  # the model call that requested it, if known
    use: ToolUse | None = None


@dataclass(frozen=True, slots=True)
class ToolMatch:
    result: RecordedToolResult
    tier: Tier
    differences: tuple[Difference, ...] = ()
    again: bool = False  # it was already given


@dataclass(frozen=True, slots=True)
class ToolNotFound:
    """No recorded result. `nearest`: the most similar call of the tool. `played`: it matches, but was already given."""

    known: tuple[str, ...]  # the tools on the tape
    nearest: RecordedToolResult | None = None
    differences: tuple[Difference, ...] = ()
    played: bool = False


class ToolResults:
    """Finds the recorded results of tool calls."""

    def __init__(self, results: Iterable[RecordedToolResult], masker: Masker, tier: Tier = Tier.MASKED) -> None:
        self._results = list(results)
        self._given = bytearray(len(self._results))
        self._mask = masker.value
        self._tier = min(tier, Tier.MASKED)  # tool calls have no position in a thread
        self._by_name: dict[str, list[int]] = {}
        for number, one in enumerate(self._results):
            self._by_name.setdefault(one.name, []).append(number)
        self._keys: dict[tuple[Tier, str], dict[bytes, list[int]]] = {}
        self._wild_by_name: dict[str, list[int]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def take(self, name: str, arguments: Json, repeat: bool = False) -> ToolMatch | ToolNotFound:
        """The first matching result that was not given yet."""
        found = next(self._fitting(name, arguments), None)
        again = False
        if found is None and repeat:
            found, again = next(self._fitting(name, arguments, given=True), None), True
        if found is None:
            return self._missing(name, arguments)
        tier, number = found
        self._given[number] = True
        result = self._results[number]
        differing = () if tier is Tier.EXACT else tuple(differences(result.arguments, arguments, "arguments"))
        return ToolMatch(result, tier, differing, again)

    def _fitting(self, name: str, arguments: Json, given: bool = False) -> Iterator[tuple[Tier, int]]:
        for tier in Tier:
            if tier > self._tier:
                return
            for number in self._like(tier, name, arguments, given):
                if bool(self._given[number]) == given:
                    yield tier, number

    def _like(self, tier: Tier, name: str, arguments: Json, given: bool) -> Iterable[int]:
        if tier is Tier.EXACT:  # among the normalized matches, and those that a placeholder may match
            there = merge(self._like(Tier.NORMALIZED, name, arguments, given), self._wild(name))
            return (n for n in there if self._given[n] == given and same(self._results[n].arguments, arguments))
        index = self._keys.get((tier, name))
        if index is None:
            index = self._keys[tier, name] = {}
            for number in self._by_name.get(name, ()):
                index.setdefault(self._key(tier, self._results[number].arguments), []).append(number)
        return index.get(self._key(tier, arguments), ())

    def _wild(self, name: str) -> list[int]:
        """Calls with a placeholder in their arguments."""
        if name not in self._wild_by_name:
            there = self._by_name.get(name, ())
            self._wild_by_name[name] = [n for n in there if has_placeholder(self._results[n].arguments)]
        return self._wild_by_name[name]

    def _key(self, tier: Tier, arguments: Json) -> bytes:
        value = loose(arguments)
        return canonical(self._mask(value) if tier is Tier.MASKED else value)

    def _missing(self, name: str, arguments: Json) -> ToolNotFound:
        played = next(self._fitting(name, arguments, given=True), None)
        if played is not None:
            return ToolNotFound(self.names, self._results[played[1]], (), True)
        ranked = []
        for number in self._by_name.get(name, ()):
            differing = tuple(differences(self._results[number].arguments, arguments, "arguments"))
            ranked.append((bool(self._given[number]), len(differing), number, differing))
        if not ranked:
            return ToolNotFound(self.names)
        _, _, number, differing = min(ranked, key=lambda one: one[:3])
        return ToolNotFound(self.names, self._results[number], differing)


def results_in_requests(
    run: Run, tape: str = "", skip: Callable[[str], bool] = lambda name: False
) -> list[RecordedToolResult]:
    """The tool results in the requests of a run. `skip`: tools whose own exchanges are on the tape."""
    exchanges = {step.call.number: step.call.exchange for step in run.steps}
    return [
        RecordedToolResult(
            name=use.call.name,
            arguments=parsed(use.call.arguments),
            text=use.result.text,
            parts=use.result.parts,
            is_error=use.result.is_error,
            tape=tape,
            exchange=exchanges.get(use.call_number, 0),
            call=use.call_number,
            use=use,
        )
        for use in run.tool_uses
        if use.result is not None and use.call.kind != "server" and not skip(use.call.name)
    ]


def results_of_tools(exchanges: Iterable[Exchange], tape: str = "") -> list[RecordedToolResult]:
    """The results of tools that were recorded in the agent's process."""
    found = []
    for exchange in exchanges:
        answer = tool_answer_of(exchange) if is_tool_exchange(exchange) else None
        if answer is not None:
            name, arguments = tool_call_of(exchange)
            error = answer.raised or None
            found.append(
                RecordedToolResult(name, arguments, answer.text, answer.parts, error, answer, tape, exchange.number)
            )
    return found


def results_of_servers(
    exchanges: Iterable[Exchange], known: Container[str], tape: str = ""
) -> list[RecordedToolResult]:
    """The results of MCP servers, for tools that are not in `known`."""
    remote = [exchange for exchange in exchanges if not is_tool_exchange(exchange)]
    return [
        RecordedToolResult(one.name, one.arguments, one.text, one.parts, one.is_error, tape=tape, exchange=one.exchange)
        for one in served_tool_calls(remote)
        if one.text is not None and not one.waits and one.name not in known
    ]
