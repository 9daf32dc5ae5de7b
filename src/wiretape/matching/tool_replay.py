"""Answer the tool calls of a replayed program from its tapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from wiretape.compare.difference import Difference
from wiretape.compare.excerpt import LIVE, RECORDED, excerpts
from wiretape.compare.tool_results import (
    RecordedToolResult,
    ToolNotFound,
    ToolResults,
    results_in_requests,
    results_of_servers,
    results_of_tools,
)
from wiretape.matching.id_map import IdMap
from wiretape.matching.recorded import RecordedExchange, ReplaySource
from wiretape.matching.redacted_differences import shown_differences
from wiretape.matching.values import Answer, Miss, MissReason, Reference, ReplayOptions
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import text_of
from wiretape.model.run import Run
from wiretape.model.wording import clip
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.wire.mcp.tool_exchange import ToolAnswer, is_tool_exchange, tool_answer_of, tool_call_of, tool_exchange

_SHOWN = 3  # differences that a miss shows; the rest are counted


@dataclass(frozen=True, slots=True)
class ToolPlayback:
    """The recorded result of a tool call, and its match. `own`: the tool's own exchange, if it has one."""

    answer: ToolAnswer
    shown: Answer
    own: RecordedExchange | None


class ToolReplay:
    """The tools of some tapes. A tool's own exchanges go before the results in model requests."""

    def __init__(
        self,
        source: ReplaySource,
        runs: Sequence[Run],
        names: str,
        options: ReplayOptions,
        ids: IdMap,
        miss_fix: Callable[[MissReason], str],
        output: OutputRedactor,
    ) -> None:
        """`runs`: the run of each tape. `names`: the tapes in messages. `miss_fix`: the last lines of a miss."""
        recorded = source.exchanges
        self._names = names
        self._repeat = options.repeat
        self._ids = ids
        self._miss_fix = miss_fix
        self._output = output
        self._recorded = {(str(one.tape), one.exchange.number): one for one in recorded}
        own: list[RecordedToolResult] = []
        for position in range(len(runs)):
            own += results_of_tools((one.exchange for one in recorded if one.tape == position), str(position))
        self._unended = {
            tool_call_of(one.exchange)[0]: one.exchange.number
            for one in recorded
            if is_tool_exchange(one.exchange) and tool_answer_of(one.exchange) is None
        }
        known = {result.name for result in own}
        wire = [
            result
            for position, run in enumerate(runs)
            for result in results_in_requests(run, str(position), skip=known.__contains__)
        ]
        known |= {result.name for result in wire}
        served: list[RecordedToolResult] = []
        for position in range(len(runs)):
            there = (one.exchange for one in recorded if one.tape == position)
            served += results_of_servers(there, known, str(position))
        self._book = ToolResults([*own, *wire, *served], source.masker, options.tier)

    def call(self, number: int, name: str, arguments: Json) -> ToolPlayback | Miss:
        """The recorded result of a tool call, or a miss."""
        arguments = self._ids.back(arguments)
        found = self._book.take(name, arguments, self._repeat)
        differing = shown_differences(found.differences, arguments, self._output)
        if isinstance(found, ToolNotFound):
            return self._miss(number, name, self._output.value(arguments), replace(found, differences=differing))
        result = found.result
        self._ids.learn(found.differences)
        own = self._recorded.get((result.tape, result.exchange)) if result.answer is not None else None
        exchange = own.exchange if own is not None else _as_exchange(result)
        answer = tool_answer_of(self._ids.forward(exchange))
        assert answer is not None, "only tools that ended are in the book"
        shown = Answer(number, self._reference(result), exchange, found.tier, differing, found.again)
        return ToolPlayback(answer, shown, own)

    def _reference(self, result: RecordedToolResult) -> Reference:
        """The tool's own exchange, or the model call that requested it."""
        known = self._recorded.get((result.tape, result.exchange))
        tape = known.reference.tape if known is not None else self._names
        return Reference(tape, result.exchange, result.call, f"tool {result.name}")

    def _miss(self, number: int, name: str, arguments: Json, found: ToolNotFound) -> Miss:
        reason: MissReason = "never recorded"
        if found.played:
            reason = "already played"
        elif found.nearest is not None:
            reason = "diverged"
        lines = [f"no call on {self._names} answers the tool {name}({clip(text_of(arguments), 100)})"]
        lines += self._story(name, found)
        lines.append(self._miss_fix(reason))
        nearest = self._reference(found.nearest) if found.nearest is not None else None
        differing = found.differences if reason == "diverged" else ()
        return Miss(number, f"tool {name}", reason, "\n".join(lines), nearest, differing)

    def _story(self, name: str, found: ToolNotFound) -> list[str]:
        if found.nearest is None and name in self._unended:
            return [f"  x{self._unended[name]} is a call of it, which ended without a result when it was recorded"]
        if found.nearest is None:
            known = f"its tools are {', '.join(found.known)}" if found.known else "it has no results of tools"
            return [f"  it was never recorded: the tape has no call of {name}; {known}"]
        reference = self._reference(found.nearest)
        named = f"the one that {reference} asked for" if reference.call is not None else str(reference)
        if found.played:
            return [f"  {named} would, but it was already played"]
        where = found.differences[0].where if found.differences else "its arguments"
        return [f"  it diverges from {named} at {where}", *_compared(found.differences)]


def _compared(differing: Sequence[Difference]) -> Iterator[str]:
    for position, one in enumerate(differing[:_SHOWN]):
        if position:
            yield f"  and at {one.where}"
        recorded, live = excerpts(one)
        yield f"    {RECORDED}{recorded}"
        yield f"    {LIVE}{live}"
    if len(differing) > _SHOWN:
        yield f"  and at {len(differing) - _SHOWN} more places"


def _as_exchange(result: RecordedToolResult) -> Exchange:
    answer = ToolAnswer(result.text, kept=False, raised=result.is_error is True, parts=result.parts)
    return tool_exchange(result.name, result.arguments, answer)
