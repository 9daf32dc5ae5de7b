"""A customer-service agent with three tools, which tells its model the time in every system prompt.

Its provider speaks a dialect of Chat Completions: tool calls have no ids, tool messages carry only the tool's name,
`model_meta.stream` is true although the answer comes whole. Each question is a turn of one conversation.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from wiretape.demo.client import ModelClient
from wiretape.demo.places import TOOLS, use_tool

Json = dict[str, Any]

QUESTIONS = ("你是谁？", "我在成都，明天天气如何？")
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
    """A moment as the system prompt spells it."""
    return f"{now:%Y年%m月%d日 %H时%M分%S秒} 星期{WEEKDAYS[now.weekday()]}"


def clock(frozen: Sequence[str]) -> Iterator[datetime]:
    """The time at which each turn begins: the given ones first, then the real one."""
    yield from map(datetime.fromisoformat, frozen)
    while True:
        yield datetime.now()


def answer_turn(client: ModelClient, system: Json, history: list[Json]) -> str:
    """One turn: ask, use the tools that were called, ask again, until the model stops."""
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


def main(argv: Sequence[str] | None = None, questions: Sequence[str] = QUESTIONS) -> None:
    parser = argparse.ArgumentParser(description="A customer-service agent.")
    parser.add_argument("questions", nargs="*", help="what the user says, one turn each")
    parser.add_argument(
        "--clock", action="append", default=[], metavar="TIME", help="the time of a turn, as 2026-02-28T15:05:30"
    )
    options = parser.parse_args(argv)
    converse(options.questions or questions, options.clock)


if __name__ == "__main__":
    main()
