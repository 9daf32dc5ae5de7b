"""The input and output of importers: a file, and the exchanges and refusals that its entries become.

No entry is lost silently: one that cannot be imported becomes a `RefusedEntry` with the reason.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from wiretape.adapters.importers.bodies import cut_short
from wiretape.adapters.importers.documents import ImportRefused, parse_json, parse_yaml
from wiretape.model.http import Exchange, Headers
from wiretape.model.jsonvalue import Json
from wiretape.tape.format.codings import CodingError, TooLarge, decode, decoder_for

_HEAD = 4096
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ImportedExchange:
    """An exchange of a file. Its times are relative to its own start, and its number is its position in the file."""

    file: str
    container: str
    entry: int  # from 1
    exchange: Exchange
    started: float | None = None  # seconds since 1970; None: the container has no time
    order: int | None = None  # the container's own number of the entry


@dataclass(frozen=True, slots=True)
class RefusedEntry:
    """An entry that cannot be imported. `entry` None: the whole file."""

    file: str
    entry: int | None
    reason: str
    container: str | None = None

    def __str__(self) -> str:
        where = self.file if self.entry is None else f"{self.file} entry {self.entry}"
        return f"{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ParsedEntry:
    """What an importer returns for one entry."""

    exchange: Exchange
    started: float | None = None
    order: int | None = None


class Source:
    """A file to import, read lazily: its beginning, its lines, its bytes, its document."""

    def __init__(self, name: str, data: bytes | None = None, path: Path | None = None) -> None:
        self.name = name
        self._data = data
        self._path = path
        self._document: Json = None
        self._is_decoded = False

    def open(self) -> BinaryIO:
        """Open the file, to read it in pieces. A file in gzip is decoded as a whole. Raises ImportRefused."""
        if not self._is_decoded:
            self._is_decoded = True
            with self.open() as file:
                packed = file.read() if file.read(2) == _GZIP else b""
            if packed:
                self._data, self._path = _unpacked(_GZIP + packed), None
        return self._path.open("rb") if self._path is not None else io.BytesIO(self._data or b"")

    @cached_property
    def size(self) -> int:
        """The size of the file in bytes."""
        with self.open() as file:
            return file.seek(0, io.SEEK_END)

    @cached_property
    def head(self) -> bytes:
        """The beginning of the file, without a byte order mark."""
        with self.open() as file:
            return file.read(_HEAD).removeprefix(_BOM)

    @property
    def data(self) -> bytes:
        if self._data is None or not self._is_decoded:
            with self.open() as file:
                self._data = file.read()
        return self._data

    def lines(self) -> Iterator[bytes]:
        """Yield one line after the other, without keeping them."""
        with self.open() as file:
            for number, line in enumerate(file):
                yield line.removeprefix(_BOM) if number == 0 else line

    @property
    def document(self) -> Json:
        """The parsed JSON or YAML of the file. Raises ImportRefused."""
        if self._document is None:
            is_json = self.head.lstrip()[:1] in (b"{", b"[")
            self._document = parse_json(self.data) if is_json else parse_yaml(self.data)
        return self._document


def _unpacked(data: bytes) -> bytes:
    decoder = decoder_for("gzip")
    assert decoder is not None
    if cut_short(data, Headers()):
        raise ImportRefused("is gzip that breaks off")
    try:
        return decode(decoder, data)
    except TooLarge as error:
        raise ImportRefused(f"is refused: {error}") from None
    except CodingError as error:
        raise ImportRefused(f"is corrupt gzip: {error}") from None


def each(
    source: Source, container: str, entries: Iterable[Any], read: Callable[[Any], ParsedEntry]
) -> Iterator[ImportedExchange | RefusedEntry]:
    """Read every entry. One that is malformed is refused, and the others are read."""
    for number, entry in enumerate(entries, 1):
        yield one(source, container, number, entry, read)


def one(
    source: Source, container: str, number: int, entry: Any, read: Callable[[Any], ParsedEntry]
) -> ImportedExchange | RefusedEntry:
    try:
        made = read(entry)
    except ImportRefused as error:
        return RefusedEntry(source.name, number, str(error), container)
    except Exception as error:  # an unexpected error in one entry must not stop the import of others
        return RefusedEntry(source.name, number, f"is not a valid entry of {container}: {_reason(error)}", container)
    return ImportedExchange(
        source.name, container, number, replace(made.exchange, number=number), made.started, made.order
    )


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}"
    return " ".join(str(error).split())[:200] or type(error).__name__
