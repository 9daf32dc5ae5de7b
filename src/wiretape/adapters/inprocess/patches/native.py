"""Patches of gRPC and pycurl, which open their connections outside of Python.

Their requests are neither recorded nor replayed: gRPC speaks its own HTTP/2, and pycurl has no place for an answer. A
replay blocks their requests, and a recording reports the hosts, as for raw sockets (see `sockets`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from wiretape.adapters.inprocess.patches import _compat
from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.patches.sockets import WATCH

_PORTS = {"http": 80, "ws": 80}


def patches(module: ModuleType) -> list[Patch]:
    return list(_of_pycurl(module) if module.__name__ == "pycurl" else _of_grpc(module))


# gRPC: a channel connects at any time, so the calls are checked


def _of_grpc(module: ModuleType) -> Iterator[Patch]:
    """The methods that start a call. They belong to one class for each kind of call, in both APIs."""
    for name, kind in vars(module).items():
        if isinstance(kind, type) and name.endswith("MultiCallable") and kind.__module__ == module.__name__:
            for method in ("__call__", "with_call", "future"):
                if method in vars(kind):
                    yield Patch(kind, method, _checked_call)


def _checked_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def checked(call: Any, *args: Any, **kwargs: Any) -> Any:
        place = _host_and_port(_compat.grpc_target(call))
        if place is not None:
            WATCH.check(*place)
        return original(call, *args, **kwargs)

    return checked


def _host_and_port(target: bytes | str) -> tuple[str, int] | None:
    """The address in a gRPC target such as `dns:///host:443`; None for local sockets."""
    text = target.decode("utf-8", "replace") if isinstance(target, bytes) else target
    if text.startswith(("unix:", "unix-abstract:", "vsock:")):
        return None
    text = text.rpartition("/")[2].removeprefix("dns:").removeprefix("ipv4:").removeprefix("ipv6:")
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host and port.isdecimal() else (text, 443)


# pycurl: its classes are written in C, so a subclass replaces them


def _of_pycurl(module: ModuleType) -> Iterator[Patch]:
    yield Patch(module, "Curl", lambda original: _curl(module, original))
    yield Patch(module, "CurlMulti", lambda original: _curl_multi(module, original))


def _curl(module: ModuleType, original: Any) -> Any:
    class Curl(original):  # type: ignore[misc]
        def perform(self, *args: Any) -> Any:
            _check_curl(module, self)
            return super().perform(*args)

        def perform_rb(self, *args: Any) -> Any:
            _check_curl(module, self)
            return super().perform_rb(*args)

        def perform_rs(self, *args: Any) -> Any:
            _check_curl(module, self)
            return super().perform_rs(*args)

    return Curl


def _curl_multi(module: ModuleType, original: Any) -> Any:
    class CurlMulti(original):  # type: ignore[misc]
        def add_handle(self, curl: Any) -> Any:
            _check_curl(module, curl)
            return super().add_handle(curl)

    return CurlMulti


def _check_curl(module: Any, curl: Any) -> None:
    url = curl.getinfo(module.EFFECTIVE_URL) or ""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.hostname:
        WATCH.check(parts.hostname, parts.port or _PORTS.get(parts.scheme, 443))
