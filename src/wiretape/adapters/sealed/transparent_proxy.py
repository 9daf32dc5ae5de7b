"""Serves the connections of a sealed program that ignore its proxy variables.

Each is sent to the forward proxy as the variables would have sent it, so that the same rules hold: requests to recorded
hosts are answered, hosts that --pass names are reached, and the rest is refused and listed.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from wiretape.adapters.http1.messages import RequestHead, read_request_head
from wiretape.adapters.http1.server import reset
from wiretape.adapters.replay_server.forward_proxy import MAX_HEAD, ForwardProxy, both_ways
from wiretape.adapters.sealed.name_server import LOOPBACK, NameServer, search_domains, serve_lookups
from wiretape.adapters.sealed.network import SealedNetwork
from wiretape.adapters.sealed.refused_packets import RefusalWatch, RefusedPacket
from wiretape.compare.address import address
from wiretape.matching.session import ReplaySession
from wiretape.model.http import bracketed

_WEB: Final = (80, 443)
_RESOLVER = Path("/etc/resolv.conf")
_PORT: Final = re.compile(r".+:(\d{1,5})")
_REQUEST_LINE: Final = re.compile(rb"[A-Za-z]+ \S+ HTTP/1\.[01]\r\n")
_HANDSHAKE: Final = 0x16  # the first byte of a TLS connection
# A TLS record with the fatal alert `access_denied`: the client reports a refusal instead of a broken network.
_TLS_REFUSAL: Final = bytes((0x15, 3, 3, 0, 2, 2, 49))


def intercepted_ports(let_through: Sequence[str]) -> tuple[int, ...]:
    """Return the ports at which a sealed program's connections are served: those of the web and those of --pass."""
    named = (int(match[1]) for glob in let_through if (match := _PORT.fullmatch(glob)))
    return tuple(sorted({*_WEB, *(port for port in named if 0 < port < 65536)}))


class ServerNameReader:
    """Reads the server name that a TLS client asks for. It ends the handshake after that."""

    def __init__(self) -> None:
        self.name: str | None = None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self._read_name
        self._incoming = ssl.MemoryBIO()
        self._handshake = context.wrap_bio(self._incoming, ssl.MemoryBIO(), server_side=True)

    def feed(self, data: bytes) -> bool:
        """Read bytes of the client; return whether more are needed."""
        self._incoming.write(data)
        try:
            self._handshake.do_handshake()
        except ssl.SSLWantReadError:
            return True
        except ssl.SSLError:
            pass
        return False

    def _read_name(self, handshake: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int:
        self.name = name.lower() if name else None
        return int(ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE)


class TransparentProxy:
    """`proxy_port`: where the forward proxy listens outside of the sealed network.

    `connections` counts those that were served, by `host:port`. `trouble` is called if a host named by --pass cannot
    be reached: its program sees only a reset.
    """

    def __init__(
        self,
        proxy: ForwardProxy,
        proxy_port: int,
        session: ReplaySession,
        let_through: Sequence[str],
        trouble: Callable[[str], None],
    ) -> None:
        self._proxy = proxy
        self._proxy_port = proxy_port
        self._session = session
        self._trouble = trouble
        self._reported: set[str] = set()
        self._globs = {glob.lower() for glob in let_through}
        self._names = NameServer([socket.gethostname()], search_domains(_read_resolver()))
        self._hosts: set[str] = set()
        self.connections = Counter[str]()

    async def serve(self, network: SealedNetwork, listening: Sequence[socket.socket], stop: asyncio.Event) -> None:
        serve_lookups(self._names, network.lookups)
        refusals = RefusalWatch(network.refusals, self._list_refusal)
        servers = [await asyncio.start_server(self._connection, sock=one, limit=MAX_HEAD) for one in listening]
        await stop.wait()
        asyncio.get_running_loop().remove_reader(network.lookups)
        refusals.close()
        for server in servers:
            server.close()
        self._list_unused_lookups()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")[:2]
        try:
            await self._route(self._host_of(address, port), port, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has disconnected, or sends a line without an end
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()

    def _host_of(self, address: str, port: int) -> str:
        """Return the host name for an address. If it has several, prefer a host that the proxy knows."""
        if address == LOOPBACK and f"localhost:{port}" in self._globs:
            return "localhost"
        names = self._names.names_of(address) or [address]
        return next((name for name in names if self._proxy.knows(name, port)), names[0])

    async def _route(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Recognize the protocol by the client's first bytes. At other ports it may send nothing first."""
        self._hosts.add(host)
        first = await reader.read(1) if port in _WEB else b""
        if port in _WEB and not first:
            return
        if first[:1] == bytes([_HANDSHAKE]):
            await self._route_tls(host, port, first, reader, writer)
            return
        if first.isalpha():  # HTTP, or the first line of another protocol (SSH), whose client waits for an answer
            first += await reader.readuntil(b"\n")
            if _REQUEST_LINE.match(first):
                while not first.endswith(b"\r\n\r\n"):
                    first += await reader.readuntil(b"\n")
                    if len(first) > MAX_HEAD:
                        return
                try:
                    head = read_request_head(first)
                except ValueError:
                    pass  # not HTTP after all
                else:
                    await self._route_http(host, port, head, reader, writer)
                    return
        await self._tunnel(host, port, first, reader, writer)

    async def _route_tls(
        self, host: str, port: int, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        server_name = ServerNameReader()
        data = first
        while server_name.feed(data):
            data = await reader.read(MAX_HEAD)
            if not data:
                return
            first += data
        await self._tunnel(server_name.name or host, port, first, reader, writer, _TLS_REFUSAL)

    async def _tunnel(
        self,
        host: str,
        port: int,
        first: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        refusal: bytes = b"",
    ) -> None:
        """Connect through a tunnel of the forward proxy. If it refuses, send `refusal`, or reset the connection."""
        self._hosts.add(host)
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._proxy_port)
        try:
            there_writer.write(f"CONNECT {bracketed(host)}:{port} HTTP/1.1\r\n\r\n".encode("latin-1"))
            status = (await there_reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
            if status == b"502":
                self._report((await there_reader.read()).decode(errors="replace").strip())
            if status != b"200":
                if refusal:
                    writer.write(refusal)
                else:
                    reset(writer.transport)
                return
            self.connections[f"{bracketed(host)}:{port}"] += 1
            there_writer.write(first)
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            there_writer.close()

    def _report(self, trouble: str) -> None:
        """Report a trouble once: clients retry."""
        if trouble not in self._reported:
            self._reported.add(trouble)
            self._trouble(trouble)

    async def _route_http(
        self, host: str, port: int, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send a request as to a proxy, with the whole URL. The forward proxy ends the connection after it."""
        authority = head.host.lower() or f"{host}:{port}"
        name = address("GET", f"http://{authority}/").hostname
        self._hosts.add(name)
        self.connections[f"{bracketed(name)}:{port}"] += 1
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._proxy_port)
        try:
            url = head.target if "://" in head.target else f"http://{authority}{head.target}"
            there_writer.write(head.to_bytes(url))
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            there_writer.close()

    def _list_refusal(self, refused: RefusedPacket) -> None:
        host, port = self._host_of(refused.address, refused.port), refused.port
        self._hosts.add(host)
        if not refused.is_connection:
            # Not a miss: clients that try HTTP/3 first continue with a connection.
            self._session.refused(f"datagram to {host}:{port}", "UDP is blocked")
        elif host.startswith("127."):
            self._proxy.local_connection_refused(host, port)
        else:
            self._proxy.connection_refused(host, port)

    def _list_unused_lookups(self) -> None:
        """List names that were looked up without a connection to them, here or at the forward proxy."""
        seen = self._hosts | self._proxy.requested
        for name in self._names.looked_up:
            if not any(name == host or name.startswith(f"{host}.") for host in seen):  # with one of the search domains
                self._session.refused(f"lookup of {name}", "nothing was sent to it")


def _read_resolver() -> str:
    try:
        return _RESOLVER.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
