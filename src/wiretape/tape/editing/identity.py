"""The identity of an exchange: the same on every tape that has it, whatever its number there.

Two exchanges are the same if they started at the same time by the clock, and if request, answer and all times are
equal. Copies, cuts, merges and forks keep that; the tape's `started` and the exchange's number do not count.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from wiretape.model.http import Body, BytesBody, Exchange, Headers, JsonBody, StreamBody, TextBody
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import text_of
from wiretape.tape.reading.reader import Tape

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def identities(tape: Tape) -> list[str]:
    """The identity of each exchange of a tape, in their order; unique on the tape.

    Requests that a program sent twice in the same millisecond may be equal in everything: they are counted.
    Takes time linear in the tape: content that bodies share in memory is hashed once.
    """
    start, values = clock(tape.header.started), _Values()
    found: list[str] = []
    seen: Counter[str] = Counter()
    for exchange in tape.exchanges:
        made = _identity(exchange, start, values)
        seen[made] += 1
        found.append(made if seen[made] == 1 else f"{made}-{seen[made]}")
    return found


def clock(started: datetime) -> int:
    """Whole milliseconds since 1970: the start of an exchange by the clock is this plus its `at`."""
    return (started - _EPOCH) // timedelta(milliseconds=1)


def _identity(exchange: Exchange, start: int, values: _Values) -> str:
    """All times count from the exchange's own start, so that a tape can be moved in time."""
    request, response, at = exchange.request, exchange.response, exchange.at
    made = sha256()

    def put(*parts: object) -> None:
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode(errors="surrogatepass")
            made.update(b"%d " % len(data) + data)

    put(start + at, request.method, request.url, _spelled(request.headers), values.body(request.body))
    if response is not None:
        put(response.status, _spelled(response.headers), response.headers_at - at, values.body(response.body))
        put(_spelled(response.trailers))
    for message in exchange.messages:
        put(message.sender, message.at - at, values.body(message.body))
    put(exchange.ended, None if exchange.ended_at is None else exchange.ended_at - at, exchange.close)
    return made.hexdigest()


def _spelled(headers: Headers | None) -> str:
    return "" if headers is None else repr(headers.pairs())


class _Values:
    """Hashes bodies. A request resends its history: list items that are the same objects are hashed once."""

    def __init__(self) -> None:
        self._items: dict[int, tuple[Json, bytes]] = {}  # keeps the item, so that its id stays its own
        self._lists: dict[int, tuple[list[Json], Any]] = {}  # by the id of a first item: the last list, and its hash

    def body(self, body: Body | None) -> bytes:
        made = sha256(type(body).__name__.encode())
        match body:
            case None:
                pass
            case JsonBody():
                made.update(f"{body.layout} {body.ascii} {body.exact} ".encode())
                made.update(self._value(body.value))
            case StreamBody():
                for frame, ms in zip(body.frames, body.ms, strict=True):
                    made.update(b"%d %d " % (ms, len(frame)) + frame)
            case TextBody():
                made.update(body.text.encode(errors="surrogatepass"))
            case BytesBody():
                made.update(body.data)
        return made.digest()

    def _value(self, value: Json, depth: int = 3) -> bytes:
        """The hash of a value; its lists are hashed as parts that may continue others, where requests have those."""
        if isinstance(value, list) and value:
            return self._list(value)
        if not isinstance(value, dict) or not depth:
            return _hashed(value)
        made = sha256(b"{")
        for name, member in value.items():
            made.update(_hashed(name) + self._value(member, depth - 1))
        return made.digest()

    def _list(self, items: list[Json]) -> bytes:
        """The hash of a list: what follows the last list that it continues is all that is read."""
        before, made = self._lists.get(id(items[0]), ([], None))
        if made is None or items[: len(before)] != before:
            before, made = [], sha256(b"[")
        made = made.copy()
        for item in items[len(before) :]:
            made.update(self._item(item))
        self._lists[id(items[0])] = (items, made)
        return bytes(made.digest())

    def _item(self, item: Json) -> bytes:
        if not isinstance(item, dict | list):
            return _hashed(item)
        known = self._items.get(id(item))
        if known is None:
            known = self._items[id(item)] = (item, _hashed(item))
        return known[1]


def _hashed(value: Json) -> bytes:
    return sha256(text_of(value).encode(errors="surrogatepass")).digest()
