"""Tell from a response itself that its body is whole: by its length, or by the last event of its stream.

Many clients close the connection at the last event and do not wait for the end of the body: openai's SDKs at
`data: [DONE]`. What they got is a whole answer, whichever side closed first. The same holds if the recorder was killed
after the last byte and before the end of the exchange.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

TAIL: Final = 128  # bytes at the end of a body that are looked at

# Chat completions and what speaks like them; Anthropic Messages, whose last event may be padded with spaces.
_LAST: Final = re.compile(rb"""(?:^|\n)data: ?(?:\[DONE\]|\{[^{}]*"type": ?"message_stop"[^{}]*\})\s*$""")


def body_length(method: str, status: int, headers: Iterable[tuple[str, str]]) -> int | None:
    """Return the body's length on the wire, or None if the head does not state it."""
    if method == "HEAD" or status in (204, 304):
        return 0
    values = [(name, value.strip()) for name, value in headers if name in ("content-length", "transfer-encoding")]
    lengths = {value for name, value in values if name == "content-length" and value.isdecimal() and value.isascii()}
    return int(lengths.pop()) if len(lengths) == 1 and all(name == "content-length" for name, _ in values) else None


def tail_of(before: bytes, data: bytes) -> bytes:
    """The end of a body, when more of it has come."""
    return data[-TAIL:] if len(data) >= TAIL else (before + data)[-TAIL:]


def ends_stream(tail: bytes) -> bool:
    """Whether a body that ends in this ends in the last event of its stream."""
    return _LAST.search(tail) is not None
