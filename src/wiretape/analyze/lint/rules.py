"""The list of all rules, their selection, and running them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from wiretape._plugins import LINT_RULES, usable, warn
from wiretape.analyze.lint.answers import DroppedReasoning, InconsistentUsage, MidStreamError, Retries, TruncatedAnswer
from wiretape.analyze.lint.arguments import ArgumentsDoNotFit, ArgumentsNotJson, DuplicateTool, UnknownTool
from wiretape.analyze.lint.base import SEVERITIES, LintFinding, LintRule, Subject
from wiretape.analyze.lint.run import IncompleteTape, SecretInTape, UnstablePrefix
from wiretape.analyze.lint.tool_calls import RepeatedToolCall, ResultWithoutToolCall, RunawayLoop, ToolCallWithoutResult
from wiretape.errors import UsageError

RULES: tuple[LintRule, ...] = (
    ToolCallWithoutResult(),
    ResultWithoutToolCall(),
    ArgumentsNotJson(),
    ArgumentsDoNotFit(),
    UnknownTool(),
    DuplicateTool(),
    RepeatedToolCall(),
    RunawayLoop(),
    DroppedReasoning(),
    TruncatedAnswer(),
    Retries(),
    MidStreamError(),
    UnstablePrefix(),
    SecretInTape(),
    IncompleteTape(),
    InconsistentUsage(),
)


def all_rules() -> tuple[LintRule, ...]:
    """The built-in rules and those of installed plug-ins."""
    return (*RULES, *usable(LINT_RULES).values())


def lint(subject: Subject, rules: Iterable[LintRule] | None = None) -> list[LintFinding]:
    """The findings of the rules (default: all), in the order of the calls, the most severe of a call first."""
    found = [finding for rule in (all_rules() if rules is None else rules) for finding in _checked(rule, subject)]
    return sorted(found, key=lambda one: (one.call or 0, SEVERITIES.index(one.severity), one.rule))


def _checked(rule: LintRule, subject: Subject) -> list[LintFinding]:
    """The findings of one rule. A plug-in's rule that fails is named in a warning and finds nothing."""
    if rule in RULES:
        return list(rule.check(subject))
    try:
        return list(rule.check(subject))
    except Exception as error:
        warn(f"lint rule {rule.id} failed: {type(error).__name__}: {error}")
        return []


def chosen(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[LintRule]:
    """Return the rules with these ids, prefixes of ids, or names; all rules if `select` is empty."""
    rules = all_rules()
    wanted = {rule.id for word in _split(select) for rule in named(word)} if select else {rule.id for rule in rules}
    unwanted = {rule.id for word in _split(ignore) for rule in named(word)}
    return [rule for rule in rules if rule.id in wanted - unwanted]


def _split(words: Sequence[str]) -> list[str]:
    """Split `WT001,WT002` into two words."""
    return [part.strip() for word in words for part in word.split(",")]


def named(word: str) -> list[LintRule]:
    """Return the rules with an id, a prefix of ids, or a name. Raises UsageError."""
    rules = all_rules()
    found = [rule for rule in rules if rule.id.startswith(word.upper()) or rule.name == word.lower()] if word else []
    if found:
        return found
    near = get_close_matches(word.lower(), [rule.name for rule in rules], 1)
    hint = f"did you mean {near[0]}?" if near else "wiretape lint --rules lists them"
    raise UsageError(f"there is no lint rule {word!r}; {hint}")
