"""The language of conditions, `watch` and `print`: small, safe, and never evaluated as Python (see `LANGUAGE`)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, assert_never

from wiretape.debug.annotated_run import AnnotatedRun
from wiretape.debug.expression.names import KnownFrom, Name
from wiretape.debug.expression.values import element, member
from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.wording import clip

LANGUAGE = (
    "A condition compares names (help names): break input > 5000 and cached < 50%",
    "= != < <= > >= compare; ~ and !~ test whether a text contains another, ignoring case: text ~ refund.",
    "~ /regex/ (or /regex/i) matches a regular expression.",
    "or, and, not, parentheses; + - * / for numbers, which may end in k, M, % or s (seconds; times are in ms).",
    "A name can have .member, [index] and [from:to]: request.messages[-1].text, response.blocks[0].arguments.title",
    "Compared with a text, a word needs no quotes (* and ? are wildcards): tool = schedule_*. Quote texts with blanks.",
    "A name alone is a condition: break error, break finding. A list matches if one of its elements does.",
    "cached compared with a fraction or a percentage is the hit rate: cached < 0.5.",
    "A value that the provider does not report is unknown: comparisons with it are false, except cached = unknown.",
    "break N means call=N, break xN exchange=N, break NAME tool=NAME or agent=NAME, break 'words' text~'words'.",
    "break CONDITION if CONDITION means that both are true.",
)


UNKNOWN: Final = object()  # the word `unknown` in a comparison


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any  # a number, a text, a compiled pattern, or UNKNOWN


@dataclass(frozen=True, slots=True)
class MemberPath:
    """A name and the members after it. `spelled`: as the user wrote it, for messages."""

    name: Name
    parts: tuple[str | int | slice, ...]
    spelled: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Compare:
    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logic:
    op: str  # "and", "or", "not"
    terms: tuple[Expression, ...]


Expression: TypeAlias = Literal | MemberPath | Arithmetic | Compare | Logic
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SINCE: tuple[KnownFrom, ...] = ("request", "answer", "tool")


def known_from(expression: Expression) -> KnownFrom:
    """The first stop of a call at which all names of an expression have values."""
    names = [name.known_from for name in names_in(expression)]
    return max(names, key=_SINCE.index) if names else "answer"


def names_in(expression: Expression) -> Sequence[Name]:
    """The names that an expression reads."""
    match expression:
        case Literal():
            return ()
        case MemberPath(name=name):
            return (name,)
        case Arithmetic(left=left, right=right) | Compare(left=left, right=right):
            return (*names_in(left), *names_in(right))
        case Logic(terms=terms):
            return [name for term in terms for name in names_in(term)]
        case _:
            assert_never(expression)


def evaluate(expression: Expression, annotated: AnnotatedRun, stop: Stop) -> Any:
    """The value at a stop; None is unknown. Raises UsageError if a member does not exist."""
    match expression:
        case Literal(value=value):
            return value
        case MemberPath():
            return _walk(expression, annotated, stop)
        case Arithmetic(op=op, left=left, right=right):
            return _calculate(op, evaluate(left, annotated, stop), evaluate(right, annotated, stop))
        case Compare(op=op, left=left, right=right):
            return _compare(op, evaluate(left, annotated, stop), evaluate(right, annotated, stop))
        case Logic(op="not", terms=(term,)):
            return not truth(evaluate(term, annotated, stop))
        case Logic(op="and", terms=terms):
            return all(truth(evaluate(term, annotated, stop)) for term in terms)
        case Logic(terms=terms):
            return any(truth(evaluate(term, annotated, stop)) for term in terms)
        case _:
            assert_never(expression)


def holds(expression: Expression, annotated: AnnotatedRun, stop: Stop) -> bool:
    """Whether a condition is true at a stop; False if a member does not exist there."""
    try:
        return truth(evaluate(expression, annotated, stop))
    except UsageError:
        return False


def truth(value: object) -> bool:
    return bool(value) and value is not UNKNOWN


def _walk(path: MemberPath, annotated: AnnotatedRun, stop: Stop) -> Any:
    value, spelled = path.name.get(annotated, stop), path.name.name
    for part in path.parts:
        if isinstance(part, str):
            value, spelled = member(value, part, spelled), f"{spelled}.{part}"
        else:
            value = element(value, part, spelled)
            spelled += f"[{part}]" if isinstance(part, int) else f"[{_end(part.start)}:{_end(part.stop)}]"
    return value


def _end(bound: int | None) -> str:
    return "" if bound is None else str(bound)


def _calculate(op: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right))
    if not numbers:
        raise UsageError(f"{op} takes numbers, not {clip(repr(left), 40)} and {clip(repr(right), 40)}")
    if op == "/" and right == 0:
        return None
    try:
        return _ARITHMETIC[op](left, right)
    except OverflowError:
        return None


# -- comparing ---------------------------------------------------------------------------------------------------------


def _compare(op: str, left: Any, right: Any) -> bool:
    if right is UNKNOWN or left is UNKNOWN:
        other = left if right is UNKNOWN else right
        return (other in (None, [], ())) == (op == "=") if op in ("=", "!=") else False
    if op in ("!=", "!~"):
        return left is not None and not _compare("=" if op == "!=" else "~", left, right)
    if isinstance(left, list | tuple):
        return any(_compare(op, one, right) for one in left)
    if left is None or right is None:
        return False
    if op == "=":
        return _equal(left, right)
    if op == "~":
        return _contains(left, right)
    return _ordered(op, left, right)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return _word(left) == _word(right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    text, wanted = str(left).casefold(), str(right).casefold()
    return text == wanted or (("*" in wanted or "?" in wanted) and fnmatchcase(text, wanted))


def _word(value: Any) -> str:
    return {"true": "true", "1": "true", "yes": "true"}.get(str(value).casefold(), "false")


def _contains(left: Any, right: Any) -> bool:
    text = left if isinstance(left, str) else str(left)
    if isinstance(right, re.Pattern):
        return right.search(text) is not None
    return str(right).casefold() in text.casefold()


def _ordered(op: str, left: Any, right: Any) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        try:
            left, right = float(left), float(right)
        except (TypeError, ValueError):
            return False
    try:
        return _ORDER[op](left, right)
    except TypeError:
        return False
