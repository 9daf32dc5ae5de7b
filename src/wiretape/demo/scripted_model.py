"""Chooses the answer to a request, from the request alone: concurrent calls get the right answers in any order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from wiretape.demo import answers
from wiretape.demo.answers import CONTROL_SCRIPT

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """An answer, and the requests that it answers."""

    path: str  # the end of the request's path
    speaker: str  # a part of the first message
    asks: str  # a part of the last user message
    step: int  # the number of tool results after that message
    answer: Json


_RESPONSES, _CHAT = "/responses", "/chat/completions"

SCRIPT = (
    ScriptedAnswer(_RESPONSES, "你是个人助理主管", "产品评审会", 0, answers.SUPERVISOR_DELEGATES),
    ScriptedAnswer(_RESPONSES, "你是日历助手", "产品评审会", 0, answers.CALENDAR_CREATES),
    ScriptedAnswer(_RESPONSES, "你是日历助手", "产品评审会", 1, answers.CALENDAR_CONFIRMS),
    ScriptedAnswer(_RESPONSES, "你是个人助理主管", "产品评审会", 1, answers.SUPERVISOR_ANSWERS),
    ScriptedAnswer(_CHAT, "智能客服", "你是谁", 0, answers.SERVICE_INTRODUCES_ITSELF),
    ScriptedAnswer(_CHAT, "智能客服", "动物园", 0, answers.ROUTE_ASKS_WEATHER),
    ScriptedAnswer(_CHAT, "智能客服", "动物园", 1, answers.ROUTE_ASKS_BICYCLE),
    ScriptedAnswer(_CHAT, "智能客服", "动物园", 2, answers.ROUTE_ANSWERS),
    ScriptedAnswer(_CHAT, "智能客服", "天气", 0, answers.SERVICE_ASKS_WEATHER),
    ScriptedAnswer(_CHAT, "智能客服", "天气", 1, answers.SERVICE_TELLS_WEATHER),
    ScriptedAnswer(_CHAT, "自我介绍", "自我介绍", 0, answers.INTRODUCTION),
    ScriptedAnswer(_CHAT, "", "Say hello", 0, answers.GREETING),
    ScriptedAnswer(_CHAT, "几点", "几点", 0, answers.CLOCK_ASKS_TIME),
    ScriptedAnswer(_CHAT, "几点", "几点", 1, answers.CLOCK_TELLS_TIME),
    *(ScriptedAnswer(_CHAT, *entry) for entry in CONTROL_SCRIPT),
)
_WHEN = re.compile(r"(\d{4}-\d\d-\d\d)\D{1,2}(\d\d):(\d\d)")
_SUBAGENT = re.compile(r"started subagent (\S+)")


def answer_for(path: str, body: Json) -> Json | None:
    """The answer to a request; None if the script has no answer."""
    conversation: list[Json] = body.get("input") or body.get("messages") or []
    if not conversation:
        return None
    asked_at = max((n for n, item in enumerate(conversation) if item.get("role") == "user"), default=0)
    results = [item for item in conversation[asked_at:] if _is_result(item)]
    speaker, asks = _text(conversation[0]), _text(conversation[asked_at])
    for entry in SCRIPT:
        if path.endswith(entry.path) and entry.step == len(results) and entry.speaker in speaker and entry.asks in asks:
            started = _SUBAGENT.search("\n".join(map(_text, conversation)))
            result = _text(results[-1]) if results else ""
            placeholders = {"{result}": result, "{subagent}": started[1] if started else "", **_when(result)}
            answer: Json = _fill(entry.answer, placeholders)
            return answer
    return None


def _when(result: str) -> dict[str, str]:
    """The placeholders for the date and time in a tool result."""
    found = _WHEN.search(result)
    if found is None:
        return {"{day}": "日期未知", "{time}": "时间未知", "{spoken}": "时间未知，"}
    day, hour, minute = found[1], int(found[2]), found[3]
    half = f" {minute} 分" if minute != "00" else ""
    spoken = f"{'上午' if hour < 12 else '下午'} {hour if hour <= 12 else hour - 12} 点{half}"
    return {"{day}": day, "{time}": f"{found[2]}:{minute}", "{spoken}": spoken}


def _is_result(item: Json) -> bool:
    return item.get("role") == "tool" or item.get("type") == "function_call_output"


def _text(item: Json) -> str:
    return str(item.get("content") or item.get("output") or "")


def _fill(value: Any, placeholders: dict[str, str]) -> Any:
    match value:
        case str():
            for name, text in placeholders.items():
                value = value.replace(name, text)
            return value
        case dict():
            return {key: _fill(member, placeholders) for key, member in value.items()}
        case list():
            return [_fill(member, placeholders) for member in value]
        case _:
            return value
