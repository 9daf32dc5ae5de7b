"""A customer-service agent with three tools, whose system prompt contains the current time.

Its provider speaks a dialect of Chat Completions: tool calls have no ids, tool messages carry only the tool's name,
and `model_meta.stream` is true although the answer is not streamed. Each question is a turn of one conversation.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from wiretape.demo.client import ModelClient

Json = dict[str, Any]

QUESTIONS = ("你是谁？", "我在成都，明天天气如何？")
# Two tools, one after the other: the route depends on the weather.
ROUTE_QUESTION = (
    "我在成都南站，明天要去成都动物园。如果明天下雨，请帮我规划一下驾驶路线。如果明天不下雨，给我规划一下骑行路线。"
)
PROMPT = "今天是 {now} 。# 角色\n你是一名强子开发的智能客服。\n\n"
WEEKDAYS = "一二三四五六日"
MODEL = "豆包·1.6·极致速度·250828"
MODEL_META: Json = {
    "api_mode": 0,
    "frequency_penalty": 0,
    "max_tokens": 4096,
    "parameters": {"max_completion_tokens": "0", "thinking_type": "disabled"},
    "stream": True,
    "temperature": 0.8,
    "top_p": 1,
}
MOST_STEPS = 8


def spell(now: datetime) -> str:
    """A time as the system prompt writes it."""
    return f"{now:%Y年%m月%d日 %H时%M分%S秒} 星期{WEEKDAYS[now.weekday()]}"


def clock(frozen: Sequence[str]) -> Iterator[datetime]:
    """The start times of the turns: the given times first, then the current time."""
    yield from map(datetime.fromisoformat, frozen)
    while True:
        yield datetime.now()


def answer_turn(client: ModelClient, system: Json, history: list[Json]) -> str:
    """Run one turn: call the model and its tools until it stops."""
    for _ in range(MOST_STEPS):
        body = {"messages": [system, *history], "model": MODEL, "model_meta": MODEL_META, "tools": TOOLS}
        choice = client.ask("/chat/completions", body)["choices"][0]
        message: Json = choice["message"]
        history.append(message)
        if choice["stop_reason"] != "tool_calls":
            return str(message["content"])
        for call in message["tool_calls"]:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            history.append({"content": use_tool(name, arguments), "name": name, "role": "tool"})
    raise SystemExit(f"no answer after {MOST_STEPS} model calls")


def converse(questions: Sequence[str], frozen: Sequence[str]) -> None:
    history: list[Json] = []
    with ModelClient("OPENAI", "https://api.openai.com/v1") as client:
        for question, now in zip(questions, clock(frozen), strict=False):
            system = {"content": PROMPT.format(now=spell(now)), "role": "system"}
            history.append({"content": question, "role": "user"})
            print(answer_turn(client, system, history))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A customer-service agent.")
    parser.add_argument("questions", nargs="*", help="the user's messages, one turn each")
    parser.add_argument(
        "--clock", action="append", default=[], metavar="TIME", help="the time of a turn, as 2026-02-28T15:05:30"
    )
    options = parser.parse_args(argv)
    converse(options.questions or QUESTIONS, options.clock)


WEATHER = "mojitianqi-DayWeather"
DRIVING = "gaodedetu-plan_driving"
BICYCLE = "gaodedetu-plan_bicycle"


def _parameter(kind: str, description: str) -> Json:
    return {"description": description, "properties": {}, "type": kind}


def _tool(name: str, description: str, parameters: Json) -> Json:
    function = {"description": description, "name": name, "parameters": parameters}
    return {"function": function, "type": "function"}


def _route_parameters(details: str, required: Sequence[str]) -> Json:
    place = "可以是关键词；也可以是经纬度，经纬度之间用英文逗号分隔"
    properties = {
        "destination": _parameter("string", f"目标地点。{place}"),
        "disable_paths": _parameter("boolean", f"{details}, default value is false"),
        "origin": _parameter("string", f"起点。{place}"),
    }
    return {"description": "", "properties": properties, "required": list(required), "type": "object"}


_WEATHER_PARAMETERS: Json = {
    "description": "",
    "properties": {
        "city": _parameter("string", "市名，包括直辖市，比如：北京市、天津市、上海市、重庆市"),
        "end_time": _parameter("string", "待查询结束日期"),
        "province": _parameter("string", "省份名，不要包括直辖市(比如：北京、北京市、北京省、天津市、上海市、重庆市)"),
        "start_time": _parameter("string", "待查询开始日期"),
        "towns": _parameter("string", "区/县/镇"),
        "villages": _parameter("string", "乡/村"),
    },
    "type": "object",
}
TOOLS: list[Json] = [
    _tool(WEATHER, "获取国内指定日期的天气，不支持获取国外天气情况。", _WEATHER_PARAMETERS),
    _tool(DRIVING, "驾驶路线规划", _route_parameters("是否禁止返回路径详情", ("destination", "origin"))),
    _tool(BICYCLE, "骑行路线规划", _route_parameters("是否禁止展示路径详情", ("origin", "destination"))),
]

_FORECAST: Mapping[str, Json] = {
    "成都市": {
        "wind_dir_day": "东北风",
        "wind_level_day": "2",
        "temp_high": 18,
        "condition": "多云",
        "wind_dir_night": "东北风",
        "predict_date": "",
        "weather_day": "多云",
        "wind_level_night": "2",
        "temp_low": 10,
        "humidity": 76,
    }
}
_BICYCLE_LEGS = (
    ("向西骑行105米左转进入天仁北二街", 105),
    ("沿天仁北二街骑行474米向左后方行驶", 474),
    ("向北骑行381米右转", 381),
    ("向东骑行574米向右前方行驶至科华南路", 574),
    ("沿科华南路骑行19米左转", 19),
    ("向东北骑行43米左转进入科华中路辅路", 43),
    ("沿科华中路辅路骑行4401米左转进入锦兴路", 4401),
    ("沿锦兴路骑行774米右转", 774),
    ("向东北骑行428米至大业路", 428),
    ("沿大业路向东北骑行302米右转", 302),
    ("向北骑行729米", 729),
    ("沿三多里向东骑行124米左转进入驷马桥街", 124),
    ("沿驷马桥街向东北骑行5962米右转", 5962),
    ("向东骑行158米左转", 158),
    ("向东北骑行15米右转", 15),
    ("向东骑行72米左转", 72),
    ("向东骑行177米右转", 177),
    ("向南骑行135米右转", 135),
    ("向西骑行64米到达终点", 64),
)
_ROUTES: Mapping[tuple[str, str, str], Sequence[tuple[str, int]]] = {
    (BICYCLE, "成都南站", "成都动物园"): _BICYCLE_LEGS,
}
_METRES_PER_MINUTE = 176.6  # what the table's route takes, turns and traffic lights included


def weather(arguments: Json) -> str:
    forecast = _FORECAST.get(arguments["city"])
    day = re.fullmatch(r"(\d{4})年(\d{2})月(\d{2})日", arguments["start_time"])
    if forecast is None or day is None:
        return _spell({"data": []})
    return _spell({"data": [{**forecast, "predict_date": "-".join(day.groups())}]})


def route(name: str, arguments: Json) -> str:
    legs = _ROUTES.get((name, arguments["origin"], arguments["destination"]), ())
    metres = sum(length for _, length in legs)
    steps = [] if arguments.get("disable_paths") else [{"instruction": text, "distance": m} for text, m in legs]
    minutes = round(metres / _METRES_PER_MINUTE, 1)
    return _spell({"data": {"distance": metres, "duration_minutes": minutes, "steps": steps}})


_TOOLS: Mapping[str, Callable[[Json], str]] = {
    WEATHER: weather,
    DRIVING: lambda arguments: route(DRIVING, arguments),
    BICYCLE: lambda arguments: route(BICYCLE, arguments),
}


def use_tool(name: str, arguments: Json) -> str:
    """Run the tool that the model called."""
    return _TOOLS[name](arguments)


def _spell(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
