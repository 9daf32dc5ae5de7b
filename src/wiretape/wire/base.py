"""The interface of a wire format: it bids for an exchange and decodes it into a model call.

To add a format, write a class that satisfies `WireFormat` and list it in `registry.py` (or register it as an entry
point in the group `wiretape.formats`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import takewhile
from typing import Any, ClassVar, Protocol, TypeVar

from wiretape.model.call import CallRequest, ModelCall
from wiretape.model.http import Exchange, Headers, Request, WsMessage
from wiretape.model.jsonvalue import Json

T = TypeVar("T")
_MOST_LISTS = 256  # remembered histories: as many agents may alternate


class Claim(IntEnum):
    """How certain a format is that an exchange is its own. The highest bid wins, then the format registered first."""

    NO = 0
    RESPONSE = 1  # the response has the format's shape
    BODY = 2  # the request's body has the format's shape
    PATH = 3  # the end of the path is the format's
    CERTAIN = 4  # path and body agree


class Memo:
    """Caches decoded JSON values by the identity of the raw value.

    The requests of a tape share unchanged parts as the same objects, so that decoding a call costs only its new
    content. The cache keeps the raw values alive, so that no identity is reused.
    """

    __slots__ = ("_common", "_latest", "_lists", "_made")

    def __init__(self, common: Callable[[list[Json], list[Json]], int] | None = None) -> None:
        """`common` returns the length of the common prefix of two lists; a caller may know it without counting."""
        self._common = common or _common
        self._made: dict[tuple[str, int], tuple[Json, Any]] = {}
        self._lists: dict[tuple[str, int], tuple[list[Json], tuple[Any, ...]]] = {}
        self._latest: dict[str, tuple[list[Json], tuple[Any, ...]]] = {}

    def of(self, kind: str, raw: Json, make: Callable[[Any], T]) -> T:
        """Return `make(raw)`, computed once per raw value and kind. `raw` is a dict or list: small values share ids."""
        key = (kind, id(raw))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = (raw, make(raw))
        made: T = found[1]
        return made

    def each(self, kind: str, raws: list[Json], make: Callable[[Any], T]) -> tuple[T, ...]:
        """Return `make` of every element, computed once per dict.

        The common prefix with an earlier list is reused. If only the first element differs (a prompt with a clock), the
        elements after it are reused as well.
        """
        if not raws:
            return ()
        known = self._lists.get((kind, id(raws[0])))
        old, made = known if known is not None else self._latest.get(kind, ([], ()))
        same = self._common(old, raws) if known is not None else 0
        parts: list[T] = list(made[:same])
        if not same and len(raws) > 1 and len(old) > 1 and old[1] is raws[1]:
            parts.append(self._one(kind, raws[0], make))
            parts += made[1 : 1 + _common(old[1:], raws[1:])]
        parts += [self._one(kind, raw, make) for raw in raws[len(parts) :]]
        result = tuple(parts)
        self._lists[kind, id(raws[0])] = self._latest[kind] = (raws, result)
        if len(self._lists) > _MOST_LISTS:
            del self._lists[next(iter(self._lists))]
        return result

    def _one(self, kind: str, raw: Json, make: Callable[[Any], T]) -> T:
        return self.of(kind, raw, make) if isinstance(raw, dict) else make(raw)


def _common(one: list[Json], other: list[Json]) -> int:
    return sum(takewhile(bool, map(operator.is_, one, other)))


@dataclass(frozen=True, slots=True)
class Volatile:
    """Members that may change between two equal runs."""

    settings: frozenset[str] = frozenset()  # top-level members of the request body
    nested: frozenset[tuple[str, ...]] = field(default_factory=frozenset)  # deeper members, as paths into the settings


class WireFormat(Protocol):
    """The wire format of one provider API."""

    name: ClassVar[str]
    volatile: ClassVar[Volatile]

    def claims(self, request: Request) -> Claim:
        """Bid by the request alone: end of the path first, then body; the host is only a hint."""
        ...

    def claims_response(self, exchange: Exchange) -> Claim:
        """Bid by request and response. Called only if no format claims the request."""
        ...

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        """Decode the exchange into a model call, number 0. Never raises: unreadable parts become `Unknown` blocks."""
        ...

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        """Decode the request alone, to match a live request."""
        ...

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        """Return headers and body of an error in the provider's shape, which its SDKs show to the user."""
        ...


class SocketFollower(Protocol):
    """Follows an open connection. It keeps only unfinished calls in memory."""

    def feed(self, exchange: Exchange, message: WsMessage) -> list[ModelCall]:
        """Return the calls that this message completes. `exchange` has no messages."""
        ...

    def rest(self, exchange: Exchange) -> list[ModelCall]:
        """Return the calls that were not completed when the connection ended."""
        ...


class SocketFormat(Protocol):
    """The wire format of a WebSocket, which carries many calls. A `WireFormat` may implement it as well."""

    name: ClassVar[str]

    def claims_socket(self, exchange: Exchange) -> Claim:
        """Bid by the connection's URL and its first messages."""
        ...

    def decode_socket(self, exchange: Exchange, memo: Memo) -> list[ModelCall]:
        """Decode every call of the connection, by start, with number 0. Open connections are allowed. Never raises."""
        ...

    def follow(self) -> SocketFollower:
        """Return a follower for a new connection of this format."""
        ...
