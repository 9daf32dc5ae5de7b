"""Runs one lint rule over handmade calls."""

from __future__ import annotations

from wiretape.analyze.lint.base import LintFinding, Subject
from wiretape.analyze.lint.rules import lint, named
from wiretape.model.call import ModelCall
from wiretape.runs.run import build_run


def found(rule: str, *calls: ModelCall) -> list[LintFinding]:
    return lint(Subject(build_run(calls)), named(rule))
