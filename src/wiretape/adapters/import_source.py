"""What importers take and give: a file's bytes and its parsed document in, exchanges and refusals out.

Nothing is lost silently: an entry that an importer cannot take leaves as a `Refused` that names it and says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from wiretape.errors import WiretapeError
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json


@dataclass(frozen=True, slots=True)
class Taken:
    """An exchange of a file. Its times count from its own start, and its number is its place in the file."""

    file: str
    container: str
    entry: int  # from 1
    exchange: Exchange
    started: float | None = None  # seconds since 1970, where the container says
    order: int | None = None  # where the container numbers its entries itself


@dataclass(frozen=True, slots=True)
class Refused:
    """What could not be taken: an entry of a file, or (`entry` is None) the whole file."""

    file: str
    entry: int | None
    reason: str
    container: str | None = None

    def __str__(self) -> str:
        where = self.file if self.entry is None else f"{self.file} entry {self.entry}"
        return f"{where}: {self.reason}"


class CannotTake(WiretapeError):
    """Why an entry cannot be taken."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What an importer makes of one entry."""

    exchange: Exchange
    started: float | None = None
    order: int | None = None


@dataclass(slots=True)
class Source:
    """A file to import from: its name, its bytes, and (parsed once) its document."""

    name: str
    data: bytes
    _document: Json = field(default=None, repr=False)

    @property
    def document(self) -> Json:
        """The file as JSON or YAML. Raises CannotTake."""
        if self._document is None:
            self._document = parse_json(self.data) if self.looks_like_json else _parse_yaml(self.data)
        return self._document

    @property
    def looks_like_json(self) -> bool:
        return self.data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def parse_json(data: bytes) -> Json:
    """Parse JSON, also what orjson is too strict for: NaN, lone surrogates, a byte order mark. Raises CannotTake."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            return json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise CannotTake(f"is not JSON: {error}") from None


def _parse_yaml(data: bytes) -> Json:
    from wiretape.adapters.import_yaml import parse_yaml

    return parse_yaml(data)


def each(
    source: Source, container: str, entries: Iterable[Any], read: Callable[[Any], Recorded]
) -> Iterator[Taken | Refused]:
    """Read every entry; one that is not as it should be costs only itself."""
    for number, entry in enumerate(entries, 1):
        yield one(source, container, number, entry, read)


def one(source: Source, container: str, number: int, entry: Any, read: Callable[[Any], Recorded]) -> Taken | Refused:
    try:
        made = read(entry)
    except CannotTake as error:
        return Refused(source.name, number, str(error), container)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        return Refused(source.name, number, f"is not as {container} writes it: {_said(error)}", container)
    return Taken(source.name, container, number, _numbered(made.exchange, number), made.started, made.order)


def _numbered(exchange: Exchange, number: int) -> Exchange:
    from dataclasses import replace

    return replace(exchange, number=number)


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}"
    return " ".join(str(error).split())[:200] or type(error).__name__
