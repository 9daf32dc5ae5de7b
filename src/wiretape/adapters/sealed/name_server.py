"""The name server of a sealed network: each name gets a separate address, so that a connection shows its name.

It answers as much of DNS as resolvers need, and looks nothing up.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

_POOL = ipaddress.ip_network("198.18.0.0/15")  # for benchmarks in closed networks (RFC 2544): no real host is in it
LOOPBACK: Final = "127.0.0.1"
_A, _PTR, _IN = 1, 12, 1
_NO_ERROR, _FORMAT_ERROR, _NXDOMAIN, _NOT_IMPLEMENTED = 0, 1, 3, 4
_MAX_QUERY: Final = 4096
_BATCH: Final = 256
_PKTINFO: Final = struct.Struct("=I4s4s")  # in_pktinfo of ip(7): interface, local address, destination
_IP_PKTINFO: Final = 8


def search_domains(resolver: str) -> tuple[str, ...]:
    """Return the domains that a resolver may append to a name, from the text of a resolv.conf(5)."""
    lines = [line.split() for line in resolver.splitlines()]
    named = [words[1:] for words in lines if words and words[0] in ("search", "domain")]
    return tuple(_normalized(domain) for domain in named[-1]) if named else ()


class NameServer:
    """`own`: names of this machine, which get the loopback address. `search`: domains that resolvers append."""

    def __init__(self, own: Iterable[str] = (), search: Iterable[str] = ()) -> None:
        self._own = {_normalized(name) for name in own}
        self._search = tuple(search)
        self._addresses: dict[str, str] = {}
        self._names: dict[str, str] = {}

    @property
    def looked_up(self) -> list[str]:
        """The names that were looked up, without those of loopback."""
        return list(self._addresses)

    def names_of(self, address: str) -> list[str]:
        """Return the names that a program may mean by an address: the one looked up, and it without a search domain.

        A resolver with `ndots:5`, as in Kubernetes, asks for `api.openai.com.default.svc.cluster.local` first.
        """
        name = self._names.get(address)
        if name is None:
            return []
        return [name, *(name.removesuffix(f".{domain}") for domain in self._search if name.endswith(f".{domain}"))]

    def address_of(self, name: str) -> str:
        name = _normalized(name)
        if name in self._own or name == "localhost" or name.endswith(".localhost"):
            return LOOPBACK
        address = self._addresses.get(name)
        if address is None:
            # With more names than addresses, addresses are used again: the oldest are hardly in use.
            address = str(_POOL[1 + len(self._addresses) % (_POOL.num_addresses - 2)])
            self._addresses[name] = address
        self._names[address] = name  # of several names with one address, the last that was looked up
        return address

    def answer(self, query: bytes) -> bytes | None:
        """Return the reply to a DNS query; None for other messages."""
        if len(query) < 12 or query[2] & 0x80:
            return None
        if (query[2] >> 3) & 0xF:
            return _reply(query, b"", _NOT_IMPLEMENTED)
        try:
            name, end = _question(query)
            kind, of = struct.unpack_from("!HH", query, end)
        except (ValueError, struct.error):
            return _reply(query, b"", _FORMAT_ERROR)
        question = query[12 : end + 4]
        if kind == _PTR:
            return _reply(query, question, _NXDOMAIN)
        if kind != _A or of != _IN:  # names have IPv4 addresses only
            return _reply(query, question, _NO_ERROR)
        record = struct.pack("!HHHIH", 0xC00C, _A, _IN, 0, 4) + socket.inet_aton(self.address_of(name))
        return _reply(query, question, _NO_ERROR, record)


def _normalized(name: str) -> str:
    return name.rstrip(".").lower()


def _question(query: bytes) -> tuple[str, int]:
    """Return the name in the first question, and its end. ValueError: it is not a name."""
    labels, at = [], 12
    while at < len(query) and (length := query[at]):
        label = query[at + 1 : at + 1 + length]
        if length > 63 or len(label) < length:
            raise ValueError("a label is too long or cut short")
        labels.append(label.decode("latin-1"))
        at += 1 + length
    if not labels or at >= len(query):
        raise ValueError("the name has no end")
    return ".".join(labels), at + 1


def _reply(query: bytes, question: bytes, code: int, record: bytes = b"") -> bytes:
    flags = 0x8080 | (query[2] << 8 & 0x7900) | code  # a response, recursion available; opcode and RD are copied
    counts = struct.pack("!HHHH", bool(question), bool(record), 0, 0)
    return query[:2] + struct.pack("!H", flags) + counts + question + record


def serve_lookups(names: NameServer, listening: socket.socket) -> None:
    """Answer queries while the running loop runs. Replies are sent from the address that was asked."""
    listening.setblocking(False)
    asyncio.get_running_loop().add_reader(listening, _answer_waiting, names, listening)


def _answer_waiting(names: NameServer, listening: socket.socket) -> None:
    """Answer all waiting queries: a busy loop returns here seldom, and resolvers time out after five seconds."""
    with suppress(OSError):  # no more queries, or the program has taken its network down
        for _ in range(_BATCH):
            query, ancillary, _, client = listening.recvmsg(_MAX_QUERY, socket.CMSG_SPACE(_PKTINFO.size))
            answer = names.answer(query)
            if answer is None:
                continue
            asked = [_PKTINFO.unpack(data)[2] for level, kind, data in ancillary if (level, kind) == (0, _IP_PKTINFO)]
            own = [(socket.IPPROTO_IP, _IP_PKTINFO, _PKTINFO.pack(0, address, address)) for address in asked]
            with suppress(OSError):  # the client has gone
                listening.sendmsg([answer], own, 0, client)
