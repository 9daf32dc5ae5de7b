"""What passes between agents in a rerun: a task from a tool call's arguments, an answer into a tool's result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wiretape.compare.tool_results import parsed_arguments
from wiretape.model.call import ToolCall
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.jsonwalk import rebuilt, strings
from wiretape.model.run import Run, ToolUse
from wiretape.rerun.plan import Grounds, Take
from wiretape.runs.agents.assigner import final_words
from wiretape.wire.next_request import replaced

_WHOLE = 8  # a text must be so long to be told apart from a word that happens to be the same


@dataclass(frozen=True, slots=True)
class Task:
    """The tool call that started a subagent, and which of its texts stand in the subagent's first request."""

    use: ToolUse
    position: int  # among the tool calls that its call asked the client for
    texts: tuple[str, ...]


def task_of(take: Take, run: Run, takes: Mapping[int, Take]) -> Task | None:
    """None where the wire does not show what a thread was started with."""
    use = next((use for use in run.tool_uses if use.agent == take.step.agent), None)
    if use is None or take.grounds is None or take.step.cause.kind != "subagent" or use.call_number not in takes:
        return None
    asked = takes[use.call_number].uses
    said = "\n".join(strings(_history(take.grounds)))
    texts = tuple(t for t in strings(parsed_arguments(use.call.arguments)) if len(t) >= _WHOLE and t in said)
    position = next((n for n, one in enumerate(asked) if one.index == use.index), None)
    return Task(use, position, texts) if texts and position is not None else None


def with_task(ground: Grounds, task: Task, asked: ToolCall) -> JsonObject:
    """A subagent's first request, its task replaced by the one that our parent gave."""
    ours = dict(_pairs(parsed_arguments(task.use.call.arguments), parsed_arguments(asked.arguments)))
    changed = {text: ours[text] for text in task.texts if ours.get(text, text) != text}
    if not changed:
        return ground.body
    path = ground.grower.history(ground.body)
    return replaced(ground.body, path, _replaced(_history(ground), changed))


def passed_on(result: str, child: Take, said: str) -> str:
    """A tool's result with what our subagent said in the place of what the recorded one did."""
    for recorded in final_words(child.call):
        if len(recorded) >= _WHOLE and recorded in result:
            return result.replace(recorded, said)
    return result


def _history(ground: Grounds) -> Json:
    value: Json = ground.body
    for name in ground.grower.history(ground.body):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _pairs(one: Json, other: Json) -> Iterator[tuple[str, str]]:
    """Texts that stand in the same place."""
    if isinstance(one, str) and isinstance(other, str):
        yield one, other
    elif isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() & other.keys():
            yield from _pairs(one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list):
        for a, b in zip(one, other, strict=False):
            yield from _pairs(a, b)


def _replaced(value: Json, texts: Mapping[str, str]) -> Json:
    def anew(name: str | None, leaf: Json) -> Json:
        for old, new in texts.items() if isinstance(leaf, str) else ():
            leaf = leaf.replace(old, new)
        return leaf

    return rebuilt(value, anew)
