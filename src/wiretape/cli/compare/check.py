"""`wiretape check`: compares tapes with budgets, and with older runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiretape.cli.shared_options import json_option
from wiretape.cli.tapes import partial_option
from wiretape.errors import TapeError, UsageError

if TYPE_CHECKING:
    from wiretape.adapters.settings import CheckSettings
    from wiretape.analyze.budgets.report import Budgets, CheckReport, Judgement, TapeCheck
    from wiretape.cli.tapes import OpenedTape

FAILED = 1
UNREADABLE = 2
TOLERANCE = 0.1


@click.command("check")
@click.argument("tapes", metavar="TAPE...", nargs=-1, required=True)
@click.option("--max-calls", type=click.IntRange(0), help="Maximum of model calls in a tape.")
@click.option("--max-calls-per-turn", type=click.IntRange(0), help="Maximum of model calls in a user turn.")
@click.option("--max-tool-calls-per-turn", type=click.IntRange(0), help="Maximum of tool calls in a user turn.")
@click.option("--max-turn-ms", type=click.IntRange(0), help="Maximum duration of a user turn, in ms.")
@click.option("--max-input", metavar="TOKENS", help="Maximum of input tokens, cached included: 50000, 50k.")
@click.option("--max-output", metavar="TOKENS", help="Maximum of output tokens, reasoning included.")
@click.option("--max-cost", type=click.FloatRange(0), metavar="USD", help="Maximum cost of a tape, in US dollars.")
@click.option("--min-cache-hit", metavar="SHARE", help="Minimum share of the input from the cache: 0.6, 60%.")
@click.option("--no-lint-errors", is_flag=True, default=None, help="Fail if wiretape lint reports errors.")
@click.option("--baseline", metavar="OLD", help="Compare with this older tape, or a directory of tapes.")
@click.option("--tolerance", metavar="SHARE", help="Allow numbers to be worse than OLD by this share (default: 10%).")
@click.option("--allow-unknown", is_flag=True, default=None, help="Do not fail if a budget cannot be judged.")
@json_option
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML to FILE.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Append a Markdown summary to FILE.")
@partial_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    tapes: tuple[str, ...],
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
    **flags: Any,
) -> None:
    """Compare each TAPE (or all tapes of a directory) with budgets, and exit with 1 if one is exceeded.

    Budgets may be set in [tool.wiretape.check] of pyproject.toml with the names of the options (max-input = "50k");
    options take precedence. A budget whose number or price is unknown fails as well, unless --allow-unknown is given.
    """
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.many_tapes import expand, one_by_one

    settings = load_settings(Path.cwd())
    wanted = _wanted(flags, settings.check)
    names = expand(tapes)
    old = _Baseline(wanted.baseline, tapes, names) if wanted.baseline is not None else None
    checker = _Checker(wanted, old, settings.mask, settings.redact)
    from wiretape.analyze.budgets.report import check_report

    report = check_report(list(one_by_one(names, checker.check)), wanted.allow_unknown)
    _write(report, as_json, junit, markdown)
    ctx.exit(_code(report))


def _code(report: CheckReport) -> int:
    """Return 1 if a budget is exceeded, else 2 if a tape could not be read."""
    if report.exceeded or (report.unknown and not report.allow_unknown):
        return FAILED
    return UNREADABLE if report.unreadable else 0


@dataclass(frozen=True, slots=True)
class _Wanted:
    budgets: Budgets
    baseline: str | None
    tolerance: float
    allow_unknown: bool


def _wanted(flags: dict[str, Any], settings: CheckSettings) -> _Wanted:
    """Merge the options with the project's settings; options take precedence."""
    from wiretape.analyze.budgets.amounts import count, share
    from wiretape.analyze.budgets.report import Budgets

    asked = {name: value if value is not None else getattr(settings, name) for name, value in flags.items()}
    baseline, tolerance = asked.pop("baseline"), asked.pop("tolerance")
    allow_unknown = bool(asked.pop("allow_unknown"))
    for name in ("max_input", "max_output"):
        if asked[name] is not None:
            asked[name] = count(asked[name], name.replace("_", "-"))
    if asked["min_cache_hit"] is not None:
        asked["min_cache_hit"] = share(asked["min_cache_hit"], "min-cache-hit")
    budgets = Budgets(**{**asked, "no_lint_errors": bool(asked["no_lint_errors"])})
    if budgets == Budgets() and baseline is None:
        raise UsageError(
            "nothing to check: name a budget, such as --max-calls-per-turn 6, or an older tape with --baseline; "
            "or put some in [tool.wiretape.check] of pyproject.toml"
        )
    return _Wanted(
        budgets, baseline, share(tolerance, "tolerance") if tolerance is not None else TOLERANCE, allow_unknown
    )


class _Baseline:
    """Finds the older tape of a tape: OLD, or the tape of the same name in the directory OLD."""

    def __init__(self, old: str, words: tuple[str, ...], names: list[str]) -> None:
        self._old = Path(old)
        self._roots = [Path(word) for word in words if Path(word).is_dir()]
        if not self._old.exists():
            raise UsageError(f"--baseline {old}: no such file or directory")
        if not self._old.is_dir() and len(names) > 1:
            raise UsageError(f"--baseline {old} is one tape for {len(names)} tapes: name a directory")
        self.has_some = self._old.is_dir() and any(self.path(name).exists() for name in names)

    def path(self, name: str) -> Path:
        if not self._old.is_dir():
            return self._old
        tape = Path(name)
        root = next((root for root in self._roots if tape.is_relative_to(root)), tape.parent)
        return self._old / tape.relative_to(root)


class _Checker:
    def __init__(self, wanted: _Wanted, old: _Baseline | None, masks: list[str], redact: list[str]) -> None:
        self._wanted, self._old, self._masks, self._redact = wanted, old, masks, redact

    def check(self, name: str) -> TapeCheck:
        """Return the judgements of one tape."""
        from wiretape.analyze.budgets.report import TapeCheck
        from wiretape.cli.many_tapes import UnopenedTape, opened, say_warnings

        tape = opened(name)
        if isinstance(tape, UnopenedTape):  # the report names it
            return TapeCheck(tape=name, problem=tape.problem)
        say_warnings(tape)
        try:
            return self._judged(tape)
        except TapeError as error:  # of the baseline
            return TapeCheck(tape=name, problem=f"its baseline cannot be read: {error}")

    def _judged(self, tape: OpenedTape) -> TapeCheck:
        from wiretape.analyze.budgets.judging import judge, on_incomplete
        from wiretape.analyze.budgets.report import TapeCheck
        from wiretape.analyze.cost import pricing
        from wiretape.analyze.lint.base import Subject
        from wiretape.analyze.lint.rules import lint
        from wiretape.wire.mcp.tool_exchange import is_tool_exchange

        prices = tape.tape.prices
        errors = []
        if self._wanted.budgets.no_lint_errors:
            found = lint(Subject(tape.run, tape.tape.exchanges, self._redact), _lint_rules())
            errors = [finding for finding in found if finding.severity == "error"]
        exchanges = tape.tape.exchanges
        tools_alone = bool(exchanges) and all(map(is_tool_exchange, exchanges))
        judged = judge(tape.run, self._wanted.budgets, pricing(prices), errors, prices is not None, tools_alone)
        if self._old is not None:
            judged += self._compared(self._old, tape)
        return TapeCheck(tape=tape.name, judgements=on_incomplete(judged, tape.tape.gaps), lint=errors)

    def _compared(self, baseline: _Baseline, new: OpenedTape) -> list[Judgement]:
        from wiretape.analyze.budgets.baseline import against
        from wiretape.analyze.budgets.judging import against_incomplete
        from wiretape.analyze.cost import pricing
        from wiretape.cli.tapes import link, read

        old = baseline.path(new.name)
        if not old.exists():
            return [_not_there(old, new.name, baseline.has_some)]
        before = link(str(old), read(str(old)))
        lists = [one.tape.prices for one in (before, new)]
        prices = [pricing(one) for one in lists]
        judged = against(
            before.run, new.run, self._wanted.tolerance, prices[0], prices[1], self._masks, None not in lists
        )
        return against_incomplete(judged, before.tape.gaps)


def _not_there(old: Path, name: str, others_are: bool) -> Judgement:
    """Judge a tape without a baseline: it is new if other tapes have one, else the baseline may be wrong."""
    from wiretape.analyze.budgets.report import Judgement

    if others_are:
        text = f"not in the baseline: {old}"
        return Judgement(budget="baseline", where="tape", limit="any", actual="new", outcome="skipped", detail=text)
    text = f"{old} is not there: record it, or leave {name} out"
    return Judgement(budget="baseline", where="tape", limit="a tape", actual="none", outcome="unknown", detail=text)


def _lint_rules() -> list[Any]:
    """Return the rules that `wiretape lint` would use."""
    from wiretape.adapters.settings import load_settings
    from wiretape.analyze.lint.rules import chosen

    settings = load_settings(Path.cwd()).lint
    return list(chosen(settings.select, settings.ignore))


def _write(report: CheckReport, as_json: bool, junit: Path | None, markdown: Path | None) -> None:
    from wiretape.tape.atomic import PRIVATE, private, rewrite
    from wiretape.views.findings.check_files import check_junit, check_markdown

    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        rewrite(junit, [check_junit(report).encode()], PRIVATE)
    if markdown is not None and str(markdown) != "-":
        markdown.parent.mkdir(parents=True, exist_ok=True)
        with open(markdown, "a", encoding="utf-8", newline="\n", opener=private) as file:
            file.write(check_markdown(report))
    if as_json:
        from wiretape.cli.tapes import print_json

        print_json(report.model_dump(mode="json"))
    elif markdown is not None and str(markdown) == "-":
        sys.stdout.write(check_markdown(report))
    else:
        from wiretape.views.findings.check import check_view
        from wiretape.views.terminal import make_console

        make_console().print(check_view(report))
