"""What other layers add to a run: causes, cache verdicts, findings, drift, and the user's notes.

The analysis and the replay are siblings of this package, so it cannot import them. The code that opens a
debugger passes their results as `Annotations`; missing annotations are reported as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from wiretape.debug.timeline import Stop
from wiretape.errors import UsageError
from wiretape.model.http import Exchange
from wiretape.model.run import Run, Step


@dataclass(frozen=True, slots=True)
class CallFinding:
    """A lint finding, as the debugger shows it.

    `kind` is the rule's name and `id` its code; `values` are the labelled values that it compares; `fix` is the next
    step. `estimate`: inferred, not read from the wire.
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
    """What the prompt cache did for a call: one word (served, broken, expired, …) and a sentence."""

    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A user's note at a stop of the run."""

    stop: Stop
    text: str


class ForksCalls(Protocol):
    """Forks the run at a call with the options of `wiretape fork`; returns the new path. Raises WiretapeError."""

    def __call__(self, call: int, words: Sequence[str]) -> str: ...


SavesNotes: TypeAlias = Callable[[Sequence[Note]], None]  # writes all notes; raises WiretapeError
OpensTapes: TypeAlias = Callable[[str], Run]  # reads and links the tape at a path; raises WiretapeError


def _no_tapes(path: str) -> Run:
    raise UsageError(f"cannot open {path}: this debugger cannot read other tapes")


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations of one run. `cache`, `findings` and `drift` are called at most once each."""

    name: str = "the tape"
    started: datetime | None = None
    exchanges: Mapping[int, Exchange] = field(default_factory=dict)
    why: Callable[[Step], str] | None = None  # the cause of a call, as a sentence
    cache: Callable[[], Mapping[int, CacheVerdict]] | None = None  # by call
    findings: Callable[[], Sequence[CallFinding]] | None = None
    drift: Callable[[], Mapping[int, Sequence[str]]] | None = None  # by call
    open_tape: OpensTapes = _no_tapes
    fork: ForksCalls | None = None
