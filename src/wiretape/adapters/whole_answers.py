"""An answer that is sent in one piece, as its bytes: the commonest case of the replay server, which hurries it."""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from wiretape.replay.playback import Playback

_PLAIN: Final = re.compile(r"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e]*\r\n)+")


def whole_answer(shown: Playback) -> bytes | None:
    """Head and body of an answer to anything but HEAD, on a connection that stays open. None: it takes more than that.

    What waits, comes in pieces or breaks off takes more, and so do headers that say anything about the connection.
    """
    status, headers, pieces = shown.status, shown.headers, shown.pieces
    if status is None or status < 200 or shown.streamed or shown.cut or shown.linger or shown.pause > 0:
        return None
    if len(pieces) != 1 or not headers or headers[-1][0] != "content-length":
        return None
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    if lines.count("\n") != len(headers) or not _PLAIN.fullmatch(lines):
        return None
    return b"%b%b\r\n%b" % (_first_line(status), lines.encode("ascii"), pieces[0].data)


@lru_cache(64)
def _first_line(status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()
