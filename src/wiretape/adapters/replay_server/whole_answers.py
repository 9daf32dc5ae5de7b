"""An answer that is sent in one piece, as its bytes: the commonest case of the replay server, which hurries it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from wiretape.matching.playback import Chunk, Playback

_PLAIN: Final = re.compile(r"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e]*\r\n)+")
_MOST_EVENTS: Final = 256  # others have their turn during longer ones
_LONGEST_STREAM: Final = 64 * 1024  # bytes: as many as a connection takes without waiting for its reader


def whole_answer(shown: Playback) -> bytes | None:
    """Head and body of an answer to anything but HEAD, on an HTTP/1.1 connection that stays open.

    A stream whose events need no waiting is one, too, if it is short: each event is a chunk of its own. None: it takes
    more than that. What waits or breaks off does, and so do headers that say anything about the connection.
    """
    status, headers, pieces = shown.status, shown.headers, shown.pieces
    if status is None or status < 200 or shown.cut or shown.linger or shown.pause > 0:
        return None
    if shown.streamed:
        return _whole_stream(status, headers, pieces)
    if len(pieces) != 1 or not headers or headers[-1][0] != "content-length":
        return None
    head = _head(status, tuple(headers[:-1]))
    return head and b"%bcontent-length: %b\r\n\r\n%b" % (head, headers[-1][1].encode("ascii"), pieces[0].data)


def _whole_stream(status: int, headers: Sequence[tuple[str, str]], pieces: Sequence[Chunk]) -> bytes | None:
    if len(pieces) > _MOST_EVENTS or any(piece.pause > 0 for piece in pieces):
        return None
    if sum(len(piece.data) for piece in pieces) > _LONGEST_STREAM:
        return None
    head = _head(status, tuple(headers))
    if head is None or status in (204, 304):
        return None
    chunks = [b"%x\r\n%b\r\n" % (len(piece.data), piece.data) for piece in pieces if piece.data]
    return b"%btransfer-encoding: chunked\r\n\r\n%b0\r\n\r\n" % (head, b"".join(chunks))


@lru_cache(256)
def _head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes | None:
    """The first lines of an answer, if all is plain."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    if lines and (lines.count("\n") != len(headers) or not _PLAIN.fullmatch(lines)):
        return None
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}".encode("ascii")
