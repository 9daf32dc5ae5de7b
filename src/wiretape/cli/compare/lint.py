"""`wiretape lint`: finds faults in the agent loops on tapes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.cli.shared_options import json_option
from wiretape.cli.tapes import partial_option
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.analyze.lint.base import LintReport, LintRule, TapeLint

UNREADABLE = 2


@click.command("lint")
@click.argument("tapes", metavar="TAPE...", nargs=-1)
@click.option(
    "--select", multiple=True, metavar="RULE", help="Use only these rules: ids (WT003), prefixes (WT00), names."
)
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave out these rules.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", "never"]),
    help="Exit with 1 at this severity or a higher one (default: error).",
)
@click.option("--explain", metavar="RULE", help="Explain a rule.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules.")
@json_option
@partial_option
@click.pass_context
def command(
    ctx: click.Context,
    tapes: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    explain: str | None,
    list_rules: bool,
    as_json: bool,
) -> None:
    """Find faults in the agent loops on each TAPE (or all tapes of a directory).

    Tool calls without results, arguments that do not fit their schema, runaway loops, dropped reasoning, unstable
    prefixes, secrets, and more: --rules lists the rules, --explain explains one. Exits with 1 if there are errors.
    Options may be set in [tool.wiretape.lint] of pyproject.toml; those of the command line take precedence.
    """
    if explain is not None or list_rules:
        _explain(explain, as_json)
        return
    if not tapes:
        raise UsageError("lint needs a TAPE or a directory, such as: wiretape lint captures")
    from wiretape.adapters.settings import load_settings
    from wiretape.analyze.lint.rules import chosen

    settings = load_settings(Path.cwd())
    rules = chosen(select or settings.lint.select, ignore or settings.lint.ignore)
    if not rules:
        raise UsageError("no rule is left: every selected rule is ignored")
    report = _lint(tapes, rules, settings.redact)
    _show(report, as_json)
    ctx.exit(_code(report, fail_on or settings.lint.fail_on))


def _lint(tapes: tuple[str, ...], rules: list[LintRule], redact: list[str]) -> LintReport:
    from wiretape.analyze.lint.base import lint_report
    from wiretape.cli.many_tapes import expand, one_by_one

    found = list(one_by_one(expand(tapes), lambda name: lint_tape(name, rules, redact)))
    return lint_report(found, [rule.id for rule in rules])


def lint_tape(name: str, rules: list[LintRule], redact: list[str]) -> TapeLint:
    """Return the findings of the rules on one tape."""
    from wiretape.analyze.lint.base import TapeLint
    from wiretape.cli.many_tapes import UnopenedTape, opened, say_unreadable, say_warnings

    tape = opened(name)
    if isinstance(tape, UnopenedTape):
        say_unreadable(tape)
        return TapeLint(tape=tape.name, problem=tape.problem)
    say_warnings(tape)
    return TapeLint(tape=tape.name, findings=tape.tape.lint_with(rules, redact))


def _show(report: LintReport, as_json: bool) -> None:
    if as_json:
        from wiretape.cli.tapes import print_json

        print_json(report.model_dump(mode="json"))
        return
    from wiretape.views.findings.lint import lint_view
    from wiretape.views.terminal import make_console

    make_console().print(lint_view(report))


def _code(report: LintReport, fail_on: str) -> int:
    """Return 1 if a finding has the severity `fail_on` or a higher one, else 2 if a tape could not be read."""
    counts = {"error": report.errors, "warning": report.warnings, "info": report.infos}
    failing = list(counts)[: list(counts).index(fail_on) + 1] if fail_on in counts else []
    if any(counts[severity] for severity in failing):
        return 1
    return UNREADABLE if report.unreadable else 0


def _explain(word: str | None, as_json: bool) -> None:
    from wiretape.analyze.lint.rules import all_rules, named
    from wiretape.cli.tapes import print_json
    from wiretape.views.findings.lint import rule_view, rules_view
    from wiretape.views.terminal import make_console

    rules = named(word) if word is not None else list(all_rules())
    if as_json:
        members = ("id", "name", "severity", "summary", "explains", "mend")
        print_json([{member: getattr(rule, member) for member in members} for rule in rules])
        return
    console = make_console()
    if word is None:
        console.print(rules_view(rules))
        return
    for number, rule in enumerate(rules):
        if number:
            console.print()
        console.print(rule_view(rule))
