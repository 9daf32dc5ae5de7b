"""The recording proxy in front of a recorder, and the variables that route a program through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from wiretape.adapters.launch.child import proxy_variables
from wiretape.adapters.launch.trust import state_directory, trust_variables, upstream_bundle
from wiretape.adapters.mitm.addon import RecorderInterface, RecordingAddon
from wiretape.adapters.mitm.proxy import ProxySettings, RecordingProxy, ensure_ca
from wiretape.adapters.routing.admission import Admission
from wiretape.adapters.routing.base_urls import (
    base_url_hosts,
    base_url_variables,
    default_routes,
    not_routed,
    routed_places,
    unroutable_base_urls,
    without_default_routes,
)
from wiretape.adapters.routing.hosts import Hosts
from wiretape.adapters.routing.tool_route import tool_variables
from wiretape.adapters.routing.upstream_proxy import upstream_proxy
from wiretape.adapters.settings import load_settings
from wiretape.tape.output_redactor import OutputRedactor


class RecordingServer:
    """Listens from `start` to `stop`. The caller owns the recorder and closes it after `stop`."""

    def __init__(
        self,
        recorder: RecorderInterface,
        environ: Mapping[str, str],
        on_trouble: Callable[[str], None],
        *,
        hosts: Sequence[str] = (),
        everything: bool = False,
        upstream: str | None = None,
        port: int = 0,
        verbose: bool = False,
        keep_unset: bool = False,
        addon: Callable[..., RecordingAddon] = RecordingAddon,
        allow_hosts: Sequence[str] = (),
        allow_origins: Sequence[str] = (),
    ) -> None:
        self._environ = environ
        self._keep_unset = keep_unset
        via, problem = upstream_proxy(environ)
        if problem is not None:
            on_trouble(problem)
        for name in unroutable_base_urls(environ):
            on_trouble(not_routed(name))
        self._state = state_directory(environ)
        self._ca = ensure_ca(self._state, environ, on_trouble)
        named = base_url_hosts(environ) | ({urlsplit(upstream).hostname or ""} if upstream else set())
        self.addon = addon(
            recorder,
            Hosts([*hosts, *named], everything),
            on_trouble,
            upstream=upstream,
            via=via,
            default_routes={} if keep_unset else default_routes(environ),
            routed=routed_places(environ),
            admission=Admission(allow_hosts, allow_origins),
        )
        log = OutputRedactor(load_settings(Path.cwd()).redact, environ).text if verbose else None
        settings = ProxySettings(self._state, upstream_bundle(environ, self._state), port, via, log)
        self._proxy = RecordingProxy(self.addon, settings)

    @property
    def port(self) -> int:
        return self._proxy.port

    def start(self) -> int:
        """Listen, and return the port."""
        return self._proxy.start()

    def stop(self) -> None:
        self._proxy.stop()

    def __enter__(self) -> RecordingServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def variables(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables to add to a program's environment: proxies, base URLs, certificates."""
        environ = self._environ if environ is None else environ
        base_urls = base_url_variables(environ, self.port)
        return {
            **proxy_variables(self.port),
            **(without_default_routes(base_urls, environ) if self._keep_unset else base_urls),
            **trust_variables(environ, self._ca, self._state),
            **tool_variables("record", self._proxy.tool_port),
        }
