"""The parser of the expression language. Its errors show the text, the position and the expected syntax."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, NoReturn

from wiretape.debug.expression.expression import UNKNOWN, Arithmetic, Compare, Expression, Literal, Logic, MemberPath
from wiretape.debug.expression.names import NAMES, name_of
from wiretape.errors import UsageError

LONGEST, DEEPEST = 2000, 40
_BLANK = re.compile(r"\s+")
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:%|[kKmM](?!\w)|ms(?!\w)|s(?!\w))?(?![\w.])")
_SCALE = {"k": 1_000, "K": 1_000, "m": 1_000_000, "M": 1_000_000, "%": 0.01, "ms": 1, "s": 1_000, "": 1}
_COMPARISON = re.compile(r"!=|==|<=|>=|!~|=~|=|<|>|~")
_SPELLED = {"==": "=", "=~": "~"}
_BARE = re.compile(r"[^\s()'\"=<>~;,]+")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_REGEX = re.compile(r"/((?:[^/\\]|\\.)+)/(i?)")
_ELEMENT = re.compile(r"\[\s*+(?:(-?\d{1,9})|(-?\d{0,9})\s*+:\s*+(-?\d{0,9})|'([^']*)'|\"([^\"]*)\")\s*+\]")
_KEYWORDS = ("and", "or", "not", "if")


def parse(text: str) -> Expression:
    """Parse an expression. Raises UsageError."""
    if len(text) > LONGEST:
        raise UsageError(f"an expression of {len(text)} characters is too long: at most {LONGEST}")
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def whole(self) -> Expression:
        found = self._either()
        while self._word("if"):  # `break agent=x if input>5000`, as gdb writes it
            found = Logic("and", (found, self._either()))
        self._skip()
        if self._at < len(self._text):
            self._fail("unexpected; join conditions with `and` or `or`, quote texts with blanks")
        return found

    # -- logic ---------------------------------------------------------------------------------------------------------

    def _either(self) -> Expression:
        terms = [self._both()]
        while self._word("or") or self._sign("||"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else Logic("or", tuple(terms))

    def _both(self) -> Expression:
        terms = [self._negated()]
        while self._word("and") or self._sign("&&"):
            terms.append(self._negated())
        return terms[0] if len(terms) == 1 else Logic("and", tuple(terms))

    def _negated(self) -> Expression:
        if self._word("not") or (self._peek("!") and not self._peek("!=") and self._sign("!")):
            self._deeper()
            found = Logic("not", (self._negated(),))
            self._depth -= 1
            return found
        return self._comparison()

    def _comparison(self) -> Expression:
        left = self._sum()
        self._skip()
        match = _COMPARISON.match(self._text, self._at)
        if match is None:
            return left
        self._at = match.end()
        op = _SPELLED.get(match[0], match[0])
        right = self._wanted(op, left)
        return Compare(op, _as_rate(left, right), right)

    def _wanted(self, op: str, left: Expression) -> Expression:
        """Parse the right side of a comparison. Compared with a text, a bare word is a text."""
        self._skip()
        if op in ("~", "!~") and (match := _REGEX.match(self._text, self._at)):
            self._at = match.end()
            return Literal(self._compiled(match[1], match[2]))
        if op in ("~", "!~", "=", "!=") and _is_text(left) and (bare := _BARE.match(self._text, self._at)):
            self._at = bare.end()
            return Literal(_plain(bare[0]))
        return self._sum()

    def _compiled(self, pattern: str, flags: str) -> re.Pattern[str]:
        try:
            return re.compile(pattern.replace("\\/", "/"), re.IGNORECASE if flags else 0)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"/{pattern}/ is not a regular expression: {error}") from None

    # -- values --------------------------------------------------------------------------------------------------------

    def _sum(self) -> Expression:
        left = self._product()
        while op := self._sign("+") or self._sign("-"):
            left = Arithmetic(op, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._value()
        while op := self._sign("*") or self._sign("/"):
            left = Arithmetic(op, left, self._value())
        return left

    def _value(self) -> Expression:
        self._skip()
        if self._sign("("):
            self._deeper()
            found = self._either()
            if not self._sign(")"):
                self._fail("a closing parenthesis is missing")
            self._depth -= 1
            return found
        if self._sign("-"):
            self._deeper()
            found = Arithmetic("-", Literal(0), self._value())
            self._depth -= 1
            return found
        for pattern, made in ((_STRING, _string), (_NUMBER, _number)):
            if match := pattern.match(self._text, self._at):
                self._at = match.end()
                return Literal(made(match))
        return self._path()

    def _path(self) -> Expression:
        match = _NAME.match(self._text, self._at)
        if match is None:
            self._fail("expected a name, a number or a quoted text")
        word = match[0]
        if word in ("unknown", "none", "null", "None"):
            self._at = match.end()
            return Literal(UNKNOWN)
        if word in ("true", "false"):
            self._at = match.end()
            return Literal(word == "true")
        name = name_of(word)
        if name is None or word in _KEYWORDS:
            self._fail(no_name(word))
        start, self._at = self._at, match.end()
        parts = tuple(self._parts())
        return MemberPath(name, parts, self._text[start : self._at])

    def _parts(self) -> list[str | int | slice]:
        parts: list[str | int | slice] = []
        while self._at < len(self._text):
            if self._text[self._at] == "." and (match := _NAME.match(self._text, self._at + 1)):
                parts.append(match[0])
            elif match := _ELEMENT.match(self._text, self._at):
                parts.append(_index(match))
            elif self._text[self._at] in ".[":
                self._fail("expected .name, [index], [from:to] or ['name']")
            else:
                break
            self._at = match.end()
            if len(parts) > DEEPEST:
                self._fail("this path is too long")
        return parts

    # -- reading -------------------------------------------------------------------------------------------------------

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail("this is nested too deeply")

    def _skip(self) -> None:
        if match := _BLANK.match(self._text, self._at):
            self._at = match.end()

    def _peek(self, sign: str) -> bool:
        self._skip()
        return self._text.startswith(sign, self._at)

    def _sign(self, sign: str) -> str:
        if not self._peek(sign):
            return ""
        self._at += len(sign)
        return sign

    def _word(self, word: str) -> bool:
        self._skip()
        match = _NAME.match(self._text, self._at)
        if match is None or match[0].lower() != word:
            return False
        self._at = match.end()
        return True

    def _fail(self, why: str) -> NoReturn:
        shown = self._text.strip() or "(nothing)"
        rest = self._text[self._at :].strip()
        place = f"at {rest[:30]!r}" if rest else "at its end"
        raise UsageError(f"cannot read {shown[:80]!r} {place}: {why}")


def no_name(word: str) -> str:
    """The message for a word that is not a name of the language."""
    near = get_close_matches(word.lower(), [*NAMES], 2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"unknown name {word!r}{hint} (help names lists them)"


def _is_text(left: Expression) -> bool:
    """Whether a bare word compared with it is a text. The type of a path is unknown, so there it is too."""
    return isinstance(left, MemberPath) and (bool(left.parts) or left.name.kind in ("text", "texts", "value", "flag"))


def _plain(word: str) -> Any:
    match = _NUMBER.fullmatch(word)
    if match is not None:
        return _number(match)
    return UNKNOWN if word in ("unknown", "none", "null", "None") else word


def _number(match: re.Match[str]) -> float:
    digits = re.match(r"[\d.]+", match[0])
    assert digits is not None
    text = digits[0]
    scale = _SCALE[match[0][len(text) :]]
    value = float(text) if "." in text else int(text)
    return value * scale


def _string(match: re.Match[str]) -> str:
    return re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2], flags=re.DOTALL)


def _index(match: re.Match[str]) -> str | int | slice:
    if match[1] is not None:
        return int(match[1])
    if match[2] is not None:
        return slice(*(int(bound) if bound not in ("", "-") else None for bound in (match[2], match[3])))
    return match[4] if match[4] is not None else match[5]


def _as_rate(left: Expression, right: Expression) -> Expression:
    """Read `cached < 0.5` as the hit rate, since tokens are whole numbers."""
    if isinstance(left, MemberPath) and left.name.name == "cached" and not left.parts and isinstance(right, Literal):
        value = right.value
        if isinstance(value, float) and 0 < value <= 1:
            return MemberPath(NAMES["hit"], (), "hit")
    return left
