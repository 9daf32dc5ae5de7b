"""Base-URL routes: paths under wiretape's own port, each of which represents another URL.

`http://127.0.0.1:PORT/api.deepseek.com/v1` represents `https://api.deepseek.com/v1`. The scheme of a loopback host is
http, that of others https; the first segment may state another one: `/http:models.internal:8080/v1`. The recorder and
the replay server share these functions; none of them connects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from wiretape.adapters.routing.hosts import is_loopback

_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+?)(?::(?P<port>\d{0,5}))?", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Spaces and a quote may precede the URL in a variable: they are kept, because clients handle them differently.
_BASE_URL = re.compile(
    r"(?P<before>\s*[\"']?)(?P<scheme>https?)://(?P<user>[^/?#\s]*@)?(?P<authority>[^/?#\s\"'\\]*)(?P<after>[/?#].*|[\s\"']*)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """The parts of a base URL that can be routed. A route replaces its origin and keeps the rest unchanged."""

    before: str
    scheme: str
    user: str  # with its @, if there is one
    host: str  # in ASCII and lower case; an IPv6 address has its brackets
    port: int  # the scheme's default if none is written
    after: str  # path, query and fragment

    @property
    def authority(self) -> str:
        """Host and port, without the scheme's default port."""
        return self.host if self.port == _DEFAULT_PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def segment(self) -> str:
        """The first path segment of its route."""
        plain = _segment_base(self.authority) == f"{self.scheme}://{self.authority}"
        return self.authority if plain else f"{self.scheme}:{self.authority}"

    def through(self, port: int) -> str:
        """The same URL with the origin replaced by its route on 127.0.0.1:port.

        User info and query stay: the client sends them as it would without wiretape.
        """
        return f"{self.before}http://{self.user}127.0.0.1:{port}/{self.segment}{self.after}"


@lru_cache(256)
def parse_base_url(text: str) -> BaseUrl | None:
    """Parse a base URL. None: it cannot be routed, because its scheme, host or port is not valid."""
    match = _BASE_URL.fullmatch(text)
    authority = match and _AUTHORITY.fullmatch(_ascii(match["authority"]))
    if match is None or authority is None:
        return None
    scheme = match["scheme"].lower()
    port = int(authority["port"] or _DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        return None
    return BaseUrl(match["before"], scheme, match["user"] or "", authority["host"].lower(), port, match["after"])


def _ascii(authority: str) -> str:
    """Encode an internationalized host. A host that cannot be encoded is unchanged, and later refused."""
    if authority.isascii():
        return authority
    try:
        return authority.encode("idna").decode()
    except UnicodeError:
        return authority


@lru_cache(256)  # most requests of a program have the same path
def route_url(path_and_query: str, upstream: str | None = None) -> str | None:
    """Return the URL of a request target. None: it names no host, and there is no `upstream`.

    With `upstream`, a first segment alone (`/openapi.json`) is a path, not a host.
    """
    path, mark, query = path_and_query.partition("?")
    segment, slash, rest = path.removeprefix("/").partition("/")
    base = _segment_base(unquote(segment))
    if base is not None and (slash or upstream is None):
        return f"{base}/{_with_version(base, rest)}{mark}{query}"
    if upstream is None:
        return None
    return f"{upstream.rstrip('/')}/{path.removeprefix('/')}{mark}{query}"


def _with_version(base: str, rest: str) -> str:
    """Add /v1 for the AI SDK, which expects it in ANTHROPIC_BASE_URL. Anthropic's own SDKs add it themselves."""
    return f"v1/{rest}" if base == "https://api.anthropic.com" and rest.startswith("messages") else rest


def route_path(url: str) -> str:
    """Return the path under wiretape's port for a URL: the inverse of `route_url`. Raises ValueError."""
    parsed = parse_base_url(url)
    if parsed is None:
        raise ValueError(f"{url!r} cannot be routed")
    return f"/{parsed.segment}{parsed.after}"


def base_url_host(url: str) -> str:
    """Return the host of a base URL, without brackets, or an empty string."""
    parsed = parse_base_url(url)
    return parsed.host.strip("[]") if parsed is not None else ""


def without_user(url: str) -> str:
    """Return a base URL for printing, without user info: it may contain a password."""
    parsed = parse_base_url(url)
    return url.replace(parsed.user, "…@", 1) if parsed is not None and parsed.user else url


def base_url_problem(url: str) -> str | None:
    """Return why an upstream URL cannot be used, in words that follow the URL, or None if it can be used."""
    parsed = parse_base_url(url)
    if parsed is None or parsed.before:
        return "needs a scheme, a host and a valid port, such as https://api.deepseek.com/v1"
    if parsed.user or re.search(r"[?#].", parsed.after):
        return "must be a plain base URL: no user, query or fragment"
    return None


@lru_cache(256)  # a program calls few hosts
def _segment_base(segment: str) -> str | None:
    """Return `https://HOST[:PORT]` for a first path segment that names a host, else None."""
    scheme, colon, authority = segment.partition(":")
    if not (colon and scheme in _DEFAULT_PORTS):
        scheme, authority = "", segment
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    host, port = match["host"].lower(), match["port"] or None
    if port is not None and not 0 < int(port) < 65536:
        return None
    if not scheme and not _looks_like_host(host, port):
        return None
    if not scheme:
        scheme = "http" if is_loopback(host) and port != "443" else "https"
    return f"{scheme}://{host}" + (f":{port}" if port else "")


def _looks_like_host(host: str, port: str | None) -> bool:
    """True for a dotted name, an address, or a name with a port; false for a word (`v1`) or a version (`v1.1`)."""
    if port is not None or host.startswith("[") or is_loopback(host):
        return True
    if re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", host):
        return True
    labels = host.rstrip(".").split(".")
    return len(labels) > 1 and all(labels) and labels[-1][0].isalpha()
