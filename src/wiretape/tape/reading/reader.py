"""Documents -> exchanges: reads a tape, whatever its spelling, and takes a journal left behind into account.

A torn last document costs only itself. Damage inside a tape is an error, unless the caller accepts a part of the tape:
then `Tape.damage` lists it.
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
from wiretape.tape.damage import Damage, listed, refuse, without_repeats
from wiretape.tape.format.bodies import Base, body_of
from wiretape.tape.format.documents import (
    VERSION,
    AnyDocument,
    EndedDocument,
    Header,
    IncompleteDocument,
    MessageDocument,
    RequestDocument,
    ResponseDocument,
    parse_document,
    validated,
)
from wiretape.tape.journal.journal import Leftover, read_journal
from wiretape.tape.journal.recovery import Have, recovered
from wiretape.tape.reading.splitting import Split, TapeDocument, split_text
from wiretape.tape.storage import journal_path, readable_text

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
    damage: tuple[Damage, ...] = ()  # parts that could not be read, if the caller accepted that


def read_tape(path: str | Path, partial: bool = False) -> Tape:
    """Read a tape. Raises TapeError subclasses that name the file, the line and what to do.

    `partial`: read the rest of a damaged tape, instead of raising TapeDamaged.
    """
    path = Path(path)
    left = read_journal(journal_path(path))  # read first: exchanges that end now are then found in the tape
    header, split = _documents(path, left, partial)
    assembly = ExchangeBuilder(path)
    if split.torn:
        assembly.lacks(split.torn)
    damage = [*split.damage, *(left.damage if left is not None else ())]
    split.pieces.reverse()
    while split.pieces:  # a document that was taken in need not be kept
        damage += assembly.try_add(split.pieces.pop())
    if left is not None:
        damage += _take_in(assembly, left, path)
    found = without_repeats(damage)
    if not partial:
        refuse(found)
    for warning in listed(found):
        assembly.lacks(warning)
    gaps = tuple(assembly.gaps)
    return Tape(path, header, assembly.exchanges(), tuple(assembly.warnings), bool(gaps), gaps, found)


def _documents(path: Path, left: Leftover | None, partial: bool) -> tuple[Header, Split]:
    """The header, and the other documents. Raises TapeError if the header cannot be read."""
    try:
        text, damage = readable_text(path)
    except TapeError:
        if left is None or left.header is None or path.exists():
            raise
        text, damage = b"", ()
    if not text.strip() and left is not None and left.header is not None:
        return parse_header(left.header, path), Split(path)
    split = split_text(text, path)
    split.damage += damage
    if not partial or not split.pieces:  # damage explains a header that is not where it should be
        split.whole()
    if not split.pieces:
        raise NotATape(f"{path}: is {'empty' if not text.strip() else 'not a tape'}; wiretape record writes tapes")
    raw = split.pieces.pop(0).value
    header = parse_header(raw, path)
    split.pieces = _migrated(split.pieces, raw["wiretape"])
    return header, split


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


def _migrated(pieces: list[TapeDocument], version: int) -> list[TapeDocument]:
    for step in range(version, VERSION):
        values = MIGRATIONS[step]([piece.value for piece in pieces])
        pieces = [replace(piece, value=value) for piece, value in zip(pieces, values, strict=True)]
    return pieces


def _take_in(assembly: ExchangeBuilder, left: Leftover, path: Path) -> list[Damage]:
    assembly.warnings += left.warnings
    found = recovered(left, assembly.have)
    open_ones = sum(draft.ended is None for draft in left.drafts.values())
    assembly.lacks(
        f"{left.path}: the recorder has not closed this tape (yet); "
        f"{len(found)} documents were read from its journal, {open_ones} exchanges are open"
    )
    return [damage for text in found for damage in assembly.try_add(TapeDocument(orjson.loads(text), 0))]


# -- assembling exchanges ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """An exchange being put together."""

    exchange: Exchange
    messages: list[WsMessage] = field(default_factory=list)


class ExchangeBuilder:
    """Puts exchanges together from documents, in their order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[int, _Open] = {}
        self._bases: dict[str, Base] = {}
        self._lost: set[int] = set()  # exchanges whose request cannot be read
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

    def add(self, piece: TapeDocument) -> None:
        """Raises TapeDamaged naming the file and the line."""
        refuse(self.try_add(piece))

    def try_add(self, piece: TapeDocument) -> list[Damage]:
        """Add a document, or return its fault. An exchange without its request is damaged once."""
        try:
            self._take(parse_document(piece.value), piece)
        except ValueError as error:
            number = piece.value.get("exchange") if isinstance(piece.value, dict) else None
            if isinstance(number, int) and number not in self._open:
                if number in self._lost:
                    return []
                self._lost.add(number)
            return [Damage(self._path, str(error), piece.line)]
        return []

    def _take(self, document: AnyDocument, piece: TapeDocument) -> None:
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

    def exchanges(self) -> tuple[Exchange, ...]:
        """All of them, by number."""
        return tuple(
            replace(entry.exchange, messages=tuple(entry.messages)) if entry.messages else entry.exchange
            for _, entry in sorted(self._open.items())
        )

    def _request(self, document: RequestDocument, piece: TapeDocument) -> None:
        number = document.exchange
        if number in self._open:
            raise ValueError(f"exchange {number} has a second request")
        part = document.request
        body = self._body(part.body, str(number), piece) if "body" in part.model_fields_set else None
        request = Request(part.method, part.url, _headers(part.headers), body, part.http)
        self._open[number] = _Open(Exchange(number, document.at, request))

    def _response(self, document: ResponseDocument, piece: TapeDocument) -> None:
        entry, part = self._known(document.exchange), document.response
        if entry.exchange.response is not None:
            raise ValueError(f"exchange {document.exchange} has a second response")
        body = self._body(part.body, None, piece) if "body" in part.model_fields_set else None
        trailers = None if part.trailers is None else _headers(part.trailers)
        response = Response(part.status, _headers(part.headers), part.headers_at, body, trailers)
        at = None if document.ended is None else document.at
        entry.exchange = replace(entry.exchange, response=response, ended=document.ended, ended_at=at)

    def _message(self, document: MessageDocument, piece: TapeDocument) -> None:
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

    def _body(self, shape: Any, name: str | None, piece: TapeDocument) -> Body:
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
