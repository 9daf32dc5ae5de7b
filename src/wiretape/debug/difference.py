"""Differences between two calls, of one tape or of two: settings, tools, messages and answers.

Unchanged messages are the same objects on a tape, so comparing two long histories is fast.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.debug.expression.values import block_text, to_json
from wiretape.debug.timeline import Timeline
from wiretape.errors import UsageError
from wiretape.model.call import Block, CallRequest, Message, ModelCall, ToolCall, ToolResult
from wiretape.model.common_prefix import common_prefix
from wiretape.model.run import Run, Step
from wiretape.model.wording import count_text, plural

_UNKNOWN = "unknown"

How: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class CallDifference:
    """One difference. `character`: how many leading characters of the two texts are equal."""

    path: str
    how: How
    before: str | None
    after: str | None
    character: int | None = None


@dataclass(frozen=True, slots=True)
class CallComparison:
    """The differences of two calls, the most important of the request first. `first` and `second` name the calls."""

    first: str
    second: str
    request: tuple[CallDifference, ...]
    answer: tuple[CallDifference, ...]
    figures: tuple[tuple[str, str, str], ...]  # what, before, after
    same_messages: int = 0
    note: str = ""


def compare_calls(first: ModelCall, second: ModelCall, names: tuple[str, str], note: str = "") -> CallComparison:
    """Compare two calls.

    A changed model or history explains more than changed tools, added messages or settings, so it comes first.
    """
    old, new = first.request, second.request
    messages = list(_messages(old, new))
    history = [change for change in messages if change.how != "added"]
    added = [change for change in messages if change.how == "added"]
    changes = [*_model(old, new), *history, *_tools(old, new), *added, *_settings(old, new)]
    answers = _answers(first, second)
    same = _common(old.messages, new.messages)
    return CallComparison(*names, tuple(changes), tuple(answers), tuple(_figures(first, second)), same, note)


def _model(old: CallRequest, new: CallRequest) -> Iterator[CallDifference]:
    if old.model != new.model:
        yield CallDifference("model", "changed", old.model, new.model)


def _settings(old: CallRequest, new: CallRequest) -> Iterator[CallDifference]:
    for name in dict.fromkeys([*old.settings, *new.settings]):
        before, after = old.settings.get(name), new.settings.get(name)
        if before != after:
            how: How = "added" if name not in old.settings else "removed" if name not in new.settings else "changed"
            yield CallDifference(name, how, _spelled(before, how != "added"), _spelled(after, how != "removed"))


def _spelled(value: object, there: bool) -> str | None:
    return json.dumps(to_json(value), ensure_ascii=False, default=str) if there else None


def _tools(old: CallRequest, new: CallRequest) -> Iterator[CallDifference]:
    if old.tools is new.tools:
        return
    before = {tool.name: tool for tool in old.tools}
    after = {tool.name: tool for tool in new.tools}
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            yield CallDifference(f"tools.{name}", "removed", before[name].description or "", None)
        elif name not in before:
            yield CallDifference(f"tools.{name}", "added", None, after[name].description or "")
        elif before[name].raw != after[name].raw:
            spelled = _spelled(before[name].raw, True) or "", _spelled(after[name].raw, True) or ""
            yield _text(f"tools.{name}", *spelled)
    if [n for n in before if n in after] != [n for n in after if n in before]:
        yield CallDifference("tools", "changed", ", ".join(before), ", ".join(after))


def _messages(old: CallRequest, new: CallRequest) -> Iterator[CallDifference]:
    """Pair messages from the start to the first change, then from the end, then the rest by place."""
    a, b = old.messages, new.messages
    start = _common(a, b)
    tail = 0
    while tail < min(len(a), len(b)) - start and _same(a[-1 - tail], b[-1 - tail]):
        tail += 1
    one, other = a[start : len(a) - tail], b[start : len(b) - tail]
    for place, (left, right) in enumerate(zip(one, other, strict=False), start):
        if not _same(left, right):
            yield from _message(new.path(place), left, right)
    for place in range(start + len(other), start + len(one)):
        yield CallDifference(old.path(place), "removed", _shown(a[place]), None)
    for place in range(start + len(one), start + len(other)):
        yield CallDifference(new.path(place), "added", None, _shown(b[place]))


def _common(a: Sequence[Message], b: Sequence[Message]) -> int:
    count = 0
    for left, right in zip(a, b, strict=False):
        if not _same(left, right):
            break
        count += 1
    return count


def _same(a: Message, b: Message) -> bool:
    return a is b or (a.role == b.role and a.blocks == b.blocks and a.extra == b.extra)


def _message(path: str, old: Message, new: Message) -> Iterator[CallDifference]:
    if old.role != new.role:
        yield CallDifference(path, "changed", _shown(old), _shown(new))
        return
    for place, (left, right) in enumerate(zip(old.blocks, new.blocks, strict=False)):
        if left != right:
            here = new.block_paths[place] if place < len(new.block_paths) else ""
            yield _block(path + here, left, right)
    for place in range(len(new.blocks), len(old.blocks)):
        yield CallDifference(path, "removed", block_text(old.blocks[place]), None)
    for place in range(len(old.blocks), len(new.blocks)):
        yield CallDifference(path, "added", None, block_text(new.blocks[place]))
    if old.blocks == new.blocks and old.extra != new.extra:
        yield CallDifference(path, "changed", _spelled(dict(old.extra), True), _spelled(dict(new.extra), True))


def _block(path: str, old: Block, new: Block) -> CallDifference:
    before, after = block_text(old), block_text(new)
    if before == after and isinstance(old, ToolCall | ToolResult) and isinstance(new, ToolCall | ToolResult):
        return CallDifference(path, "changed", f"id {old.id}", f"id {new.id}")
    if before == after:
        return CallDifference(path, "changed", _spelled(old, True), _spelled(new, True))
    return _text(path, before, after)


def _text(path: str, before: str, after: str) -> CallDifference:
    return CallDifference(path, "changed", before, after, common_prefix(before, after))


def _shown(message: Message) -> str:
    return f"{message.role}: " + "\n".join(block_text(block) for block in message.blocks)


def _answers(first: ModelCall, second: ModelCall) -> Iterator[CallDifference]:
    a = first.response.messages if first.response is not None else ()
    b = second.response.messages if second.response is not None else ()
    old, new = [block for m in a for block in m.blocks], [block for m in b for block in m.blocks]
    for place, (left, right) in enumerate(zip(old, new, strict=False)):
        if _unlike(left, right):
            yield _text(f"blocks[{place}]", block_text(left), block_text(right))
    for place in range(len(new), len(old)):
        yield CallDifference(f"blocks[{place}]", "removed", block_text(old[place]), None)
    for place in range(len(old), len(new)):
        yield CallDifference(f"blocks[{place}]", "added", None, block_text(new[place]))


def _unlike(a: Block, b: Block) -> bool:
    """Compare texts only: ids of tool calls and opaque state are new in every answer."""
    return type(a) is not type(b) or block_text(a) != block_text(b)


def _figures(first: ModelCall, second: ModelCall) -> Iterator[tuple[str, str, str]]:
    for name in ("input", "cached", "cache_write", "output", "reasoning"):
        old, new = (getattr(call.usage, name) if call.usage is not None else None for call in (first, second))
        if old is not None or new is not None:
            yield name, count_text(old, _UNKNOWN), count_text(new, _UNKNOWN)
    old, new = (call.response.finish if call.response is not None else None for call in (first, second))
    if old != new:
        yield "finish", old or _UNKNOWN, new or _UNKNOWN


@dataclass(frozen=True, slots=True)
class OtherTape:
    path: str
    run: Run


def counterpart(timeline: Timeline, number: int, other: OtherTape, theirs: int | None) -> tuple[ModelCall, str]:
    """The call of the other tape to compare with, and where the tapes diverge, as a sentence. Raises UsageError.

    `theirs`: its number; None: the call with the same agent and the same order among that agent's calls.
    """
    if theirs is not None:
        found = next((step.call for step in other.run.steps if step.call.number == theirs), None)
        if found is None:
            raise UsageError(f"{other.path} has no call {theirs}; it has {Timeline(other.run).extent()}")
        return found, divergence(timeline.run, other, number)
    place = next(place for place, step in _places(timeline.run) if step.call.number == number)
    match = next((step.call for there, step in _places(other.run) if there == place), None)
    if match is None:
        agent, order = place
        raise UsageError(f"{other.path} has no call {order} of agent {agent}; name one: diff {other.path} N")
    return match, divergence(timeline.run, other, number)


def _places(run: Run) -> Iterator[tuple[tuple[str, int], Step]]:
    """Each call with its agent's name and its order among that agent's calls."""
    counts: Counter[str] = Counter()
    for step in run.steps:
        name = run.agents[step.agent].name + (" (side call)" if step.cause.kind == "side_call" else "")
        counts[name] += 1
        yield (name, counts[name]), step


def divergence(run: Run, other: OtherTape, here: int | None = None) -> str:
    """Where two runs first differ, as a sentence, with the command that shows it unless it is call `here`."""
    theirs = dict(_places(other.run))
    for place, step in _places(run):
        match = theirs.get(place)
        if match is None:
            return f"the tapes diverge at call {step.call.number}: {other.path} has no matching call"
        if _new_texts(step) != _new_texts(match):
            found = f"the tapes diverge at call {step.call.number} (call {match.call.number} of {other.path})"
            show = f"; to see it: goto {step.call.number}, then diff {shlex.quote(other.path)}"
            return found if step.call.number == here else found + show
    more = len(other.run.steps) - len(run.steps)
    return "all calls are equal" + (f"; {other.path} has {plural(more, 'more call')}" if more > 0 else "")


def _new_texts(step: Step) -> list[tuple[str, str]]:
    """Role and text of each block that the call's request adds, and of its answer."""
    response = step.call.response
    messages = (*step.call.request.messages[step.new_from :], *(response.messages if response is not None else ()))
    return [(message.role, block_text(block)) for message in messages for block in message.blocks]
