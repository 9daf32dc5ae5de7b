"""The scripted upstream's choice of answers: from the request alone, whatever came before."""

from __future__ import annotations

from wiretape.demo import answers
from wiretape.demo.scripted_model import answer_for

SUPERVISOR = [
    {"type": "message", "role": "system", "content": "你是个人助理主管。日程交给日历助手。"},
    {"type": "message", "role": "user", "content": "帮我约产品评审会"},
]
CLOCK = [
    {"role": "user", "content": "现在北京时间几点了？"},
    {"role": "assistant", "content": "", "tool_calls": []},
    {"role": "tool", "tool_call_id": "c", "content": "22:34:43"},
]


def test_a_user_message_gets_the_first_answer() -> None:
    assert answer_for("/v1/responses", {"input": SUPERVISOR}) == answers.SUPERVISOR_DELEGATES


def confirmed(result: str) -> str:
    item = {"type": "function_call_output", "call_id": "c", "output": result}
    answer = answer_for("/responses", {"input": [*SUPERVISOR, item]})
    assert answer is not None
    text: str = answer["output"][0]["content"][0]["text"]
    return text


def test_a_tool_result_gets_the_next_answer_with_its_time() -> None:
    said = "已经帮你安排好了：明天（{}）{}和张三的产品评审会，时长 1 小时。"
    assert confirmed("at 2025-06-11T15:00:00") == said.format("2025-06-11", "下午 3 点")
    assert confirmed("（2025-06-12）09:30") == said.format("2025-06-12", "上午 9 点 30 分")
    assert confirmed("done") == said.format("日期未知", "时间未知，")


def test_tool_results_of_earlier_turns_do_not_count() -> None:
    turns = [*CLOCK, {"role": "user", "content": "现在几点了？"}]
    assert answer_for("/chat/completions", {"messages": turns}) == answers.CLOCK_ASKS_TIME


def test_the_last_answer_contains_the_result_of_the_tool() -> None:
    answer = answer_for("/chat/completions", {"messages": CLOCK})
    assert answer is not None
    assert answer["choices"][0]["message"]["content"] == "现在北京时间是22:34:43。"


def test_a_request_outside_the_script_has_no_answer() -> None:
    unknown = [{"role": "user", "content": "write a poem"}]
    assert answer_for("/chat/completions", {"messages": unknown}) is None
    assert answer_for("/chat/completions", {"input": SUPERVISOR}) is None
    assert answer_for("/responses", {}) is None
