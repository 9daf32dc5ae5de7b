"""Base-URL variables that the user has not set: recording sets them to the provider's default, and says so in doubt.

A program with a default of its own in its code would have gone elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from wiretape.adapters.routing.routes import DEFAULT_BASE_URLS, same_provider, unroutable_base_urls, user_base_urls


def unset_routes(environ: Mapping[str, str]) -> dict[str, str]:
    """Hosts that programs are led to by a provider's default, each with the first variable that leads there."""
    own = {**user_base_urls(environ), **unroutable_base_urls(environ)}
    led: dict[str, str] = {}
    for name, url in DEFAULT_BASE_URLS.items():
        if not any(other in own for other in same_provider(name)):
            led.setdefault(urlsplit(url).hostname or "", name)
    return led


def only_set(variables: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables without base URLs that the user has not set."""
    own = user_base_urls(environ)
    return {name: value for name, value in variables.items() if name not in DEFAULT_BASE_URLS or name in own}


def doubt(host: str, variable: str) -> str:
    """What to say when a program was led to a host by a default, and was not welcome there."""
    return (
        f"{variable} was not set; wiretape led it to {host}. If the program has a default of its own, export it "
        "before recording, or pass --keep-unset"
    )
