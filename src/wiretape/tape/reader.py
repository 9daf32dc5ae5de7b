"""Documents -> exchanges: reads a tape, whatever its spelling, and takes a journal left behind into account.

The fast path splits on blank lines; anything else (CRLF, a stray blank line, JSON Lines) is read as concatenated
JSON. A torn last document costs only itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from wiretape.errors import NotATape, TapeDamaged, TapeError, TapeTooNew
from wiretape.model.http import Body, Close, Ended, Exchange, Headers, JsonBody, Request, Response, WsMessage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.bodies import Base, body_of
from wiretape.tape.documents import (
    VERSION,
    EndedDocument,
    Header,
    IncompleteDocument,
    MessageDocument,
    RequestDocument,
    ResponseDocument,
    parse_document,
    validated,
)
from wiretape.tape.journal import Leftover, read_journal
from wiretape.tape.recovery import Have, recovered
from wiretape.tape.splitting import Piece, split_documents
from wiretape.tape.storage import journal_path, read_text

Migration = Callable[[list[JsonObject]], list[JsonObject]]
MIGRATIONS: dict[int, Migration] = {}  # version N -> makes the documents of version N + 1


@dataclass(frozen=True, slots=True)
class Tape:
    """A tape in memory. Parts that requests have in common are the same objects: never mutate them."""

    path: Path | None
    header: Header
    exchanges: tuple[Exchange, ...]
    warnings: tuple[str, ...] = ()
    incomplete: bool = False
    gaps: tuple[str, ...] = ()  # why it is incomplete: some of the warnings


@dataclass(frozen=True, slots=True)
class TapeSummary:
    """What `wiretape ls` says of a tape, found without decoding its bodies."""

    path: Path
    header: Header
    exchanges: int
    size: int  # bytes of the file
    warnings: tuple[str, ...] = ()
    incomplete: bool = False


def read_tape(path: str | Path) -> Tape:
    """Read a tape. Raises TapeError subclasses that name the file, the line and what to do."""
    path = Path(path)
    left = read_journal(journal_path(path))  # first: what ends meanwhile is then found in the tape
    header, pieces, torn = _documents(path, left)
    assembly = Assembly(path)
    for warning in torn:
        assembly.lacks(warning)
    pieces.reverse()
    while pieces:  # what was taken in need not be kept
        assembly.add(pieces.pop())
    if left is not None:
        _take_in(assembly, left, path)
    gaps = tuple(assembly.gaps)
    return Tape(path, header, assembly.exchanges(), tuple(assembly.warnings), bool(gaps), gaps)


def read_header(path: str | Path) -> Header:
    """The first document of a tape."""
    return tape_summary(path).header


def tape_summary(path: str | Path) -> TapeSummary:
    """Header and counts of a tape; bodies are not looked at."""
    path = Path(path)
    left = read_journal(journal_path(path))
    header, pieces, warnings = _documents(path, left)
    numbers = {piece.value.get("exchange") for piece in pieces} - {None}
    incomplete = bool(warnings) or left is not None or any("incomplete" in piece.value for piece in pieces)
    if left is not None:
        numbers |= left.drafts.keys()
        warnings += left.warnings
    size = path.stat().st_size if path.exists() else 0
    return TapeSummary(path, header, len(numbers), size, tuple(warnings), incomplete)


def _documents(path: Path, left: Leftover | None) -> tuple[Header, list[Piece], list[str]]:
    """The header, the other documents, and what is cut off."""
    try:
        text = read_text(path)
    except TapeError:
        if left is None or left.header is None or path.exists():
            raise
        text = b""
    if not text.strip() and left is not None and left.header is not None:
        return parse_header(left.header, path), [], []
    pieces, torn = split_documents(text, path)
    if not pieces:
        raise NotATape(f"{path}: is {'empty' if not text.strip() else 'not a tape'}; wiretape record writes tapes")
    header = parse_header(pieces[0].value, path)
    rest = _migrated(pieces[1:], pieces[0].value["wiretape"])
    return header, rest, [torn] if torn else []


def parse_header(raw: Json, path: Path) -> Header:
    """Raises NotATape, TapeTooNew or TapeDamaged."""
    if not isinstance(raw, dict) or not isinstance(raw.get("wiretape"), int):
        raise NotATape(f'{path}: is not a tape: it does not begin with a header like {{"wiretape": {VERSION}, …}}')
    if raw["wiretape"] > VERSION:
        raise TapeTooNew(
            f"{path}: has version {raw['wiretape']} of the tape format, this wiretape reads up to {VERSION}: "
            "pip install --upgrade wiretape"
        )
    try:
        header: Header = validated(Header, raw)
    except ValueError as error:
        raise TapeDamaged(f"{path}:1: the header is wrong: {error}") from None
    return header


def _migrated(pieces: list[Piece], version: int) -> list[Piece]:
    for step in range(version, VERSION):
        values = MIGRATIONS[step]([piece.value for piece in pieces])
        pieces = [replace(piece, value=value) for piece, value in zip(pieces, values, strict=True)]
    return pieces


def _take_in(assembly: Assembly, left: Leftover, path: Path) -> None:
    assembly.warnings += left.warnings
    found = recovered(left, assembly.have)
    open_ones = sum(draft.ended is None for draft in left.drafts.values())
    assembly.lacks(
        f"{left.path}: the recorder has not closed this tape (yet); "
        f"{len(found)} documents were read from its journal, {open_ones} exchanges are open"
    )
    for text in found:
        assembly.add(Piece(orjson.loads(text), 0))


# -- assembling exchanges ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """An exchange being put together."""

    exchange: Exchange
    messages: list[WsMessage] = field(default_factory=list)


class Assembly:
    """Puts exchanges together from documents, in their order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[int, _Open] = {}
        self._bases: dict[str, Base] = {}
        self.warnings: list[str] = []
        self.gaps: list[str] = []

    def lacks(self, what: str) -> None:
        """Something of the tape is missing: a warning, and more than that."""
        self.gaps.append(what)
        self.warnings.append(what)

    @property
    def have(self) -> Have:
        """What of each exchange is there."""
        return {
            number: (entry.exchange.response is not None, entry.exchange.ended is not None, len(entry.messages))
            for number, entry in self._open.items()
        }

    def add(self, piece: Piece) -> None:
        """Raises TapeDamaged naming the file and the line."""
        try:
            document = parse_document(piece.value)
            match document:
                case RequestDocument():
                    self._request(document, piece)
                case ResponseDocument():
                    self._response(document, piece)
                case MessageDocument():
                    self._message(document, piece)
                case EndedDocument():
                    self._ended(document)
                case IncompleteDocument():
                    self.lacks(f"{self._path}: is incomplete: {document.incomplete.reason}")
        except ValueError as error:
            raise TapeDamaged(f"{self._path}:{piece.line}: {error}") from None

    def exchanges(self) -> tuple[Exchange, ...]:
        """All of them, by number."""
        return tuple(
            replace(entry.exchange, messages=tuple(entry.messages)) if entry.messages else entry.exchange
            for _, entry in sorted(self._open.items())
        )

    def _request(self, document: RequestDocument, piece: Piece) -> None:
        number = document.exchange
        if number in self._open:
            raise ValueError(f"exchange {number} has a second request")
        part = document.request
        body = self._body(part.body, str(number), piece) if "body" in part.model_fields_set else None
        request = Request(part.method, part.url, _headers(part.headers), body, part.http)
        self._open[number] = _Open(Exchange(number, document.at, request))

    def _response(self, document: ResponseDocument, piece: Piece) -> None:
        entry, part = self._known(document.exchange), document.response
        if entry.exchange.response is not None:
            raise ValueError(f"exchange {document.exchange} has a second response")
        body = self._body(part.body, None, piece) if "body" in part.model_fields_set else None
        trailers = None if part.trailers is None else _headers(part.trailers)
        response = Response(part.status, _headers(part.headers), part.headers_at, body, trailers)
        at = None if document.ended is None else document.at
        entry.exchange = replace(entry.exchange, response=response, ended=document.ended, ended_at=at)

    def _message(self, document: MessageDocument, piece: Piece) -> None:
        entry, part = self._known(document.exchange), document.message
        name = f"{document.exchange}.{len(entry.messages) + 1}"
        entry.messages.append(WsMessage(document.at, part.sender, self._body(part.body, name, piece)))

    def _ended(self, document: EndedDocument) -> None:
        entry = self._known(document.exchange)
        part = document.close
        close = Close(part.code, part.reason, part.sender) if part else None
        entry.exchange = replace(entry.exchange, ended=Ended(document.ended), ended_at=document.at, close=close)

    def _known(self, number: int) -> _Open:
        if number not in self._open:
            raise ValueError(f"exchange {number} has no request before this")
        return self._open[number]

    def _body(self, shape: Any, name: str | None, piece: Piece) -> Body:
        def warn(message: str) -> None:
            self.warnings.append(f"{self._path}:{piece.line}: x{name}: {message}")

        body = body_of(shape, self._base, warn)
        if name is not None and isinstance(body, JsonBody):
            self._bases[name] = Base(body.value, shape)
        return body

    def _base(self, name: str) -> Base:
        if name not in self._bases:
            raise ValueError(f"like: {name} has no JSON body before this")
        return self._bases[name]


def _headers(values: dict[str, str | list[str]]) -> Headers:
    return Headers(_pairs(values))


def _pairs(values: dict[str, str | list[str]]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, str):
            yield name, value
        else:
            yield from ((name, one) for one in value)
