"""The documents' agents, from their JSON through the decoders to the analysis."""

from __future__ import annotations

import json
from typing import Any

from wiretape.analyze.report import StatsReport
from wiretape.analyze.stats import stats
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

JSON = Headers([("content-type", "application/json")])


def analysed(path: str, *pairs: tuple[dict[str, Any], dict[str, Any]]) -> StatsReport:
    exchanges = [
        Exchange(
            number,
            number * 1000,
            Request("POST", f"https://api.example.com{path}", JSON, JsonBody(asked)),
            Response(200, JSON, number * 1000 + 10, JsonBody(answered)),
            Ended.COMPLETE,
            number * 1000 + 500,
        )
        for number, (asked, answered) in enumerate(pairs, start=1)
    ]
    return stats(build_run(decode(exchanges)))


def steps(report: StatsReport) -> list[tuple[int, str, list[str], str]]:
    return [(step.call, step.agent, step.tool_calls, step.why) for turn in report.turns for step in turn.steps]


# -- a supervisor and a calendar agent ---------------------------------------------------------------------------------

SUPERVISOR = "你是个人助理主管。遇到日程类请求时，调用 schedule_event 交给日历助手，拿到结果后用一句自然语言回复用户。"
CALENDAR = (
    "你是日历助手。收到日程请求后，必须调用 create_calendar_event 创建事件，然后用一句话确认结果（包含标题与时间）。"
)
ASKED = "帮我约明天下午 3 点和张三开产品评审会，1 小时"
TASK = "帮我约明天下午 3 点和张三开产品评审会，时长 1 小时"
BOOKED = "已为你创建「产品评审会」，时间：明天（2025-06-11）15:00，时长 1 小时。"
DONE = "已经帮你安排好了：明天（2025-06-11）下午 3 点和张三的产品评审会，时长 1 小时。"
REASONING = {
    "type": "reasoning",
    "content": [{"type": "reasoning_text", "text": "The user wants to schedule a meeting."}],
    "encrypted_content": "713dda7a-2723-4f52-b22a-26483d8ee7e9-0",
}
DELEGATE = {
    "type": "function_call",
    "name": "schedule_event",
    "arguments": json.dumps({"request": TASK}, ensure_ascii=False),
    "call_id": "call_00_Fsa6XTMl6dbQxpR4TFIb4432",
}
CREATE = {
    "type": "function_call",
    "name": "create_calendar_event",
    "arguments": '{"title": "产品评审会", "start_iso": "2025-06-11T15:00:00", "duration_minutes": 60}',
    "call_id": "call_00_calendar",
}


def item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def output(call: dict[str, Any], text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": text}


def asking(tool: str, *items: dict[str, Any]) -> dict[str, Any]:
    offered = [{"type": "function", "name": tool, "parameters": {"type": "object"}}]
    return {"model": "deepseek-v4-flash-vision-exp", "input": list(items), "tools": offered}


def answering(*items: dict[str, Any], **usage: Any) -> dict[str, Any]:
    answered: dict[str, Any] = {"model": "deepseek-flash", "status": "completed", "output": list(items)}
    return {**answered, "usage": usage} if usage else answered


def reply(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_one_request_took_four_calls() -> None:
    root, child = [item("system", SUPERVISOR), item("user", ASKED)], [item("system", CALENDAR), item("user", TASK)]
    first = {"input_tokens": 347, "output_tokens": 75, "output_tokens_details": {"reasoning_tokens": 18}}
    last = {"input_tokens": 462, "output_tokens": 31, "input_tokens_details": {"cached_tokens": 256}}
    completed = {"status": "completed"}
    report = analysed(
        "/v1/responses",
        (
            asking("schedule_event", *root),
            answering({**REASONING, **completed}, {**DELEGATE, **completed}, **first, total_tokens=422),
        ),
        (asking("create_calendar_event", *child), answering(CREATE)),
        (
            asking("create_calendar_event", *child, CREATE, output(CREATE, "OK: created '产品评审会'")),
            answering(reply(BOOKED)),
        ),
        (
            asking("schedule_event", *root, REASONING, DELEGATE, output(DELEGATE, BOOKED)),
            answering(reply(DONE), **last, total_tokens=493),
        ),
    )
    assert (len(report.turns), report.calls, report.agents, report.tool_calls) == (1, 4, 2, 2)
    assert (report.turns[0].user, report.turns[0].answer) == (ASKED, DONE)
    assert steps(report) == [
        (1, "root", ["schedule_event"], "first call of the turn: the user's message"),
        (
            2,
            "schedule_event",
            ["create_calendar_event"],
            "first call of subagent schedule_event, started by call 1 (inferred from what flowed between them)",
        ),
        (3, "schedule_event", [], "answers create_calendar_event from call 2"),
        (4, "root", [], "answers schedule_event from call 1"),
    ]
    used = [step.usage for step in report.turns[0].steps]
    assert [(u.input, u.cached, u.output, u.reasoning) if u else None for u in used] == [
        (347, None, 75, 18),
        None,
        None,
        (462, 256, 31, None),
    ]
    assert report.usage.unknown_calls == 2
    assert report.findings == []


# -- the weather, in a dialect without tool-call ids -------------------------------------------------------------------

CLOCK = "今天是 2026年02月28日 {} 星期六 。# 角色\n你是一名强子开发的智能客服。\n\n"
WHO, WEATHER = "你是谁？", "我在成都，明天天气如何？"
I_AM = "我是强子开发的智能客服，能够为您提供信息咨询、问题解答等服务。"
LOOK = {
    "content": "",
    "role": "assistant",
    "tool_calls": [
        {
            "function": {
                "arguments": '{"city":"成都市","start_time":"2026年03月01日","end_time":"2026年03月01日"}',
                "name": "mojitianqi-DayWeather",
            }
        }
    ],
}
GOT = {"content": '{"data":[{"condition":"多云"}]}', "name": "mojitianqi-DayWeather", "role": "tool"}


def chat(clock: str, *messages: dict[str, Any]) -> dict[str, Any]:
    tools = [{"function": {"name": "mojitianqi-DayWeather", "parameters": {}}, "type": "function"}]
    system = {"content": CLOCK.format(clock), "role": "system"}
    return {"messages": [system, *messages], "model": "豆包", "model_meta": {"stream": True}, "tools": tools}


def chosen(message: dict[str, Any], reason: str, *tokens: int) -> dict[str, Any]:
    answered: dict[str, Any] = {"choices": [{"index": 0, "message": message, "stop_reason": reason}], "model": "豆包"}
    if tokens:
        answered["usage"] = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "completion_tokens_details": {"reasoning_tokens": 0},
            "prompt_tokens_details": {"cached_tokens": 0},
            "total_tokens": sum(tokens),
        }
    return answered


def says(role: str, text: str) -> dict[str, Any]:
    return {"content": text, "role": role}


FIRST = (chat("15时05分30秒", says("user", WHO)), chosen(says("assistant", I_AM), "stop", 868, 21))
HISTORY = [says("user", WHO), says("assistant", I_AM), says("user", WEATHER)]
SECOND = (chat("15时23分47秒", *HISTORY), chosen(LOOK, "tool_calls", 906, 48))
THIRD = (chat("15时23分47秒", *HISTORY, LOOK, GOT), chosen(says("assistant", "明天成都多云。"), "stop"))


def test_a_conversation_goes_on_although_its_clock_has_moved() -> None:
    report = analysed("/api/v3/chat/completions", FIRST, SECOND, THIRD)
    assert (report.calls, report.agents, report.tool_calls) == (3, 1, 1)
    assert [(turn.user, turn.calls, turn.answer) for turn in report.turns] == [
        (WHO, 1, I_AM),
        (WEATHER, 2, "明天成都多云。"),
    ]
    assert {step.thread for turn in report.turns for step in turn.steps} == {0}
    assert steps(report)[2] == (3, "root", [], "answers mojitianqi-DayWeather from call 2")
    used = report.turns[1].steps[0].usage
    assert used is not None
    assert (used.input, used.output) == (906, 48)
    assert [(finding.call, finding.text) for finding in report.findings] == [
        (
            2,
            (
                "prefix breaks at messages[0].content, character 19: a clock: "
                "'15时05分30秒' became '15时23分47秒' (compared with call 1); 868 input tokens were not served; "
                "to mend it: say the time in the last user message, or not at all"
            ),
        )
    ]


def test_cut_to_its_second_turn_it_has_one_turn() -> None:
    report = analysed("/api/v3/chat/completions", SECOND, THIRD)
    assert [(turn.user, turn.calls) for turn in report.turns] == [(WEATHER, 2)]
    assert report.findings == []


def test_three_calls_in_one_turn() -> None:
    ask = [says("user", "如果明天不下雨，给我规划一下骑行路线。")]
    ride = {**LOOK, "tool_calls": [{"function": {"name": "gaodedetu-plan_bicycle", "arguments": "{}"}}]}
    way = {"content": "14.9 公里", "name": "gaodedetu-plan_bicycle", "role": "tool"}
    report = analysed(
        "/api/v3/chat/completions",
        (chat("16时00分00秒", *ask), chosen(LOOK, "tool_calls")),
        (chat("16时00分00秒", *ask, LOOK, GOT), chosen(ride, "tool_calls")),
        (chat("16时00分00秒", *ask, LOOK, GOT, ride, way), chosen(says("assistant", "骑行。"), "stop")),
    )
    assert [(turn.calls, turn.tool_calls, turn.usage.unknown_calls) for turn in report.turns] == [(3, 2, 3)]
    assert steps(report)[2][3] == "answers gaodedetu-plan_bicycle from call 2"


# -- a thinking model and a clock --------------------------------------------------------------------------------------


def test_a_thinking_model_whose_reasoning_is_dropped() -> None:
    message = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I should use the getCurrentTime function.",
        "tool_calls": [
            {
                "index": 0,
                "id": "call_00_gtvp7oMzKmS1UhTELmlR8838",
                "type": "function",
                "function": {"name": "getCurrentTime", "arguments": '{"timezone": "Asia/Shanghai"}'},
            }
        ],
    }
    usage = {
        "prompt_tokens": 316,
        "completion_tokens": 86,
        "total_tokens": 402,
        "prompt_tokens_details": {"cached_tokens": 256},
        "completion_tokens_details": {"reasoning_tokens": 37},
        "prompt_cache_hit_tokens": 256,
        "prompt_cache_miss_tokens": 60,
    }
    ask = {"role": "user", "content": "现在北京时间几点了？"}
    got = {"role": "tool", "tool_call_id": "call_00_gtvp7oMzKmS1UhTELmlR8838", "content": "22:34:43"}
    answer = {"role": "assistant", "content": "22:34。"}

    def called(sent: dict[str, Any]) -> StatsReport:
        asked, body = {"model": "deepseek-v4-pro"}, {"model": "deepseek-v4-pro"}
        return analysed(
            "/chat/completions",
            (
                {**asked, "messages": [ask]},
                {**body, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": usage},
            ),
            (
                {**asked, "messages": [ask, sent, got]},
                {**body, "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}]},
            ),
        )

    whole = called(message)
    assert whole.findings == []
    used = whole.turns[0].steps[0].usage
    assert used is not None
    assert (used.input, used.cached, used.output, used.reasoning) == (316, 256, 86, 37)
    assert whole.turns[0].steps[0].hit_rate == 256 / 316
    dropped = called({name: value for name, value in message.items() if name != "reasoning_content"})
    assert [(finding.kind, finding.call) for finding in dropped.findings] == [("dropped_reasoning", 2)]
    assert len({step.thread for step in dropped.turns[0].steps}) == 1
