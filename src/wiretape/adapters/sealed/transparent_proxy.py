"""Where connections arrive that a program in a sealed network opens to addresses of its own, past every variable.

Each is led to the gate as its proxy variables would have led it, so that the same rules hold: what the tape has heard
is answered, what --pass names is let through, the rest is refused and listed.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from wiretape.adapters.http1.server import reset
from wiretape.adapters.replay_server.forward_proxy import ForwardProxy, both_ways
from wiretape.adapters.sealed.client_hello import HANDSHAKE, missing, server_name
from wiretape.adapters.sealed.sealed_names import LOOPBACK, Names, search_domains, serve_lookups
from wiretape.adapters.sealed.sealed_refusals import Refusal, Refusals
from wiretape.adapters.sealed.sealing import Seal
from wiretape.compare.address import address
from wiretape.matching.session import ReplaySession
from wiretape.model.http import bracketed

WEB = (80, 443)
_RESOLVER = Path("/etc/resolv.conf")
_MOST_HEAD = 64 * 1024
_PORT = re.compile(r".+:(\d{1,5})")
# A record of TLS: the fatal alert `access_denied`. A client tells that it was refused, not that the network broke.
_REFUSED_TLS = bytes((0x15, 3, 3, 0, 2, 2, 49))
_FIRST_LINE = re.compile(rb"([A-Za-z]+) (\S+) HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\s\r]+)", re.IGNORECASE)


def straight_ports(let_through: Sequence[str]) -> tuple[int, ...]:
    """The ports at which a program is met that goes straight to a host: the web's, and those that --pass names."""
    named = (int(match[1]) for glob in let_through if (match := _PORT.fullmatch(glob)))
    return tuple(sorted({*WEB, *(port for port in named if 0 < port < 65536)}))


def _resolver() -> str:
    try:
        return _RESOLVER.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class StraightDoor:
    """`gate_port`: where the gate is reached from outside the network. `came`: connections that were led here.

    `trouble` is told where a host that is let through cannot be reached: its program sees no more than a reset.
    """

    def __init__(
        self,
        gate: ForwardProxy,
        gate_port: int,
        session: ReplaySession,
        let_through: Sequence[str],
        trouble: Callable[[str], None],
    ) -> None:
        self._gate = gate
        self._gate_port = gate_port
        self._session = session
        self._trouble = trouble
        self._told: set[str] = set()
        self._globs = {glob.lower() for glob in let_through}
        self._names = Names([socket.gethostname()], search_domains(_resolver()))
        self._hosts: set[str] = set()
        self.came = Counter[str]()

    async def serve(self, seal: Seal, listening: Sequence[socket.socket], stop: asyncio.Event) -> None:
        serve_lookups(self._names, seal.lookups)
        refusals = Refusals(seal.refusals, self._refused)
        servers = [await asyncio.start_server(self._connection, sock=one, limit=_MOST_HEAD) for one in listening]
        await stop.wait()
        asyncio.get_running_loop().remove_reader(seal.lookups)
        refusals.close()
        for server in servers:
            server.close()
        self._note_what_came_to_nothing()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")[:2]
        try:
            await self._meet(self._name(address, port), port, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever hangs up, or speaks without end, needs no answer
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()

    def _name(self, address: str, port: int) -> str:
        """The host that an address stands for: of several names, the one that is known."""
        if address == LOOPBACK and f"localhost:{port}" in self._globs:
            return "localhost"
        names = self._names.meant_by(address) or [address]
        return next((name for name in names if self._gate.knows(name, port)), names[0])

    async def _meet(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._hosts.add(host)
        if port not in WEB:  # servers may be the first to speak there
            await self._lead(host, port, b"", reader, writer)
            return
        begun = await reader.read(1)
        if begun[:1] == bytes([HANDSHAKE]):
            while lacking := missing(begun):
                begun += await reader.readexactly(lacking)
            await self._lead(server_name(begun) or host, port, begun, reader, writer, _REFUSED_TLS)
        elif begun.isalpha():
            await self._meet_words(host, port, begun + await reader.readuntil(b"\n"), reader, writer)
        elif begun:
            await self._lead(host, port, begun, reader, writer)

    async def _lead(
        self,
        host: str,
        port: int,
        begun: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        refused: bytes = b"",
    ) -> None:
        """Through a tunnel of the gate's. Where there is none: `refused`, else a reset."""
        self._hosts.add(host)
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._gate_port)
        try:
            there_writer.write(f"CONNECT {bracketed(host)}:{port} HTTP/1.1\r\n\r\n".encode("latin-1"))
            status = (await there_reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
            if status == b"502":
                self._tell((await there_reader.read()).decode(errors="replace").strip())
            if status != b"200":
                if refused:
                    writer.write(refused)
                else:
                    reset(writer.transport)
                return
            self.came[f"{bracketed(host)}:{port}"] += 1
            there_writer.write(begun)
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            there_writer.close()

    def _tell(self, trouble: str) -> None:
        """Once: clients try again."""
        if trouble not in self._told:
            self._told.add(trouble)
            self._trouble(trouble)

    async def _meet_words(
        self, host: str, port: int, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """A request of HTTP, or the first line of something else (SSH's), whose client waits for an answer to it."""
        first = _FIRST_LINE.match(begun)
        if first is None:
            await self._lead(host, port, begun, reader, writer)
            return
        while not begun.endswith(b"\r\n\r\n"):
            begun += await reader.readuntil(b"\n")
            if len(begun) > _MOST_HEAD:
                return
        await self._lead_http(host, port, begun, first, reader, writer)

    async def _lead_http(
        self,
        host: str,
        port: int,
        head: bytes,
        first: re.Match[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """As a request to a proxy, which names the whole address. (The gate ends the connection after one.)"""
        named = _HOST.search(head)
        place = named[1].decode("latin-1").lower() if named else f"{host}:{port}"
        name = address("GET", f"http://{place}/").hostname
        self._hosts.add(name)
        self.came[f"{bracketed(name)}:{port}"] += 1
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._gate_port)
        try:
            proxied = first[2] if b"://" in first[2] else b"http://" + place.encode("latin-1") + first[2]
            there_writer.write(head[: first.start(2)] + proxied + head[first.end(2) :])
            await both_ways(reader, writer, there_reader, there_writer)
        finally:
            there_writer.close()

    def _refused(self, refused: Refusal) -> None:
        address, port, connected = refused
        host = self._name(address, port)
        self._hosts.add(host)
        if not connected:
            # No miss: clients that try HTTP/3 first go on with a connection.
            self._session.refused(f"datagram to {host}:{port}", "nothing is let through by UDP")
        elif not host.startswith("127."):
            self._gate.connection_refused(host, port)
        else:
            self._gate.local_connection_refused(host, port)

    def _note_what_came_to_nothing(self) -> None:
        """What was looked up, and then neither met nor refused, here or at the gate."""
        met = self._hosts | self._gate.requested
        for name in self._names.asked:
            if not any(name == host or name.startswith(f"{host}.") for host in met):  # with one of the search domains
                self._session.refused(f"lookup of {name}", "nothing was sent to it")
