"""The versions of client and SDK of a recording, from the headers that state them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wiretape.model.http import Exchange


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CLIENT_HEADERS = _words(
    """
    user-agent x-stainless-lang x-stainless-package-version x-stainless-runtime x-stainless-runtime-version
    x-goog-api-client x-amz-user-agent originator version x-app x-title
    anthropic-version anthropic-beta openai-beta openai-version x-codex-beta-features mcp-protocol-version
    """
)
_MOST_VALUES = 8  # of one header: a program that tells another version at every call tells nothing
_LONGEST = 300  # characters of one value

Values = dict[str, str | list[str]]


class ClientVersions:
    """Collects them, each value once. Costs nothing for headers that were seen before."""

    def __init__(self, known: Mapping[str, str | list[str]] | None = None) -> None:
        self._values: dict[str, list[str]] = {
            name: [value] if isinstance(value, str) else list(value) for name, value in (known or {}).items()
        }

    def note(self, pairs: Iterable[tuple[str, str]]) -> bool:
        """Headers of a request, secrets replaced. Whether one of them says something new."""
        news = False
        for name, value in pairs:
            if name in CLIENT_HEADERS:
                values = self._values.setdefault(name, [])
                value = value[:_LONGEST]
                if value not in values and len(values) < _MOST_VALUES:
                    values.append(value)
                    news = True
        return news

    @property
    def values(self) -> Values | None:
        """By header name, as in a tape: one value or a list of values. None: nothing was told."""
        return {name: values[0] if len(values) == 1 else list(values) for name, values in self._values.items()} or None


def versions_of(exchanges: Iterable[Exchange]) -> Values | None:
    """The versions that requests state, for tapes without them in the header."""
    found = ClientVersions()
    for exchange in exchanges:
        found.note(exchange.request.headers.pairs())
    return found.values


def united(every: Iterable[Mapping[str, str | list[str]] | None]) -> Values | None:
    """What several headers say, as one."""
    found = ClientVersions()
    for values in every:
        for name, value in (values or {}).items():
            found.note([(name, one) for one in ([value] if isinstance(value, str) else value)])
    return found.values
