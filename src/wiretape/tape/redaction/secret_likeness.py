"""Evidence that a value is a secret: tells random characters from words and dummy values."""

from __future__ import annotations

import re
from functools import lru_cache

SHORTEST = 16  # shorter values are replaced where they stand as credentials, but not looked for elsewhere
_RANDOM = 8  # characters that are part of no word, from which on a value looks random
_LONGEST_PROSE = 256  # a longer value with spaces in it is a text

_DUMMY_WORDS = """
    sk pk ant proj api key apikey test tests testing dummy fake mock mocked example sample placeholder changeme change
    me my your here the a an no not none null nil empty unused ignored ignore needed required token secret password
    bearer local localhost lm studio ollama llama vllm anything any some value insert todo xxx redacted demo default
    user foo bar baz replace with this replay wiretape for openai anthropic google gemini deepseek mistral
    """
_DUMMIES = frozenset(_DUMMY_WORDS.split())
_PLAINLY = frozenset({"test", "dummy", "fake", "mock", "example", "placeholder", "unused"})
_RUNS = ("01234567890123456789", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef0123456789abcdef")
_NEXT = {
    first: "".join({run[i + 1] for run in _RUNS for i in range(len(run) - 1) if run[i] == first})
    for first in "".join(_RUNS)
}
_TOKENS = re.compile(r"[A-Za-z0-9]+")
# A token of 8 characters in which letters and digits change three times, as in most keys.
_MIXED = re.compile(
    r"(?=[A-Za-z0-9]{8})"
    r"(?:(?<![A-Za-z])[A-Za-z]++[0-9]++[A-Za-z]++[0-9]|(?<![0-9])[0-9]++[A-Za-z]++[0-9]++[A-Za-z])"
)
_SEQUENCE = re.compile(r"0123456789|(?i:abcdefgh)")
_LOWER_TOKENS = re.compile(r"[a-z0-9]+")
_GROUPS = re.compile(r"[A-Za-z]+|[0-9]+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # the words of a name in camel case
# The 200 pairs of letters that are most frequent in English words and names in programs: 88 % of all pairs there.
_PAIRS = """
    a:bcdgilmnprstuy b:aeiloru c:aehiklortu d:aeios e:acdefgilmnprstvx f:aefilou g:ehinrsu h:aeiot i:abcdefglmnoprstvz
    k:e l:adeilostuy m:aeiops n:acdefgiostuv o:bcdglmnoprstuvw p:aeiloprstu q:u r:acdegilmnorstuy s:acehilopstu
    t:acehilorstuy u:abelmnprst v:aei w:aei x:t y:p z:e
    """
_COMMON = frozenset(first + second for first, _, rest in (p.partition(":") for p in _PAIRS.split()) for second in rest)
_SPACE = re.compile(r"\s")
_DIGITS = "0123456789"
# A reference to a secret, or a form to fill in.
_REFERENCE = re.compile(r"\$\{|\{\{|\$\(|%\(|\*\*\*|\.\.\.|…|\A[$<%{(]|\A(?:process\.)?env\.|[({<]\Z")
_ROOTS = "home usr etc var tmp opt root mnt srv Users private workspace workspaces app data run proc dev bin lib"
_ROOTED = re.compile(rf"(?:~|\.{{1,2}}|[A-Za-z]:)[\\/]|\.{{0,2}}/(?:{'|'.join(_ROOTS.split())})(?:/|\Z)")
_SEGMENTS = re.compile(r"(?:/[\w.@ -]{1,32})+/?")
_AWS_SECRET = 40  # characters, among them `/`
_PUNCTUATION = frozenset("!@#$%^&*=~|")


@lru_cache(8192)
def is_dummy(value: str) -> bool:
    """Return whether a value is a well-known stand-in: `sk-test-key`, `EMPTY`, `xxxxxxxx`, `sk-1234567890`."""
    tokens = _LOWER_TOKENS.findall(value.lower())
    plainly = not _PLAINLY.isdisjoint(tokens)
    return all(_is_dummy_token(token) or (plainly and token.isalpha() and len(token) <= 10) for token in tokens)


def _is_dummy_token(token: str) -> bool:
    if _is_sequence(token):
        return True
    return token.rstrip(_DIGITS) in _DUMMIES and len(token) - len(token.rstrip(_DIGITS)) <= 4


def _is_sequence(token: str) -> bool:
    """`xxxxxx`, `12345678`, `abcdef`."""
    if len(token) > 1 and token[0] != token[1] and token[1] not in _NEXT.get(token[0], ""):
        return False
    return len(set(token)) == 1 or any(token in run for run in _RUNS)


@lru_cache(8192)
def looks_random(value: str) -> bool:
    """Return whether at least 8 characters of a value belong to no word, number, date or simple sequence."""
    if _MIXED.search(value) and not _SEQUENCE.search(value):
        return True
    found = 0
    for token in _TOKENS.findall(value):
        if len(token) > 3 and not _reads_as_word(token):
            found += len(token)
            if found >= _RANDOM:
                return not token.isalpha() or not is_dummy(value)
    return False


def _reads_as_word(token: str) -> bool:
    """`version`, `camelCase`, `oauth2`, `2024`, `order20241101`, `123456789abcdef`; not `a8f7e6d5`."""
    groups = _GROUPS.findall(token)
    if _is_sequence(token.lower()):
        return True
    if len(groups) > 3:
        return False
    if len(groups) == 1:
        return _is_wordy(token) if token[0] > "9" else len(token) <= 14
    if token[0] <= "9":
        return len(token) < _RANDOM and len(groups) == 2
    digits = groups[1]
    if len(groups) == 3 and (len(digits) > 4 or min(len(groups[0]), len(groups[2])) < 3):
        return False
    return (len(digits) <= 8 or digits in _RUNS[0]) and all(_is_wordy(group) for group in groups[::2])


def _is_wordy(letters: str) -> bool:
    """Whether letters may be words: half of their pairs are common ones, and cases are not mixed at random."""
    if len(letters) < 6:
        return True
    parts = _PARTS.findall(letters)
    if len(letters) >= _RANDOM and len(letters) < 2.5 * len(parts):
        return False
    pairs = [part[at : at + 2] for part in map(str.lower, parts) for at in range(len(part) - 1)]
    return 2 * sum(pair in _COMMON for pair in pairs) >= len(pairs)


def is_credential(value: str, surely: bool) -> bool:
    """Return whether the value of a credential's name is a credential.

    `surely`: the place says "credential" and not "perhaps": there a short password counts, too.
    """
    if len(value) < 6 or "redacted" in value:
        return False
    if value.isalnum() and not value.isdigit():  # what most keys are, and no reference, text or path
        return looks_random(value) or (surely and _is_password(value))
    if _REFERENCE.search(value):
        return False
    if value.isdigit():
        return surely and len(value) >= 8 and not is_dummy(value)
    if has_space(value):
        return surely and len(value) <= _LONGEST_PROSE and looks_random(value)
    if _ROOTED.match(value) or (_SEGMENTS.fullmatch(value) and value.count("/") > 1 and len(value) != _AWS_SECRET):
        return False  # a path
    return looks_random(value) or (surely and _is_password(value))


def _is_password(value: str) -> bool:
    """One word with a digit or with two marks in it, as people choose passwords."""
    if value[0] in "/~(" or is_dummy(value):
        return False
    letters, marks = any(map(str.isalpha, value)), sum(map(_PUNCTUATION.__contains__, value.rstrip("!?.:,")))
    return letters and (marks >= 2 or (any(map(str.isdigit, value)) and len(_TOKENS.findall(value)) <= 1 + marks))


def has_space(value: str) -> bool:
    return _SPACE.search(value) is not None


def worth_learning(value: str) -> bool:
    """Return whether a credential is long enough, and no stand-in, so that it can be looked for everywhere."""
    return len(value) >= SHORTEST and (looks_random(value) or not is_dummy(value)) and "redacted" not in value
