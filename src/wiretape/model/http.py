"""Exchanges as they crossed the wire: requests, responses, WebSocket messages, and their bodies.

Times are whole milliseconds since the tape's `started`, on a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Literal, TypeAlias, TypeVar, overload

import orjson

from wiretape.model.jsonvalue import Json

Layout: TypeAlias = Literal["compact", "spaced", "indent2", "indent4"]
Sender: TypeAlias = Literal["client", "server"]
T = TypeVar("T")


class Ended(StrEnum):
    """How an exchange ended."""

    COMPLETE = "complete"
    CLIENT_CLOSED = "client_closed"
    UPSTREAM_CLOSED = "upstream_closed"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    TIMEOUT = "timeout"
    RECORDER_STOPPED = "recorder_stopped"


class Headers(Mapping[str, str]):
    """Headers by lower-case name; a repeated name keeps all its values, in order.

    `headers["x"]` and `get` give the last value of a name; `all("x")` gives every one.
    """

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        values: dict[str, tuple[str, ...]] = {}
        for name, value in pairs:
            key = name.lower()
            values[key] = (*values.get(key, ()), value)
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()][-1]

    @overload
    def get(self, name: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, default: T, /) -> str | T: ...
    def get(self, name: str, default: T | None = None, /) -> str | T | None:
        """The last value of a name. `Mapping.get` is slower: it raises and catches a KeyError for a missing name."""
        values = self._values.get(name.lower())
        return values[-1] if values is not None else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        return f"Headers({self.pairs()!r})"

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a name, in order; empty if there is none."""
        return self._values.get(name.lower(), ())

    def pairs(self) -> list[tuple[str, str]]:
        """(name, value) pairs, grouped by name."""
        return [(name, value) for name, values in self._values.items() for value in values]


def bracketed(host: str) -> str:
    """The host for a URL: an IPv6 address gets brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def bracketed_authority(authority: str) -> str:
    """Host and port with brackets around an IPv6 address.

    httpx omits them in requests to a proxy, and so do tapes of version 0.1. Then the digits after the last colon are
    the port.
    """
    if authority.count(":") < 2 or "[" in authority:
        return authority
    host, _, port = authority.rpartition(":")
    if port.isdecimal() and _is_ipv6(host):
        return f"[{host}]:{port}"
    return f"[{authority}]" if _is_ipv6(authority) else authority


def bracketed_url(url: str) -> str:
    """A URL with brackets around an IPv6 address."""
    scheme, slashes, rest = url.partition("://")
    end = next((at for at, letter in enumerate(rest) if letter in "/?#"), len(rest))
    return f"{scheme}{slashes}{bracketed_authority(rest[:end])}{rest[end:]}"


def _is_ipv6(host: str) -> bool:
    try:
        return ip_address(host).version == 6
    except ValueError:
        return False


_ORJSON_LAYOUT = {"compact": 0, "indent2": orjson.OPT_INDENT_2}


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A JSON body. `layout` and `ascii` describe its spelling.

    `exact` is False if no layout gives the same bytes: then only the value is right.
    Parts that did not change since an earlier request are the same objects in memory: never mutate them.
    """

    value: Json
    layout: Layout = "compact"
    ascii: bool = False
    exact: bool = True


@dataclass(frozen=True, slots=True)
class StreamBody:
    """A streamed body: raw frames, and when each was complete.

    `ms[i]` is the time of frame i's last byte, in milliseconds after the response's `headers_at`.
    `binary` frames are not UTF-8 text (an AWS event stream, say). The frames joined are the body, byte for byte.
    `frames` may be lazy: iterate instead of indexing if you can.
    """

    frames: Sequence[bytes]
    ms: Sequence[int]
    binary: bool = False
    rewritten: tuple[int, ...] = ()  # frames in which a secret was replaced


@dataclass(frozen=True, slots=True)
class TextBody:
    text: str


@dataclass(frozen=True, slots=True)
class BytesBody:
    data: bytes


Body: TypeAlias = JsonBody | StreamBody | TextBody | BytesBody


def dump_json(value: Json, layout: Layout = "compact", ascii: bool = False) -> bytes:
    """Spell a JSON value as an encoder with this layout would."""
    option = _ORJSON_LAYOUT.get(layout)
    if option is not None and not ascii:
        with suppress(
            orjson.JSONEncodeError
        ):  # its limits are 254 levels and 64 bits; the standard library has higher ones
            return orjson.dumps(value, option=option)
    import json

    separators = (",", ":") if layout == "compact" else None
    indent = {"indent2": 2, "indent4": 4}.get(layout)
    return json.dumps(value, ensure_ascii=ascii, separators=separators, indent=indent).encode()


def body_bytes(body: Body | None) -> bytes:
    """The body's bytes, content-encoding undone."""
    match body:
        case None:
            return b""
        case JsonBody():
            return dump_json(body.value, body.layout, body.ascii)
        case StreamBody():
            return b"".join(body.frames)
        case TextBody():
            return body.text.encode()
        case BytesBody():
            return body.data


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: str
    headers: Headers = field(default_factory=Headers)
    body: Body | None = None
    http: str | None = None  # "1.1", "2"


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Headers = field(default_factory=Headers)
    headers_at: int = 0
    body: Body | None = None
    trailers: Headers | None = None


@dataclass(frozen=True, slots=True)
class WsMessage:
    """One whole WebSocket message, decompressed."""

    at: int
    sender: Sender
    body: Body


@dataclass(frozen=True, slots=True)
class Close:
    """How a WebSocket was closed."""

    code: int
    reason: str
    sender: Sender | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP request and its response, or one WebSocket connection. Printed `x3`.

    `at` is when the request started. `ended` is None while it is still open (seen through a journal).
    """

    number: int
    at: int
    request: Request
    response: Response | None = None
    ended: Ended | None = None
    ended_at: int | None = None
    messages: tuple[WsMessage, ...] = ()
    close: Close | None = None

    def __repr__(self) -> str:
        status = self.response.status if self.response is not None else "no response"
        return f"<Exchange x{self.number}: {self.request.method} {self.request.url}, {status}, {self.ended or 'open'}>"
