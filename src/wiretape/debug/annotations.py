"""What other layers know of a run, as the debugger is handed it. Everything here is asked lazily, and may be absent.

The analysis and the comparison with a replay are siblings of this package and never imported: whoever opens a
debugger fills these in. What is not filled in is said to be unknown, where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from wiretape.debug.timeline import Stop
from wiretape.model.http import Exchange
from wiretape.model.run import Run, Step


@dataclass(frozen=True, slots=True)
class CallFinding:
    """A finding: its rule's name, the call it is about, what it says. `estimate`: inferred, not read off the wire.

    `id` is another name of the rule, `values` what stands there and what it is held against, `mend` the next step.
    """

    kind: str
    call: int | None
    text: str
    severity: str = ""
    estimate: bool = False
    id: str = ""
    values: tuple[tuple[str, str], ...] = ()
    fix: str = ""


@dataclass(frozen=True, slots=True)
class CacheVerdict:
    """What the prompt cache did for a call: in one word (served, broken, expired, …) and in a sentence."""

    word: str
    text: str


class Why(Protocol):
    def __call__(self, step: Step) -> str: ...


class OpensTapes(Protocol):
    """Reads and links another tape, for `diff`. Raises WiretapeError."""

    def __call__(self, path: str) -> Run: ...


class Forks(Protocol):
    """Makes a fork at a call, as `wiretape fork` does with these words; gives its path. Raises WiretapeError."""

    def __call__(self, call: int, words: Sequence[str]) -> str: ...


def _no_tapes(path: str) -> Run:
    from wiretape.errors import UsageError

    raise UsageError(f"cannot open {path}: this debugger was started without a way to other tapes")


@dataclass(frozen=True, slots=True)
class Annotations:
    """Handed in when a debugger is made. `cache`, `findings` and `drift` are called at most once each."""

    name: str = "the tape"
    started: datetime | None = None
    exchanges: Mapping[int, Exchange] = field(default_factory=dict)
    why: Why | None = None
    cache: Callable[[], Mapping[int, CacheVerdict]] | None = None  # by call
    findings: Callable[[], Sequence[CallFinding]] | None = None
    drift: Callable[[], Mapping[int, Sequence[str]]] | None = None  # call -> how it strayed from its recording
    open_tape: OpensTapes = _no_tapes
    fork: Forks | None = None


@dataclass(frozen=True, slots=True)
class Note:
    stop: Stop
    text: str


# Writes all notes to wherever they are kept. Raises WiretapeError.
SavesNotes: TypeAlias = Callable[[Sequence[Note]], None]
