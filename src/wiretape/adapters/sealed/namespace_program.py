"""A separate program, on the standard library alone: makes a sealed network, or starts a program inside of it.

    python -I -S namespace_program.py make CHANNEL ADDRESS:PORT…
    python -I -S namespace_program.py enter NETWORK USERS ENVIRON FAILED FILES PROGRAM ARGUMENT…

`make` sends one JSON object over the socket CHANNEL, and with it these descriptors: the network namespace, the user
namespace if it made one, a packet socket that receives refusals, a UDP socket at port 53, and a listening socket for
each address. If a step fails, it sends `{"step": …, "errno": …}` without descriptors. `enter` becomes PROGRAM, with the
variables in the file ENVIRON and a limit of FILES open files; if it cannot, it writes the error number to FAILED.
CHANNEL, NETWORK, USERS, ENVIRON and FAILED are numbers of descriptors.

It is a process because only a process without threads can make or enter a user namespace.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
LOOKUPS = ("0.0.0.0", 53)
_IP_PKTINFO = 8
_BUFFER = 1 << 20  # bytes
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
# rtnetlink(7)
_RTM_NEWROUTE, _NLMSG_ERROR = 24, 2
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_EXCL, _NLM_F_CREATE = 0x1, 0x4, 0x200, 0x400
_RT_TABLE_LOCAL, _RTPROT_BOOT, _RT_SCOPE_HOST, _RTN_LOCAL = 255, 3, 254, 2
_RTA_OIF, _RTA_PREFSRC = 4, 7
# packet(7), and a bpf(4) filter for it: TCP with RST, and ICMP "unreachable".
_ETH_P_IP = 0x0800
_SO_ATTACH_FILTER = 26
_REFUSAL_FILTER = (
    (0x30, 0, 0, 9),  # protocol
    (0x15, 0, 3, 1),  # ICMP
    (0xB1, 0, 0, 0),
    (0x50, 0, 0, 0),  # type
    (0x15, 4, 5, 3),
    (0x15, 0, 4, 6),  # TCP
    (0xB1, 0, 0, 0),
    (0x50, 0, 0, 13),  # flags
    (0x45, 0, 1, 4),
    (0x06, 0, 0, 0xFFFF),  # accept the packet
    (0x06, 0, 0, 0),  # drop it
)


class StepFailed(Exception):
    """A step that the system refuses; `errno` is the error."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(f"{step}: {os.strerror(number)}")
        self.step = step
        self.errno = number


@contextmanager
def _step(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StepFailed(name, error.errno or 0) from error


# -- namespaces ------------------------------------------------------------------------------------------------------


def _call(name: str, *numbers: int) -> None:
    """Call unshare(2) or setns(2), which `os` has since Python 3.12."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*numbers) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def sealed_network() -> tuple[bool, socket.socket]:
    """Move this process to a new network; return whether it made a user namespace, and the refusal socket.

    Users without the right to make a network need a user namespace. Their ids stay the same, and no others exist in it.
    """
    try:
        with _step("unshare"):
            _call("unshare", CLONE_NEWNET)
        return False, bring_up()
    except StepFailed as failed:
        if failed.errno not in (errno.EPERM, errno.EACCES):
            raise
    _become_own_users()
    return True, bring_up()


def _become_own_users() -> None:
    user, group = os.geteuid(), os.getegid()
    with _step("unshare"):
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNET)
    with _step("map"):
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "wb") as file:
                file.write(text.encode())


# -- the network ----------------------------------------------------------------------------------------------


def bring_up() -> socket.socket:
    """Route every IPv4 address to loopback: packets to any address arrive at our sockets, or are refused visibly."""
    with _step("loopback"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
    with _step("route"), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(route_to_loopback(socket.if_nametoindex("lo")))
        number = netlink_error(netlink.recv(4096))
        if number:
            raise OSError(number, os.strerror(number))
    with _step("watch"):
        return _refusal_socket()


def route_to_loopback(interface: int) -> bytes:
    """Return the netlink message of `ip route add local 0.0.0.0/0 dev lo src 127.0.0.1`."""
    route = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, 0, 0, 0, _RT_TABLE_LOCAL, _RTPROT_BOOT, _RT_SCOPE_HOST, _RTN_LOCAL, 0
    )
    attributes = struct.pack("=HHI", 8, _RTA_OIF, interface)
    attributes += struct.pack("=HH", 8, _RTA_PREFSRC) + socket.inet_aton("127.0.0.1")
    flags = _NLM_F_REQUEST | _NLM_F_ACK | _NLM_F_CREATE | _NLM_F_EXCL
    body = route + attributes
    return struct.pack("=IHHII", 16 + len(body), _RTM_NEWROUTE, flags, 1, 0) + body


def netlink_error(answer: bytes) -> int:
    """Return the error number in an acknowledgement; 0: success."""
    _, kind = struct.unpack_from("=IH", answer)
    number: int = struct.unpack_from("=i", answer, 16)[0] if kind == _NLMSG_ERROR else 0
    return -number


def _refusal_socket() -> socket.socket:
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _REFUSAL_FILTER)
    held = ctypes.create_string_buffer(program, len(program))
    attached = struct.pack("@HP", len(_REFUSAL_FILTER), ctypes.addressof(held))
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)  # without a protocol, it receives nothing yet
    packets.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, attached)
    packets.bind(("lo", _ETH_P_IP))
    return packets


def _listening(address: tuple[str, int]) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(address)
    listening.listen(512)
    return listening


def _lookup_socket() -> socket.socket:
    lookups = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    lookups.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
    lookups.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)  # the system may give less
    lookups.bind(LOOKUPS)
    return lookups


# -- the two commands ------------------------------------------------------------------------------------------------


def make(channel: socket.socket, addresses: Sequence[tuple[str, int]]) -> None:
    try:
        users, refusals = sealed_network()
        with _step("lookups"):
            opened = [refusals, _lookup_socket()]
        for address in addresses:
            with _step(f"port {address[1]}"):
                opened.append(_listening(address))
        kinds = ["net", "user"] if users else ["net"]
        with _step("namespace"):
            namespaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in kinds]
    except StepFailed as failed:
        channel.sendall(json.dumps({"step": failed.step, "errno": failed.errno}).encode())
        return
    numbers = [*namespaces, *(one.fileno() for one in opened)]
    socket.send_fds(channel, [json.dumps({"users": users}).encode()], numbers)


def enter(network: int, users: int, environ: int, failed: int, files: int, program: str, argv: Sequence[str]) -> None:
    """Return only if PROGRAM cannot be run. `users`: -1 for the system's own user namespace."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        for descriptor, kind in ((users, CLONE_NEWUSER), (network, CLONE_NEWNET)):
            if descriptor >= 0:
                _call("setns", descriptor, kind)
        for descriptor in (network, users, environ, failed):
            if descriptor >= 0:
                os.set_inheritable(descriptor, False)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        os.execve(program, list(argv), _variables(environ))
    except OSError as error:
        os.write(failed, str(error.errno).encode())


def _variables(descriptor: int) -> dict[bytes, bytes]:
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    return {name: value for name, _, value in pairs}


def main(argv: Sequence[str]) -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if argv[0] == "make":
        addresses = [(address, int(port)) for address, _, port in (one.partition(":") for one in argv[2:])]
        make(socket.socket(fileno=int(argv[1])), addresses)
    else:
        network, users, environ, failed, files = map(int, argv[1:6])
        enter(network, users, environ, failed, files, argv[6], argv[7:])


if __name__ == "__main__":
    main(sys.argv[1:])
