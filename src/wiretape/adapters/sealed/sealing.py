"""A sealed network for a program: loopback only, with nothing on it but sockets that this process serves.

It is a network namespace of Linux. This process stays outside, so that it can reach what it is to let through.
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
from typing import IO, Any

from wiretape.adapters.open_files import raise_limit
from wiretape.errors import UsageError

_INSIDE = str(Path(__file__).with_name("sealing_inside.py"))
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_ANSWER_S = 20.0  # a busy machine takes its time to start a program
_MOST_DESCRIPTORS = 250  # the system passes on 253 at once
EVERYWHERE = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class Seal:
    """A sealed network. `refusals`: sees the packets by which something is refused in it; `lookups`: where its names
    are asked for; `listening`: in the order that was asked for.
    """

    refusals: socket.socket
    lookups: socket.socket
    listening: tuple[socket.socket, ...]
    network: int
    users: int  # -1: the users are those of the system

    def start(
        self, argv: Sequence[str], *, executable: str, env: Mapping[str, str], **how: Any
    ) -> subprocess.Popen[Any]:
        """What `subprocess.Popen` is outside: the process is the program's own. OSError: it cannot be run."""
        with _written(env) as environ:
            came, failed = map(_as_file, os.pipe(), ("rb", "wb"))
            with came:
                with failed:
                    process = self._entering(environ, failed.fileno(), [executable, *argv], how)
                number = came.read()  # nothing: it has become the program
        if number:
            process.wait()
            raise OSError(int(number), os.strerror(int(number)))
        return process

    def _entering(
        self, environ: int, failed: int, program: Sequence[str], how: Mapping[str, Any]
    ) -> subprocess.Popen[Any]:
        numbers = (self.network, self.users, environ, failed)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", _INSIDE, "enter", *map(str, (*numbers, raise_limit())), *program],
            pass_fds=[one for one in numbers if one >= 0],
            **how,
        )

    def close(self) -> None:
        """Nobody is served in it any more. It is there for as long as a program is."""
        for one in (self.refusals, self.lookups, *self.listening):
            one.close()
        for descriptor in (self.network, self.users):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)


@contextmanager
def _written(env: Mapping[str, str]) -> Iterator[int]:
    """Variables in a file that has no name. The interpreter on the way gets our own: it must start here, too."""
    # Pythons that were built for old systems, as uv's and conda's, do not know of files in memory.
    known = hasattr(os, "memfd_create")
    with _as_file(os.memfd_create("wiretape-environ"), "wb") if known else TemporaryFile(buffering=0) as file:
        file.write(b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items()))
        yield file.fileno()


def _as_file(descriptor: int, mode: str) -> IO[bytes]:
    return open(descriptor, mode, buffering=0)


def make_seal(places: Sequence[tuple[str, int]]) -> Seal:
    """A sealed network with sockets that listen at these addresses inside. UsageError: it cannot be had, and why."""
    if sys.platform != "linux":
        raise UsageError(
            "--sealed needs the network namespaces of Linux, which this system has not\n"
            "  run wiretape in a Linux container (docs/replay.md, 'Sealed'), or leave --sealed out"
        )
    raise_limit()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", _INSIDE, "make", str(theirs.fileno())]
        command += [f"{address}:{port}" for address, port in places]
        try:
            making = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise UsageError(f"--sealed: {sys.executable} cannot be started: {error.strerror or error}") from None
        theirs.close()
        ours.settimeout(_ANSWER_S)
        told, descriptors = _told(ours)
        if not told:
            making.kill()  # it may be what hangs
        _, said = making.communicate()
    if "users" not in told:
        raise UsageError(_why_not(told, said))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    users = descriptors.pop(1) if told["users"] else -1
    network, *sockets = descriptors
    refusals, lookups, *listening = (socket.socket(fileno=descriptor) for descriptor in sockets)
    return Seal(refusals, lookups, tuple(listening), network, users)


def _told(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    try:
        message, descriptors, _, _ = socket.recv_fds(channel, 4096, _MOST_DESCRIPTORS)
    except OSError:
        return {}, []
    return (json.loads(message) if message else {}), list(descriptors)


def _why_not(told: Mapping[str, Any], said: str) -> str:
    """Which step the system refused, and what to do about it."""
    step, number = told.get("step"), told.get("errno", 0)
    if step is None:
        why = said.strip().splitlines()[-1:] or ["the process that makes it said nothing"]
        return f"--sealed: no sealed network could be made: {why[0]}"
    if number == errno.EADDRINUSE:
        return f"--sealed: {step} is wanted twice: choose another with --port, or another --pass"
    refused = f"--sealed: this system makes no sealed network ({step}: {os.strerror(number)})"
    return "\n".join([refused, *_next_steps(number), "  or leave --sealed out: what obeys no variables goes past then"])


def _next_steps(number: int) -> list[str]:
    if _apparmor_restricts():
        return ["  AppArmor restricts it: run as root, or", f"  sudo sysctl -w kernel.{_APPARMOR.name}=0"]
    if number in (errno.ENOSPC, errno.EUSERS):
        return ["  user.max_user_namespaces is too small: raise it (sysctl), or run as root"]
    if number == errno.ENOENT:
        return ["  it needs /proc, which is not there"]
    if number in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ENOPROTOOPT):
        return ["  its kernel is built without this kind of socket, or a filter of system calls takes it away"]
    if number in (errno.ENOSYS, errno.EINVAL):
        return ["  its kernel is built without network or user namespaces"]
    return ["  in a container: docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN", "  elsewhere: run as root"]


def _apparmor_restricts() -> bool:
    try:
        return os.geteuid() != 0 and _APPARMOR.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False
