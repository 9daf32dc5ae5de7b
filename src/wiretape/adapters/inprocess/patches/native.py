"""The door for libraries that open their connections outside of Python: gRPC and pycurl.

They are not answered, because they speak what no tape holds of a process (HTTP/2 of their own) or leave no seam to
answer at. As with sockets, a replay refuses what they ask for, and a recording names it; see `sockets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from wiretape.adapters.inprocess.patches.patching import Patch
from wiretape.adapters.inprocess.patches.sockets import WATCH

_PORTS = {"http": 80, "ws": 80}


def patches(module: ModuleType) -> list[Patch]:
    return list(_of_pycurl(module) if module.__name__ == "pycurl" else _of_grpc(module))


# gRPC: a channel connects when it likes; what is asked through it is a call


def _of_grpc(module: ModuleType) -> Iterator[Patch]:
    """The ways to make a call: a callable per method of a service, whose classes end alike on both sides."""
    for name, kind in vars(module).items():
        if isinstance(kind, type) and name.endswith("MultiCallable") and kind.__module__ == module.__name__:
            for method in ("__call__", "with_call", "future"):
                if method in vars(kind):
                    yield Patch(kind, method, _asking)


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    def asked(call: Any, *args: Any, **kwargs: Any) -> Any:
        place = _place(getattr(call, "_target", None) or call._channel.target)
        if place is not None:
            WATCH.check(*place)
        return original(call, *args, **kwargs)

    return asked


def _place(target: bytes | str) -> tuple[str, int] | None:
    """Where a gRPC target such as `dns:///host:443` leads; None: not out of this machine."""
    text = target.decode("utf-8", "replace") if isinstance(target, bytes) else target
    if text.startswith(("unix:", "unix-abstract:", "vsock:")):
        return None
    text = text.rpartition("/")[2].removeprefix("dns:").removeprefix("ipv4:").removeprefix("ipv6:")
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host and port.isdecimal() else (text, 443)


# pycurl: its class is written in C, so that one of ours takes its name


def _of_pycurl(module: ModuleType) -> Iterator[Patch]:
    yield Patch(module, "Curl", lambda original: _curl(module, original))
    yield Patch(module, "CurlMulti", lambda original: _curls(module, original))


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


def _curls(module: ModuleType, original: Any) -> Any:
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
