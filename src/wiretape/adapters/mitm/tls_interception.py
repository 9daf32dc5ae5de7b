"""TLS interception for a replay: whether it is possible, its certificate authority, and the proxy that does it.

The proxy is mitmproxy, which takes a second to import: it is started by the first connection that needs it.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wiretape.adapters.launch.trust import ADDING, PHP_SETTINGS, REPLACING, state_directory, trust_variables
from wiretape.adapters.mitm.ca import ensure_ca
from wiretape.adapters.output import say
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.mitm.replay_tls import Address, ReplayProxy


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate authority of a replay. `everything`: intercept TLS to every host, not only to hosts of models."""

    directory: Path
    certificate: Path
    everything: bool = False
    _known: dict[tuple[str | None, ...], dict[str, str]] = field(default_factory=dict, compare=False, repr=False)

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which a child trusts it and what it trusted before. Bundles are written once."""
        before = tuple(environ.get(name) for name in (*REPLACING, *ADDING, PHP_SETTINGS))
        if before not in self._known:
            self._known[before] = trust_variables(environ, self.certificate, self.directory)
        return self._known[before]


def why_not() -> str | None:
    """Explain why TLS cannot be intercepted here, and what to do about it; None if it can."""
    if _python() < (3, 12):
        here = ".".join(map(str, _python()))
        return (
            f"opening TLS needs Python 3.12 or later, and this is {here} (everything else works here)\n"
            "  install it for a newer Python, in wiretape's own folder: uv tool install --python 3.13 '.[proxy]'"
        )
    if find_spec("mitmproxy") is None:
        return "opening TLS needs mitmproxy, which is not installed\n  in wiretape's own folder: pip install '.[proxy]'"
    return None


def _python() -> tuple[int, ...]:
    return tuple(sys.version_info[:2])


def authority(environ: Mapping[str, str], everything: bool = False) -> Authority:
    """Return the private authority, made on first use. UsageError: there cannot be one."""
    problem = why_not()
    if problem is not None:
        raise UsageError(problem)
    directory = state_directory(environ)
    try:
        certificate = ensure_ca(directory, environ, say)
    except (ImportError, OSError) as error:
        raise UsageError(f"TLS cannot be opened: {error}") from error
    return Authority(directory, certificate, everything)


class LazyReplayProxy:
    """The TLS interceptor of `replay_server.forward_proxy`: a `ReplayProxy` that starts when it is first needed.

    `refused` and `trouble` are called on other threads.
    """

    def __init__(
        self,
        directory: Path,
        server_port: int,
        refused: Callable[[str, int, str], None],
        trouble: Callable[[str], None],
    ) -> None:
        self._directory = directory
        self._server_port = server_port
        self._refused = refused
        self._trouble = trouble
        self._starting = asyncio.Lock()
        self._proxy: ReplayProxy | None = None

    async def port(self) -> int:
        async with self._starting:
            if self._proxy is None:
                await asyncio.to_thread(self._start)
            assert self._proxy is not None
        return self._proxy.port

    @property
    def running_port(self) -> int:
        """The port; 0 if it was not needed yet."""
        return self._proxy.port if self._proxy is not None else 0

    def client_behind(self, address: Address) -> Address | None:
        """Return the client for which the connection to the replay server from `address` was opened."""
        return self._proxy.client_behind(address) if self._proxy is not None else None

    def stop(self) -> None:
        if self._proxy is not None:
            self._proxy.stop()

    def _start(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # mitmproxy's dependencies warn of one another
            from wiretape.adapters.mitm.replay_tls import ReplayProxy  # lazy: takes a second, needs an extra
        proxy = ReplayProxy(self._directory, self._server_port, self._refused, self._trouble)
        proxy.start()
        self._proxy = proxy  # set on this thread: a caller may have been cancelled, and the proxy must still be stopped
