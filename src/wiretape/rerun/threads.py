"""What a rerun keeps of each conversation while it is played."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wiretape.model.call import ModelCall
from wiretape.model.jsonvalue import JsonObject
from wiretape.rerun.plan import Take
from wiretape.rerun.values import Row, Send


@dataclass(slots=True, eq=False)
class Thread:
    """One agent's conversation while it is played."""

    takes: list[Take]
    at: int = 0  # the take that is next
    body: JsonObject = field(default_factory=dict)  # sent last
    before: Take | None = None  # the recorded call that our last one stands for
    reply: JsonObject = field(default_factory=dict)
    call: ModelCall | None = None  # our last answer, decoded
    parted: bool = False  # our last answer went another way than the recorded one
    stopped: bool = False
    new: int = 0

    @property
    def next(self) -> Take | None:
        return self.takes[self.at] if self.at < len(self.takes) else None


class Waiting(NamedTuple):
    """A request that waits for its answer, and what will be said of it."""

    send: Send
    row: Row
    take: Take
    thread: Thread
