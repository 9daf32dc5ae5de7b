"""Decide which requests to wiretape's own ports are served: a check of their `Host` and `Origin` headers.

A web page can make its own host name resolve to 127.0.0.1 (DNS rebinding), and can send requests to loopback ports.
It must not read recorded answers or reach upstreams. Requests with a whole URL in their first line arrived at a
proxy port. They are not checked: browsers send them only to a proxy that the person configured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

from wiretape.adapters.routing.hosts import is_address, is_loopback
from wiretape.model.http import Headers

_OF_CONTAINERS = "host.docker.internal"
_OF_PAGES = ("http", "https", "ws", "wss")  # any other scheme is an application's own (app://, vscode-webview://)


class Admission:
    """Admits requests for this machine and for recorded hosts, from programs and local pages.

    `hosts` and `origins` are globs of others; `is_recorded` tells whether a host is on the tape.
    """

    def __init__(
        self,
        hosts: Sequence[str] = (),
        origins: Sequence[str] = (),
        is_recorded: Callable[[str], bool] = lambda host: False,
    ) -> None:
        self._hosts = tuple(glob.strip().lower() for glob in hosts)
        self._origins = tuple(glob.strip().lower().rstrip("/") for glob in origins)
        self._is_recorded = is_recorded
        self._host_refusal = lru_cache(64)(self._check_host)
        self._origin_refusal = lru_cache(64)(self._check_origin)

    def refusal(self, headers: Headers) -> str | None:
        """Why a request is refused, with the option that admits it; None if it is served."""
        for host in headers.all("host"):
            if refusal := self._host_refusal(host):
                return refusal
        for origin in headers.all("origin"):
            if refusal := self._origin_refusal(origin):
                return refusal
        return None

    def _check_host(self, header: str) -> str | None:
        name = _host_of(header)
        if not header.strip() or is_loopback(name) or is_address(name) or name == _OF_CONTAINERS:
            return None
        if any(fnmatchcase(name, glob) for glob in self._hosts) or self._is_recorded(name):
            return None
        return f"the Host header names {name or repr(header)}, which is not this machine (--allow-host {name})"

    def _check_origin(self, header: str) -> str | None:
        origin = header.strip().lower()
        scheme, slashes, authority = origin.partition("://")
        if origin in ("", "null") or (slashes and scheme not in _OF_PAGES) or is_loopback(_host_of(authority)):
            return None
        if any(fnmatchcase(origin, glob) for glob in self._origins):
            return None
        return f"the request comes from a page of {origin} (--allow-origin {origin})"


def _host_of(authority: str) -> str:
    try:
        return (urlsplit(f"//{authority.strip()}").hostname or "").rstrip(".")
    except ValueError:
        return ""
