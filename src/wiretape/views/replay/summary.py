"""Renders the summary of a replay: played, drifted, missed and stray requests, and exchanges left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from wiretape.compare.difference import Tier
from wiretape.compare.excerpt import LIVE, RECORDED
from wiretape.matching.report import ReplayReport, ReportedDrift, ReportedFault, ReportedMiss
from wiretape.matching.values import Answer, Injected, Miss, Outcome, Stray
from wiretape.model.wording import plural
from wiretape.views.prose import labelled, sentence
from wiretape.views.replay.rows import CommandRow, Compared, Row, Rows, Words, named_calls

_MOST_MINOR = 3


def replay_view(report: ReplayReport) -> RenderableType:
    """Render one block for each kind of outcome that occurred."""
    lines: list[Row] = [_row("played", _played(report)), *_injected(report)]
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
        lines.append(_row("let through" if not position else "", f"{host} ({plural(connections, 'connection')})"))
    for position, (host, connections) in enumerate(report.straight.items()):
        went = f"{host} ({plural(connections, 'connection')}), past the variables; unsealed it is the real host"
        lines.append(_row("led here" if not position else "", went))
    if report.left_over:
        lines.append(_row("left over", f"{named_calls(report.left_over)} not asked for"))
    if report.sockets:
        lines.append(_row("", f"{plural(report.sockets, 'recorded WebSocket')} not opened"))
    return Group(Text(f"replayed {report.tapes}", "bold"), Rows(lines))


class Unreached:
    """Advice if no call reached the replay. `program`: its command line; empty: none was run.

    `sealed`: the program had no network.
    """

    def __init__(self, report: ReplayReport, program: str, failed: bool, sealed: bool = False) -> None:
        self._report = report
        self._sealed = sealed
        self._program = program
        self._failed = failed

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = "; nothing of the tape was played (exit code 3)" if self._failed else ""
        yield sentence(f"No model call reached the replay server{code}.", "bold yellow")
        for advice in self._advice():
            for line in labelled(console, "-", Text(advice, "yellow"), options.max_width, indent=2, label_width=2):
                line.overflow = "ignore"
                yield line

    def _advice(self) -> Iterator[str]:
        if not self._program:
            yield "Does the program run with the printed variables, and does nothing replace them?"
            yield "Does it read one of them, or does it have a setting for the base URL?"
            return
        yield "Does the program read a *_BASE_URL variable, or does it have a setting for the base URL?"
        if self._sealed:
            yield "It was sealed: its connections are listed above."
        else:
            yield "Does it use proxy variables? If it does neither, it may have called its model live."
            yield "--sealed intercepts such a program (Linux), or lists the connections that it tried."
        yield f"wiretape doctor -- {self._program} shows the checks and variables for the program."
        yield f"Serve without a program (wiretape replay {self._report.tapes}) and set the printed address by hand."


def outcome_line(outcome: Outcome) -> Text:
    """Return one line for an outcome that is not an answered model call."""
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
    """Return a note about an answer with drift, or with injected faults."""
    injected = "".join(f"  injected {fault.spec}" for fault in answer.faults)
    return injected + ("" if answer.tier is Tier.EXACT else f"  drift ({answer.tier.word})")


def _played(report: ReplayReport) -> str:
    calls = [played for played in report.played if played.answer.call is not None]
    others = len(report.played) - len(calls)
    tiers = Counter(played.tier for played in calls)
    told = ", ".join(f"{tiers[tier.word]} {tier.word}" for tier in Tier if tiers[tier.word])
    line = plural(len(calls), "call") + (f" ({told})" if told else "")
    if others:
        line += f", {plural(others, 'other answer')}"
    repeated = sum(1 for played in report.played if played.repeated)
    return line + (f", {repeated} of them again" if repeated else "")


def _injected(report: ReplayReport) -> Iterator[Row]:
    by_fault: dict[str, list[ReportedFault]] = {}
    for mishap in report.injected:
        by_fault.setdefault(mishap.fault, []).append(mishap)
    label = "injected"
    for fault, mishaps in by_fault.items():
        named = list({(one.answer.tape, one.answer.exchange, one.answer.call): one.answer for one in mishaps}.values())
        again = f" ({plural(len(mishaps), 'attempt')})" if len(mishaps) > len(named) else ""
        yield _row(label, f"{fault} into {named_calls(named)}{again}")
        label = ""
    if report.not_injected:
        yield _row(label, f"{', '.join(report.not_injected)} was not injected: no request reached the call", "yellow")


def _drift(label: str, drift: ReportedDrift) -> Iterator[Row]:
    yield _row(label, f"{drift.where}, new in {named_calls(drift.calls)} ({drift.tier})")
    yield "", Compared(drift.recorded_excerpt, drift.live_excerpt, 2)


def _minor(report: ReplayReport) -> Iterator[Row]:
    minor = [drift for drift in report.drifted if drift.minor]
    label = "" if len(minor) < len(report.drifted) else "drifted"
    for drift in minor[:_MOST_MINOR]:
        values = f"{drift.recorded_excerpt} → {drift.live_excerpt}"
        yield _row(label, f"{drift.where}, new in {named_calls(drift.calls)}: {values}")
        label = ""
    if len(minor) > _MOST_MINOR:
        more = plural(len(minor) - _MOST_MINOR, "place")
        yield _row("", f"{more} more where only an id, a spelling or a volatile setting differs (--report lists them)")


def _missed(missed: ReportedMiss) -> Iterator[Row]:
    first, *rest = missed.message.split("\n")
    times = f" ({missed.times} times)" if missed.times > 1 else ""
    yield _row("missed", first + times, "bold red")
    lines = iter(rest)
    for line in lines:
        said = line.lstrip()
        if said.startswith(RECORDED):
            live = next(lines, "").lstrip()
            yield "", Compared(said.removeprefix(RECORDED), live.removeprefix(LIVE), len(line) - len(said))
        elif missed.mend and line.endswith(f" {missed.mend}"):
            yield "", CommandRow(line.removesuffix(missed.mend).rstrip(), missed.mend)
        else:
            yield _row("", line)


def _row(label: str, text: str, style: str = "") -> Row:
    return label, Words(text, style)
