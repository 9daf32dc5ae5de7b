"""What goes into a replay session and what comes out: live requests; answers, misses and strays."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from wiretape.model.http import Exchange, Headers, bracketed, bracketed_url
from wiretape.model.jsonvalue import Json
from wiretape.replay.faults import Fault

_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Tier(IntEnum):
    """How alike a live request and a recorded one are, strictest first."""

    EXACT = 0
    NORMALIZED = 1
    MASKED = 2
    POSITION = 3  # alike in their place only

    @property
    def word(self) -> str:
        return self.name.lower()


class Absent:
    """Stands for a value that is not there, in a difference."""

    def __repr__(self) -> str:
        return "(nothing)"


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two requests differ, and what stands there in each. ABSENT: nothing does."""

    where: str
    recorded: Json
    live: Json


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    tier: Tier = Tier.MASKED  # the loosest tier allowed
    repeat: bool = False  # give a recorded answer again when all that match were played
    mask: tuple[str, ...] = ()  # the user's own patterns for what changes between runs
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """A request as it came in. `url` may lack its host: then any recorded host will do."""

    method: str
    url: str
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reference:
    """A recorded exchange, named for a person: `call 3` of a tape, or `x7` where it is no model call."""

    tape: str
    exchange: int
    call: int | None
    what: str  # "POST /v1/chat/completions"

    @property
    def place(self) -> tuple[str, int]:
        """The exchange alone: a WebSocket's may hold many calls."""
        return self.tape, self.exchange

    def __str__(self) -> str:
        return f"call {self.call}" if self.call is not None else f"x{self.exchange}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The recorded exchange that answers a live request.

    `differences` are those that no earlier answer of the session told of: none at tier exact, and none where only the
    history differs, as it did before. `faults`: those that delay it.
    """

    number: int  # of the live request, from 1
    reference: Reference
    exchange: Exchange
    tier: Tier
    differences: tuple[Difference, ...] = ()
    repeated: bool = False
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault in the place of a recorded answer, which is left for the next attempt. `exchange`: what it is made of."""

    number: int
    reference: Reference
    exchange: Exchange
    fault: Fault


MissReason: TypeAlias = Literal["never recorded", "already played", "diverged", "not playable", "not opened", "fault"]


@dataclass(frozen=True, slots=True)
class Miss:
    """No recorded call answers. `message` is what a person should read; `headers` and `body` say it to an SDK."""

    number: int
    what: str
    reason: MissReason
    message: str
    nearest: Reference | None = None
    differences: tuple[Difference, ...] = ()
    status: int = 400
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""
    mend: str = ""  # the command at the end of `message`, if it is one to copy


@dataclass(frozen=True, slots=True)
class Stray:
    """Neither a model call nor recorded: telemetry, a probe. Answered 404, listed, never a failure."""

    number: int
    what: str
    note: str = ""


Outcome: TypeAlias = Answer | Injected | Miss | Stray


@dataclass(frozen=True, slots=True)
class Address:
    """A request's method and URL, taken apart."""

    method: str
    host: str  # with its port; empty when not known
    path: str
    query: str

    @property
    def hostname(self) -> str:
        """The host without its port and brackets."""
        name, bracket, _ = self.host.partition("]")
        return name.removeprefix("[") if bracket else self.host.partition(":")[0]

    @property
    def tail(self) -> str:
        """The path's last segment: what is asked for, whatever prefix a gateway puts before it."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def what(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def what_and_where(self) -> str:
        return f"{self.method} {self.host}{self.path}"


@lru_cache(1024)
def address(method: str, url: str) -> Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        if (spelled := bracketed_url(url)) != url:
            return address(method, spelled)
        path, _, query = url.partition("?")  # not a URL: its path is all there is to compare
        return Address(method.upper(), "", path, query)
    host = bracketed(parts.hostname or "")
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    return Address(method.upper(), host, parts.path or "/", parts.query)
