"""Starts `wiretape` as a separate process, without loading its modules each time.

Loading the recorder takes two seconds of a processor, and its tests start it a hundred times. Here one process loads it
once and forks for each start. It is a real process with its own arguments, variables, directory, descriptors and
process id. It takes signals and exits as Python does. Only what it imports is there already.
What tests the loading itself starts `python -m wiretape`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ROOT = Path(__file__).parents[2]
# What `wiretape record` has imported by its end.
LOADED = (
    "wiretape.adapters.launch.child",
    "wiretape.adapters.mitm.updating",
    "wiretape.adapters.old_tape",
    "wiretape.adapters.launch.preparing",
    "wiretape.adapters.settings",
    "wiretape.adapters.launch.config_discovery",
    "wiretape.app.call_tags",
    "wiretape.app.record",
    "wiretape.app.recording_server",
    "wiretape.app.update",
    "wiretape.cli.main",
    "wiretape.cli.programs",
    "wiretape.cli.record_report",
    "wiretape.cli.run.record",
    "wiretape.tape.reading.reader",
    "wiretape.tape.recording.recorder",
    "wiretape.tape.redaction",
    "wiretape.wire.registry",
)
PATIENCE_S = 180.0  # a machine that others use, too, may be slow; only what hangs takes so long
_LENGTH = 4  # bytes in front of a request that say how long it is


class Program:
    """A `wiretape` that runs. `told`: where its process id came from, and its exit code will."""

    def __init__(self, arguments: Sequence[str], told: IO[bytes]) -> None:
        self._arguments = list(arguments)
        self._told = told
        self.pid = int(told.readline())

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Return the exit code, or minus the signal. Kills a process that exceeds its time and raises an error."""
        ready, _, _ = select.select([self._told], [], [], timeout)
        if not ready:
            self.send_signal(signal.SIGKILL)
        code = int(self._told.readline())
        self._told.close()
        if not ready:
            raise subprocess.TimeoutExpired(self._arguments, timeout)
        return code


def start(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdout: int, stderr: int | None = None
) -> Program:
    """Run `wiretape ARGUMENTS`; its output goes to these descriptors, or nowhere."""
    return _loaded().start(arguments, env, cwd, stdout, stderr)


def run(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run `wiretape ARGUMENTS` to its end, as `subprocess.run` would."""
    with TemporaryFile() as out, TemporaryFile() as err:
        code = start(arguments, env=env, cwd=cwd, stdout=out.fileno(), stderr=err.fileno()).wait(timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, out.read().decode(), err.read().decode())


@lru_cache(maxsize=1)
def _loaded() -> _Loaded:
    loaded = _Loaded()
    atexit.register(loaded.close)
    return loaded


class _Loaded:
    """The process that has loaded everything, seen from the tests."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.starting", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def start(
        self, arguments: Sequence[str], env: Mapping[str, str], cwd: Path, stdout: int, stderr: int | None
    ) -> Program:
        request = json.dumps([list(arguments), dict(env), str(cwd)]).encode()
        told, tell = os.pipe()
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            descriptors = [nowhere, stdout, nowhere if stderr is None else stderr, tell]
            socket.send_fds(self._channel, [len(request).to_bytes(_LENGTH)], descriptors)
            self._channel.sendall(request)
        finally:
            os.close(tell)
            os.close(nowhere)
        return Program(arguments, os.fdopen(told, "rb", buffering=0))

    def close(self) -> None:
        self._channel.close()
        self._process.wait(10)


# -- the process that has loaded everything ------------------------------------------------------------------------


def serve(channel: socket.socket) -> int:
    """Fork for each request until no one asks any more. Comes back with an exit code, in a fork with wiretape's."""
    for name in LOADED:
        import_module(name)
    gc.freeze()  # the forks share these objects for as long as they do not touch them
    while True:
        head, descriptors, _, _ = socket.recv_fds(channel, _LENGTH, 4)
        if not head:
            return 0
        request = _exactly(channel, int.from_bytes(head))
        if os.fork() == 0:
            channel.close()
            return _watch(*descriptors, *json.loads(request))
        for one in descriptors:
            os.close(one)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # those that ended before
                pass


def _exactly(channel: socket.socket, length: int) -> bytes:
    request = b""
    while len(request) < length:
        request += channel.recv(length - len(request))
    return request


def _watch(
    stdin: int, stdout: int, stderr: int, tell: int, arguments: list[str], environ: dict[str, str], cwd: str
) -> int:
    """Tell the process id and the exit code of a fork that is wiretape. Comes back in that fork only."""
    pid = os.fork()
    if pid == 0:
        os.close(tell)
        for place, one in enumerate((stdin, stdout, stderr)):
            os.dup2(one, place)
        for one in {stdin, stdout, stderr} - {0, 1, 2}:
            os.close(one)
        return _be_wiretape(arguments, environ, cwd)
    for one in {stdin, stdout, stderr}:
        os.close(one)
    os.write(tell, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(tell, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _be_wiretape(arguments: list[str], environ: dict[str, str], cwd: str) -> int:
    os.setsid()  # what a terminal sends to the tests is not for it
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace", buffering=1, closefd=False)
    sys.argv[1:] = arguments
    main = import_module("wiretape.cli.main").main
    code: int = main(arguments)
    return code


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        code = serve(asking)
    sys.exit(code)
