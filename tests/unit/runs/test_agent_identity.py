from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.calls import make_call, system, tools, user

from wiretape.model.common_prefix import common_prefix
from wiretape.runs.agent_identity import same_agent, same_prompt, shared


@given(st.text("ab"), st.text("ab"))
def test_the_common_prefix_is_the_longest(a: str, b: str) -> None:
    length = common_prefix(a, b)
    assert a[:length] == b[:length]
    assert length == min(len(a), len(b)) or a[length] != b[length]


@given(st.text("ab"), st.text("ab"))
def test_what_two_texts_share_is_never_more_than_the_shorter(a: str, b: str) -> None:
    assert shared(a, b) <= min(len(a), len(b))
    assert shared(a, a) == len(a)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("It is 10:15. You are an agent.", "It is 11:16. You are an agent.", True),
        ("你是个人助理主管。遇到日程类请求时，调用工具", "你是日历助手。收到日程请求后，创建事件", False),
        ("", "", True),
        ("", "A prompt.", False),
    ],
)
def test_a_prompt_with_a_small_change_is_the_same(one: str, other: str, same: bool) -> None:
    assert same_agent(make_call(1, [system(one), user("x")]), make_call(2, [system(other), user("x")])) is same


def test_the_same_tools_make_the_same_agent_whatever_the_prompt() -> None:
    one = make_call(1, [system("plan")], offers=tools("a", "b"))
    assert same_agent(one, make_call(2, [system("now do it")], offers=tools("b", "a")))
    assert not same_agent(one, make_call(2, [system("now do it")], offers=tools("b")))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("It is 10:15 on Monday 2 May.", "It is 11:16 on Friday 13 June.", True),
        ("今天是 2026年02月28日 星期六 。# 角色", "今天是 2026年03月01日 星期日 。# 角色", True),
        ("CHILD-A weather", "CHILD-B weather", False),
        ("x" * 1000 + "clean tree", "x" * 1000 + "dirty tree", True),
        ("An agent.", "", False),
    ],
)
def test_prompts_that_tell_agents_apart(one: str, other: str, same: bool) -> None:
    assert same_prompt(make_call(1, [system(one)]).request, make_call(2, [system(other)]).request) is same
