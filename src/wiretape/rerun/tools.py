"""Tool results and subagents' tasks of a rerun.

A result is the recorded one, the answer of this run's own subagent, or the result of a hook. A subagent's task is
copied from the arguments of the tool call that started it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from wiretape.compare.mask import Masker
from wiretape.compare.tool_results import ToolMatch, ToolResults, results_in_requests
from wiretape.model.call import ToolCall, ToolResult
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import parsed, rebuilt, strings
from wiretape.model.run import Run, ToolUse
from wiretape.rerun.next_request.base import value_at, with_value_at
from wiretape.rerun.plan import RecordedCall, RequestBasis, new_results
from wiretape.rerun.values import ToolHook
from wiretape.runs.agents.assigner import final_words

_MIN_TASK_CHARS = 8  # shorter texts may be equal by chance


class ToolResultSource:
    """The tool results of one run."""

    def __init__(self, run: Run, calls: Sequence[RecordedCall], masker: Masker, hook: ToolHook | None) -> None:
        self.final_texts: dict[int, str] = {}  # agent -> its last text in this run
        self.stopped_agents: set[int] = set()
        self._run = run
        self._calls = calls
        self._masker = masker
        self._hook = hook

    @cached_property
    def _known_results(self) -> ToolResults:
        return ToolResults(results_in_requests(self._run), self._masker)

    def recorded(self, before: RecordedCall, call: RecordedCall) -> list[ToolResult]:
        """Return the recorded results of the tools that `before` called, in the order in which `call` sends them."""
        order = {block.id: position for position, block in enumerate(new_results(call))}
        found = []
        for use in before.uses:
            if use.result is not None and use.result_call == call.number:
                found.append(self._hooked(use.call, replace(use.result, id=use.call.id, kind=use.call.kind)))
        known = [result for result in found if result is not None]
        return sorted(known, key=lambda result: order.get(result.id, len(order)))

    def result(self, call: ToolCall, before: RecordedCall | None, position: int) -> ToolResult | None:
        """Return the result of a tool call of this run, or None if it is unknown.

        `before` is the recorded counterpart of the calling answer, None after the runs diverged; `position` is the
        tool call's index in that answer.
        """
        return self._hooked(call, self._from_tape(call, before, position))

    def _from_tape(self, call: ToolCall, before: RecordedCall | None, position: int) -> ToolResult | None:
        uses = before.uses if before is not None else ()
        use = uses[position] if position < len(uses) and uses[position].call.name == call.name else None
        if use is not None and use.agent in self.stopped_agents:
            return None  # the recorded subagent's result is not the result of this run's
        if use is not None and use.result is not None and use.agent is not None and use.agent in self.final_texts:
            child = next(c for c in reversed(self._calls) if c.step.agent == use.agent)
            text = _with_final_text(use.result.text, child, self.final_texts[use.agent])
            return replace(use.result, id=call.id, name=use.result.name, text=text, kind=call.kind)
        found = self._known_results.take(call.name, parsed(call.arguments), repeat=True)
        if not isinstance(found, ToolMatch):
            return None
        known = found.result
        name = known.use.result.name if known.use is not None and known.use.result is not None else None
        return ToolResult(call.id, name or call.name, known.text, known.is_error, known.parts, call.kind)

    def _hooked(self, call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        return self._hook(call, found) if self._hook is not None else found


def _with_final_text(result: str, child: RecordedCall, text: str) -> str:
    """Return a tool's result with the recorded subagent's final text replaced by this run's."""
    for recorded in final_words(child.call):
        if len(recorded) >= _MIN_TASK_CHARS and recorded in result:
            return result.replace(recorded, text)
    return result


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """The tool call that started a subagent, and its texts that occur in the subagent's first request."""

    use: ToolUse
    position: int  # index among the tool calls that the client runs
    texts: tuple[str, ...]


def task_of(call: RecordedCall, run: Run, calls: Mapping[int, RecordedCall]) -> SubagentTask | None:
    """Return the task of a subagent's first call, or None if the wire does not show it."""
    use = next((use for use in run.tool_uses if use.agent == call.step.agent), None)
    if use is None or call.basis is None or call.step.cause.kind != "subagent" or use.call_number not in calls:
        return None
    sent = "\n".join(strings(_history(call.basis)))
    arguments = strings(parsed(use.call.arguments))
    texts = tuple(text for text in arguments if len(text) >= _MIN_TASK_CHARS and text in sent)
    position = next((n for n, one in enumerate(calls[use.call_number].uses) if one.index == use.index), None)
    return SubagentTask(use, position, texts) if texts and position is not None else None


def with_task(basis: RequestBasis, task: SubagentTask, call: ToolCall) -> JsonObject:
    """Return a subagent's first request with the task of this run's tool call."""
    ours = dict(_text_pairs(parsed(task.use.call.arguments), parsed(call.arguments)))
    changed = {text: ours[text] for text in task.texts if ours.get(text, text) != text}
    if not changed:
        return basis.body
    path = basis.builder.history_path(basis.body)
    return with_value_at(basis.body, path, _replaced(_history(basis), changed))


def _history(basis: RequestBasis) -> Json:
    return value_at(basis.body, basis.builder.history_path(basis.body))


def _text_pairs(one: Json, other: Json) -> Iterator[tuple[str, str]]:
    """Yield the texts that have the same path in both values."""
    if isinstance(one, str) and isinstance(other, str):
        yield one, other
    elif isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() & other.keys():
            yield from _text_pairs(one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list):
        for a, b in zip(one, other, strict=False):
            yield from _text_pairs(a, b)


def _replaced(value: Json, texts: Mapping[str, str]) -> Json:
    def replace_in(name: str | None, leaf: Json) -> Json:
        for old, new in texts.items() if isinstance(leaf, str) else ():
            leaf = leaf.replace(old, new)
        return leaf

    return rebuilt(value, replace_in)
