"""Split a request's method and URL for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from wiretape.model.http import bracketed, bracketed_url

_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A request's method, host, path and query."""

    method: str
    host: str  # with its port; empty if unknown
    path: str
    query: str

    @property
    def hostname(self) -> str:
        """The host without its port and brackets."""
        name, bracket, _ = self.host.partition("]")
        return name.removeprefix("[") if bracket else self.host.partition(":")[0]

    @property
    def tail(self) -> str:
        """The last segment of the path. A gateway may change the prefix before it."""
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
        path, _, query = url.partition("?")  # not a URL: compare it as a path
        return Address(method.upper(), "", path, query)
    host = bracketed(parts.hostname or "")
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    return Address(method.upper(), host, parts.path or "/", parts.query)
