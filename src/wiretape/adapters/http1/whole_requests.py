"""Requests that can be read without a parser: a plain head and a body of a known length. The commonest case.

Everything that is rare, or that means more than a head and a body, is left to the parser: a connection that is to be
closed, an upgrade, chunks, a client that waits to be told to go on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wiretape.model.http import Headers

_FIRST_LINE: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[!-\"$-~]*) HTTP/1\.1")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*+([\t\x20-\x7e]*)")
_OF_THE_PARSER: Final = frozenset({"expect", "transfer-encoding", "upgrade", "http2-settings"})
_WITHOUT_BODY: Final = frozenset({"CONNECT", "HEAD"})  # in their answers


@dataclass(frozen=True, slots=True)
class Head:
    """All of a request but its body. `length`: of that, in bytes."""

    method: str
    target: str
    headers: Headers
    length: int


@lru_cache(64)  # a client's heads are often alike to the byte
def plain_head(raw: bytes) -> Head | None:
    """The head of a request on a connection that stays open; without the empty line. None: a parser must read it."""
    try:
        first, *lines = raw.decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        return None
    asked = _FIRST_LINE.fullmatch(first)
    found = [_HEADER.fullmatch(line) for line in lines]
    if asked is None or asked[1] in _WITHOUT_BODY or not all(found):
        return None
    headers = Headers([(one[1], one[2].rstrip("\t ")) for one in found if one is not None])
    if not _OF_THE_PARSER.isdisjoint(headers) or headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    lengths = headers.all("content-length") or ("0",)
    if len(lengths) > 1 or len(headers.all("connection")) > 1 or not re.fullmatch("[0-9]{1,15}", lengths[0]):
        return None
    return Head(asked[1], asked[2], headers, int(lengths[0]))
