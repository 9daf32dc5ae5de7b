"""A long text is searched a window at a time: the results are those of a search of the whole text."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.harmless import values

from wiretape.tape.redaction import Redactor, scanning
from wiretape.tape.redaction.known_secrets import Learned
from wiretape.tape.redaction.search import Search

SECRETS = (
    "sk-proj-a8F3k2L9x7Q4m1Zb",
    'password = "hunter2hunter2"',
    '{"api_key": "a8F3k2L9x7Q4m1Zb"}',
    "Authorization: Bearer a8F3k2L9x7Q4m1Zb",
    "postgres://user:a8F3k2L9@host/db",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.a8F3k2L9x7",
    'form-data; name="token"\r\n\r\na8F3k2L9x7Q4m1Zb\r\n--',
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
    "q8Known/Secret=7wQ4m1Zb",
    "[redacted:api-key:1]",
    "curl -u me:a8F3k2L9",
    "?sig=a8F3k2L9x7Q4m1Zb&grant_type=x&code=a8F3k2L9",
    "cmVmdGtuOjAxOjE3NTAwMDAwMDA6YUJjRGVGZ0hpSmtMbU5vUHFSc1R1VndYeVo",
    "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
    "İ TOKEN: a8F3k2L9x7Q4m1Zb",
)
TEXTS = st.lists(st.sampled_from(SECRETS) | st.text('ak-_."\\ =:\nT9', max_size=12), max_size=8).map(" ".join)


@given(text=TEXTS, window=st.integers(1, 80))
@example(text=" ".join(SECRETS), window=1)
def test_windows_of_any_size_find_what_a_search_of_the_whole_text_finds(text: str, window: int) -> None:
    learned = Learned()
    learned.add("q8Known/Secret=7wQ4m1Zb", "known")
    whole = Search(learned).spans(text), Search(learned).raw_spans(text), learned.may_be_in(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scanning, "WINDOW", window)
        assert (Search(learned).spans(text), Search(learned).raw_spans(text), learned.may_be_in(text)) == whole


@given(text=st.text("ab-", max_size=40), window=st.integers(1, 12))
def test_matches_that_touch_and_reach_over_windows(text: str, window: int) -> None:
    patterns = [re.compile(form) for form in ("a{1,4}", "(?<=b)a{2,3}(?!b)", "ab{0,3}+(?=-)", "-|aa")]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scanning, "WINDOW", window)
        for pattern in patterns:
            found = [match.span() for match in scanning.matches(pattern, text, reach=5)]
            assert found == [match.span() for match in pattern.finditer(text)]
        assert [scanning.find(text, "ab-", at) for at in range(len(text))] == [
            text.find("ab-", at) for at in range(len(text))
        ]
        assert scanning.consists_of(text, re.compile("[ab]*")) == ("-" not in text)


def test_harmless_strings_stay_in_small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = [kind for kind, value in values() if Redactor().value(value) != value]
    monkeypatch.setattr(scanning, "WINDOW", 7)
    assert [kind for kind, value in values() if Redactor().value(value) != value] == replaced


LARGE = 4_000_000  # characters
MOST_S = 0.01  # in a window it is below 0.003; in the whole text at least 0.02, for the slowest search


@pytest.mark.parametrize("text", ["It is sunny in Lisbon. ", "kL9x7Q4m", "x = Api.Call(Name_of_it)\n"])
def test_no_step_of_the_search_of_a_long_text_is_long(text: str) -> None:
    """Between two lines of Python code another thread can run, inside of one call it cannot."""
    text = text * (LARGE // len(text))
    assert min(_longest_step(lambda: Redactor().text(text)) for _ in range(2)) < MOST_S


def _longest_step(work: Callable[[], object]) -> float:
    """The CPU time between two lines of Python code, at most."""
    longest, last = 0.0, time.thread_time()

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal longest, last
        longest = max(longest, time.thread_time() - last)
        last = time.thread_time()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return longest
