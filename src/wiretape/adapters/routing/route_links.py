"""Keeps a client on its base-URL route: rewrites URLs in response headers that the client will request next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from wiretape.adapters.routing.routes import BaseUrl, parse_base_url, route_path
from wiretape.model.header_links import is_signed, joined, replace_links

_INFORMATIVE = ("link", "content-location")  # clients rarely request these


@dataclass(slots=True)
class KeptLinks:
    """Headers for a client on a route, and the absolute URLs in them that the client is expected to request off it."""

    headers: list[tuple[str, str]] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Route:
    """A request on a base-URL route.

    `origin`: scheme and authority under which the client reached wiretape. `path`: the path that it requested there.
    `url`: the URL that the path stands for.
    """

    origin: str
    path: str
    url: str

    def keep(self, headers: Sequence[tuple[str, str]], is_routed: Callable[[str, int], bool]) -> KeptLinks:
        """Rewrite links to the request's own host and to routed hosts. Other links and signed ones are unchanged."""
        kept = KeptLinks()

        def replaced(name: str, reference: str) -> str:
            target = joined(self.url, reference)
            parsed = parse_base_url(target) if target is not None else None
            if target is None or parsed is None:
                return reference
            own = parse_base_url(self.url)
            ours = (own is not None and _is_same_host(parsed, own)) or is_routed(parsed.host.strip("[]"), parsed.port)
            if ours and not parsed.user and not is_signed(target):
                return self._through(reference, target)
            if name not in _INFORMATIVE:
                kept.foreign.append(target)
            return reference

        kept.headers = replace_links(headers, replaced)
        return kept

    def close(self, headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Rewrite all links, so that a client that follows one reaches wiretape and nothing else."""

        def replaced(name: str, reference: str) -> str:
            # Clients that follow the WHATWG URL standard read a backslash as a slash.
            target = joined(self.url, reference.replace("\\", "/")) or "http:"
            if parse_base_url(target) is not None:
                return self._through(reference, target)
            return f"{self.origin}/" if target.lower().startswith(("http:", "https:")) else reference

        return replace_links(headers, replaced)

    def _through(self, reference: str, target: str) -> str:
        """Route a reference. A relative one that already resolves to the route is unchanged."""
        path = route_path(target)
        if joined(self.origin + self.path, reference) == self.origin + path:
            return reference
        return self.origin + path if urlsplit(reference).netloc else path


def _is_same_host(one: BaseUrl, other: BaseUrl) -> bool:
    """True for the same host and port. Links of a server behind a TLS terminator may differ in the scheme."""
    default = one.port in (80, 443) and other.port in (80, 443)
    return one.host == other.host and (one.port == other.port or default)
