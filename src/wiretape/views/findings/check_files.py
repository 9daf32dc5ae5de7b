"""Writes the result of budgets as Markdown for a pull request, and as JUnit XML for a CI server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from wiretape.analyze.budgets.report import CheckReport, Judgement, TapeCheck
from wiretape.views.findings.check import common_details, own_detail, shortened, verdict
from wiretape.views.printable import one_line

_SIGNS = {"kept": "✅", "exceeded": "❌", "unknown": "❓", "skipped": "➖"}


def check_markdown(report: CheckReport) -> str:
    """Return a summary in GitHub's Markdown, for $GITHUB_STEP_SUMMARY or a comment."""
    lines = [f"### wiretape check {verdict(report)}", ""]
    for tape in report.tapes:
        lines += [f"**{_cell(tape.tape)}**", ""]
        lines += _problem(tape) if tape.problem is not None else _table(tape)
        lines.append("")
    lines += [line for said in common_details(report) for line in (_cell(said), "")]
    return "\n".join(lines)


def _problem(tape: TapeCheck) -> list[str]:
    return [f"❌ {_cell(tape.problem or '')}"]


def _table(tape: TapeCheck) -> list[str]:
    rows = ["| | budget | where | limit | actual | |", "|---|---|---|---|---|---|"]
    for judged in shortened(tape.judgements):
        cells = (judged.budget, judged.where, judged.limit, judged.actual, own_detail(judged) or "")
        rows.append(f"| {_SIGNS[judged.outcome]} | " + " | ".join(map(_cell, cells)) + " |")
    if tape.lint:
        rows += ["", "| rule | call | place | |", "|---|---|---|---|"]
        for finding in tape.lint:
            place = (f"{finding.rule} {finding.name}", str(finding.call or ""), finding.path or "", finding.text)
            rows.append("| " + " | ".join(map(_cell, place)) + " |")
    return rows


def _cell(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", one_line(text))


def check_junit(report: CheckReport) -> str:
    """Return JUnit XML: a test suite for each tape, a test case for each judgement."""
    root = ElementTree.Element("testsuites", name="wiretape check")
    for tape in report.tapes:
        cases = list(_cases(tape, report.allow_unknown))
        suite = ElementTree.SubElement(root, "testsuite", name=_plain(tape.tape), tests=str(len(cases)))
        suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
        suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
        suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
        suite.extend(cases)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _cases(tape: TapeCheck, allow_unknown: bool) -> Iterator[ElementTree.Element]:
    if tape.problem is not None:
        case = ElementTree.Element("testcase", classname=_plain(tape.tape), name="read the tape")
        ElementTree.SubElement(case, "error", message=_plain(tape.problem))
        yield case
    for judged in tape.judgements:
        case = ElementTree.Element(
            "testcase", classname=_plain(tape.tape), name=_plain(f"{judged.budget} ({judged.where})")
        )
        if judged.outcome == "exceeded" or (judged.outcome == "unknown" and not allow_unknown):
            failure = ElementTree.SubElement(case, "failure", message=_plain(_said(judged)))
            failure.text = "\n".join(
                _plain(f"{one.rule} call {one.call} {one.path}: {one.text}")
                for one in tape.lint
                if judged.budget == "no-lint-errors"
            )
        elif judged.outcome != "kept":
            ElementTree.SubElement(case, "skipped", message=_plain(_said(judged)))
        yield case


def _said(judged: Judgement) -> str:
    why = f" ({judged.detail})" if judged.detail else ""
    word = {"exceeded": "falls short", "unknown": "cannot be judged"}.get(judged.outcome, "not compared")
    return f"{word}: {judged.actual}, the limit is {judged.limit}{why}"


def _plain(text: str) -> str:
    return one_line(text)
