"""Dummy keys in this process's environment, as long as a replay is open that needs them: SDKs do not start without one.

Several replays may be open at once, in threads and tasks: the last of them takes a key back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Final

from wiretape.adapters.routing.dummy_keys import bedrock_variables, dummy_keys
from wiretape.matching.session import ReplaySession

_AWS_FILES: Final = (
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("AWS_CONFIG_FILE", "~/.aws/config"),
)


class DummyKeys:
    """Keys in `environ` by name, each with the number of those that need it. What the person set stays."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        self._environ = environ
        self._lock = threading.Lock()
        self._lent: dict[str, tuple[str, int]] = {}

    def lend(self, session: ReplaySession) -> list[str]:
        """The names of what SDKs lack for the tapes of a session; to be given to `take_back`."""
        with self._lock:
            own = {name: value for name, value in self._environ.items() if not self._is_ours(name)}
            needed = {**dummy_keys(own, session), **_for_bedrock(own, session)}
            for name, value in needed.items():
                _, users = self._lent.get(name, (value, 0))
                self._lent[name] = value, users + 1
                self._environ[name] = value
        return list(needed)

    def take_back(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                value, users = self._lent[name]
                if users > 1:
                    self._lent[name] = value, users - 1
                    continue
                if self._is_ours(name):
                    del self._environ[name]
                del self._lent[name]

    def _is_ours(self, name: str) -> bool:
        return name in self._lent and self._environ.get(name) == self._lent[name][0]


def _for_bedrock(environ: Mapping[str, str], session: ReplaySession) -> dict[str, str]:
    """A region and an identity, where neither the environment nor AWS's files have one. Requests go where they went."""
    if any(Path(environ.get(name) or usual).expanduser().exists() for name, usual in _AWS_FILES):
        return {}
    named = bedrock_variables(environ, session, 0)
    return {name: value for name, value in named.items() if not value.startswith("http:")}


DUMMY_KEYS: Final = DummyKeys(os.environ)
