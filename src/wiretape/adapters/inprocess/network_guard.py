"""Watches and blocks connections of Python's sockets, also those of libraries that wiretape does not patch.

Only internet sockets are watched, including loopback; UNIX sockets, pipes and socket pairs are not. Open connections
stay open. Only sockets of Python's `socket` module are seen.
"""

from __future__ import annotations

import _socket
import functools
import os
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from fnmatch import fnmatchcase
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlsplit

from wiretape.adapters.routing.hosts import is_address, is_known_provider, is_loopback
from wiretape.errors import NetworkRefused

_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
_ABSENT: Final = object()


class SocketWatch:
    """Calls `check` before a socket of this process connects, sends or looks up a name. Subclasses define the rules."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}  # address -> the names that resolved to it
        self._exempt = threading.local()

    def check(self, host: str, port: int | None) -> None:
        """Raise NetworkRefused if a host is blocked. `port`: None for a look-up of the host alone."""
        raise NotImplementedError

    def may_look_up(self, address: str) -> bool:
        """True if the name of an address may be looked up. Otherwise the look-up fails here, and is not reported."""
        raise NotImplementedError

    def names(self, host: str) -> set[str]:
        """The host, and the names that resolved to it."""
        return {host, *self._names.get(host, ())}

    def found(self, address: str, name: str) -> None:
        """Remember that a name resolved to an address."""
        self._names.setdefault(plain(address), set()).add(name.lower())

    def watched(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        """The functions to replace: (owner, attribute, function that makes the replacement from the original)."""
        for name in ("connect", "connect_ex"):
            yield socket.socket, name, self._wrap_connect
        for name, place in (("sendto", 1), ("sendmsg", 3)):
            if hasattr(socket.socket, name):
                yield socket.socket, name, functools.partial(self._wrap_send, place=place)
        yield socket, "getaddrinfo", self._wrap_getaddrinfo
        for name in ("gethostbyname", "gethostbyname_ex"):
            yield socket, name, self._wrap_gethostbyname
        yield socket, "gethostbyaddr", self._wrap_gethostbyaddr
        yield socket, "getnameinfo", self._wrap_getnameinfo
        yield socket, "socketpair", self._wrap_socketpair

    def _check_address(self, sock: socket.socket, address: Any) -> None:
        __tracebackhide__ = True
        if sock.family in _INTERNET and isinstance(address, tuple) and not getattr(self._exempt, "now", False):
            self.check(_text(address[0]), address[1])

    def _check_name(self, name: Any, port: Any = None) -> None:
        """Check a look-up, unless it needs no name server: names of this machine, and addresses."""
        __tracebackhide__ = True
        host = _text(name).lower()
        if host and not is_loopback(host) and not is_address(host) and host != socket.gethostname().lower():
            number = _text(port)
            self.check(host, int(number) if number.isdecimal() else None)

    def _wrap_connect(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(sock: socket.socket, address: Any) -> Any:
            __tracebackhide__ = True
            self._check_address(sock, address)
            return original(sock, address)

        return connect

    def _wrap_send(self, original: Callable[..., Any], place: int) -> Callable[..., Any]:
        """`sendto(data, [flags,] address)`, `sendmsg(buffers, ancillary, flags, address)`: the address comes last."""

        def send(sock: socket.socket, *args: Any) -> Any:
            __tracebackhide__ = True
            if len(args) > place:
                self._check_address(sock, args[-1])
            return original(sock, *args)

        return send

    def _wrap_getaddrinfo(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            self._check_name(host, port)
            found = original(host, port, *args, **kwargs)
            for *_, address in found:
                self.found(str(address[0]), _text(host))
            return found

        return getaddrinfo

    def _wrap_gethostbyname(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def look_up(name: Any) -> Any:
            __tracebackhide__ = True
            self._check_name(name)
            return original(name)

        return look_up

    def _wrap_gethostbyaddr(self, original: Callable[..., Any]) -> Callable[..., Any]:
        forward = self._wrap_gethostbyname(original)

        def gethostbyaddr(name: Any) -> Any:
            __tracebackhide__ = True
            address = _text(name)
            if not is_address(address) or self.may_look_up(address):
                return forward(name)
            if is_loopback(address):
                return "localhost", [], [address]
            raise socket.herror(1, "Unknown host")

        return gethostbyaddr

    def _wrap_getnameinfo(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`getnameinfo(address, flags)`: an address without a name is returned itself, unless a name is required."""

        def getnameinfo(sockaddr: Any, flags: int) -> Any:
            address = _text(sockaddr[0]) if isinstance(sockaddr, tuple) and sockaddr else ""
            if flags & socket.NI_NUMERICHOST or not is_address(address) or self.may_look_up(address):
                return original(sockaddr, flags)
            host, service = original(sockaddr, flags | socket.NI_NUMERICHOST)
            if is_loopback(address):
                return "localhost", service
            if flags & socket.NI_NAMEREQD:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return host, service

        return getnameinfo

    def _wrap_socketpair(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """On systems without UNIX sockets, Python connects a pair over loopback."""

        def socketpair(*args: Any, **kwargs: Any) -> Any:
            with self._exempted():
                return original(*args, **kwargs)

        return socketpair

    @contextmanager
    def _exempted(self) -> Iterator[None]:
        self._exempt.now = True
        try:
            yield
        finally:
            self._exempt.now = False


class NetworkGuard(SocketWatch):
    """Blocks connections while it is entered. `allowed`: globs over the host, or over host:port.

    `providers_only`: block only known model providers. `explain`: makes the error message from `host:port`. `refused`
    remembers the blocked hosts, as programs may hide the error.
    """

    def __init__(self, allowed: Sequence[str], explain: Callable[[str], str], providers_only: bool = False) -> None:
        super().__init__()
        self._allowed = [glob.strip().lower() for glob in allowed]
        self._explain = explain
        self._providers_only = providers_only
        self._before: list[tuple[Any, str, Any]] = []
        self.own_ports: Callable[[], Collection[int]] = tuple  # loopback ports of wiretape itself
        self.refused: dict[str, bool] = {}  # `host:port` -> True for a model provider
        self.note: Callable[[str, bool], object] = self.refused.__setitem__

    def check(self, host: str, port: int | None) -> None:
        """Raise NetworkRefused if a host is blocked."""
        __tracebackhide__ = True
        host = plain(host)
        if (port in self.own_ports() and is_loopback(host)) or self._allows(host, port):
            return
        where = host if port is None else f"{host}:{port}"
        self.note(where, is_known_provider(host))
        raise NetworkRefused(self._explain(where))

    def may_look_up(self, address: str) -> bool:
        return not is_loopback(address) and self._allows(plain(address), None)

    def _allows(self, host: str, port: int | None) -> bool:
        names = self.names(host)
        if is_this_machine(host):
            names.update(_THIS_MACHINE)
        if any(matches(self._allowed, name, port) for name in names):
            return True
        return self._providers_only and not any(is_known_provider(name) for name in names)

    def __enter__(self) -> NetworkGuard:
        for owner, name, make in self.watched():
            self._before.append((owner, name, owner.__dict__.get(name, _ABSENT)))
            setattr(owner, name, make(getattr(owner, name)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for owner, name, before in reversed(self._before):
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._before.clear()


def plain(host: str) -> str:
    """A host in the form that is compared."""
    return host.strip("[]").partition("%")[0].rstrip(".").lower()


def matches(globs: Sequence[str], host: str, port: int | None) -> bool:
    """True if a glob matches the host, or host and port. If the port is unknown, any port matches."""
    for glob in globs:
        of_host = glob.rpartition(":")[0] if port is None else ""
        if fnmatchcase(host, glob) or fnmatchcase(f"{host}:{port}", glob) or (of_host and fnmatchcase(host, of_host)):
            return True
    return False


def proxies() -> frozenset[str]:
    """The hosts of the proxies in the environment, through which libraries connect to other hosts."""
    names = ("http_proxy", "https_proxy", "all_proxy")
    urls = [os.environ.get(spelled, "") for name in names for spelled in (name, name.upper())]
    found = [urlsplit(url if "://" in url else f"//{url}").netloc for url in urls if url]
    return frozenset(plain(place.rpartition("@")[2].rpartition(":")[0] or place) for place in found)


def is_this_machine(host: str) -> bool:
    return is_loopback(host) or host in ("", "0.0.0.0", "::")


def is_own_address(host: str) -> bool:
    """True if an address belongs to this machine: packets to it would come from it. Nothing is sent."""
    address = ip_address(host)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with suppress(OSError), closing(_socket.socket(family, socket.SOCK_DGRAM)) as unwatched:
        unwatched.connect((host, 9))
        return ip_address(unwatched.getsockname()[0]) == address
    return False


def _text(host: Any) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
