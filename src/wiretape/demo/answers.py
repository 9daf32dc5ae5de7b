"""The answers of the scripted upstream, as data.

Ids, stop reasons and model names are written as each provider writes them. An answer has usage only where the published
source states it. `{result}` in a text is replaced by the result of the last tool.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

# --- subagents: OpenAI Responses as DeepSeek speaks it -------------------------------------------------------------

_RESPONSES_MODEL = "deepseek-flash"

SUPERVISOR_DELEGATES: Json = {
    "id": "713dda7a-2723-4f52-b22a-26483d8ee7e9",
    "model": _RESPONSES_MODEL,
    "status": "completed",
    "output": [
        {
            "type": "reasoning",
            "status": "completed",
            "content": [
                {
                    "type": "reasoning_text",
                    "text": "The user wants to schedule a meeting. "
                    "I should call schedule_event with the complete request.",
                }
            ],
            "encrypted_content": "713dda7a-2723-4f52-b22a-26483d8ee7e9-0",
        },
        {
            "type": "function_call",
            "status": "completed",
            "name": "schedule_event",
            "arguments": '{"request": "帮我约明天下午 3 点和张三开产品评审会，时长 1 小时"}',
            "call_id": "call_00_Fsa6XTMl6dbQxpR4TFIb4432",
        },
    ],
    "usage": {
        "input_tokens": 347,
        "output_tokens": 75,
        "output_tokens_details": {"reasoning_tokens": 18},
        "total_tokens": 422,
    },
}
CALENDAR_CREATES: Json = {
    "id": "5f0c9a1e-86d4-4b1b-9c37-20f1d9a4c2b6",
    "model": _RESPONSES_MODEL,
    "status": "completed",
    "output": [
        {
            "type": "function_call",
            "status": "completed",
            "name": "create_calendar_event",
            "arguments": '{"title": "产品评审会", "start_iso": "2025-06-11T15:00:00", "duration_minutes": 60}',
            "call_id": "call_00_kW2nVd7QxHb3TgLmZyRc5108",
        }
    ],
}
CALENDAR_CONFIRMS: Json = {
    "id": "c84e3d52-1b7f-4f0a-a6d9-7e95b03c1f48",
    "model": _RESPONSES_MODEL,
    "status": "completed",
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [
                {
                    "type": "output_text",
                    "text": "已为你创建「产品评审会」，时间：明天（{day}）{time}，时长 1 小时。",
                }
            ],
        }
    ],
}
SUPERVISOR_ANSWERS: Json = {
    "model": _RESPONSES_MODEL,
    "status": "completed",
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [
                {
                    "type": "output_text",
                    "text": "已经帮你安排好了：明天（{day}）{spoken}和张三的产品评审会，时长 1 小时。",
                }
            ],
        }
    ],
    "usage": {
        "input_tokens": 462,
        "output_tokens": 31,
        "input_tokens_details": {"cached_tokens": 256},
        "total_tokens": 493,
    },
}

# --- customer service: a dialect of Chat Completions ---------------------------------------------------------------

_SERVICE_MODEL = "豆包·1.6·极致速度·250828"


def _service(message: Json, stop_reason: str, usage: tuple[int, int] | None = None) -> Json:
    answer: Json = {
        "choices": [{"index": 0, "message": message, "stop_reason": stop_reason}],
        "model": _SERVICE_MODEL,
    }
    if usage is not None:
        prompt, completion = usage
        answer["usage"] = {
            "completion_tokens": completion,
            "completion_tokens_details": {"reasoning_tokens": 0},
            "prompt_tokens": prompt,
            "prompt_tokens_details": {"cached_tokens": 0},
            "total_tokens": prompt + completion,
        }
    return answer


def _service_says(text: str, usage: tuple[int, int] | None = None) -> Json:
    return _service({"content": text, "role": "assistant"}, "stop", usage)


def _service_calls(name: str, arguments: str, usage: tuple[int, int] | None = None) -> Json:
    calls = [{"function": {"arguments": arguments, "name": name}}]
    return _service({"content": "", "role": "assistant", "tool_calls": calls}, "tool_calls", usage)


_TOMORROW = '{"city":"成都市","start_time":"2026年03月01日","end_time":"2026年03月01日"}'

SERVICE_INTRODUCES_ITSELF = _service_says("我是强子开发的智能客服，能够为您提供信息咨询、问题解答等服务。", (868, 21))
SERVICE_ASKS_WEATHER = _service_calls("mojitianqi-DayWeather", _TOMORROW, (906, 48))
SERVICE_TELLS_WEATHER = _service_says("明天成都的天气为多云，东北风 2 级，气温 10℃到 18℃，湿度 76%。")
ROUTE_ASKS_WEATHER = _service_calls("mojitianqi-DayWeather", _TOMORROW)
ROUTE_ASKS_BICYCLE = _service_calls("gaodedetu-plan_bicycle", '{"origin":"成都南站","destination":"成都动物园"}')
ROUTE_ANSWERS = _service_says(
    """根据明天（2026-03-01）成都的天气情况（多云，无降雨），以下是为您规划的出行方案：

### **一、天气情况**

- **日期**：2026-03-01
- **天气**：多云，气温 10℃~18℃，东北风 2 级，湿度 76%
- **结论**：无降雨，适合骑行。

### **二、骑行路线规划**

#### **起点**：成都南站（天府大道北段火车南站地铁站 L 口）

#### **终点**：成都动物园（昭觉寺南路 234 号）

#### **路线详情**：

1. **沿天仁北二街**向西骑行 105 米，**左转**进入天仁北二街。
2. **沿天仁北二街**骑行 474 米，继续**向左后方行驶**。
3. **向北骑行 381 米**，**右转**进入下一路段。
4. **向东骑行 574 米**，**向右前方行驶**至科华南路。
5. **沿科华南路**骑行 19 米 **左转**，向东北骑行 43 米后 **左转**进入科华中路辅路。
6. **沿科华中路辅路**骑行 4401 米，**左转**进入锦兴路。
7. **沿锦兴路**骑行 774 米 **右转**，向东北骑行 428 米至大业路。
8. **沿大业路**向东北骑行 302 米后 **右转**，**向北骑行 729 米**。
9. **沿三多里**向东骑行 124 米 **左转**，进入驷马桥街。
10. **沿驷马桥街**向东北骑行 5962 米 **右转**，向东骑行 158 米 **左转**，再向东北骑行 15 米 **右转**。
11. **向东骑行 72 米** **左转**，**向东骑行 177 米** **右转**，**向南骑行 135 米** **右转**，**向西骑行 64 米**到达终点。

#### **总览**：

- **距离**：约 14.9 公里
- **耗时**：约 84.6 分钟（含转弯和等待时间）
- **特点**：全程以城市主干道和辅路为主，部分路段需注意交通信号灯和行人干扰。

### **三、注意事项**

1. 建议使用共享单车或自备自行车，骑行前检查车辆刹车和轮胎。
2. 途中可搭配导航 App（如高德地图）实时调整路线，避免走错路。
3. 多云天气气温适中，建议携带防晒用品和饮用水。

如需驾驶路线（若临时遇雨或偏好驾驶），可直接告知调整为驾车方案。祝您出行顺利！"""  # noqa: E501
)

# --- DeepSeek's Chat Completions, thinking -------------------------------------------------------------------------


def _deepseek(id: str, created: int, message: Json, finish: str, usage: Json | None = None) -> Json:
    answer: Json = {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": "deepseek-v4-pro",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
    }
    if usage is not None:
        answer["usage"] = usage
    return {**answer, "system_fingerprint": "fp_9954b31ca7_prod0820_fp8_kvcache_20260402"}


def _deepseek_usage(hit: int, miss: int, completion: int, reasoning: int) -> Json:
    return {
        "prompt_tokens": hit + miss,
        "completion_tokens": completion,
        "total_tokens": hit + miss + completion,
        "prompt_tokens_details": {"cached_tokens": hit},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
        "prompt_cache_hit_tokens": hit,
        "prompt_cache_miss_tokens": miss,
    }


INTRODUCTION = _deepseek(
    "f7f01192-7fc3-4b17-a3d7-afded8307c3c",
    1781959299,
    {
        "role": "assistant",
        "content": "你好！我是DeepSeek，由深度求索公司创造的AI助手，免费且支持超长上下文，很高兴为你服务～",
        "reasoning_content": "好的，用户让我用一句话自我介绍。这是一个非常简单的请求，不需要复杂拆解。\n\n"
        "我需要用简洁、自然的方式说明我的身份和核心功能。想到了直接说“我是DeepSeek，由深度求索公司创造的AI助手”，"
        "这样既点明了身份，也说明了创造者。然后补充一下免费可用和知识截止时间，这样信息比较完整。"
        "最后用开放式的提问结束，保持友好和乐于助人的语气。\n\n"
        " 嗯，一句话的话，可以把这些信息整合成一句流畅的话，就是“你好！我是DeepSeek，由深度求索公司创造的AI助手，"
        "免费且支持超长上下文，很高兴为你服务～”。",
    },
    "stop",
    _deepseek_usage(hit=0, miss=11, completion=162, reasoning=134),
)
CLOCK_ASKS_TIME = _deepseek(
    "2e16c162-7392-4267-aa68-4fc3c41276dd",
    1781965948,
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "The user wants to know the current time in Beijing. I should use the getCurrentTime "
        'function with the timezone "Asia/Shanghai" which is the timezone for Beijing.',
        "tool_calls": [
            {
                "index": 0,
                "id": "call_00_gtvp7oMzKmS1UhTELmlR8838",
                "type": "function",
                "function": {"name": "getCurrentTime", "arguments": '{"timezone": "Asia/Shanghai"}'},
            }
        ],
    },
    "tool_calls",
    _deepseek_usage(hit=256, miss=60, completion=86, reasoning=37),
)
CLOCK_TELLS_TIME = _deepseek(
    "9b6f4f0d-35c2-4e58-8f43-6d1c2a7be0f5",
    1781965951,
    {
        "role": "assistant",
        "content": "现在北京时间是{result}。",
        "reasoning_content": "工具返回了北京时间，直接告诉用户即可。",
    },
    "stop",
)

# --- the README's test ---------------------------------------------------------------------------------------------

GREETING: Json = {
    "id": "chatcmpl-greeting",
    "object": "chat.completion",
    "created": 1781965951,
    "model": "gpt-5",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hello! How can I help?"}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17},
}


_PARENT, _CHILD = "你是发布经理。", "你是发布经理的子 agent"


def _answer(id: str, message: Json, finish: str) -> Json:
    return {
        "id": f"chatcmpl-{id}",
        "object": "chat.completion",
        "created": 1780000000,
        "model": "deepseek-chat",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
    }


def _says(id: str, text: str) -> Json:
    return _answer(id, {"content": text}, "stop")


def _calls(id: str, *calls: tuple[str, Json]) -> Json:
    asked = [
        {
            "id": f"call_{id}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for index, (name, arguments) in enumerate(calls)
    ]
    return _answer(id, {"content": "", "tool_calls": asked}, "tool_calls")


def _message(text: str, to: str = "{subagent}") -> tuple[str, Json]:
    return ("send_message", {"subagent_id": to, "message": text})


# --- a parent and its subagent that send messages to each other -----------------------------------------------------
# (speaker, text of the last user message, tool results since then, answer); `{subagent}` is replaced by its id.

CONTROL_SCRIPT: tuple[tuple[str, str, int, Json], ...] = (
    (
        _PARENT,
        "发布说明",
        0,
        _calls("p1", ("subagent", {"label": "查改动", "prompt": "查清 1.4 版改了什么，然后报告。"})),
    ),
    (_PARENT, "发布说明", 1, _calls("p2", _message("数一数改动了几个文件。"), _message("再给发布说明起一个标题。"))),
    (_PARENT, "发布说明", 3, _calls("p3", ("list_agents", {}), _message("检查拼写。", "editor-2"))),
    (_PARENT, "发布说明", 5, _says("p4", "子 agent 在查改动，没有叫 editor-2 的子 agent。我等报告。")),
    (_PARENT, "\n新增导出", 0, _says("p5", "收到改动清单。")),
    (_PARENT, "改动已经查清", 0, _says("p6", "第一件事做完了。")),
    (_PARENT, "一共改动 7 个文件", 0, _says("p7", "收到文件数。")),
    (_PARENT, "文件数完了", 0, _says("p8", "第二件事做完了。")),
    (
        _PARENT,
        "标题是",
        0,
        _says("p9", "《1.4：带走你的记录》\n新增导出为 HAR；修复断线时丢失最后一帧。共改动 7 个文件。"),
    ),
    (_CHILD, "改了什么", 0, _calls("c1", ("read_notes", {"name": "changes"}))),
    (_CHILD, "改了什么", 1, _calls("c2", ("report", {"output": "新增导出为 HAR；修复断线时丢失最后一帧。"}))),
    (_CHILD, "改了什么", 2, _says("c3", "改动已经查清，也报告了。")),
    (_CHILD, "几个文件", 0, _calls("c4", ("read_notes", {"name": "files"}))),
    (_CHILD, "几个文件", 1, _calls("c5", ("report", {"output": "一共改动 7 个文件。"}))),
    (_CHILD, "几个文件", 2, _says("c6", "文件数完了，也报告了。")),
    (_CHILD, "起一个标题", 0, _says("c7", "标题是《1.4：带走你的记录》。")),
    # Another day, another process: both sessions continue.
    (_PARENT, "再核对一遍", 0, _calls("p10", ("list_agents", {}))),
    (_PARENT, "再核对一遍", 1, _calls("p11", _message("重新数一遍文件，与上次比较。"))),
    (_PARENT, "再核对一遍", 2, _says("p12", "我让子 agent 重新数一遍。")),
    (_PARENT, "核对结果", 0, _says("p13", "收到核对结果。")),
    (_PARENT, "重新数过了", 0, _says("p14", "核对过了：改动 7 个文件，与发布说明一致。")),
    (_CHILD, "重新数一遍", 0, _calls("c8", ("read_notes", {"name": "files"}))),
    (_CHILD, "重新数一遍", 1, _calls("c9", ("report", {"output": "核对结果：仍是 7 个文件。"}))),
    (_CHILD, "重新数一遍", 2, _says("c10", "重新数过了，与上次一样。")),
)
