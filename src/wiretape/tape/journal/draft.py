"""An open exchange: its heads, and the positions of its bytes in the journal.

The recorder fills drafts as things happen; reading a journal that a crash left behind fills them again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from wiretape.model.framing import Framer
from wiretape.model.http import Close, Ended, Headers, Sender
from wiretape.tape.format.codings import Decoder
from wiretape.tape.journal.redaction_cache import SearchedBody
from wiretape.tape.redaction import Regions

Extent = tuple[int, int, int]  # offset in the journal, length, when


class Extents:
    """Where the chunks of a body stand: 24 bytes a chunk, however large the body."""

    __slots__ = ("_numbers", "size")

    def __init__(self) -> None:
        self._numbers = array("q")
        self.size = 0

    def add(self, offset: int, length: int, at: int) -> None:
        self._numbers.extend((offset, length, at))
        self.size += length

    def __iter__(self) -> Iterator[Extent]:
        numbers = iter(self._numbers)
        return zip(numbers, numbers, numbers, strict=True)

    def __bool__(self) -> bool:
        return len(self._numbers) > 0

    def clear(self) -> None:
        del self._numbers[:]
        self.size = 0


@dataclass(slots=True)
class BodyDraft:
    """A body on its way to the journal."""

    extents: Extents = field(default_factory=Extents)  # decoded, known secrets replaced
    encoded: Extents = field(default_factory=Extents)  # behind the others: still content-encoded
    decoder: Decoder | None = None
    framer: Framer | None = None  # of a binary stream: it goes to the journal frame by frame
    decoded: int = 0
    began: list[bytes] = field(default_factory=list)  # the encoded bytes before decoding was deferred
    kept_encoded: bool = False  # decoded it would be too large
    deferred: bool = False  # too large to be decoded on arrival: the rest is in `encoded`
    held: bytes = b""  # the end of the text so far: it may be the beginning of a secret
    held_at: int = 0
    tail: bytes = b""  # the end of a response's text
    length: int | None = None  # of a response on the wire, if its head states it
    received: int = 0  # bytes of a response on the wire
    whole: bool = False  # all bytes of a response are in the journal
    regions: Regions = field(default_factory=Regions)  # of the text so far
    searched: SearchedBody | None = None  # for requests: the part that an earlier request had, too

    @property
    def size(self) -> int:
        return self.extents.size + self.encoded.size

    def clear(self) -> None:
        self.extents.clear()
        self.encoded.clear()
        self.began.clear()


@dataclass(slots=True)
class MessageDraft:
    ordinal: int
    sender: Sender
    text: bool
    extent: Extent


@dataclass(slots=True)
class Draft:
    """The state of an open exchange."""

    number: int
    at: int
    method: str
    url: str
    http: str | None
    headers: list[tuple[str, str]]
    request: BodyDraft = field(default_factory=BodyDraft)
    request_ended: bool = False
    request_written: bool = False
    status: int | None = None
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    headers_at: int = 0
    response: BodyDraft = field(default_factory=BodyDraft)
    response_written: bool = False
    trailers: Headers | None = None
    messages: list[MessageDraft] = field(default_factory=list)
    message_count: int = 0  # how many there were, written or not
    websocket: bool = False
    close: Close | None = None
    ended: Ended | None = None
    ended_at: int | None = None
    ended_written: bool = False
    lost: bool = False  # bytes are missing: they could not be written

    @property
    def in_journal(self) -> int:
        """Bytes that only the journal has."""
        return self.request.size + self.response.size + sum(message.extent[1] for message in self.messages)
