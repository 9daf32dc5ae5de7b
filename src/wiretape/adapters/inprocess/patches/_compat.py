"""The private parts of other libraries that the patches use.

Users choose the versions of these libraries. So each part is checked when it is used, and a missing one
raises UsageError with the installed version and a version that has it.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Final

from wiretape.errors import UsageError

# Versions in which the parts were seen.
SEEN: Final = {
    "aiohttp": "3.11 to 3.14.5",
    "http": "Python 3.11 to 3.13",
    "httpx": "0.28.1",
    "httpx2": "2.16.2",
    "subprocess": "Python 3.11 to 3.13",
    "urllib3": "2.8.0",
    "websockets": "15.0 to 17.4",
}

# Methods that the patches replace.
AIOHTTP_POOL: Final = "_get"  # BaseConnector: a connection from the pool
AIOHTTP_CONNECT: Final = "_create_connection"  # connectors: a new connection
AIOHTTP_RESOLVE: Final = "_resolve_host"  # TCPConnector
URLLIB3_REQUEST: Final = "_make_request"  # HTTPConnectionPool
URLLIB3_TUNNEL: Final = "_prepare_proxy"  # HTTPSConnectionPool
SUBPROCESS_START: Final = "_fork_exec"  # subprocess, on POSIX


def unsupported(module: str, missing: object) -> UsageError:
    """The error for a library whose version lacks a part that a patch needs."""
    library = module.partition(".")[0]
    version = getattr(sys.modules.get(library), "__version__", "of this version")
    seen = f" (it exists in {SEEN[library]})" if library in SEEN else ""
    return UsageError(
        f"wiretape cannot patch {module} {version}: {missing} is missing{seen}\n"
        "  use another version of it, or the commands `wiretape record` and `wiretape replay`, which need no patch"
    )


def _part(library: str, owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        raise unsupported(library, f"{type(owner).__name__}.{name}") from None


def aiohttp_protocol_factory(connector: Any) -> Any:
    """The function that creates the protocol of a new connection."""
    return _part("aiohttp", connector, "_factory")


def aiohttp_time_out(protocol: Any) -> None:
    """Let a protocol act as if `sock_read` had expired: the reader closes the connection."""
    _part("aiohttp", protocol, "_on_read_timeout")()


def aiohttp_body(body: Any) -> Any:
    """The bytes of a payload; empty if it is a stream."""
    return getattr(body, "_value", b"")


def httpx_is_read(request: Any) -> bool:
    """True if the body is in memory: it was given as bytes, or has been read."""
    return hasattr(request, "_content")


def tunnel_of(connection: Any) -> tuple[str | None, int | None]:
    """Host and port of the tunnel that an `http.client` connection opens through a proxy."""
    return _part("http.client", connection, "_tunnel_host"), _part("http.client", connection, "_tunnel_port")


def grpc_target(call: Any) -> bytes | str:
    """The address that a gRPC call is sent to; the synchronous and the asyncio API keep it in different places."""
    target: bytes | str | None = getattr(call, "_target", None)
    return target or _part("grpc", call, "_channel").target


def thread_target(thread: threading.Thread) -> Any:
    return getattr(thread, "_target", None)
