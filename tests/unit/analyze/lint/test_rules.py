from __future__ import annotations

import re

import pytest
from tests.support.calls import asks, assistant, make_call, tools, user

from wiretape.analyze.lint.base import SEVERITIES, Subject
from wiretape.analyze.lint.rules import RULES, chosen, lint, named
from wiretape.errors import UsageError
from wiretape.runs.run import build_run


def test_every_rule_has_an_id_of_its_own_and_documents_itself() -> None:
    assert [rule.id for rule in RULES] == [f"WT{number:03}" for number in range(1, len(RULES) + 1)]
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
        assert rule.severity in SEVERITIES
        assert rule.summary.endswith(".")
        assert len(rule.explains) > 100
        assert rule.mend


def ids(select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> list[str]:
    return [rule.id for rule in chosen(select, ignore)]


def test_rules_are_chosen_by_id_beginning_or_name() -> None:
    assert ids(("wt003",)) == ids(("arguments-not-json",)) == ["WT003"]
    assert ids(("WT01",)) == ["WT010", "WT011", "WT012", "WT013", "WT014", "WT015", "WT016"]
    assert ids(("WT01",), ("retries", "WT014")) == ["WT010", "WT012", "WT013", "WT015", "WT016"]
    assert ids(("WT001,retries", "WT002")) == ["WT001", "WT002", "WT011"]
    assert ids() == [rule.id for rule in RULES]


def test_a_rule_that_there_is_not_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no lint rule 'unknown-tols'; did you mean unknown-tool"):
        named("unknown-tols")
    with pytest.raises(UsageError, match="no lint rule ''; wiretape lint --rules lists them"):
        named("")


def test_findings_come_in_the_order_of_calls_the_worst_first() -> None:
    ask = assistant(asks("a", "[1]", "1"))
    calls = [
        make_call(1, [user("hi")], ask, offers=tools("b")),
        make_call(2, [user("hi"), ask], "x", offers=tools("b")),
    ]
    assert [(one.call, one.rule) for one in lint(Subject(build_run(calls)))] == [
        (1, "WT001"),
        (1, "WT003"),
        (1, "WT005"),
    ]
