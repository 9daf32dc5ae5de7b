"""URLs in response headers that a client requests next: redirects, polling addresses, pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import parse_qsl, urljoin, urlsplit

from wiretape.model.http import Response

_WHOLE: Final = re.compile(r"\A(\s*)(\S(?:.*\S)?)(\s*)\Z", re.DOTALL)
# The text before a URL in a header, the URL, and the text after it.
_PATTERNS: Final = {
    "location": _WHOLE,
    "content-location": _WHOLE,
    "operation-location": _WHOLE,
    "azure-asyncoperation": _WHOLE,
    "link": re.compile(r"(<)([^<>]*)(>)"),
    "refresh": re.compile(
        r"\A(\s*[\d.]+\s*[;,]\s*(?:url\s*=\s*)?[\"']?)([^\"']+)([\"']?.*)\Z", re.IGNORECASE | re.DOTALL
    ),
}
LINK_HEADERS: Final = frozenset(_PATTERNS)
_SIGNATURES: Final = frozenset({"sig", "signature"})


def replace_links(pairs: Iterable[tuple[str, str]], replace: Callable[[str, str], str]) -> list[tuple[str, str]]:
    """The headers with each URL replaced by `replace(name, url)`."""

    def replaced(name: str, value: str) -> str:
        pattern = _PATTERNS.get(name.lower())
        if pattern is None:
            return value
        return pattern.sub(lambda found: f"{found[1]}{replace(name.lower(), found[2])}{found[3]}", value)

    return [(name, replaced(name, value)) for name, value in pairs]


def redirect_target(url: str, response: Response) -> str | None:
    """The URL to which a response to `url` redirects; None if it does not."""
    location = response.headers.get("location") if 300 <= response.status < 400 else None
    return None if location is None else joined(url, location.strip())


def joined(url: str, reference: str) -> str | None:
    """A reference as an absolute URL, or None if it is not one."""
    try:
        return urljoin(url, reference)
    except ValueError:
        return None


def without_query(url: str) -> str:
    """A URL without query and fragment, which may contain secrets."""
    return url.partition("?")[0].partition("#")[0]


def is_signed(url: str) -> bool:
    """Whether a URL has a signature, which any change of its spelling breaks."""
    names = [name.lower() for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
    return any(name in _SIGNATURES or name.endswith("-signature") for name in names)
