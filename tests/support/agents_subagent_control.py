"""A parent and its subagent, two concurrent loops: `python -m tests.support.agents_subagent_control`.

The parent starts a subagent (`subagent`), queues messages for it (`send_message`) and lists what there is
(`list_agents`); the subagent tells its parent what it found (`report`), and its last words of every turn reach the
parent as well. Messages to an agent wait until its current turn ends and then become user messages, one at a time. So
the model requests do not depend on which thread is faster. `--jitter` makes the threads wait,
`--seed` fixes the subagent's id, `--save` and `--resume` carry both sessions from one process to the next.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Queue
from typing import Any

from wiretape.demo.client import ModelClient, ModelRefusal

Json = dict[str, Any]
MODEL = "deepseek-chat"
QUESTION = "请整理 1.4 版的发布说明。"
LATER = "文件数对吗？请再核对一遍。"
PARENT = "你是发布经理。把活交给子 agent，等它的报告，最后用一段话回答用户。"
CHILD = "你是发布经理的子 agent。一次做一件事，用 report 报告结果，最后说一句话结束。"
UNREADABLE = {"5e1d0c3a-77b2-4c58-9d1f-3a60b9e2f418": "corrupt"}  # sessions that the store cannot open
NOTES = {"changes": "新增：导出为 HAR。修复：断线时不再丢最后一帧。", "files": "改动了 7 个文件。"}


def tool(name: str, description: str, /, **members: str) -> Json:
    properties = {member: {"type": "string", "description": said} for member, said in members.items()}
    schema = {"type": "object", "properties": properties, "required": list(members)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


PARENT_TOOLS = [
    tool("subagent", "在后台启动一个子 agent。", label="短标签", prompt="它的第一件事"),
    tool(
        "send_message",
        "排队成为子 agent 的下一个轮次；这里不返回它的回答。",
        subagent_id="子 agent 的 id",
        message="要它做什么",
    ),
    tool("list_agents", "列出可以继续的子 agent。"),
]
CHILD_TOOLS = [
    tool("read_notes", "读一份笔记。", name="changes 或 files"),
    tool("report", "把内容发给启动你的 agent。", output="内容"),
]


class Agent:
    """One loop: every message of its inbox is a turn, and a turn ends with words."""

    def __init__(self, client: ModelClient, prompt: str, specs: Sequence[Json], jitter: random.Random | None) -> None:
        self.client, self.specs, self.jitter = client, specs, jitter
        self.messages: list[Json] = [{"role": "system", "content": prompt}]
        self.tools: dict[str, Callable[[Json], str]] = {}
        self.inbox: Queue[str | ModelRefusal | None] = Queue()

    def turn(self, said: str) -> str:
        self.messages.append({"role": "user", "content": said})
        while True:
            if self.jitter is not None:
                time.sleep(self.jitter.random() / 20)
            body = {"model": MODEL, "messages": self.messages, "tools": list(self.specs)}
            message = self.client.ask("/chat/completions", body)["choices"][0]["message"]
            self.messages.append(message)
            calls = message.get("tool_calls") or []
            if not calls:
                return str(message["content"])
            for call in calls:
                output = self.tools[call["function"]["name"]](json.loads(call["function"]["arguments"]))
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


class Harness:
    """Keeps the agents and passes messages between them."""

    def __init__(self, client: ModelClient, seed: int | None, jitter: int | None) -> None:
        self.client, self.jitter = client, jitter
        self.ids = random.Random(seed)
        self.labels: dict[str, str] = {}
        self.stored: dict[str, list[Json]] = {}  # sessions of processes that are gone
        self.children: dict[str, Agent] = {}
        self.threads: list[threading.Thread] = []
        self.owed = 0  # turns of subagents whose last words have not come yet
        self.parent = self.agent(PARENT, PARENT_TOOLS)
        self.parent.tools = {"subagent": self.start, "send_message": self.send, "list_agents": self.listed}

    def agent(self, prompt: str, specs: Sequence[Json]) -> Agent:
        pace = random.Random(f"{self.jitter} {prompt}") if self.jitter is not None else None
        return Agent(self.client, prompt, specs, pace)

    def start(self, arguments: Json) -> str:
        child = str(uuid.UUID(int=self.ids.getrandbits(128), version=4))
        self.labels[child] = arguments["label"]
        self.wake(child)
        self.give(child, arguments["prompt"])
        return f"started subagent {child}"

    def wake(self, child: str) -> None:
        """Start a subagent in its own thread, with its saved session if it has one."""
        agent = self.children[child] = self.agent(CHILD, CHILD_TOOLS)
        agent.messages = self.stored.pop(child, agent.messages)
        agent.tools = {
            "read_notes": lambda arguments: NOTES[arguments["name"]],
            "report": lambda arguments: self.report(child, arguments["output"]),
        }
        self.threads.append(threading.Thread(target=self.work, args=(child, agent)))
        self.threads[-1].start()

    def work(self, child: str, agent: Agent) -> None:
        while (said := agent.inbox.get()) is not None:
            try:
                closing = agent.turn(str(said))
            except ModelRefusal as refused:
                self.parent.inbox.put(refused)
                return
            self.parent.inbox.put(f"Subagent {child} ended its turn and said:\n{closing}")

    def give(self, child: str, message: str) -> None:
        self.owed += 1
        self.children[child].inbox.put(message)

    def send(self, arguments: Json) -> str:
        child = arguments["subagent_id"]
        if child in self.stored:
            self.wake(child)
        if child not in self.children:
            return f"error: there is no subagent {child}; the message was not delivered"
        self.give(child, arguments["message"])
        return f"message queued as the next turn for subagent {child}"

    def listed(self, _: Json) -> str:
        lines = [
            f"{child} [{'running' if child in self.children else 'complete'}] — {label}"
            for child, label in self.labels.items()
        ]
        return "\n".join([*lines, *(f"{child} [diagnostic: {why}]" for child, why in UNREADABLE.items())])

    def report(self, child: str, output: str) -> str:
        self.parent.inbox.put(f"Report of subagent {child}:\n{output}")
        return "report accepted by the agent that started you"

    def run(self, question: str) -> str:
        try:
            answer = self.parent.turn(question)
            while self.owed:
                said = self.parent.inbox.get()
                if isinstance(said, ModelRefusal):
                    raise said
                self.owed -= str(said).startswith("Subagent ")
                answer = self.parent.turn(str(said))
            return answer
        finally:
            for agent in self.children.values():
                agent.inbox.put(None)
            for thread in self.threads:
                thread.join()

    def save(self, path: Path) -> None:
        sessions = {child: agent.messages for child, agent in self.children.items()}
        kept = {"parent": self.parent.messages, "labels": self.labels, "sessions": {**self.stored, **sessions}}
        path.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def resume(self, path: Path) -> None:
        kept = json.loads(path.read_text(encoding="utf-8"))
        self.parent.messages, self.labels, self.stored = kept["parent"], kept["labels"], kept["sessions"]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, help="fixes the ids of subagents")
    parser.add_argument("--jitter", type=int, help="agents wait before they ask, each time differently long")
    parser.add_argument("--save", type=Path, help="write the sessions to this file at the end")
    parser.add_argument("--resume", type=Path, help="continue the sessions of this file")
    options = parser.parse_args(argv)
    with ModelClient("DEEPSEEK", "https://api.deepseek.com") as client:
        harness = Harness(client, options.seed, options.jitter)
        if options.resume:
            harness.resume(options.resume)
        print(harness.run(LATER if options.resume else QUESTION))
        if options.save:
            harness.save(options.save)
    return 0


if __name__ == "__main__":
    sys.exit(main())
