"""A sealed network for a program: a Linux network namespace with loopback only, and sockets that this process serves.

This process stays outside of it, so that it can reach hosts that --pass names.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

from wiretape.adapters.open_files import raise_limit
from wiretape.errors import UsageError

_PROGRAM: Final = str(Path(__file__).with_name("namespace_program.py"))
_APPARMOR: Final = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_START_S: Final = 20.0  # a busy machine starts a program slowly
_MAX_DESCRIPTORS: Final = 250  # Linux passes at most 253 in one message
ANY_ADDRESS: Final = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class SealedNetwork:
    """A sealed network and its sockets.

    `refusals`: a packet socket that receives refusals; `lookups`: the UDP socket of its name server; `listening`: in
    the order of the addresses for `make_sealed_network`. `network` and `users` are descriptors of namespaces.
    """

    refusals: socket.socket
    lookups: socket.socket
    listening: tuple[socket.socket, ...]
    network: int
    users: int  # -1: the system's own user namespace

    def start(
        self, argv: Sequence[str], *, executable: str, env: Mapping[str, str], **how: Any
    ) -> subprocess.Popen[Any]:
        """Start a program in the network, as `subprocess.Popen` does outside of it. OSError: it cannot be run."""
        with _written(env) as environ:
            result, failed = map(_as_file, os.pipe(), ("rb", "wb"))
            with result:
                with failed:
                    process = self._entering(environ, failed.fileno(), [executable, *argv], how)
                number = result.read()  # empty: the process has become the program
        if number:
            process.wait()
            raise OSError(int(number), os.strerror(int(number)))
        return process

    def _entering(
        self, environ: int, failed: int, program: Sequence[str], how: Mapping[str, Any]
    ) -> subprocess.Popen[Any]:
        numbers = (self.network, self.users, environ, failed)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", _PROGRAM, "enter", *map(str, (*numbers, raise_limit())), *program],
            pass_fds=[one for one in numbers if one >= 0],
            **how,
        )

    def close(self) -> None:
        """Close its sockets. The network exists for as long as a program runs in it."""
        for one in (self.refusals, self.lookups, *self.listening):
            one.close()
        for descriptor in (self.network, self.users):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)


@contextmanager
def _written(env: Mapping[str, str]) -> Iterator[int]:
    """Write variables to a file without a name: the Python process in between needs this process's own variables."""
    # Pythons that were built for old systems (uv's, conda's) have no memfd_create.
    known = hasattr(os, "memfd_create")
    with _as_file(os.memfd_create("wiretape-environ"), "wb") if known else TemporaryFile(buffering=0) as file:
        file.write(b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items()))
        yield file.fileno()


def _as_file(descriptor: int, mode: str) -> IO[bytes]:
    return open(descriptor, mode, buffering=0)


def make_sealed_network(addresses: Sequence[tuple[str, int]]) -> SealedNetwork:
    """Make a sealed network with sockets that listen at these addresses. UsageError: the system does not permit it."""
    if sys.platform != "linux":
        raise UsageError(
            "--sealed needs Linux, because it uses network namespaces\n"
            "  run wiretape in a Linux container (docs/replay.md, 'Sealed'), or omit --sealed"
        )
    raise_limit()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", _PROGRAM, "make", str(theirs.fileno())]
        command += [f"{address}:{port}" for address, port in addresses]
        try:
            making = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise UsageError(f"--sealed: {sys.executable} cannot be started: {error.strerror or error}") from None
        theirs.close()
        ours.settimeout(_START_S)
        result, descriptors = _result(ours)
        if not result:
            making.kill()  # it may hang
        _, stderr = making.communicate()
    if "users" not in result:
        raise UsageError(_explain(result, stderr))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    users = descriptors.pop(1) if result["users"] else -1
    network, *sockets = descriptors
    refusals, lookups, *listening = (socket.socket(fileno=descriptor) for descriptor in sockets)
    return SealedNetwork(refusals, lookups, tuple(listening), network, users)


def _result(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    try:
        message, descriptors, _, _ = socket.recv_fds(channel, 4096, _MAX_DESCRIPTORS)
    except OSError:
        return {}, []
    return (json.loads(message) if message else {}), list(descriptors)


def _explain(result: Mapping[str, Any], stderr: str) -> str:
    """Explain which step the system refused, and what to do about it."""
    step, number = result.get("step"), result.get("errno", 0)
    if step is None:
        why = stderr.strip().splitlines()[-1:] or ["its process printed no error"]
        return f"--sealed: cannot make a sealed network: {why[0]}"
    if number == errno.EADDRINUSE:
        return f"--sealed: {step} is needed twice: choose another with --port, or another --pass"
    refused = f"--sealed: this system does not permit a sealed network ({step}: {os.strerror(number)})"
    return "\n".join(
        [
            refused,
            *_next_steps(number),
            "  or omit --sealed: programs that ignore proxy variables will then reach the network",
        ]
    )


def _next_steps(number: int) -> list[str]:
    if _apparmor_restricts():
        return ["  AppArmor restricts it: run as root, or", f"  sudo sysctl -w kernel.{_APPARMOR.name}=0"]
    if number in (errno.ENOSPC, errno.EUSERS):
        return ["  user.max_user_namespaces is too small: raise it (sysctl), or run as root"]
    if number == errno.ENOENT:
        return ["  it needs /proc, which is missing"]
    if number in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ENOPROTOOPT):
        return ["  its kernel lacks this kind of socket, or a system call filter forbids it"]
    if number in (errno.ENOSYS, errno.EINVAL):
        return ["  its kernel lacks network or user namespaces"]
    return ["  in a container: docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN", "  elsewhere: run as root"]


def _apparmor_restricts() -> bool:
    try:
        return os.geteuid() != 0 and _APPARMOR.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False
