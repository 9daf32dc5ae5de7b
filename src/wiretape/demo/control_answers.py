"""What the scripted upstream answers to a parent and its subagent that send one another messages, as data.

(speaker, what the user's last message holds, tool results since then, answer). `{subagent}` stands for the id that the
conversation gave the subagent. Usage is unknown.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
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


CONTROL_SCENES: tuple[tuple[str, str, int, Json], ...] = (
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
    # Another day, another process: both sessions go on.
    (_PARENT, "再核对一遍", 0, _calls("p10", ("list_agents", {}))),
    (_PARENT, "再核对一遍", 1, _calls("p11", _message("重新数一遍文件，与上次比较。"))),
    (_PARENT, "再核对一遍", 2, _says("p12", "我让子 agent 重新数一遍。")),
    (_PARENT, "核对结果", 0, _says("p13", "收到核对结果。")),
    (_PARENT, "重新数过了", 0, _says("p14", "核对过了：改动 7 个文件，与发布说明一致。")),
    (_CHILD, "重新数一遍", 0, _calls("c8", ("read_notes", {"name": "files"}))),
    (_CHILD, "重新数一遍", 1, _calls("c9", ("report", {"output": "核对结果：仍是 7 个文件。"}))),
    (_CHILD, "重新数一遍", 2, _says("c10", "重新数过了，与上次一样。")),
)
