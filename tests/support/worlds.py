"""Generated runs with known structure: trees of agents that call models, at times that can be shuffled.

A plan lists events without times. `play` adds times, and resends history with the variations of real clients, so that
one plan can be played with calls that finish in any order.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from tests.support.calls import assistant, make_call, system, thinks, tools, user
from wiretape.model.call import Block, Message, ModelCall, Text, ToolCall, ToolResult


@dataclass(frozen=True)
class Tool:
    """A tool call: it gives `output`, or starts an agent whose last answer is the output."""

    name: str
    text: str
    output: str = ""
    agent: Talk | None = None


@dataclass(frozen=True)
class Round:
    """One answer that asks for tools. `fails`: how often the call is refused before it is answered."""

    tools: tuple[Tool, ...]
    fails: int = 0


@dataclass(frozen=True)
class Talk:
    """One agent's conversation: turns of (what the user says, rounds of tools, the answer)."""

    name: str
    system: str
    turns: tuple[tuple[str, tuple[Round, ...], str], ...]


@dataclass
class Label:
    """The truth about one call, in words that do not depend on numbers."""

    agent: str
    thread: str
    turn: str
    step: str
    parent: str | None


@dataclass
class Played:
    """Calls in order of start, with the truth about each."""

    calls: list[ModelCall] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def name_of(self, number: int | None) -> str | None:
        return None if number is None else self.labels[number - 1].step


@dataclass(frozen=True)
class Liberties:
    """What a client does to history when it resends it."""

    ids: bool = True
    share: bool = True  # the very same message objects
    drop_reasoning: bool = False
    respell: bool = False  # tool arguments
    clock: bool = False  # in the system prompt
    results_in_one: bool = False  # one user message carries all results
    retry_jitter: int = 5


class Player:
    def __init__(self, seed: int, liberties: Liberties) -> None:
        self.random = random.Random(seed)
        self.liberties = liberties
        self.made: list[tuple[int, int, list[Message], Message | None, int, str, Label]] = []
        self.ids = 0

    def talk(self, talk: Talk, at: int, path: str, turn: str | None, parent: str | None) -> tuple[int, str]:
        history: list[Message] = []
        before = parent
        answer = ""
        for index, (said, rounds, answer) in enumerate(talk.turns):
            history.append(user(said))
            here = turn or f"{path}/turn{index}"
            for place, step in enumerate((*rounds, Round(()))):
                name = f"{path}/{index}.{place}"
                for attempt in range(step.fails):
                    at = self.call(talk, history, None, at, path, here, f"{name}!{attempt}", before)
                    before = f"{name}!{attempt}"
                if not step.tools:
                    at = self.call(talk, history, assistant(answer), at, path, here, name, before)
                    history.append(self.resent(assistant(answer)))
                else:
                    at = self.tools(talk, history, step, at, path, here, name, before)
                before = name
            at += self.random.randint(1, 300)
        return at, answer

    def tools(
        self,
        talk: Talk,
        history: list[Message],
        step: Round,
        at: int,
        path: str,
        turn: str,
        name: str,
        before: str | None,
    ) -> int:
        asked = [self.asked(tool) for tool in step.tools]
        answer = assistant(thinks("hmm"), *asked)
        at = self.call(talk, history, answer, at, path, turn, name, before)
        ends, results = [at], []
        for index, (tool, call) in enumerate(zip(step.tools, asked, strict=True)):
            output, end = tool.output, at + self.random.randint(1, 200)
            if tool.agent is not None:
                child = f"{name}/{index}:{tool.agent.name}"
                end, output = self.talk(tool.agent, at + self.random.randint(1, 50), child, turn, name)
            ends.append(end)
            results.append(ToolResult(call.id, tool.name, output))
        history.append(self.resent(answer))
        if self.liberties.results_in_one:
            history.append(Message("user", tuple(results)))
        else:
            history.extend(Message("tool", (one,)) for one in results)
        return max(ends) + self.random.randint(1, 5)

    def asked(self, tool: Tool) -> ToolCall:
        self.ids += 1
        arguments = json.dumps({"q": tool.text}, ensure_ascii=False)
        return ToolCall(f"id{self.ids}" if self.liberties.ids else None, tool.name, arguments)

    def resent(self, message: Message) -> Message:
        blocks: list[Block] = []
        for block in message.blocks:
            if self.liberties.drop_reasoning and not isinstance(block, Text | ToolCall):
                continue
            if isinstance(block, ToolCall) and self.liberties.respell:
                block = replace(block, arguments=json.dumps(json.loads(block.arguments), indent=1))
            blocks.append(block)
        return Message(message.role, tuple(blocks))

    def call(
        self,
        talk: Talk,
        history: list[Message],
        answer: Message | None,
        at: int,
        path: str,
        turn: str,
        name: str,
        before: str | None,
    ) -> int:
        end = at + self.random.randint(5, 400)
        clock = f" It is 12:{self.random.randint(10, 59)}." if self.liberties.clock else ""
        messages = [system(talk.system + clock), *history]
        if not self.liberties.share:
            messages = [replace(message) for message in messages]
        agent = path if turn != "" and ":" in path else talk.system
        label = Label(agent, path, turn, name, before)
        self.made.append((at, end, messages, answer, 200 if answer else 429, talk.system, label))
        return end + self.random.randint(1, self.liberties.retry_jitter)


def play(roots: Sequence[Talk], seed: int, liberties: Liberties) -> Played:
    """Give a plan times. Calls of different agents overlap as chance has it; causes come before effects."""
    player = Player(seed, liberties)
    for index, root in enumerate(roots):
        player.talk(root, player.random.randint(0, 500), f"r{index}", None, None)
    played = Played()
    for number, (at, end, messages, answer, status, prompt, label) in enumerate(
        sorted(player.made, key=lambda made: made[0]), start=1
    ):
        call = make_call(
            number, messages, answer, at=at, ended_at=end, status=status, offers=tools(f"tool of {prompt}")
        )
        played.calls.append(call)
        played.labels.append(label)
    return played


# -- plans -----------------------------------------------------------------------------------------------------------


@st.composite
def talks(draw: st.DrawFn, depth: int = 0, name: str = "root", task: str | None = None) -> Talk:
    """A conversation. Every task and every user text is unlike all others; answers and outputs may well be equal."""
    prompt = draw(st.sampled_from(PROMPTS))
    turns = []
    for _ in range(1 if task is not None else draw(st.integers(1, 3))):
        said = task if task is not None else draw(_unique("question"))
        rounds = tuple(draw(_rounds(depth)) for _ in range(draw(st.integers(0, 2))))
        turns.append((said, rounds, draw(st.sampled_from(["done, all is well", "OK", draw(_unique("answer"))]))))
    return Talk(name, prompt, tuple(turns))


PROMPTS = (
    "You are a supervisor who hands work to others and sums up what they say.",
    "Agent of the calendar; answer in one sentence, nothing else.",
    "研究助手：查资料，列出处。",
)


@st.composite
def _rounds(draw: st.DrawFn, depth: int) -> Round:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        text = draw(_unique("task"))
        if depth < 2 and draw(st.booleans()):
            child = draw(talks(depth + 1, "child", text))
            made.append(Tool(draw(st.sampled_from(["delegate", "ask"])), text, agent=child))
        else:
            output = draw(st.sampled_from(["", "OK", "42 degrees, and a fine day it is"]))
            made.append(Tool(draw(st.sampled_from(["look", "ask"])), text, output))
    return Round(tuple(made), draw(st.sampled_from([0, 0, 0, 1, 2])))


def _unique(kind: str) -> st.SearchStrategy[str]:
    return st.uuids(version=4).map(lambda id: f"{kind} {id}")


def liberties() -> st.SearchStrategy[Liberties]:
    flags = st.booleans()
    return st.builds(
        Liberties, ids=flags, share=flags, drop_reasoning=flags, respell=flags, clock=flags, results_in_one=flags
    )
