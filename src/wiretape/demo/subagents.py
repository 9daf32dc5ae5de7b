"""A supervisor that passes calendar requests to a calendar agent: two loops, one inside the other.

The supervisor's only tool is the calendar agent, which has its own system prompt, loop and tool. One message of the
user takes four model calls. `--title` and `--start` change the result of the calendar tool.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wiretape.demo.client import ModelClient

QUESTION = "帮我约明天下午 3 点和张三开产品评审会，1 小时"
MODEL = "deepseek-v4-flash-vision-exp"
MOST_STEPS = 8

Json = dict[str, Any]
Tool = Callable[[Json], str]

SUPERVISOR_PROMPT = (
    "你是个人助理主管。遇到日程类请求时，调用 schedule_event 交给日历助手，拿到结果后用一句自然语言回复用户。"
)
CALENDAR_PROMPT = (
    "你是日历助手。收到日程请求后，必须调用 create_calendar_event 创建事件，然后用一句话确认结果（包含标题与时间）。"
)
SCHEDULE_EVENT: Json = {
    "type": "function",
    "name": "schedule_event",
    "description": "把用户的日程安排请求交给日历助手处理。入参 request 应是完整的一句话请求。",
    "parameters": {"type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]},
}
CREATE_CALENDAR_EVENT: Json = {
    "type": "function",
    "name": "create_calendar_event",
    "description": "在日历中创建一个事件。",
    "parameters": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "start_iso": {"type": "string"},
            "duration_minutes": {"type": "integer"},
        },
        "required": ["title", "start_iso", "duration_minutes"],
    },
}


@dataclass(frozen=True, slots=True)
class AgentLoop:
    """An agent: its prompt, its tools, and its loop of model calls and tool calls."""

    client: ModelClient
    prompt: str
    specs: Sequence[Json]
    tools: Mapping[str, Tool]
    streamed: bool

    def run(self, request: str) -> str:
        """Call the model and its tools until it answers with text."""
        conversation: list[Json] = [
            {"type": "message", "role": "system", "content": self.prompt},
            {"type": "message", "role": "user", "content": request},
        ]
        for _ in range(MOST_STEPS):
            output = self._ask(conversation)
            calls = [item for item in output if item["type"] == "function_call"]
            if not calls:
                return _text(output)
            conversation += [_as_history(item) for item in output]
            conversation += [self._use_tool(call) for call in calls]
        raise SystemExit(f"no answer after {MOST_STEPS} model calls")

    def _ask(self, conversation: list[Json]) -> list[Json]:
        body = {"model": MODEL, "input": conversation, "tools": list(self.specs), "max_output_tokens": 2048}
        if not self.streamed:
            output: list[Json] = self.client.ask("/responses", body)["output"]
            return output
        events = self.client.stream("/responses", {**body, "stream": True})
        return [event["item"] for event in events if event["type"] == "response.output_item.done"]

    def _use_tool(self, call: Json) -> Json:
        output = self.tools[call["name"]](json.loads(call["arguments"]))
        return {"type": "function_call_output", "call_id": call["call_id"], "output": output}


def _text(output: list[Json]) -> str:
    messages = [item for item in output if item["type"] == "message"]
    return "".join(part["text"] for message in messages for part in message["content"])


def _as_history(item: Json) -> Json:
    """An output item as an item of the next request: reasoning and encrypted content stay."""
    return {key: value for key, value in item.items() if key not in ("status", "id")}


def calendar_tool(title: str | None, start: str | None) -> Tool:
    """The tool that creates events. `title` and `start` replace those of its result."""

    def create_calendar_event(arguments: Json) -> str:
        name, when = title or arguments["title"], start or arguments["start_iso"]
        return f"OK: created '{name}' at {when} for {arguments['duration_minutes']} min"

    return create_calendar_event


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A supervisor and its calendar agent.")
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--stream", action="store_true", help="request streamed answers")
    parser.add_argument("--title", help="the title in the calendar tool's result")
    parser.add_argument("--start", help="the start in the calendar tool's result")
    options = parser.parse_args(argv)
    with ModelClient("DEEPSEEK", "https://api.deepseek.com") as client:
        create = {"create_calendar_event": calendar_tool(options.title, options.start)}
        calendar = AgentLoop(client, CALENDAR_PROMPT, [CREATE_CALENDAR_EVENT], create, options.stream)
        delegate = {"schedule_event": lambda arguments: calendar.run(arguments["request"])}
        supervisor = AgentLoop(client, SUPERVISOR_PROMPT, [SCHEDULE_EVENT], delegate, options.stream)
        print(supervisor.run(options.question))


if __name__ == "__main__":
    main()
