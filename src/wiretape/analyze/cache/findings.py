"""Findings of a cache diagnosis for `wiretape stats`. Repeated findings are reported once, with their total cost."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from wiretape.analyze.cache.report import CacheCall, CacheReport
from wiretape.analyze.report import CacheSum, Finding
from wiretape.model.run import Run

_WORTH_MARKING = 1024  # tokens: providers that need markers cache prompts of this size


def cache_sum(report: CacheReport) -> CacheSum:
    """Return the sums of a diagnosis."""
    return CacheSum(
        verdicts={str(verdict): number for verdict, number in report.verdicts.items()},
        lost_tokens=report.lost_tokens,
        lost_usd=report.lost_usd,
    )


def cache_findings(report: CacheReport, run: Run, reported: Container[int | None] = ()) -> Iterable[Finding]:
    """Yield prefix breaks, expired entries and prompts without cache markers.

    `reported`: calls whose dropped reasoning is already a finding.
    """
    threads = {step.call.number: step.thread for step in run.steps}
    yield from _breaks(report, threads, reported)
    for verdict, kind in (
        ("expired", "cache_expired"),
        ("too_early", "cache_too_early"),
        ("routed_elsewhere", "cache_missed"),
    ):
        alike: dict[int, list[CacheCall]] = {}
        for one in report.calls:
            if one.verdict == verdict:
                alike.setdefault(threads[one.call], []).append(one)
        for first, *again in alike.values():
            yield _finding(kind, first, again, f"call {first.call}: {first.text}")
    yield from _unmarked(report)


def _breaks(report: CacheReport, threads: dict[int, int], reported: Container[int | None]) -> Iterable[Finding]:
    places: dict[tuple[int, str, str], list[CacheCall]] = {}
    besides: dict[tuple[int, str, str], list[CacheCall]] = {}
    for one in report.calls:
        if one.verdict == "broken":
            for index, found in enumerate(one.breaks):
                # A switch of the model is a finding of its own; other changes do not matter then.
                if found.kind == "model_switch":
                    break
                if found.kind == "reasoning_dropped" and one.call in reported:
                    continue
                kept = besides if index else places
                kept.setdefault((threads[one.call], found.path, found.kind), []).append(one)
    for first, *again in places.values():
        yield _finding("prefix_break", first, again, first.text)
    for (_, path, _), (first, *again) in besides.items():
        found = next(one for one in first.breaks if one.path == path)
        text = f"prefix breaks at {found.text} (compared with call {first.compared_with})"
        yield Finding(kind="prefix_break", call=first.call, text=text + _again(again))


def _unmarked(report: CacheReport) -> Iterable[Finding]:
    """Long prompts without a marker, if the provider caches only marked prompts."""
    calls = [one for one in report.calls if one.verdict == "not_asked" and (one.shared or 0) >= _WORTH_MARKING]
    if calls:
        first, *again = calls
        many = f", and {len(again)} more," if again else ""
        text = f"call {first.call}{many} sent again what call {first.compared_with} had sent, without a cache marker"
        yield Finding(kind="cache_not_asked", call=first.call, text=f"{text}; {first.mend}")


def _finding(kind: str, first: CacheCall, again: Sequence[CacheCall], text: str) -> Finding:
    calls = [first, *again]
    text += _again(again)
    lost = sum(one.lost_tokens or 0 for one in calls)
    guessed = any(one.reported is None for one in calls)
    if lost:
        usd = [one.lost_usd for one in calls if one.lost_usd is not None]
        paid = f" (${sum(usd):.2g} more)" if usd and sum(usd) else ""
        # Without a reported number, the cache may have served them.
        verb = "were not served" if not guessed else "can have been missed"
        text += f"; {lost:,} input tokens {verb}{paid}"
    if first.mend:
        text += f"; to mend it: {first.mend}"
    return Finding(kind=kind, call=first.call, text=text, estimate=guessed and bool(lost))


def _again(again: Sequence[CacheCall]) -> str:
    if not again:
        return ""
    calls = "1 later call" if len(again) == 1 else f"{len(again)} later calls"
    return f"; there again in {calls} of the thread, last in call {again[-1].call}"
