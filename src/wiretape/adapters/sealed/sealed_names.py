"""Names in a sealed network: each that is asked for gets an address of its own, so that a connection tells its name.

Knows DNS as far as a program's resolver needs it. Nothing is looked up anywhere.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress

# Kept for measurements inside closed networks (RFC 2544): no real host has one of these.
_POOL = ipaddress.ip_network("198.18.0.0/15")
LOOPBACK = "127.0.0.1"
_A, _PTR, _IN = 1, 12, 1
_NO_ERROR, _FORMAT_ERROR, _NO_SUCH_NAME, _NOT_IMPLEMENTED = 0, 1, 3, 4
_MOST = 4096
_AT_ONCE = 256
_PKTINFO = struct.Struct("=I4s4s")  # in_pktinfo of ip(7): interface, our address, the one that was written to
_IP_PKTINFO = 8


def search_domains(resolver: str) -> tuple[str, ...]:
    """What a resolver may put behind a name before it asks for the name itself, as resolv.conf(5) says."""
    lines = [line.split() for line in resolver.splitlines()]
    named = [words[1:] for words in lines if words and words[0] in ("search", "domain")]
    return tuple(_plain(domain) for domain in named[-1]) if named else ()


class Names:
    """`own`: names of this machine, which lead to its loopback. `search`: domains that may stand behind a name."""

    def __init__(self, own: Iterable[str] = (), search: Iterable[str] = ()) -> None:
        self._own = {_plain(name) for name in own}
        self._search = tuple(search)
        self._addresses: dict[str, str] = {}
        self._names: dict[str, str] = {}

    @property
    def asked(self) -> list[str]:
        """What was looked up so far, loopback's names apart."""
        return list(self._addresses)

    def meant_by(self, address: str) -> list[str]:
        """The names that a program may have had in mind: the one that was looked up, and those without a domain.

        A resolver with `ndots:5`, as in Kubernetes, asks for `api.openai.com.default.svc.cluster.local` first.
        """
        name = self._names.get(address)
        if name is None:
            return []
        return [name, *(name.removesuffix(f".{domain}") for domain in self._search if name.endswith(f".{domain}"))]

    def address_of(self, name: str) -> str:
        name = _plain(name)
        if name in self._own or name == "localhost" or name.endswith(".localhost"):
            return LOOPBACK
        address = self._addresses.get(name)
        if address is None:
            # Those of a program that asks for more than there are begin anew: it does not speak to them all at once.
            address = str(_POOL[1 + len(self._addresses) % (_POOL.num_addresses - 2)])
            self._addresses[name] = address
        self._names[address] = name  # of several names with one address, the last that was asked for
        return address

    def answer(self, query: bytes) -> bytes | None:
        """What a name server answers; None: it was no query."""
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
            return _reply(query, question, _NO_SUCH_NAME)
        if kind != _A or of != _IN:  # there is nothing but IPv4
            return _reply(query, question, _NO_ERROR)
        record = struct.pack("!HHHIH", 0xC00C, _A, _IN, 0, 4) + socket.inet_aton(self.address_of(name))
        return _reply(query, question, _NO_ERROR, record)


def _plain(name: str) -> str:
    return name.rstrip(".").lower()


def _question(query: bytes) -> tuple[str, int]:
    """The first name that is asked for, and where it ends. ValueError: it is none."""
    labels, at = [], 12
    while at < len(query) and (length := query[at]):
        label = query[at + 1 : at + 1 + length]
        if length > 63 or len(label) < length:
            raise ValueError("no name")
        labels.append(label.decode("latin-1"))
        at += 1 + length
    if not labels or at >= len(query):
        raise ValueError("no name")
    return ".".join(labels), at + 1


def _reply(query: bytes, question: bytes, code: int, record: bytes = b"") -> bytes:
    flags = 0x8080 | (query[2] << 8 & 0x7900) | code  # an answer, recursion to be had; what was asked for stays
    counts = struct.pack("!HHHH", bool(question), bool(record), 0, 0)
    return query[:2] + struct.pack("!H", flags) + counts + question + record


def serve_lookups(names: Names, listening: socket.socket) -> None:
    """Answer what comes, while the running loop does. Answers come from the address that was asked, whichever it is."""
    listening.setblocking(False)
    asyncio.get_running_loop().add_reader(listening, _answer_waiting, names, listening)


def _answer_waiting(names: Names, listening: socket.socket) -> None:
    """Not one alone: a loop that serves many connections comes by seldom, and resolvers wait five seconds."""
    with suppress(OSError):  # nothing more has come, or the program has taken its network down
        for _ in range(_AT_ONCE):
            query, ancillary, _, client = listening.recvmsg(_MOST, socket.CMSG_SPACE(_PKTINFO.size))
            answer = names.answer(query)
            if answer is None:
                continue
            asked = [_PKTINFO.unpack(data)[2] for level, kind, data in ancillary if (level, kind) == (0, _IP_PKTINFO)]
            own = [(socket.IPPROTO_IP, _IP_PKTINFO, _PKTINFO.pack(0, address, address)) for address in asked]
            with suppress(OSError):  # whoever asked has gone
                listening.sendmsg([answer], own, 0, client)
