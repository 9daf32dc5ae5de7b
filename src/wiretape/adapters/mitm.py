"""Runs the recording proxy: mitmproxy, in this process, on a thread of its own, listening on 127.0.0.1 only."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mitmproxy import options
from mitmproxy.addons import core, next_layer, proxyserver, tlsconfig, upstream_auth
from mitmproxy.certs import CertStore
from mitmproxy.master import Master

from wiretape.adapters.mitm_addon import RecordingAddon
from wiretape.adapters.mitm_mend import mend
from wiretape.adapters.mitm_via import UpstreamProxy
from wiretape.adapters.trust import locked
from wiretape.errors import UsageError

_NEVER_S = 30 * 24 * 3600  # a stream may be silent for longer than mitmproxy's ten minutes
_SWITCH_S = 0.001  # how long the thread that builds documents may keep the proxy's from going on
_DRAIN_S = 1.0  # what ends by itself when its client has gone gets this long to end


def ensure_ca(directory: Path) -> Path:
    """The private CA's certificate in `directory`, made on first use."""
    with locked(directory):
        CertStore.from_store(directory, "mitmproxy", 2048)
    return directory / "mitmproxy-ca-cert.pem"


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """`confdir` holds the CA; `upstream_ca` are the certificates that upstreams are checked against."""

    confdir: Path
    upstream_ca: Path | None = None
    port: int = 0  # 0: any free one
    via: UpstreamProxy | None = None
    verbose: bool = False


class RecordingProxy:
    """The proxy, from `start` to `stop`. The addon's methods all run on its thread."""

    def __init__(self, addon: RecordingAddon, settings: ProxySettings) -> None:
        self.port = 0
        self._addon = addon
        self._settings = settings
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._master: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="wiretape-proxy", daemon=True)

    def start(self) -> int:
        """Listen; return the port."""
        mend()
        self._switch_before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self.port

    def stop(self) -> None:
        """Take no new connection, let what is ending end, then cut what is left."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._master.should_exit.set)
        self._thread.join()
        sys.setswitchinterval(self._switch_before)

    def _run(self) -> None:
        try:
            with _logging(self._settings.verbose, self._addon.trouble):
                asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        listener = free_port(self._settings.port)
        self.port = self._addon.own_port = listener
        self._master = Master(self._options(listener))
        servers = proxyserver.Proxyserver()
        self._master.addons.add(
            self._addon.gate,
            core.Core(),
            servers,
            next_layer.NextLayer(),
            tlsconfig.TlsConfig(),
            upstream_auth.UpstreamAuth(),
            _Started(servers, self._ready, self._port_taken),
            self._addon,
        )
        self._master.options.update(**self._addon_options())
        await self._master.run()
        await servers.servers.update([])
        await self._drain()

    def _options(self, port: int) -> options.Options:
        via = self._settings.via
        mode = via.mode if via is not None else "regular"
        return options.Options(
            confdir=str(self._settings.confdir),
            mode=[f"{mode}@127.0.0.1:{port}"],
            ssl_verify_upstream_trusted_ca=str(self._settings.upstream_ca) if self._settings.upstream_ca else None,
            tcp_timeout=_NEVER_S,
        )

    def _addon_options(self) -> dict[str, Any]:
        """Options that exist only once their addons do. Headers are passed on as they are, odd ones too."""
        changed: dict[str, Any] = {"connection_strategy": "lazy", "validate_inbound_headers": False}
        if self._settings.via is not None and self._settings.via.auth is not None:
            changed["upstream_auth"] = self._settings.via.auth
        return changed

    def _port_taken(self) -> None:
        self._failure = port_taken(self._settings.port)
        self._master.should_exit.set()

    async def _drain(self) -> None:
        deadline = asyncio.get_running_loop().time() + _DRAIN_S
        while self._addon.open and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)
        self._addon.stop()


class _Started:
    """Tells the waiting thread that the proxy listens, or that it does not."""

    def __init__(self, servers: Any, ready: threading.Event, failed: Any) -> None:
        self._servers = servers
        self._ready = ready
        self._failed = failed

    def running(self) -> None:
        if not self._servers.listen_addrs():
            self._failed()
        self._ready.set()


def port_taken(port: int) -> UsageError:
    return UsageError(f"port {port} on 127.0.0.1 is in use: choose another with --port, or none for any free one")


def free_port(port: int) -> int:
    """The port to listen on: asked for or free. Found out here, where there is an exception to say so."""
    with socket.socket() as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise port_taken(port) from error
        number: int = probe.getsockname()[1]
        return number


class _Faults(logging.Handler):
    """mitmproxy's own errors are the person's business: something of the traffic may have gone wrong."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(f"the proxy says: {record.getMessage().splitlines()[0]}")


@contextmanager
def _logging(verbose: bool, tell: Callable[[str], None]) -> Iterator[None]:
    """mitmproxy's log: its errors become troubles; all of it goes to stderr on request."""
    log = logging.getLogger("mitmproxy")
    handlers: list[logging.Handler] = [_Faults(tell)]
    if verbose:
        handlers.append(logging.StreamHandler())
        handlers[-1].setFormatter(logging.Formatter("mitmproxy: %(message)s"))
    before = log.propagate, log.level
    log.propagate = False
    log.setLevel(logging.INFO if verbose else logging.ERROR)
    for handler in handlers:
        log.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            log.removeHandler(handler)
        log.propagate = before[0]
        log.setLevel(before[1])
