"""Renders lint findings: tape by tape, each with its place, both values and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from wiretape.analyze.lint.base import LintFinding, LintReport, LintRule, TapeLint
from wiretape.model.wording import plural
from wiretape.views.printable import clip, one_line
from wiretape.views.prose import Indented, labelled, sentence

COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}
_VALUE = 300  # cells of a value before it is cut


def lint_view(report: LintReport) -> RenderableType:
    """Render what `wiretape lint` shows."""
    return _LintView(report)


@dataclass(frozen=True, slots=True)
class _LintView:
    report: LintReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report, width = self.report, options.max_width
        for tape in report.tapes:
            if tape.findings:
                yield Text(one_line(tape.tape), style="bold", no_wrap=True, overflow="fold")
                yield from _tape(tape, console, width)
                yield Text()
        yield sentence(summary(report))


def summary(report: LintReport) -> str:
    """Return the number of findings in one line."""
    numbers = ((report.errors, "error"), (report.warnings, "warning"), (report.infos, "note"))
    found = ", ".join(plural(number, noun) for number, noun in numbers if number) or "nothing found"
    unreadable = f"; {plural(report.unreadable, 'tape')} could not be read" if report.unreadable else ""
    return f"{found} in {plural(len(report.tapes) - report.unreadable, 'tape')}{unreadable}"


def _tape(tape: TapeLint, console: Console, width: int) -> Iterator[Text]:
    # Equal findings about several calls are shown once.
    for _, same in groupby(tape.findings, key=lambda one: (one.rule, one.severity, one.text, one.path)):
        yield from _finding(list(same), console, width)


def _finding(same: Sequence[LintFinding], console: Console, width: int) -> Iterator[Text]:
    finding, colour = same[0], COLOURS[same[0].severity]
    head = Text.assemble((finding.severity, colour), " ", (finding.rule, "bold"), f" {finding.name}  ", _place(same))
    yield from labelled(console, "", head, width, label_width=0)
    yield from labelled(console, "", Text(one_line(finding.text)), width, indent=4, label_width=0)
    wide = max((len(label) for label in finding.values), default=0) + 2
    for label, value in finding.values.items():
        said = Text(clip(value, _VALUE) or "(empty)", style="cyan")
        yield from labelled(console, one_line(label), said, width, indent=4, label_width=wide)
    yield from labelled(console, "→", Text(one_line(finding.mend), style="dim"), width, indent=4, label_width=2)


def _place(same: Sequence[LintFinding]) -> str:
    first = same[0]
    where = f"call {first.call}" if first.call is not None else f"x{first.exchange}" if first.exchange else ""
    if len(same) > 1:
        where += f" and {len(same) - 1} more"
    return one_line(" ".join(part for part in (where, first.path) if part))


def rule_view(rule: LintRule) -> RenderableType:
    """Render what `wiretape lint --explain` shows for one rule."""
    return _RuleView(rule)


@dataclass(frozen=True, slots=True)
class _RuleView:
    rule: LintRule

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rule = self.rule
        yield Text.assemble((rule.id, "bold"), f" {rule.name} (", (rule.severity, COLOURS[rule.severity]), ")")
        yield Text()
        yield sentence(rule.summary, "bold")
        yield Text()
        yield Indented(Text(rule.explains), 0)
        yield Text()
        yield from labelled(console, "→", Text(rule.mend), options.max_width, label_width=2)


def rules_view(rules: Sequence[LintRule]) -> RenderableType:
    """Render what `wiretape lint --rules` shows."""
    return _RulesView(rules)


@dataclass(frozen=True, slots=True)
class _RulesView:
    rules: Sequence[LintRule]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for rule in self.rules:
            said = Text.assemble((rule.severity.ljust(9), COLOURS[rule.severity]), f"{rule.name}: {rule.summary}")
            yield from labelled(console, rule.id, said, options.max_width)
