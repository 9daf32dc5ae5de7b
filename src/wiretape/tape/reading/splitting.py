"""The text of a tape -> its documents as JSON values, each with its line; and the damage between them.

The fast path splits on blank lines. From the first part that is not one document on, the text is read as concatenated
JSON (CRLF, a stray blank line, JSON Lines): there, a part that is not a document is damage, and reading continues with
the next document that begins a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from wiretape.errors import NotATape, TapeDamaged
from wiretape.model.jsonvalue import Json
from wiretape.tape.damage import Damage, refuse, without_repeats

_SPACE = re.compile(r"\s*")
_LONG = 4096  # bytes that are not checked for being blank
_BOM = "\ufeff"
_UNDECODED = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as `surrogateescape` keeps them
_BEGINS = re.compile(r'^\{\s*"(?:exchange|at|wiretape)"\s*:', re.MULTILINE)  # of a document
_MOST_FAILURES = 100  # of which each may read the whole text
_MARKER = re.compile(r"^(<{7}|\|{7}|={7}|>{7})(?: |\r?$)", re.MULTILINE)
_BRACKETS = 254  # how deep orjson writes JSON: a tape has no deeper document
_CUT = re.compile(r"[\w.+\\-]{0,6}")  # the start of a literal, a number or an escape
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)  # finds the ends of documents; Python limits digits


@dataclass(frozen=True, slots=True)
class TapeDocument:
    """A document, not validated yet."""

    value: Json
    line: int
    end: int = 0  # where it ends in the text, in bytes


@dataclass(slots=True)
class Split:
    """The documents of a tape, in their order, and the parts that are not documents."""

    path: Path
    pieces: list[TapeDocument] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    torn: str | None = None
    """A warning, if the last document is cut off."""

    def whole(self) -> Split:
        """This, unless a part is damaged: raises TapeDamaged."""
        refuse(without_repeats(self.damage))
        return self


def split_documents(text: bytes, path: Path) -> tuple[list[TapeDocument], str | None]:
    """The documents, and a warning if the last one is torn. Raises NotATape or TapeDamaged."""
    split = split_text(text, path).whole()
    return split.pieces, split.torn


def split_text(text: bytes, path: Path) -> Split:
    """The documents, and the damage between them. Raises NotATape or TapeDamaged if the text has no documents."""
    split = Split(path)
    line, start = 1, 0
    while start <= len(text):
        end = text.find(b"\n\n", start)
        end = len(text) if end < 0 else end
        if end - start > _LONG or text[start:end].strip():
            try:
                split.pieces.append(TapeDocument(_value(text[start:end]), line, end))
            except ValueError:
                _Concatenated(text[start:], split, line, start).read()
                break
        line += text.count(b"\n", start, end) + 2
        start = end + 2
    return split


def _value(text: bytes) -> Json:
    """The value of a document. Raises ValueError if it is not JSON that a tape can hold."""
    value = orjson.loads(text)
    if text.count(b"{") + text.count(b"[") > _BRACKETS:
        try:
            orjson.dumps(value)
        except TypeError:
            raise ValueError(f"nested more deeply than the {_BRACKETS} levels that a tape can hold") from None
    return value


class _Concatenated:
    """Reads JSON documents that follow one another, however they are separated."""

    def __init__(self, raw: bytes, split: Split, line: int, before: int) -> None:
        self._split, self._line, self._end_bytes = split, line, before
        self._text = raw.rstrip(b"\0").decode("utf-8", "surrogateescape")  # a crash may leave NULs behind the end
        self._clean = _UNDECODED.search(self._text) is None
        self._at = 0
        self._next = 0  # where a line begins as a document does, behind the document that is read
        self._failures = 0

    def read(self) -> None:
        while (start := self._start()) < len(self._text):
            following = self._following(start)
            try:
                value, end = self._document(start, following)
            except _Broken as error:
                if following == len(self._text) and self._is_torn(start, error):
                    return
                self._damaged(start, following, error)
            else:
                self._keep(value, start, end)

    def _start(self) -> int:
        """Where the next document begins."""
        space = _SPACE.match(self._text, self._at)
        start = space.end() if space else self._at
        if self._text[start : start + 1] == _BOM and start == 0 and self._line == 1:
            start = 1
        self._advance(start)
        return start

    def _advance(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._end_bytes += len(self._text[self._at : to].encode("utf-8", "surrogateescape"))
        self._at = to

    def _following(self, start: int) -> int:
        if self._next <= start:
            found = _BEGINS.search(self._text, start + 1)
            self._next = found.start() if found else len(self._text)
        return self._next

    def _document(self, start: int, following: int) -> tuple[Json, int]:
        """The document here, and where it ends. Raises _Broken.

        A failure costs as much as there is text: after many of them, the text before `following` is all that is read.
        """
        few = self._failures < _MOST_FAILURES
        text, shift = (self._text, 0) if few else (self._text[start:following], start)
        try:
            _, end = _DECODER.raw_decode(text, start - shift)
        except json.JSONDecodeError as error:
            self._failures += 1
            raise _Broken(error.msg, error.pos + shift) from None
        except RecursionError:
            self._failures += 1
            raise _Broken("nested too deeply", start) from None
        end += shift
        if not self._clean and (found := _UNDECODED.search(self._text, start, end)):
            raise _Broken("the text is not UTF-8; was it saved in another encoding?", found.start())
        try:
            return _value(self._text[start:end].encode()), end
        except ValueError as error:
            raise _Broken(getattr(error, "msg", str(error)), start) from None

    def _keep(self, value: Json, start: int, end: int) -> None:
        line = self._line
        self._advance(end)
        self._split.pieces.append(TapeDocument(value, line, self._end_bytes))

    def _damaged(self, start: int, end: int, error: _Broken) -> None:
        """Record the damage of a part of the text, and continue behind it."""
        marker = _MARKER.search(self._text, start, end)
        if marker is not None:
            line = self._line + self._text.count("\n", start, marker.start())
            self._split.damage.append(Damage(self._split.path, "a conflict marker of git", line, conflict=True))
            self._keep_ours(start, end)
        else:
            self._split.damage.append(self._damage(start, error))
        self._advance(end)

    def _keep_ours(self, start: int, end: int) -> None:
        """Keep a document with conflicts inside as this branch has it."""
        for value in _documents(_ours(self._text[start:end])):
            self._split.pieces.append(TapeDocument(value, self._line, self._end_bytes))

    def _damage(self, start: int, error: _Broken) -> Damage:
        where = self._line + self._text.count("\n", start, error.at)
        inside = f", in the document that begins in line {self._line}" if where != self._line else ""
        return Damage(self._split.path, f"{error.reason[:1].lower()}{error.reason[1:]}{inside}", where)

    def _is_torn(self, start: int, error: _Broken) -> bool:
        """Whether the text is cut off inside its last document. Raises NotATape if no document precedes it."""
        path, text = self._split.path, self._text
        torn = text[start : start + 1] == "{" and _reaches_the_end(error, text)
        if not self._split.pieces and not self._split.damage and _MARKER.search(text) is None:
            if text[start : start + 1] == "{" and '"wiretape"' in text[start : start + 200]:
                what = "the header is cut off, and nothing follows it" if torn else "the header is not JSON"
                raise TapeDamaged(f"{path}:{self._line}: {what}")
            raise NotATape(f"{path}: is not a tape: it is not JSON text")
        if torn:
            self._split.torn = f"{path}:{self._line}: the last document is cut off and was left out"
        return torn


class _Broken(ValueError):
    """Why a part of the text is not a document, and at which character that was found."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


def _reaches_the_end(error: _Broken, text: str) -> bool:
    """Whether the parser reached the end of the text before its first error."""
    if error.reason.startswith("Unterminated string"):
        return True
    # A text cut inside a character ends with its first bytes.
    rest = _UNDECODED.sub("", text[error.at :].rstrip())
    return _CUT.fullmatch(rest) is not None


def _ours(text: str) -> str:
    """The lines of a text with conflict markers, as this branch has them."""
    kept: list[str] = []
    theirs = False
    for line in text.split("\n"):
        if found := _MARKER.match(line):
            theirs = found[1][0] in "|="
        elif not theirs:
            kept.append(line)
    return "\n".join(kept)


def _documents(text: str) -> Iterator[Json]:
    at = 0
    while (space := _SPACE.match(text, at)) is not None and (at := space.end()) < len(text):
        try:
            _, end = _DECODER.raw_decode(text, at)
            yield _value(text[at:end].encode())
        except (ValueError, RecursionError):
            return
        at = end
