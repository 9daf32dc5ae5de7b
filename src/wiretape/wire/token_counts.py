"""Judges token counts: which report of a stream counts, and which parts a provider's total includes.

Providers report a part (cached, written, reasoning, audio) inside another count or beside it. Their own total decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Literal, NamedTuple

from wiretape.model.call import Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import merge, number

Side = Literal["input", "output", "total"]
_OUTPUT = ("output", "completion", "candidate", "thought", "thinking", "reasoning")
_INPUT = ("input", "prompt", "cach", "tool")


def latest_usage(known: JsonObject | None, new: Json) -> JsonObject | None:
    """Return the usage after one more report of a stream: later counts replace earlier ones and are never added.

    A report whose counts of a side (input or output) are all 0 says nothing about that side: known counts stay.
    """
    if not known or not isinstance(new, dict) or (0 not in new.values() and "tokens" not in new):
        return merge(known, new)
    empty = _empty_sides(known, new)
    if not empty:
        return merge(known, new)
    kept = _without(new, empty | {"total"})
    if _sums(kept).keys() & {"input", "output"}:  # the earlier total counts what this report replaces
        known = _without(known, {"total"})
    return merge(known, kept)


def is_empty_report(known: JsonObject | None, new: JsonObject) -> bool:
    """Return whether a report has only zeros although the input is known."""
    if not known or 0 not in new.values():
        return False
    now = _sums(new)
    return now.get("input") == 0 and not any(now.values()) and bool(_sums(known).get("input"))


def wipes_a_side(known: JsonObject | None, new: JsonObject) -> bool:
    """Return whether a report has only zeros for the input, or for the output, that is known."""
    return bool(known) and 0 in new.values() and bool(_empty_sides(known or {}, new))


def without_output(usage: JsonObject | None) -> JsonObject | None:
    """Return the usage without its output counts and its total."""
    return _without(usage, {"output", "total"}) if usage else usage


def without_final_output(usage: Usage | None) -> Usage | None:
    """Return the usage of a stream that was cut: the output that it reported so far is not the final one."""
    return None if usage is None else replace(usage, output=None, reasoning=None)


def _side(name: str) -> Side | None:
    """Return the side that a member counts, in any spelling; None: unknown, or a group of both sides."""
    name = name.lower()
    if any(word in name for word in _OUTPUT) or name == "eval_count":
        return "output"
    if any(word in name for word in _INPUT):
        return "input"
    return "total" if name.startswith("total") else None


def _empty_sides(known: JsonObject, new: JsonObject) -> set[Side]:
    before = _sums(known)
    return {side for side, count in _sums(new).items() if not count and before.get(side)}


def _sums(counts: JsonObject) -> dict[Side, int]:
    sums: dict[Side, int] = {}
    for side, count in _numbers(counts, None):
        sums[side] = sums.get(side, 0) + count
    return sums


def _numbers(counts: JsonObject, group: Side | None) -> Iterator[tuple[Side, int]]:
    for name, value in counts.items():
        side = group or _side(name)
        if isinstance(value, dict):
            yield from _numbers(value, side)
        elif side is not None and (count := number(value)) is not None:
            yield side, count


def _without(counts: JsonObject, sides: set[Side]) -> JsonObject:
    kept: JsonObject = {}
    for name, value in counts.items():
        side = _side(name)
        if side is None and isinstance(value, dict):
            kept[name] = _without(value, sides)
        elif side not in sides:
            kept[name] = value
    return kept


class Part(NamedTuple):
    """Tokens that the provider reports as a part of a count, or `beside` it, as its format defines."""

    side: Literal["input", "output"]
    tokens: int | None
    beside: bool = False
    group: str = ""  # the parts of a group are disjoint


def judged_usage(
    raw: JsonObject,
    prompt: int | None,
    output: int | None,
    total: int | None,
    *,
    cached: int | None = None,
    written: int | None = None,
    reasoning: int | None = None,
    cache_beside: bool = False,
    reasoning_beside: bool = False,
    more: tuple[Part, ...] = (),
    hidden_reasoning: bool = False,
) -> Usage | None:
    """Return the usage under the reading that fits the provider's total; None if it has no count.

    `cache_beside`, `reasoning_beside` and `more` describe the format. If the total fits no reading, or several, the
    usage has the counts that the format defines and is marked as inconsistent. `hidden_reasoning`: tokens that only
    the total has are reasoning.
    """
    every = (
        Part("input", cached, cache_beside, "cache"),
        Part("input", written, cache_beside, "cache"),
        Part("output", reasoning, reasoning_beside, "reasoning"),
        *more,
    )
    parts = [part for part in every if part.tokens is not None and part.tokens > 0]
    if prompt is None or output is None or not total:
        added, consistent = _added_by_size(parts, {"input": prompt, "output": output}), True
    else:
        found = _added_by_total(parts, {"input": prompt, "output": output}, total)
        added, consistent = found or _added(parts, [part.beside for part in parts]), found is not None
        rest = total - prompt - output - sum(added.values())
        if not consistent and hidden_reasoning and reasoning is None and rest > 0 and not added["input"]:
            reasoning, output, consistent = rest, output + rest, (cached or 0) + (written or 0) <= prompt
    usage = Usage(
        None if prompt is None else prompt + added["input"],
        cached,
        written,
        None if output is None else output + added["output"],
        reasoning,
        raw,
    )
    return None if usage == Usage() else usage if consistent else replace(usage, consistent=False)


def _added_by_total(parts: list[Part], base: dict[str, int | None], total: int) -> dict[str, int] | None:
    """Return the tokens to add to the counts so that they fit the total; None if none or several readings fit.

    Readings with fewer changes to the format's definition come first.
    """
    rest = total - sum(count or 0 for count in base.values())
    for changes in range(len(parts) + 1):
        fitting: list[dict[str, int]] = []
        for changed in combinations(range(len(parts)), changes):
            beside = [part.beside != (n in changed) for n, part in enumerate(parts)]
            added = _added(parts, beside)
            if sum(added.values()) == rest and added not in fitting and _is_possible(parts, beside, base):
                fitting.append(added)
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return None


def _added_by_size(parts: list[Part], base: dict[str, int | None]) -> dict[str, int]:
    """Return the tokens to add without a total: parts of a group that exceed their count are beside it."""
    beside = [part.beside for part in parts]
    for group in {part.group for part in parts if part.group}:
        if not _is_possible(parts, beside, base, group):
            beside = [is_beside or part.group == group for part, is_beside in zip(parts, beside, strict=True)]
    return _added(parts, beside)


def _added(parts: list[Part], beside: list[bool]) -> dict[str, int]:
    added = {"input": 0, "output": 0}
    for part, is_beside in zip(parts, beside, strict=True):
        if is_beside:
            added[part.side] += part.tokens or 0
    return added


def _is_possible(parts: list[Part], beside: list[bool], base: dict[str, int | None], only: str | None = None) -> bool:
    """Return whether the parts inside a count are at most as large as it."""
    inside: dict[tuple[str, str], int] = {}
    for part, is_beside in zip(parts, beside, strict=True):
        if not is_beside and only in (None, part.group):
            key = (part.side, part.group)
            inside[key] = inside.get(key, 0) + (part.tokens or 0)
    return all(base[side] is None or count <= (base[side] or 0) for (side, _), count in inside.items())
