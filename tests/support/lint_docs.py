"""Writes docs/lint.md from the rules: `python -m tests.support.lint_docs`."""

from __future__ import annotations

from pathlib import Path

from wiretape.analyze.lint.base import LintRule
from wiretape.analyze.lint.rules import RULES

PAGE = Path(__file__).parent.parent.parent / "docs" / "lint.md"
INTRODUCTION = """\
# Lint

```sh
wiretape lint captures                        # a directory, or some tapes
wiretape lint run.tape --select WT00 --ignore repeated-tool-call
wiretape lint --explain WT009
wiretape lint captures --json                 # findings with rule, call, path and both values
```

`wiretape lint` reads tapes and reports faults in the loops on them. Each finding names the call, the place
in its request or answer, both values where there are two, and the next step. It exits with 1 if there is an error, with
2 if a tape could not be read. Nothing is guessed: what a tape does not show (a history that only the provider has, a
schema that is not valid itself) is not judged.

Rules are named by their id, the beginning of ids (`WT01`), or their name. A project configures it in
`pyproject.toml`; options of the command line go first:

```toml
[tool.wiretape.lint]
ignore = ["WT010"]        # or select = […]
fail-on = "warning"       # error (the default), warning, info, never
```

`wiretape check --no-lint-errors` makes it part of a budget: see [CI](ci.md). In a test, `wiretape.lint()` of the
[fixture](pytest.md) gives the findings of what the test did.

This page is generated from the rules: `python -m tests.support.lint_docs` rewrites it.

| rule | severity | what it finds |
|---|---|---|
"""


def page() -> str:
    rows = "".join(f"| [{r.id}](#{_anchor(r)}) `{r.name}` | {r.severity} | {r.summary} |\n" for r in RULES)
    return INTRODUCTION + rows + "".join(map(_section, RULES))


def _anchor(rule: LintRule) -> str:
    return f"{rule.id.lower()}-{rule.name}"


def _section(rule: LintRule) -> str:
    parts = (f"{rule.summary} ({rule.severity})", rule.explains, f"Next step: {rule.mend}.")
    return f"\n## {rule.id} {rule.name}\n\n" + "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
