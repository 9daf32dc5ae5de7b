"""The summary of a replay: what was played, drifted, missed, strayed, let through and left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from wiretape.replay.report import Drifted, Mishap, Missed, Named, ReplayReport
from wiretape.replay.values import Answer, Injected, Miss, Outcome, Stray, Tier

_Row: TypeAlias = tuple[str, Text]

_LABEL = 11
_INDENT = 2 + _LABEL + 1
_MOST_MINOR = 3
_MOST_NAMED = 12


def replay_view(report: ReplayReport) -> RenderableType:
    """One block for each kind of thing that happened; what did not happen is not mentioned."""
    lines = [_row("played", _played(report)), *_injected(report)]
    for position, drift in enumerate(d for d in report.drifted if not d.minor):
        lines += _drift("drifted" if not position else "", drift)
    lines += _minor(report)
    for missed in report.missed:
        lines += _missed(missed)
    for position, stray in enumerate(report.strayed):
        times = f" ({stray.times} times)" if stray.times > 1 else ""
        note = f": {stray.note}" if stray.note else ""
        lines.append(_row("strayed" if not position else "", f"{stray.what}{times}{note}"))
    for position, (host, connections) in enumerate(report.passed.items()):
        lines.append(_row("let through" if not position else "", f"{host} ({_count(connections, 'connection')})"))
    if report.left_over:
        lines.append(_row("left over", f"{_names(report.left_over)} not asked for"))
    if report.sockets:
        lines.append(_row("", f"{_count(report.sockets, 'recorded WebSocket')} not opened"))
    return Group(Text(f"replayed {report.tapes}", "bold"), _Rows(lines))


class _Rows:
    """Labels and texts in two columns; a text that is too long goes on under itself. No line ends in spaces."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for label, text in self._rows:
            hang = " " * (len(text.plain) - len(text.plain.lstrip()))
            width = max(20, options.max_width - _INDENT - len(hang))
            body = Text(text.plain.lstrip(), text.style)
            for position, line in enumerate(body.wrap(console, width, overflow="fold")):
                line.rstrip()
                yield Text.assemble(f"  {label if not position else '':<{_LABEL}} {hang}", line)


def outcome_line(outcome: Outcome) -> Text:
    """One line for what is no answered model call, while it happens."""
    match outcome:
        case Answer(reference=reference):
            return Text(f"{f'x{reference.exchange}':>3}  {reference.what}", "dim")
        case Injected(reference=reference, fault=fault):
            return Text(f"{reference.call or f'x{reference.exchange}':>3}  injected {fault.spec}", "yellow")
        case Miss(what=what, reason=reason):
            return Text(f"miss  {what}  {reason}", "bold red")
        case Stray(what=what, note=note):
            return Text(f"stray  {what}" + (f"  {note}" if note else ""), "dim")


def tier_mark(answer: Answer) -> str:
    """What is said of an answer that did not match exactly, or that a fault delayed."""
    injected = "".join(f"  injected {fault.spec}" for fault in answer.faults)
    return injected + ("" if answer.tier is Tier.EXACT else f"  drift ({answer.tier.word})")


def _played(report: ReplayReport) -> str:
    calls = [played for played in report.played if played.answer.call is not None]
    others = len(report.played) - len(calls)
    tiers = Counter(played.tier for played in calls)
    told = ", ".join(f"{tiers[tier.word]} {tier.word}" for tier in Tier if tiers[tier.word])
    line = _count(len(calls), "call") + (f" ({told})" if told else "")
    if others:
        line += f", {_count(others, 'other answer')}"
    repeated = sum(1 for played in report.played if played.repeated)
    return line + (f", {repeated} of them again" if repeated else "")


def _injected(report: ReplayReport) -> Iterator[_Row]:
    by_fault: dict[str, list[Mishap]] = {}
    for mishap in report.injected:
        by_fault.setdefault(mishap.fault, []).append(mishap)
    label = "injected"
    for fault, mishaps in by_fault.items():
        named = list({(one.answer.tape, one.answer.exchange): one.answer for one in mishaps}.values())
        again = f" ({_count(len(mishaps), 'attempt')})" if len(mishaps) > len(named) else ""
        yield _row(label, f"{fault} into {_names(named)}{again}")
        label = ""
    if report.not_injected:
        yield _row(label, f"{', '.join(report.not_injected)} never came up: nobody asked for the call", "yellow")


def _drift(label: str, drift: Drifted) -> Iterator[_Row]:
    yield _row(label, f"{drift.where} in {_names(drift.calls)} ({drift.tier})")
    yield _row("", f"  recorded  {drift.recorded_excerpt}")
    yield _row("", f"  live      {drift.live_excerpt}")


def _minor(report: ReplayReport) -> Iterator[_Row]:
    minor = [drift for drift in report.drifted if drift.minor]
    label = "" if len(minor) < len(report.drifted) else "drifted"
    for drift in minor[:_MOST_MINOR]:
        yield _row(label, f"{drift.where} in {_names(drift.calls)}: {drift.recorded_excerpt} → {drift.live_excerpt}")
        label = ""
    if len(minor) > _MOST_MINOR:
        more = _count(len(minor) - _MOST_MINOR, "place")
        yield _row("", f"{more} more where only an id, a spelling or a volatile setting differs (--report lists them)")


def _missed(missed: Missed) -> Iterator[_Row]:
    first, *rest = missed.message.split("\n")
    yield _row("missed", first, "bold red")
    for line in rest:
        yield _row("", line)


def _row(label: str, text: str, style: str = "") -> _Row:
    return label, Text(text, style)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _names(named: Sequence[Named]) -> str:
    """`calls 1, 2, 3 and x7`; a long row is cut, and says so."""
    calls = [str(name.call) for name in named if name.call is not None]
    others = [f"x{name.exchange}" for name in named if name.call is None]
    shown = [("call " if len(calls) == 1 else "calls ") + ", ".join(_cut(calls))] if calls else []
    return " and ".join([*shown, *([", ".join(_cut(others))] if others else [])])


def _cut(names: list[str]) -> list[str]:
    return names if len(names) <= _MOST_NAMED else [*names[:_MOST_NAMED], f"… ({len(names)} in all)"]
