"""Dummy API keys in the environment of this process, while replays need them: SDKs do not start without a key."""

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
    """Sets dummy keys in an environment while replays need them. Several replays may be open at the same time."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        self._environ = environ
        self._lock = threading.Lock()
        self._set: dict[str, tuple[str, int]] = {}  # name -> value, and the number of replays that need it

    def add(self, session: ReplaySession) -> list[str]:
        """Set the keys that the tapes of a session need. Return their names, for `remove`."""
        with self._lock:
            own = {name: value for name, value in self._environ.items() if not self._is_ours(name)}
            needed = {**dummy_keys(own, session), **_for_bedrock(own, session)}
            for name, value in needed.items():
                _, users = self._set.get(name, (value, 0))
                self._set[name] = value, users + 1
                self._environ[name] = value
        return list(needed)

    def remove(self, names: Iterable[str]) -> None:
        """Unset keys that no other replay needs, unless the program has changed them."""
        with self._lock:
            for name in names:
                value, users = self._set[name]
                if users > 1:
                    self._set[name] = value, users - 1
                    continue
                if self._is_ours(name):
                    del self._environ[name]
                del self._set[name]

    def _is_ours(self, name: str) -> bool:
        return name in self._set and self._environ.get(name) == self._set[name][0]


def _for_bedrock(environ: Mapping[str, str], session: ReplaySession) -> dict[str, str]:
    """A region and credentials if neither the environment nor AWS's files have them. No endpoint: patches answer."""
    if any(Path(environ.get(name) or usual).expanduser().exists() for name, usual in _AWS_FILES):
        return {}
    variables = bedrock_variables(environ, session, 0)
    return {name: value for name, value in variables.items() if not value.startswith("http:")}


DUMMY_KEYS: Final = DummyKeys(os.environ)
