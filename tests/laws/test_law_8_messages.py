"""Law 8, for messages between agents: each message links its own calls, in any order of calls.

A parent starts subagents, queues messages for them, and gets their reports and last messages, each in its own turn.
The same plan is played with other times; the links are always those of the plan.
"""

from __future__ import annotations

import heapq
import json
import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.calls import asks, assistant, make_call, result, system, tools, user

from wiretape.model.call import Message, ModelCall
from wiretape.runs.run import build_run

OFFERS = tools("subagent", "send_message")


@dataclass(frozen=True)
class Plan:
    """Per subagent: for its task and each message that follows, whether it reports before its last words."""

    children: tuple[tuple[bool, ...], ...]
    named: bool  # whether what reaches the parent names the subagent


plans = st.builds(
    Plan,
    st.lists(st.lists(st.booleans(), min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple),
    st.booleans(),
)


def id_of(child: int) -> str:
    return f"child-{child:04d}"


def task(child: int, turn: int) -> str:
    return f"look at part {turn} of chapter {child}, please"


def words(kind: str, child: int, turn: int) -> str:
    return f"the {kind} on part {turn} of chapter {child}"


@dataclass
class Played:
    """Calls with what they are called in the plan; and what leads from which to which."""

    calls: list[tuple[int, int, list[Message], Message, str]] = field(default_factory=list)
    truth: set[tuple[str, str, str]] = field(default_factory=set)


class Player:
    """Gives the plan times. What reaches the parent waits until it is free, in the order in which it came."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan, self.random, self.played = plan, random.Random(seed), Played()
        self.letters: list[tuple[int, str, str, str]] = []  # when, what it says, its kind, the call it comes from

    def call(self, at: int, history: list[Message], answer: Message, label: str) -> int:
        end = at + self.random.randint(5, 400)
        self.played.calls.append((at, end, list(history), answer, label))
        return end

    def play(self) -> Played:
        children = range(len(self.plan.children))
        starts = assistant(*(asks("subagent", json.dumps({"prompt": task(c, 0)}), f"s{c}") for c in children))
        history = [system("You lead."), user("sum up the book, please")]
        end = self.call(0, history, starts, "start")
        history += [starts, *(result(f"started subagent {id_of(c)}", f"s{c}") for c in children)]
        sent = [(c, turn) for c in children for turn in range(1, len(self.plan.children[c]))]
        sends = assistant(
            "they are at it",
            *(asks("send_message", json.dumps({"to": id_of(c), "text": task(c, t)}), f"m{c}.{t}") for c, t in sent),
        )
        queued = self.call(end + self.random.randint(1, 50), history, sends, "send")
        history.append(sends)
        free = queued
        if sent:
            history += [result(f"queued for {id_of(c)}", f"m{c}.{t}") for c, t in sent]
            free = self.call(queued + self.random.randint(1, 50), history, assistant("I wait."), "wait")
            history.append(assistant("I wait."))
        for child in children:
            self.work(child, end + self.random.randint(1, 300), queued)
        heapq.heapify(self.letters)
        while self.letters:
            came, said, kind, origin = heapq.heappop(self.letters)
            history.append(user(said))
            label = f"hears {said}"
            self.played.truth.add((kind, origin, label))
            free = self.call(max(free, came) + self.random.randint(1, 30), history, assistant(f"noted: {label}"), label)
            history.append(assistant(f"noted: {label}"))
        return self.played

    def work(self, child: int, at: int, queued: int) -> None:
        history: list[Message] = [system("You work.")]
        for turn, reports in enumerate(self.plan.children[child]):
            at = max(at, queued + self.random.randint(1, 30)) if turn else at
            history.append(user(task(child, turn)))
            label = f"{child}.{turn}"
            self.played.truth.add(("message", "send", label) if turn else ("started", "start", label))
            if reports:
                report = assistant(asks("report", json.dumps({"output": words("report", child, turn)}), f"r{label}"))
                end = self.call(at, history, report, label)
                self.tell("report", child, turn, end, label)
                history += [report, result("report accepted", f"r{label}")]
                at, label = end + self.random.randint(1, 30), f"{label} ends"
            said = assistant(words("end", child, turn))
            end = self.call(at, history, said, label)
            self.tell("closing", child, turn, end, label)
            history.append(said)
            at = end + self.random.randint(1, 30)

    def tell(self, kind: str, child: int, turn: int, at: int, origin: str) -> None:
        said = words("report" if kind == "report" else "end", child, turn)
        name = f"{id_of(child)} says:\n" if self.plan.named else "A subagent says:\n"
        self.letters.append((at, name + said, kind, origin))


def calls_of(played: Played) -> tuple[list[ModelCall], dict[int, str]]:
    ordered = sorted(played.calls, key=lambda call: (call[0], call[4]))
    made = []
    for n, (at, end, history, answer, _) in enumerate(ordered, 1):
        leads = history[0].blocks == system("You lead.").blocks
        offers = OFFERS if leads else tools("report")
        made.append(make_call(n, history, answer, offers=offers, at=at, ended_at=end))
    return made, {n: call[4] for n, call in enumerate(ordered, 1)}


@settings(deadline=None)
@given(plan=plans, seed=st.integers(0, 9999))
def test_every_message_links_the_calls_of_the_plan(plan: Plan, seed: int) -> None:
    played = Player(plan, seed).play()
    calls, labels = calls_of(played)
    run = build_run(calls)
    found = {(link.kind, labels[link.from_call or 0], labels[link.to_call or 0]) for link in run.links}
    assert found == played.truth
    assert len(run.turns) == 1
    assert len(run.agents) == 1 + len(plan.children)
    assert all(link.certainty != "possible" for link in run.links)


@settings(deadline=None)
@given(plan=plans, seeds=st.tuples(st.integers(0, 9999), st.integers(0, 9999)))
def test_the_same_plan_at_other_times_has_the_same_agents(plan: Plan, seeds: tuple[int, int]) -> None:
    shapes = []
    for seed in seeds:
        calls, labels = calls_of(Player(plan, seed).play())
        run = build_run(calls)
        threads = {frozenset(labels[number] for number in thread.calls) for thread in run.threads}
        shapes.append((threads, {labels[agent.started_by] for agent in run.agents if agent.started_by is not None}))
    assert shapes[0] == shapes[1]
