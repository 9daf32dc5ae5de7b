"""The proxy that the user's variables name: the recorder connects through it, except to hosts in NO_PROXY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from wiretape.adapters.routing.hosts import is_loopback
from wiretape.model.http import bracketed


class UpstreamProxy:
    """An upstream proxy. `mode` and `auth` are mitmproxy's options."""

    def __init__(self, scheme: str, host: str, port: int, auth: str | None, no_proxy: tuple[str, ...]) -> None:
        self.mode = f"upstream:{scheme}://{host}:{port}"
        self.auth = auth
        self.name = f"{host}:{port}"
        self._no_proxy = no_proxy

    def is_direct(self, host: str) -> bool:
        """True if a host is reached without the proxy: loopback, or an entry of NO_PROXY."""
        name = host.strip("[]").lower()
        if is_loopback(name) or "*" in self._no_proxy:
            return True
        return any(name == entry or name.endswith(f".{entry}") for entry in self._no_proxy)

    def goes_around(self, first_bytes: bytes) -> bool:
        """True if the first bytes of a connection are a CONNECT to a host that is reached directly."""
        target = first_bytes.split(b" ", 2)[1:2]
        host = target[0].decode("latin-1").rpartition(":")[0] if target else ""
        return bool(host) and self.is_direct(host)

    def direct(self, flow: Any) -> None:
        """Send a plain request directly, or give it the absolute form that a proxy needs."""
        request = flow.request
        if self.is_direct(request.host):
            if not flow.server_conn.connected:
                flow.server_conn.via = None
            request.authority = "" if not request.is_http2 else request.authority
        elif request.scheme == "http" and not request.authority:
            request.authority = f"{bracketed(request.host)}:{request.port}"


def upstream_proxy(environ: Mapping[str, str]) -> tuple[UpstreamProxy | None, str | None]:
    """Return the user's proxy, or a warning about one that cannot be used."""
    url = next((environ[n] for n in _PROXY_NAMES if environ.get(n)), None)
    if url is None:
        return None, None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not port:
        shown = f"{parts.scheme}://{parts.hostname or '?'}"
        return None, f"your proxy {shown} cannot be chained (http and https can): hosts are reached without it"
    auth = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None
    return UpstreamProxy(parts.scheme, parts.hostname, port, auth, _no_proxy(environ)), None


_PROXY_NAMES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY")


def _no_proxy(environ: Mapping[str, str]) -> tuple[str, ...]:
    value = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    entries = (entry.strip().lower().removeprefix("*.").lstrip(".") for entry in value.split(","))
    return tuple(entry.partition(":")[0] if entry.count(":") == 1 else entry for entry in entries if entry)
