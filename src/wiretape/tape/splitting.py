"""The text of a tape -> its documents as JSON values, each with its line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import orjson

from wiretape.errors import NotATape, TapeDamaged
from wiretape.model.jsonvalue import Json

_SPACE = re.compile(r"\s*")
_LONG = 4096  # bytes that are not looked at for being blank
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Piece:
    """A document, not validated yet."""

    value: Json
    line: int
    end: int = 0  # where it ends in the text, in bytes


def split_documents(text: bytes, path: Path) -> tuple[list[Piece], str | None]:
    """The documents, and a warning if the last one is torn. Raises NotATape or TapeDamaged."""
    pieces: list[Piece] = []
    line, start, view = 1, 0, memoryview(text)
    while start <= len(text):
        end = text.find(b"\n\n", start)
        end = len(text) if end < 0 else end
        if end - start > _LONG or text[start:end].strip():
            try:
                pieces.append(Piece(orjson.loads(view[start:end]), line, end))
            except orjson.JSONDecodeError:
                return _concatenated(text, path)
        line += text.count(b"\n", start, end) + 2
        start = end + 2
    return pieces, None


def _concatenated(raw: bytes, path: Path) -> tuple[list[Piece], str | None]:
    """Any JSON documents, one after the other, however they are parted."""
    text = _decoded(raw, path)
    decoder = json.JSONDecoder()
    pieces: list[Piece] = []
    line, at, end_bytes = 1, 0, 0
    while True:
        start = _skip(text, at)
        line += text.count("\n", at, start)
        if start == len(text):
            return pieces, None
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            return pieces, _torn(text, start, line, error, pieces, path)
        end_bytes += len(text[at:end].encode())
        pieces.append(Piece(value, line, end_bytes))
        line += text.count("\n", start, end)
        at = end


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    end = space.end() if space else at
    return end + 1 if text[end : end + 1] == _BOM and end == 0 else end


def _decoded(raw: bytes, path: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if error.start >= len(raw) - 3 and raw[:1] == b"{":
            return raw[: error.start].decode()  # torn inside a character
        if not raw.lstrip().startswith(b"{"):
            raise NotATape(f"{path}: is not a tape: it is not JSON text") from None
        line = raw.count(b"\n", 0, error.start) + 1
        raise TapeDamaged(f"{path}:{line}: not UTF-8 text; was it saved in another encoding?") from None


def _torn(text: str, start: int, line: int, error: Exception, pieces: list[Piece], path: Path) -> str:
    if not pieces:
        if text[start : start + 1] == "{" and '"wiretape"' in text[start : start + 200]:
            raise TapeDamaged(f"{path}:{line}: the header is cut off, and nothing follows it") from None
        raise NotATape(f"{path}: is not a tape: it is not JSON text")
    following = re.compile(r"^\{", re.MULTILINE).search(text, start + 1)
    if following and _parses(text[following.start() :]):
        where = line + getattr(error, "lineno", 1) - (text.count("\n", 0, start) + 1)
        reason = getattr(error, "msg", str(error))
        raise TapeDamaged(
            f"{path}:{where}: {reason.lower()}, in the document that begins in line {line}; "
            "mend it or remove it by hand"
        ) from None
    return f"{path}:{line}: the last document is cut off and was left out"


def _parses(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return True
