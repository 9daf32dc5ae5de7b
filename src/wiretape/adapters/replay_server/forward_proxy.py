"""The proxy port of a replay: refuses every tunnel, so that nothing reaches a real server.

These ways lead on: plain-HTTP requests go to the replay server (tunnelled ones, too, where the host was recorded so),
tunnels are opened where something is there that opens TLS, hosts that the person named with --pass are tunnelled or
forwarded, and what asks for the replay server itself gets there. Everything refused is listed: as a miss where it was
meant for a model, for then a call was not played.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from http import HTTPStatus
from urllib.parse import urlsplit

from wiretape.adapters.http1.sending import reset
from wiretape.adapters.replay_server.tls import TlsOpener
from wiretape.adapters.routing.hosts import is_known_provider
from wiretape.adapters.routing.routes import route_path, variables_of
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Outcome
from wiretape.model.http import bracketed, bracketed_url

_MOST_HEAD = 64 * 1024
_CHUNK = 64 * 1024
_LISTENS_S = 60.0  # a client that has said all it will is given what comes, until nothing has come for so long
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_HOP_BY_HOP = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"keep-alive:")


@dataclass(frozen=True, slots=True)
class _Head:
    """The first lines of a proxied request."""

    method: str
    target: str
    version: str
    lines: tuple[bytes, ...]  # header lines

    def as_sent_to(self, target: str) -> bytes:
        """The head in origin form. One request for each connection: the next may be meant for another host."""
        kept = [line for line in self.lines if not line.lower().startswith(_HOP_BY_HOP)]
        first = f"{self.method} {target} {self.version}".encode("latin-1")
        switches = any(line.lower().startswith(b"upgrade:") for line in kept)  # to a WebSocket
        return b"\r\n".join([first, *kept, b"connection: Upgrade" if switches else b"connection: close", b"", b""])


class Gate:
    """Decides for each connection, and moves its bytes.

    `opener` opens TLS: for every host, or for those of models only. Without one it stays closed, and `why_closed` says
    what would open it.
    """

    def __init__(
        self,
        session: ReplaySession,
        server_port: int,
        let_through: Sequence[str] = (),
        on_outcome: Callable[[Outcome], None] | None = None,
        opener: TlsOpener | None = None,
        everything: bool = False,
        why_closed: str = "",
    ) -> None:
        self._session = session
        self._opener = opener
        self._everything = everything
        self._why_closed = why_closed
        self._behind: dict[tuple[str, int], asyncio.StreamWriter] = {}  # our connections to the opener -> clients
        self._on_outcome = on_outcome
        self._told: set[str] = set()
        self.asked: set[str] = set()  # hosts, as they were asked for
        self._server_port = server_port
        self._globs = [glob.lower() for glob in let_through]

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connection, sock=listening, limit=_MOST_HEAD)
        await stop.wait()
        # Not `wait_closed`: tunnels that are still open would hold the person up. They end with the loop.
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await _read_head(reader)
            if head is not None:
                await self._lead(head, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # whoever hangs up needs no answer
        except asyncio.LimitOverrunError:
            await _refuse(writer, 431, f"wiretape replay reads request headers of up to {_MOST_HEAD // 1024} KiB here")
        except ValueError as error:
            await _refuse(writer, 400, f"wiretape replay could not read this request to its proxy port: {error}")
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _lead(self, head: _Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.method == "CONNECT":
            host, _, port = head.target.rpartition(":")
            if not host or not port.isdecimal():
                raise ValueError(f"CONNECT {head.target} names no host and port")
            self.asked.add(host.strip("[]").lower())
            await self._tunnel(host.strip("[]").lower(), int(port), reader, writer)
            return
        if not head.target.lower().startswith("http://"):
            await self._to_server(head, head.target, reader, writer)
            return
        target = bracketed_url(head.target)
        parts = urlsplit(target)
        host, port_number = (parts.hostname or "").lower(), parts.port or 80
        self.asked.add(host)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if self._is_server(host, port_number):
            await self._to_server(head, path, reader, writer)
        elif self._passes(host, port_number):
            self._session.let_through(f"{bracketed(host)}:{port_number}")
            await self._join(host, port_number, head.as_sent_to(path), reader, writer)
        else:
            await self._to_server(head, target, reader, writer)

    async def _to_server(
        self, head: _Head, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await self._join("127.0.0.1", self._server_port, head.as_sent_to(target), reader, writer)

    async def _tunnel(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_server(host, port):
            await self._join("127.0.0.1", port, None, reader, writer)
        elif self._passes(host, port):
            self._session.let_through(f"{bracketed(host)}:{port}")
            await self._join(host, port, None, reader, writer)
        elif self._session.knows_plain(host, port):
            await self._plain_tunnel(host, port, reader, writer)
        elif self._opener is not None and (self._everything or self._serves_models(host, port)):
            await self._open(self._opener, host, port, reader, writer)
        else:
            await _refuse(writer, 403, self._not_let_through(host, port))

    async def _plain_tunnel(
        self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Some clients (Node's undici) tunnel plain HTTP, too: what was recorded so is answered from the tape."""
        writer.write(_ESTABLISHED)
        first = await reader.read(1)
        if first and not first.isalpha():  # TLS after all
            if self._opener is not None:
                await self._open(self._opener, host, port, reader, writer, first)
            else:
                self._not_let_through(host, port)
            return
        head = await _read_head(reader, first)
        if head is not None:
            await self._to_server(head, f"http://{bracketed(host)}:{port}{head.target}", reader, writer)

    async def _open(
        self,
        opener: TlsOpener,
        host: str,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        begun: bytes = b"",
    ) -> None:
        """Hand a tunnel to what opens TLS, which leads its requests to the replay server."""
        try:
            there = await opener.port()
        except Exception as error:  # it could not be started: nothing is let past it
            why = f"TLS could not be opened: {error}"
            self.came_to_nothing(host, port, why)
            await _refuse(writer, 502, f"wiretape replay: {why}")
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", there)
        own = there_writer.get_extra_info("sockname")[:2]
        self._behind[own] = writer
        name = bracketed(host)
        try:
            there_writer.write(f"CONNECT {name}:{port} HTTP/1.1\r\nhost: {name}:{port}\r\n\r\n".encode("latin-1"))
            await there_reader.readuntil(b"\r\n\r\n")
            if begun:
                there_writer.write(begun)
            else:
                writer.write(_ESTABLISHED)
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            self._behind.pop(own, None)
            with suppress(OSError):
                there_writer.close()

    def reset(self, address: tuple[str, int]) -> None:
        """Reset the connection of the client for whom the replay server's connection from `address` was opened."""
        behind = self._opener.client_behind(address) if self._opener is not None else None
        writer = self._behind.get(behind) if behind is not None else None
        if writer is not None:
            reset(writer.transport)

    def came_to_nothing(self, host: str, port: int, why: str) -> None:
        """A tunnel was opened, but no request came out of it."""
        what = f"CONNECT {bracketed(host)}:{port}"
        if self._serves_models(host, port):
            self._missed(what, f"a connection to {host}:{port} came to nothing: {why}\n{self._by_its_url(host, port)}")
        else:
            self._session.refused(what, why)

    def knows(self, host: str, port: int) -> bool:
        """Whether a host is more than any other: it is let through, or serves models."""
        return self._passes(host, port) or self._serves_models(host, port)

    def met_nobody(self, host: str, port: int) -> None:
        """A sealed program went straight to a port at which it meets nobody."""
        what = f"connection to {host}:{port}"
        if self._serves_models(host, port):
            went = f"a connection to {host}:{port} went past the variables and was refused: nothing of it is met there"
            scheme = "http" if self._session.knows_plain(host, port) else "https"
            self._missed(what, f"{went}\n{self._by_its_url(host, port, scheme)}")
        else:
            self._session.refused(what, f"refused, as is all that no --pass names (--pass {host}:{port})")

    def met_nobody_here(self, host: str, port: int) -> None:
        """The same on this machine. No miss: what waits for a server of its own is refused, too, until it is there."""
        if any(self._session.knows_place(own, port) for own in (host, "localhost")):
            ours = self._ours(f"http://{host}:{port}")
            note = f"it is on the tape, and nobody listens there now; a model's base URL is here {ours}"
            self._session.refused(f"connection to {host}:{port}", note)

    def _is_server(self, host: str, port: int) -> bool:
        return port == self._server_port and host in ("127.0.0.1", "localhost")

    def _not_let_through(self, host: str, port: int) -> str:
        """Notes a refused tunnel, and says why it is."""
        what = f"CONNECT {bracketed(host)}:{port}"
        if not self._serves_models(host, port):
            note = f"only hosts named by --pass are let through (--pass {host})"
            self._session.refused(what, note)
            return f"wiretape replay opens no connection to {host}:{port}: {note}"
        closed = f"wiretape replay does not open TLS: a connection to {host}:{port} was refused"
        message = "\n".join(filter(None, [closed, self._by_its_url(host, port), self._why_closed]))
        self._missed(what, message)
        return message

    def _serves_models(self, host: str, port: int) -> bool:
        return is_known_provider(host) or self._session.knows_place(host, port)

    def _missed(self, what: str, message: str) -> None:
        missed = self._session.not_opened(what, message)
        if self._on_outcome is not None and what not in self._told:  # clients try again: once is enough
            self._told.add(what)
            self._on_outcome(missed)

    def _by_its_url(self, host: str, port: int, scheme: str = "https") -> str:
        """How else to lead a program here."""
        theirs = f"{scheme}://{bracketed(host)}" + ("" if port == 443 else f":{port}")
        variables = " or ".join(variables_of(host))
        read = f", or let it read {variables}, which wiretape sets" if variables else ""
        return (
            f"  put {self._ours(theirs)} in the place of {theirs} in the program's base URL{read}\n"
            "  (--port keeps the address from one run to the next)"
        )

    def _ours(self, theirs: str) -> str:
        """Where the replay server answers for a base URL."""
        return f"http://127.0.0.1:{self._server_port}{route_path(theirs)}"

    def _passes(self, host: str, port: int) -> bool:
        """Never a model provider, however wide the glob: that would be a live call, with the person's own key."""
        names = (host, f"{host}:{port}", f"{bracketed(host)}:{port}")
        return not is_known_provider(host) and any(fnmatchcase(name, glob) for glob in self._globs for name in names)

    async def _join(
        self,
        host: str,
        port: int,
        first: bytes | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Connect and move bytes both ways until one side ends. Without `first`, a tunnel is announced."""
        try:
            there_reader, there_writer = await asyncio.open_connection(host, port)
        except OSError as error:
            await _refuse(writer, 502, f"wiretape replay could not reach {host}:{port}: {error.strerror or error}")
            return
        try:
            if first is None:
                writer.write(_ESTABLISHED)
            else:
                there_writer.write(first)
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            with suppress(OSError):
                there_writer.close()


async def _read_head(reader: asyncio.StreamReader, begun: bytes = b"") -> _Head | None:
    try:
        raw = begun + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = first.decode("latin-1").split(" ", 2)
    if len(words) != 3:
        raise ValueError("its first line is none of HTTP/1")
    method, target, version = words
    return _Head(method.upper(), target, version, tuple(lines))


async def both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    there_reader: asyncio.StreamReader,
    there_writer: asyncio.StreamWriter,
) -> None:
    """Move bytes until one side ends: when one goes, the other must learn of it. A reset from there is one here.

    A client that has said all it will may still listen: what is on its way to it arrives.
    """
    came = _Moved()
    up = asyncio.ensure_future(_pump(reader, there_writer, _Moved()))
    down = asyncio.ensure_future(_pump(there_reader, writer, came))
    await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
    if not down.done() and up.exception() is None:
        with suppress(OSError):
            there_writer.write_eof()
        await _while_it_moves(down, came, _LISTENS_S)
    for task in (up, down):
        task.cancel()
    _, ended = await asyncio.gather(up, down, return_exceptions=True)
    if isinstance(ended, ConnectionResetError):
        reset(writer.transport)


@dataclass(slots=True)
class _Moved:
    """How many pieces have gone one way."""

    pieces: int = 0


async def _while_it_moves(way: asyncio.Future[None], moved: _Moved, patience_s: float) -> None:
    """Until this way has ended, or nothing has gone along it for so long."""
    before = -1
    while not way.done() and moved.pieces != before:
        before = moved.pieces
        await asyncio.wait({way}, timeout=patience_s)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, moved: _Moved) -> None:
    """ConnectionResetError: the source was reset. That the sink is gone is no error."""
    while data := await source.read(_CHUNK):
        moved.pieces += 1
        try:
            sink.write(data)
            await sink.drain()
        except OSError:
            return


async def _refuse(writer: asyncio.StreamWriter, status: int, why: str) -> None:
    reason = HTTPStatus(status).phrase
    body = f"{why}\n".encode()
    writer.write(
        f"HTTP/1.1 {status} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\nx-should-retry: false\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
        + body
    )
    with suppress(OSError):
        await writer.drain()
