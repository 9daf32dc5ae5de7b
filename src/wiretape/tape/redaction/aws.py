"""Opens AWS event stream messages, whose payload is JSON behind a binary head, and seals them again with right sums.

The `bytes` member of Bedrock's invoke streams is base64 of JSON: that is opened, too.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from zlib import crc32

import orjson

_PRELUDE = 12  # total length, length of the headers, checksum of both
_SUM = 4


@dataclass(frozen=True, slots=True)
class EventStreamMessage:
    """A message: its raw head, and the text of its payload."""

    headers: bytes
    outer: str  # the payload
    inner: str | None  # the decoded text of its base64 member
    encoded: str  # that base64

    @property
    def text(self) -> str:
        return self.outer if self.inner is None else self.inner

    def sealed(self, text: str) -> bytes:
        """The message with another text."""
        outer = text
        if self.inner is not None:
            outer = self.outer.replace(self.encoded, b64encode(text.encode()).decode(), 1)
        payload = outer.encode()
        total = _PRELUDE + len(self.headers) + len(payload) + _SUM
        prelude = total.to_bytes(4, "big") + len(self.headers).to_bytes(4, "big")
        body = prelude + crc32(prelude).to_bytes(4, "big") + self.headers + payload
        return body + crc32(body).to_bytes(4, "big")


def opened(frame: bytes) -> EventStreamMessage | None:
    """The message that a frame is; None if it is something else, or damaged."""
    if len(frame) < _PRELUDE + _SUM or int.from_bytes(frame[:4], "big") != len(frame):
        return None
    if crc32(frame[:8]) != int.from_bytes(frame[8:12], "big"):
        return None
    start = _PRELUDE + int.from_bytes(frame[4:8], "big")
    payload = frame[start:-_SUM]
    try:
        text = payload.decode()
        value = orjson.loads(payload) if payload else {}
    except ValueError:
        return None
    encoded = value.get("bytes") if isinstance(value, dict) else None
    if not isinstance(encoded, str):
        return EventStreamMessage(frame[_PRELUDE:start], text, None, "")
    try:
        inner = b64decode(encoded, validate=True).decode()
    except ValueError:
        return EventStreamMessage(frame[_PRELUDE:start], text, None, "")
    return EventStreamMessage(frame[_PRELUDE:start], text, inner, encoded)
