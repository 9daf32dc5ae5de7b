"""What a wire format is: it bids for an exchange, and decodes it into a model call.

Adding a format is one file with a class that satisfies `WireFormat`, and one line in `registry.py` (or an entry
point in the group `wiretape.formats`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import takewhile
from typing import Any, ClassVar, Protocol, TypeVar

from wiretape.model.call import CallRequest, Message, ModelCall
from wiretape.model.http import Exchange, Headers, Request, WsMessage
from wiretape.model.jsonvalue import Json, JsonObject

T = TypeVar("T")
_MOST_LISTS = 256  # histories that are remembered: as many agents may take turns


class Claim(IntEnum):
    """How sure a format is that an exchange is its own. The highest bid wins; ties go to the earlier registered."""

    NO = 0
    RESPONSE = 1  # the response looks like it
    BODY = 2  # the request's body looks like it
    PATH = 3  # the path's tail is its own
    CERTAIN = 4  # path and body agree


class Memo:
    """Remembers what was made of a raw JSON value, by the value's identity.

    A tape's requests share the parts that did not change, as the same objects: with a memo, decoding a call costs
    its new content only. The values are kept alive, so an identity is never reused.
    """

    __slots__ = ("_common", "_latest", "_lists", "_made")

    def __init__(self, common: Callable[[list[Json], list[Json]], int] | None = None) -> None:
        """`common`: how many leading elements two lists share, for those who know it without counting."""
        self._common = common or _common
        self._made: dict[tuple[str, int], tuple[Json, Any]] = {}
        self._lists: dict[tuple[str, int], tuple[list[Json], tuple[Any, ...]]] = {}
        self._latest: dict[str, tuple[list[Json], tuple[Any, ...]]] = {}

    def of(self, kind: str, raw: Json, make: Callable[[Any], T]) -> T:
        """`make(raw)`, made once per raw value and kind. `raw` must be a dict or list: small values share identity."""
        key = (kind, id(raw))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = (raw, make(raw))
        made: T = found[1]
        return made

    def each(self, kind: str, raws: list[Json], make: Callable[[Any], T]) -> tuple[T, ...]:
        """`make` of every element, dicts once each. What a list begins with as an earlier one did is taken over whole;
        so is what follows a first element that alone is another: a prompt that tells the time."""
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
    """What legitimately changes between two equal runs (design 6, wire-format notes on volatile fields)."""

    settings: frozenset[str] = frozenset()  # top-level members of the request body that never count
    nested: frozenset[tuple[str, ...]] = field(default_factory=frozenset)  # deeper ones, as paths into `settings`


class WireFormat(Protocol):
    """How one provider API speaks."""

    name: ClassVar[str]
    volatile: ClassVar[Volatile]

    def claims(self, request: Request) -> Claim:
        """A bid from the request alone (path tail first, then body; host only as a hint)."""
        ...

    def claims_response(self, exchange: Exchange) -> Claim:
        """A bid that may look at the response too: asked only when no format claims the request."""
        ...

    def decode(self, exchange: Exchange, memo: Memo) -> ModelCall:
        """The exchange as a model call, number 0. Never raises: what cannot be read becomes `Unknown` blocks."""
        ...

    def decode_request(self, request: Request, memo: Memo) -> CallRequest:
        """The request alone, for matching a live one."""
        ...

    def error(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        """An error in the provider's own shape, which its SDKs show to a person."""
        ...


class SocketFollower(Protocol):
    """Follows one connection while it is open, and holds no more than what is not finished."""

    def feed(self, exchange: Exchange, message: WsMessage) -> list[ModelCall]:
        """The calls that this message completes. `exchange` has no messages."""
        ...

    def rest(self, exchange: Exchange) -> list[ModelCall]:
        """When the connection has ended: the calls that were never completed."""
        ...


class SocketFormat(Protocol):
    """How a provider speaks over a WebSocket: one connection carries many calls. A `WireFormat` may be one, too."""

    name: ClassVar[str]

    def claims_socket(self, exchange: Exchange) -> Claim:
        """A bid from the connection's address and its first messages."""
        ...

    def decode_socket(self, exchange: Exchange, memo: Memo) -> list[ModelCall]:
        """Every call of the connection, by start, number 0; also of one that is still open. Never raises."""
        ...

    def follow(self) -> SocketFollower:
        """For a connection of this format, from its first messages on."""
        ...


def members(value: JsonObject, *known: str) -> tuple[tuple[str, Json], ...]:
    """The members of a JSON object that are none of `known` and not null, for `Message.extra`."""
    return tuple((k, v) for k, v in value.items() if k not in known and v is not None)


def text_message(role: str, text: str, path: str = ".content") -> Message:
    """A message of one text block."""
    from wiretape.model.call import Text

    return Message(role, (Text(text),), (path,))
