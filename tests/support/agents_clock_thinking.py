"""A thinking model with a clock tool, through the real openai SDK: `python -m tests.support.agents_clock_thinking`.

The model's reasoning goes back to it with the tool's result, as DeepSeek's thinking mode demands. `--clock` freezes
the tool's clock; `--tool-says` makes the tool answer something else altogether.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import openai

QUESTION = "现在北京时间几点了？"
WEEKDAYS = "一二三四五六日"
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "getCurrentTime",
            "description": "获取当前的日期和时间，包括年、月、日、时、分、秒以及星期几",
            "parameters": {
                "type": "object",
                "properties": {
                    "timezone": {
                        "type": "string",
                        "description": "时区，例如 'Asia/Shanghai'、'America/New_York'，默认为本地时区",
                    },
                },
            },
        },
    },
]


def get_current_time(arguments: dict[str, str], frozen: str | None) -> str:
    now = datetime.fromisoformat(frozen) if frozen else datetime.now(ZoneInfo(arguments.get("timezone", "UTC")))
    return f"{now:%Y年%m月%d日}星期{WEEKDAYS[now.weekday()]} {now:%H:%M:%S}"


def run(client: openai.OpenAI, frozen: str | None, tool_says: str | None) -> str:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        completion = client.chat.completions.create(model="deepseek-v4-pro", messages=messages, tools=TOOLS)
        message = completion.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        # The SDK keeps members that it does not know, reasoning_content among them.
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            assert call.type == "function"
            content = tool_says or get_current_time(json.loads(call.function.arguments), frozen)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clock", help="the time that the tool tells, as 2026-06-20T22:34:43")
    parser.add_argument("--tool-says", help="what the tool answers instead of the time")
    options = parser.parse_args(argv)
    try:
        with openai.OpenAI() as client:
            print(run(client, options.clock, options.tool_says))
    except openai.OpenAIError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
