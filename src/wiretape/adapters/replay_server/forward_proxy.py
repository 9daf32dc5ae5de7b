"""The proxy port of a replay. It blocks tunnels, so that nothing reaches a real server, and lists what it blocked.

Exceptions: plain-HTTP requests are sent on to the replay server (tunnelled ones, too, if the host was recorded so), TLS
is intercepted if there is an interceptor, hosts named by --pass are reached, and so is the replay server itself. A
blocked tunnel that was meant for a model counts as a miss: one of its calls was not played.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Protocol
from urllib.parse import urlsplit

from wiretape.adapters.http1.messages import RequestHead, read_request_head, response
from wiretape.adapters.http1.server import reset
from wiretape.adapters.routing.base_urls import variables_of
from wiretape.adapters.routing.hosts import is_known_provider
from wiretape.adapters.routing.routes import route_path
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Outcome
from wiretape.model.http import bracketed, bracketed_url

MAX_HEAD: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
_HALF_CLOSED_S: Final = 60.0  # a half-closed client gets what arrives, until nothing has arrived for so long
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_HOP_BY_HOP: Final = frozenset({b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive"})


class TlsInterceptor(Protocol):
    """Intercepts TLS on its proxy port and sends the requests to the replay server."""

    async def port(self) -> int:
        """Start it if it does not run yet; return its port."""

    def client_behind(self, address: tuple[str, int]) -> tuple[str, int] | None:
        """Return the client for which the connection to the replay server from `address` was opened."""


class ForwardProxy:
    """Decides for each connection, and moves its bytes.

    `interceptor` intercepts TLS: for every host if `everything`, else for hosts of models. Without one, `why_closed`
    tells in a miss how to get one.
    """

    def __init__(
        self,
        session: ReplaySession,
        server_port: int,
        let_through: Sequence[str] = (),
        on_outcome: Callable[[Outcome], None] | None = None,
        interceptor: TlsInterceptor | None = None,
        everything: bool = False,
        why_closed: str = "",
    ) -> None:
        self._session = session
        self._interceptor = interceptor
        self._everything = everything
        self._why_closed = why_closed
        self._intercepted: dict[tuple[str, int], asyncio.StreamWriter] = {}  # connections to the interceptor -> clients
        self._on_outcome = on_outcome
        self._reported: set[str] = set()
        self.requested: set[str] = set()  # hosts
        self._server_port = server_port
        self._globs = [glob.lower() for glob in let_through]

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connection, sock=listening, limit=MAX_HEAD)
        await stop.wait()
        # Not `wait_closed`, which waits for open tunnels. They end with the loop.
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._route(read_request_head(await reader.readuntil(b"\r\n\r\n")), reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has disconnected
        except asyncio.LimitOverrunError:
            await _refuse(writer, 431, f"wiretape replay reads request headers of up to {MAX_HEAD // 1024} KiB here")
        except ValueError as error:
            await _refuse(writer, 400, f"wiretape replay could not read this request to its proxy port: {error}")
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _route(self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.method == "CONNECT":
            host, _, port = head.target.rpartition(":")
            if not host or not port.isdecimal():
                raise ValueError(f"CONNECT {head.target} names no host and port")
            host = host.strip("[]").lower()
            self.requested.add(host)
            await self._tunnel(host, int(port), reader, writer)
            return
        if not head.target.lower().startswith("http://"):
            await self._to_server(head, head.target, reader, writer)
            return
        url = bracketed_url(head.target)
        parts = urlsplit(url)
        host, port_number = (parts.hostname or "").lower(), parts.port or 80
        self.requested.add(host)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if self._is_server(host, port_number):
            await self._to_server(head, path, reader, writer)
        elif self._passes(host, port_number):
            self._session.let_through(f"{bracketed(host)}:{port_number}")
            await self._join(host, port_number, _forwarded(head, path), reader, writer)
        else:
            await self._to_server(head, url, reader, writer)

    async def _to_server(
        self, head: RequestHead, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await self._join("127.0.0.1", self._server_port, _forwarded(head, target), reader, writer)

    async def _tunnel(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_server(host, port):
            await self._join("127.0.0.1", port, None, reader, writer)
        elif self._passes(host, port):
            self._session.let_through(f"{bracketed(host)}:{port}")
            await self._join(host, port, None, reader, writer)
        elif self._session.knows_plain(host, port):
            await self._plain_tunnel(host, port, reader, writer)
        elif self._interceptor is not None and (self._everything or self._serves_models(host, port)):
            await self._intercept(self._interceptor, host, port, reader, writer)
        else:
            await _refuse(writer, 403, self._block(host, port))

    async def _plain_tunnel(
        self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer plain HTTP inside a tunnel from the tape: some clients (Node's undici) tunnel it, too."""
        writer.write(_ESTABLISHED)
        first = await reader.read(1)
        if first.isalpha():
            head = read_request_head(first + await reader.readuntil(b"\r\n\r\n"))
            await self._to_server(head, f"http://{bracketed(host)}:{port}{head.target}", reader, writer)
        elif first and self._interceptor is not None:  # TLS after all
            await self._intercept(self._interceptor, host, port, reader, writer, first)
        elif first:
            self._block(host, port)

    async def _intercept(
        self,
        interceptor: TlsInterceptor,
        host: str,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        first: bytes = b"",
    ) -> None:
        """Connect a tunnel to the interceptor. `first`: bytes of a tunnel that the client was granted already."""
        try:
            there = await interceptor.port()
        except Exception as error:  # then the connection is refused
            why = f"TLS could not be intercepted: {error}"
            self.tunnel_failed(host, port, why)
            await _refuse(writer, 502, f"wiretape replay: {why}")
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", there)
        own = there_writer.get_extra_info("sockname")[:2]
        self._intercepted[own] = writer
        name = bracketed(host)
        try:
            there_writer.write(f"CONNECT {name}:{port} HTTP/1.1\r\nhost: {name}:{port}\r\n\r\n".encode("latin-1"))
            await there_reader.readuntil(b"\r\n\r\n")
            if first:
                there_writer.write(first)
            else:
                writer.write(_ESTABLISHED)
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            self._intercepted.pop(own, None)
            with suppress(OSError):
                there_writer.close()

    def reset(self, address: tuple[str, int]) -> None:
        """Reset the connection of the client for which the replay server's connection from `address` was opened."""
        client = self._interceptor.client_behind(address) if self._interceptor is not None else None
        writer = self._intercepted.get(client) if client is not None else None
        if writer is not None:
            reset(writer.transport)

    def tunnel_failed(self, host: str, port: int, why: str) -> None:
        """List a tunnel that was intercepted without a request in it."""
        what = f"CONNECT {bracketed(host)}:{port}"
        if self._serves_models(host, port):
            self._miss(what, f"the connection to {host}:{port} failed: {why}\n{self._base_url_hint(host, port)}")
        else:
            self._session.refused(what, why)

    def knows(self, host: str, port: int) -> bool:
        """Return whether --pass names a host or it serves models."""
        return self._passes(host, port) or self._serves_models(host, port)

    def connection_refused(self, host: str, port: int) -> None:
        """List a connection of a sealed program to a host and a port at which nothing listens."""
        what = f"connection to {host}:{port}"
        if self._serves_models(host, port):
            why = (
                f"a connection to {host}:{port} ignored the proxy variables and was refused:"
                " wiretape does not listen on that port"
            )
            scheme = "http" if self._session.knows_plain(host, port) else "https"
            self._miss(what, f"{why}\n{self._base_url_hint(host, port, scheme)}")
        else:
            self._session.refused(what, f"refused: no --pass names it (--pass {host}:{port})")

    def local_connection_refused(self, host: str, port: int) -> None:
        """List the same for this machine. It is not a miss: a program may wait for its own server to start."""
        if any(self._session.knows_port(own, port) for own in (host, "localhost")):
            ours = self._ours(f"http://{host}:{port}")
            note = f"it is on the tape, and nothing listens there now; use {ours} as the model's base URL"
            self._session.refused(f"connection to {host}:{port}", note)

    def _is_server(self, host: str, port: int) -> bool:
        return port == self._server_port and host in ("127.0.0.1", "localhost")

    def _block(self, host: str, port: int) -> str:
        """List a blocked tunnel; return why it is blocked."""
        what = f"CONNECT {bracketed(host)}:{port}"
        if not self._serves_models(host, port):
            note = f"only hosts that --pass names can be reached (--pass {host})"
            self._session.refused(what, note)
            return f"wiretape replay blocks connections to {host}:{port}: {note}"
        closed = f"wiretape replay does not intercept TLS: the connection to {host}:{port} was blocked"
        message = "\n".join(filter(None, [closed, self._base_url_hint(host, port), self._why_closed]))
        self._miss(what, message)
        return message

    def _serves_models(self, host: str, port: int) -> bool:
        return is_known_provider(host) or self._session.knows_port(host, port)

    def _miss(self, what: str, message: str) -> None:
        missed = self._session.not_opened(what, message)
        if self._on_outcome is not None and what not in self._reported:  # clients retry: report it once
            self._reported.add(what)
            self._on_outcome(missed)

    def _base_url_hint(self, host: str, port: int, scheme: str = "https") -> str:
        """Explain how a program can reach the replay server by its base URL."""
        theirs = f"{scheme}://{bracketed(host)}" + ("" if port == 443 else f":{port}")
        variables = " or ".join(variables_of(host))
        read = f", or let it read {variables}, which wiretape sets" if variables else ""
        return (
            f"  use {self._ours(theirs)} instead of {theirs} in the program's base URL{read}\n"
            "  (--port keeps the address from one run to the next)"
        )

    def _ours(self, theirs: str) -> str:
        """Return the URL at which the replay server answers for a base URL."""
        return f"http://127.0.0.1:{self._server_port}{route_path(theirs)}"

    def _passes(self, host: str, port: int) -> bool:
        """Never a model provider, however wide the glob: that would be a live call with the user's own key."""
        names = (host, f"{host}:{port}", f"{bracketed(host)}:{port}")
        return not is_known_provider(host) and any(fnmatchcase(name, glob) for glob in self._globs for name in names)

    async def _join(
        self,
        host: str,
        port: int,
        head: bytes | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Connect a client to a host. Without the head of a request, tell the client that its tunnel is established."""
        try:
            there_reader, there_writer = await asyncio.open_connection(host, port)
        except OSError as error:
            await _refuse(writer, 502, f"wiretape replay could not reach {host}:{port}: {error.strerror or error}")
            return
        try:
            if head is None:
                writer.write(_ESTABLISHED)
            else:
                there_writer.write(head)
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            with suppress(OSError):
                there_writer.close()


def _forwarded(head: RequestHead, target: str) -> bytes:
    """Write the head for a server. One request for each connection: the next may be meant for another host."""
    switches = any(name.lower() == b"upgrade" for name, _ in head.headers)  # to a WebSocket
    return head.to_bytes(target, _HOP_BY_HOP, (b"connection", b"Upgrade" if switches else b"close"))


async def both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    there_reader: asyncio.StreamReader,
    there_writer: asyncio.StreamWriter,
) -> None:
    """Copy bytes in both directions until one side ends, and pass a reset of the server on to the client.

    A half-closed client may still read: it gets the bytes that are on their way.
    """
    received = _Progress()
    up = asyncio.ensure_future(_copy(reader, there_writer, _Progress()))
    down = asyncio.ensure_future(_copy(there_reader, writer, received))
    await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
    if not down.done() and up.exception() is None:
        with suppress(OSError):
            there_writer.write_eof()
        await _while_progressing(down, received, _HALF_CLOSED_S)
    for task in (up, down):
        task.cancel()
    _, ended = await asyncio.gather(up, down, return_exceptions=True)
    if isinstance(ended, ConnectionResetError):
        reset(writer.transport)


@dataclass(slots=True)
class _Progress:
    """How often one direction has moved bytes."""

    reads: int = 0


async def _while_progressing(copying: asyncio.Future[None], progress: _Progress, timeout_s: float) -> None:
    """Wait until a direction has ended, or has not moved anything for so long."""
    before = -1
    while not copying.done() and progress.reads != before:
        before = progress.reads
        await asyncio.wait({copying}, timeout=timeout_s)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, progress: _Progress) -> None:
    """ConnectionResetError: the source was reset. A closed sink is ignored."""
    while data := await source.read(_CHUNK):
        progress.reads += 1
        try:
            sink.write(data)
            await sink.drain()
        except OSError:
            return


async def _refuse(writer: asyncio.StreamWriter, status: int, why: str) -> None:
    headers = (("content-type", "text/plain; charset=utf-8"), ("x-should-retry", "false"))
    writer.write(response(status, headers, f"{why}\n".encode(), keep_alive=False))
    with suppress(OSError):
        await writer.drain()
