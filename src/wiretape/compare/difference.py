"""A difference between two requests, and how alike two requests are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from wiretape.model.jsonvalue import Json


class Tier(IntEnum):
    """How alike a live request and a recorded one are, strictest first."""

    EXACT = 0
    NORMALIZED = 1
    MASKED = 2
    POSITION = 3  # alike in their place only

    @property
    def word(self) -> str:
        return self.name.lower()


class Absent:
    """Stands for a value that is not there, in a difference."""

    def __repr__(self) -> str:
        return "(nothing)"


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two requests differ, and what stands there in each. ABSENT: nothing does."""

    where: str
    recorded: Json
    live: Json
