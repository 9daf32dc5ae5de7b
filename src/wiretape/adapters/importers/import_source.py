"""What importers take and give: a file's bytes and its parsed document in, exchanges and refusals out.

Nothing is lost silently: an entry that an importer cannot take leaves as a `Refused` that names it and says why.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from wiretape.errors import WiretapeError
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json

_HEAD = 4096
_BOM = b"\xef\xbb\xbf"


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


class Source:
    """A file to import from, read as far as it is asked for: its beginning, its lines, its bytes, its document."""

    def __init__(self, name: str, data: bytes | None = None, path: Path | None = None) -> None:
        self.name = name
        self._data = data
        self._path = path
        self._document: Json = None

    def open(self) -> BinaryIO:
        """The file, for those who read it piece by piece."""
        return self._path.open("rb") if self._path is not None else io.BytesIO(self._data or b"")

    @cached_property
    def size(self) -> int:
        """How many bytes the file has."""
        with self.open() as file:
            return file.seek(0, io.SEEK_END)

    @cached_property
    def head(self) -> bytes:
        """How the file begins, without a byte order mark."""
        with self.open() as file:
            return file.read(_HEAD).removeprefix(_BOM)

    @property
    def data(self) -> bytes:
        if self._data is None:
            with self.open() as file:
                self._data = file.read()
        return self._data

    def lines(self) -> Iterator[bytes]:
        """One line after the other, without keeping them."""
        with self.open() as file:
            for number, line in enumerate(file):
                yield line.removeprefix(_BOM) if number == 0 else line

    @property
    def document(self) -> Json:
        """The file as JSON or YAML, parsed once. Raises CannotTake."""
        if self._document is None:
            is_json = self.head.lstrip()[:1] in (b"{", b"[")
            self._document = parse_json(self.data) if is_json else _parse_yaml(self.data)
        return self._document


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
    from wiretape.adapters.importers.import_yaml import parse_yaml

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
    except Exception as error:  # whatever an odd entry does, the others are imported
        return Refused(source.name, number, f"is not as {container} writes it: {_said(error)}", container)
    return Taken(source.name, container, number, replace(made.exchange, number=number), made.started, made.order)


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}"
    return " ".join(str(error).split())[:200] or type(error).__name__
