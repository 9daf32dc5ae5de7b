"""Every user of volatile text agrees on what it is: replay, `diff`, the explanation of cache misses, agent identity."""

from __future__ import annotations

import pytest
from tests.support.calls import make_call, system, user

from wiretape.analyze.diff.runs import compare_runs
from wiretape.analyze.prefix_breaks import text_break
from wiretape.compare.mask import Masker
from wiretape.model.volatile_text import ID_LIKE, mask
from wiretape.runs.agent_identity import same_prompt
from wiretape.runs.run import build_run

VOLATILE = [
    ("今天是 2026年02月28日 15时05分30秒 星期六", "今天是 2027年3月1日 9时23分47秒 星期一"),
    ("on 2026-02-28", "on 2027-12-01"),
    ("on 2026/2/28", "on 2027/12/01"),
    ("on 2026.02.28", "on 2027.12.01"),
    ("on 28/02/2026", "on 01/12/2027"),
    ("at 2026-02-28T15:05:30.123Z", "at 2027-12-01T05:05:30Z"),
    ("at 2026-02-28 15:05:30+08:00", "at 2027-01-02 03:04:05+08:00"),
    ("on Saturday, February 28, 2026", "on Monday, March 1, 2027"),
    ("on 28 Feb 2026", "on 1 Mar 2027"),
    ("at 3:05 PM", "at 11:15 AM"),
    ("at 15:05:30 UTC", "at 09:15:00 UTC"),
    ("at 15时05分", "at 9时23分"),
    ("epoch 1772262330", "epoch 1782262331"),
    ("epoch 1772262330123", "epoch 1782262331456"),
    ("done in 12 ms", "done in 340 ms"),
    ("took 3.25s", "took 4.5s"),
    ("elapsed: 12", "elapsed: 9"),
    ("pid: 4711", "pid: 4812"),
    ("agent 3f2b8c1e-1234-4abc-9def-0123456789ab", "agent 00000000-1234-4abc-9def-0123456789ac"),
    ("commit 3f2b8c1e9a", "commit 77ab01c2dd"),
    ("id toolu_01A2b3C4d5E6", "id toolu_09Z8y7X6w5V4"),
    ("in /tmp/tmpab12cd/x.py", "in /tmp/tmpzz99yy/x.py"),
    ("in /tmp/pytest-of-me/pytest-3/a", "in /tmp/pytest-of-me/pytest-17/a"),
    ("in /var/folders/zz/ab1/T/tmpx1/a", "in /var/folders/yy/de2/T/tmpx2/a"),
    ("x-anthropic-billing-header: cch=a1b2c;", "x-anthropic-billing-header: cch=0f9e8;"),
]
CONTENT = [
    ("It is cold", "It is warm"),
    ("in /tmp/report.txt", "in /tmp/summary.txt"),
    ("deadbeef", "facade"),
    ("产品评审会", "设计评审会"),
    ("May I ask?", "May we ask?"),
]


def _differ(one: str, other: str) -> bool:
    runs = [build_run([make_call(1, [user(text)], "x")]) for text in (one, other)]
    return not compare_runs(*runs).same


@pytest.mark.parametrize(("one", "other"), VOLATILE)
def test_all_agree_on_what_is_volatile(one: str, other: str) -> None:
    assert mask(one) == mask(other)
    assert Masker().value({"text": one}) == Masker().value({"text": other})
    assert not _differ(one, other)
    assert text_break("", one, other).what != "other text"
    assert same_prompt(make_call(1, [system(one)]).request, make_call(2, [system(other)]).request)


@pytest.mark.parametrize(("one", "other"), CONTENT)
def test_all_agree_on_what_is_content(one: str, other: str) -> None:
    assert mask(one) != mask(other)
    assert Masker().value({"text": one}) != Masker().value({"text": other})
    assert _differ(one, other)
    assert text_break("", one, other).what == "other text"
    assert not same_prompt(make_call(1, [system(one)]).request, make_call(2, [system(other)]).request)


@pytest.mark.parametrize(("one", "other"), VOLATILE)
def test_an_id_that_is_learned_is_volatile(one: str, other: str) -> None:
    assert all(mask(match[0]) != match[0] for match in ID_LIKE.finditer(one + "\n" + other))
