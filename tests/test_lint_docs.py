"""docs/lint.md says of every rule what the rule says of itself."""

from __future__ import annotations

import pytest

from tests.support.lint_docs import PAGE, page
from wiretape.analyze.lint.base import LintRule
from wiretape.analyze.lint.rules import RULES


def test_the_page_of_the_rules_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.lint_docs writes docs/lint.md anew"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_documented(rule: LintRule) -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition(f"## {rule.id} {rule.name}\n")[2].partition("\n## ")[0]
    assert rule.summary in section
    assert rule.explains in section
    assert rule.mend in section
