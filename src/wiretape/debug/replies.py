"""What a command answers: content, not text. The views render it, for the screen and for line mode alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wiretape.debug.breakpoints import Hit
from wiretape.debug.detail import Detail, ModelContext
from wiretape.debug.difference import CallComparison

Tone: TypeAlias = Literal["plain", "good", "bad", "dim"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a move led: why it stopped there (breakpoints, values that changed, a tool that returned), and what is
    there. `detail` is None at the start and the end of the tape."""

    detail: Detail | None
    hits: tuple[Hit, ...] = ()
    returned: tuple[str, str] | None = None  # the tool that an agent was called by, and what it gave back
    place: str = ""
    full: bool = False  # nothing shortened


@dataclass(frozen=True, slots=True)
class ListingColumn:
    title: str
    right: bool = False
    wide: bool = False  # gives way where the width does not do


@dataclass(frozen=True, slots=True)
class ListingRow:
    """`here`: the row of the current place."""

    cells: tuple[str, ...]
    here: bool = False
    below: tuple[str, ...] = ()  # sentences under the row


@dataclass(frozen=True, slots=True)
class Listing:
    """A table with an optional title; `empty` is said where there are no rows."""

    columns: tuple[ListingColumn, ...]
    rows: tuple[ListingRow, ...]
    title: str = ""
    empty: str = "none"


def listing(columns: str, rows: Iterable[ListingRow], title: str = "", empty: str = "none") -> Listing:
    """A table with columns written as `call>|agent*|finish`: `>` aligns right, `*` lets the column shrink."""
    specs = [ListingColumn(c.rstrip(">*"), c.endswith(">"), c.endswith("*")) for c in columns.split("|")]
    return Listing(tuple(specs), tuple(rows), title, empty)


@dataclass(frozen=True, slots=True)
class Value:
    """What `print` found. `value` is JSON; None is unknown."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """Where a search hit: the words around it."""

    pattern: str
    excerpts: tuple[str, ...]
    number: int
    total: int


Part: TypeAlias = Sentence | Arrival | Listing | Value | SearchMatch | CallComparison | ModelContext


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that a person is to change in an editor; `done` takes what became of it."""

    text: str
    done: Callable[[str], CommandReply]


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The answer to one line. `error`: what was asked for could not be done, and what to do instead; nothing changed.

    `quit`: the person wants to leave. `command`: the full name of what was done, empty for an error before that.
    `waits`: the program goes on; there is more to say when it is held, or has ended. `edit`: an editor is to be opened.
    """

    command: str = ""
    parts: tuple[Part, ...] = ()
    error: str | None = None
    quit: bool = False
    waits: bool = False
    edit: Edit | None = None


def sentence(text: str, tone: Tone = "plain") -> CommandReply:
    """A reply of one sentence."""
    return CommandReply(parts=(Sentence(text, tone),))
