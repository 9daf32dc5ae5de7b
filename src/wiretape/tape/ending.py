"""Whether a stream that its client left had said all there was to hear.

Many clients hang up at the last event and do not wait for the end of the body: openai's SDKs at `data: [DONE]`. What
they got is a whole answer, whoever closed the connection first.
"""

from __future__ import annotations

import re
from typing import Final

TAIL: Final = 128  # bytes at the end of a body that are looked at

# Chat completions and what speaks like them; Anthropic Messages, whose last event may be padded with spaces.
_LAST: Final = re.compile(rb"""(?:^|\n)data: ?(?:\[DONE\]|\{[^{}]*"type": ?"message_stop"[^{}]*\})\s*$""")


def tail_of(before: bytes, data: bytes) -> bytes:
    """The end of a body, when more of it has come."""
    return data[-TAIL:] if len(data) >= TAIL else (before + data)[-TAIL:]


def heard_all(tail: bytes) -> bool:
    """Whether a body that ends in this ends in the last event of its stream."""
    return _LAST.search(tail) is not None
