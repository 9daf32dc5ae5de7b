"""What `wiretape record --update` says at the end: what was kept, called live, and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from wiretape.replay.excerpt import excerpts
from wiretape.replay.report import Named, ReplayReport
from wiretape.replay.values import Miss, Tier
from wiretape.views.figures import count
from wiretape.views.replay_rows import Compared, Row, Rows, Words

_MOST = 6  # calls that are told one by one


@dataclass(frozen=True, slots=True)
class Updated:
    """`fresh`: how many exchanges were recorded; `misses`: why, as far as they are model calls. `outcome`: the end."""

    report: ReplayReport
    misses: Sequence[Miss]
    fresh: int
    outcome: str
    written: bool


def update_view(updated: Updated) -> RenderableType:
    rows = [*_kept(updated.report), *_fresh(updated), *_dropped(updated)]
    return Group(Rows(rows), Text(updated.outcome, "bold" if updated.written else "bold yellow", overflow="fold"))


def _kept(report: ReplayReport) -> Iterator[Row]:
    calls = [played for played in report.played if played.answer.call is not None]
    tiers = Counter(played.tier for played in calls)
    told = ", ".join(f"{tiers[tier.word]} {tier.word}" for tier in Tier if tiers[tier.word])
    others = len(report.played) - len(calls)
    said = count(len(calls), "call") + (f" ({told})" if told else "")
    yield "kept", Words(said + (f", {count(others, 'other exchange')}" if others else ""))


def _fresh(updated: Updated) -> Iterator[Row]:
    if not updated.fresh:
        yield "called live", Words("nothing")
        return
    anew = ", recorded anew" if updated.written else ", and not kept"
    yield "called live", Words(count(updated.fresh, "exchange") + anew)
    for miss in updated.misses[:_MOST]:
        yield "", Words(f"{miss.what}: {_why(miss)}")
        if miss.reason == "diverged" and miss.differences:
            recorded, live = excerpts(miss.differences[0])
            yield "", Compared(recorded, live, 2)
    if updated.misses[_MOST:]:
        yield "", Words(f"and {count(len(updated.misses) - _MOST, 'call')} more")
    others = updated.fresh - len(updated.misses)
    if others > 0:
        yield "", Words(f"{others} of them no model calls, or WebSockets (always live)")


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


def _dropped(updated: Updated) -> Iterator[Row]:
    if not updated.written:
        return
    report = updated.report
    lost = [miss.nearest for miss in updated.misses if miss.reason == "not playable"]
    again = {reference.place for reference in lost if reference is not None}
    dropped = [one for one in report.left_over if (one.tape, one.exchange) not in again]
    if dropped:
        yield "dropped", Words(f"{_names(dropped)}: not asked for any more")
    if report.sockets:
        yield "" if dropped else "dropped", Words(f"{count(report.sockets, 'WebSocket')} of the old tape")


def _names(named: Sequence[Named]) -> str:
    names = [str(one) for one in named]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if names[12:] else "")
