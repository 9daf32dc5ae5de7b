"""The replies to commands, as values. The views render them for the screen and for line mode."""

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
    """The stop where a move ended, and the breakpoints that stopped it. `detail` is None at the ends of the tape."""

    detail: Detail | None
    hits: tuple[Hit, ...] = ()
    returned: tuple[str, str] | None = None  # after finish: the tool that started the agent, and its result
    place: str = ""  # the phase of the stop
    full: bool = False  # show long texts in full


@dataclass(frozen=True, slots=True)
class ListingColumn:
    title: str
    right: bool = False
    wide: bool = False  # shrinks if the terminal is too narrow


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A row of a table. `here`: it is marked as the current one."""

    cells: tuple[str, ...]
    here: bool = False
    below: tuple[str, ...] = ()  # lines under the row


@dataclass(frozen=True, slots=True)
class Listing:
    """A table. `empty` is shown if it has no rows."""

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
    """A value that `print` shows. `value` is JSON; None is unknown."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """A match of a search, as excerpts. It is match `number` of `total` calls."""

    pattern: str
    excerpts: tuple[str, ...]
    number: int
    total: int


Part: TypeAlias = Sentence | Arrival | Listing | Value | SearchMatch | CallComparison | ModelContext


@dataclass(frozen=True, slots=True)
class Edit:
    """A text to open in an editor. `done` applies the edited text."""

    text: str
    done: Callable[[str], CommandReply]


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The reply to one command line.

    `error`: why the command failed, and what to do instead; the state is unchanged. `command`: the command's full name,
    empty if the line names none. `quit`: leave the debugger. `edit`: open an editor. `waits`: the program was released;
    the rest of the reply follows when a call is held or the program ends.
    """

    command: str = ""
    parts: tuple[Part, ...] = ()
    error: str | None = None
    quit: bool = False
    waits: bool = False
    edit: Edit | None = None


def reply(*parts: Part) -> CommandReply:
    """Build a reply of these parts."""
    return CommandReply(parts=parts)


def sentence(text: str, tone: Tone = "plain") -> CommandReply:
    """Build a reply of one sentence."""
    return reply(Sentence(text, tone))
