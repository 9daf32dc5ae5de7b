"""Renders the end of `wiretape record --update`: exchanges kept, called live, and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from wiretape.compare.difference import Difference, Tier
from wiretape.compare.excerpt import excerpts
from wiretape.matching.report import ReplayReport
from wiretape.matching.values import Miss
from wiretape.model.wording import plural
from wiretape.views.replay.rows import Compared, Row, Rows, Words, named_calls

_MOST = 6  # calls that are listed


@dataclass(frozen=True, slots=True)
class UpdateSummary:
    """An updated tape. `fresh`: number of recorded exchanges; `misses`: their misses; `outcome`: the last line."""

    report: ReplayReport
    misses: Sequence[Miss]
    fresh: int
    outcome: str
    written: bool


def update_view(updated: UpdateSummary) -> RenderableType:
    """Render the summary of an update."""
    rows = [*_kept(updated.report), *_fresh(updated), *_dropped(updated)]
    return Group(Rows(rows), Text(updated.outcome, "bold" if updated.written else "bold yellow", overflow="fold"))


def _kept(report: ReplayReport) -> Iterator[Row]:
    calls = [played for played in report.played if played.answer.call is not None]
    tiers = Counter(played.tier for played in calls)
    told = ", ".join(f"{tiers[tier.word]} {tier.word}" for tier in Tier if tiers[tier.word])
    others = len(report.played) - len(calls)
    said = plural(len(calls), "call") + (f" ({told})" if told else "")
    yield "kept", Words(said + (f", {plural(others, 'other exchange')}" if others else ""))


def _fresh(updated: UpdateSummary) -> Iterator[Row]:
    if not updated.fresh:
        yield "called live", Words("nothing")
        return
    anew = ", recorded anew" if updated.written else ", and not kept"
    yield "called live", Words(plural(updated.fresh, "exchange") + anew)
    counted = _counted(updated.misses)
    for miss, times in counted[:_MOST]:
        yield "", Words(f"{miss.what}: {_why(miss)}")
        if apart := _first_difference(miss):
            yield "", Compared(*excerpts(apart), 2)
        if times > 1:
            yield "", Words(f"and so {plural(times - 1, 'call')} more")
    if counted[_MOST:]:
        yield "", Words(f"and {plural(sum(times for _, times in counted[_MOST:]), 'call')} more")
    others = updated.fresh - len(updated.misses)
    if others > 0:
        yield "", Words(f"{others} of them not model calls, or WebSockets (always live)")


def _counted(misses: Sequence[Miss]) -> list[tuple[Miss, int]]:
    """Return the different misses with their number of calls. A change is in every later request, too."""
    counted: dict[object, tuple[Miss, int]] = {}
    for miss in misses:
        apart = _first_difference(miss)
        alike = (miss.what, *((apart.where, *excerpts(apart)) if apart is not None else (_why(miss),)))
        first, times = counted.get(alike, (miss, 0))
        counted[alike] = first, times + 1
    return list(counted.values())


def _first_difference(miss: Miss) -> Difference | None:
    return miss.differences[0] if miss.reason == "diverged" and miss.differences else None


def _why(miss: Miss) -> str:
    match miss.reason:
        case "diverged" if miss.differences:
            return f"differs from {miss.nearest} at {miss.differences[0].where}"
        case "already played":
            return f"asked once more than it was recorded ({miss.nearest})"
        case "diverged":
            return f"differs from {miss.nearest}"
        case "not playable" if miss.nearest is not None:
            return f"the recorder lost what {miss.nearest} gave"
    return str(miss.reason)


def _dropped(updated: UpdateSummary) -> Iterator[Row]:
    if not updated.written:
        return
    report = updated.report
    lost = [miss.nearest for miss in updated.misses if miss.reason == "not playable"]
    again = {reference.place for reference in lost if reference is not None}
    dropped = [one for one in report.left_over if (one.tape, one.exchange) not in again]
    if dropped:
        yield "dropped", Words(f"{named_calls(dropped)}: not asked for any more")
    if report.sockets:
        yield "" if dropped else "dropped", Words(f"{plural(report.sockets, 'WebSocket')} of the old tape")
