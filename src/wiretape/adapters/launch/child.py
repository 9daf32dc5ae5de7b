"""Runs a program as a child process: variables, signals, exit code, and tags in front of its output lines."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Final, TypeAlias

from wiretape.adapters.open_files import usual_limit
from wiretape.errors import UsageError

Tag: TypeAlias = Callable[[], int | None]
RunProgram: TypeAlias = Callable[[Sequence[str], Mapping[str, str]], int]
"""Runs a command line in an environment, and returns the exit code."""
Start: TypeAlias = Callable[..., "subprocess.Popen[bytes]"]
NOT_FOUND = 127
NOT_EXECUTABLE = 126
# A terminal sends these to the whole foreground process group, so the child gets them, too.
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")
_READ: Final = 65536
_REST_S = 3.0  # a background process of the program may keep its output open
_PASSED_ON = (*_FROM_TERMINAL, "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGBREAK")


class CommandNotFound(UsageError):
    """The program to run does not exist."""

    exit_code = NOT_FOUND


class CommandNotExecutable(UsageError):
    """The program to run exists, but cannot be executed."""

    exit_code = NOT_EXECUTABLE


def proxy_variables(port: int) -> dict[str, str]:
    """Return variables that send every request of a child, also to loopback, through a proxy on 127.0.0.1:port.

    Both spellings are set, because curl reads only `http_proxy`. NO_PROXY is emptied, because it may list loopback.
    """
    url = f"http://127.0.0.1:{port}"
    variables = {}
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        variables[name] = variables[name.lower()] = url
    variables["NO_PROXY"] = variables["no_proxy"] = ""
    variables["NODE_USE_ENV_PROXY"] = "1"
    return variables


def find_command(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the path of a program. Raises CommandNotFound or CommandNotExecutable."""
    name = argv[0]
    found = shutil.which(name, path=environ.get("PATH"))
    if found is not None:
        return found
    if os.path.dirname(name) and os.path.exists(name):
        what = "is a directory" if os.path.isdir(name) else "is not executable (chmod +x it?)"
        raise CommandNotExecutable(f"cannot run {name}: it {what}")
    where = "no such file" if os.path.dirname(name) else "no program of that name is on the PATH"
    raise CommandNotFound(f"cannot run {name}: {where}")


def run_child(
    argv: Sequence[str],
    environ: Mapping[str, str],
    stdout: int | None = None,
    tag: Tag | None = None,
    start: Start = subprocess.Popen,
) -> int:
    """Run a program to its end and return its exit code: 128 + n if signal n ended it.

    `stdout`: a descriptor for its standard output. `tag`: returns the tag of each output line; the program's streams
    are then pipes. `start`: replaces `subprocess.Popen`, with the same arguments.

    Signals to this process are passed on to the program; this process ends after it.
    """
    program = find_command(argv, environ)
    with _signals_passed_on() as child:
        try:
            with usual_limit():
                child.process = start(
                    [argv[0], *argv[1:]],
                    executable=program,
                    env=dict(environ),
                    stdout=stdout if tag is None else subprocess.PIPE,
                    stderr=None if tag is None else subprocess.PIPE,
                )
        except FileNotFoundError as error:  # the interpreter in its first line does not exist
            raise CommandNotFound(f"cannot run {argv[0]}: the interpreter in its first line was not found") from error
        except OSError as error:
            raise CommandNotExecutable(f"cannot run {argv[0]}: {error.strerror or error}") from error
        pumps = _tag_output(child.process, tag, stdout) if tag is not None else []
        child.catch_up()
        code = child.process.wait()
        for pump in pumps:
            pump.join(_REST_S)
    return 128 - code if code < 0 else code


def _tag_output(process: subprocess.Popen[bytes], tag: Tag, stdout: int | None) -> list[threading.Thread]:
    assert process.stdout is not None
    assert process.stderr is not None
    onto = 1 if stdout is None else stdout
    return [pump(process.stdout, _tagged_writer(onto, tag)), pump(process.stderr, _tagged_writer(2, tag))]


class _Child:
    """The child process, and signals that arrived before it started."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._terminal_seen = False

    def pass_on(self, number: int, frame: FrameType | None = None) -> None:
        if self.process is None:
            self._early.append(number)
        elif not self._terminal_sent_it_too(number):
            with suppress(OSError):  # it has just ended, or runs as another user
                self.process.send_signal(number)

    def catch_up(self) -> None:
        for number in self._early:
            self.pass_on(number)
        self._early.clear()

    def _terminal_sent_it_too(self, number: int) -> bool:
        """True for the first Ctrl-C at a terminal, which the child has received, too. A second one is passed on."""
        if signal.Signals(number).name not in _FROM_TERMINAL or self._terminal_seen or not _in_foreground():
            return False
        self._terminal_seen = True
        return True


def _in_foreground() -> bool:
    """True if this process group owns the terminal, so that its keys signal the child directly."""
    if sys.platform == "win32":
        return True
    for stream in (0, 1, 2):
        try:
            return os.tcgetpgrp(stream) == os.getpgrp()
        except OSError:
            continue
    return False


@contextmanager
def _signals_passed_on() -> Iterator[_Child]:
    child = _Child()
    if threading.current_thread() is not threading.main_thread():
        yield child  # only the main thread may set handlers
        return
    previous = {}
    for name in _PASSED_ON:
        number = getattr(signal, name, None)
        # A signal that is ignored (nohup) stays ignored, for the child too.
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            previous[number] = signal.signal(number, child.pass_on)
    try:
        yield child
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


# -- tags in front of output lines -------------------------------------------------------------------------------------


class TaggedLines:
    """Puts a tag in front of each line of a stream. From the first NUL byte on, the stream is binary and unchanged."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._at_start = True
        self._binary = False

    def feed(self, data: bytes) -> bytes:
        """Return the data with a tag before each line that begins in it. No data is held back."""
        self._binary = self._binary or b"\0" in data
        if self._binary or not data:
            return data
        number = self._tag()
        mark = b"[%s] " % (b"-" if number is None else str(number).encode())
        lines = _lines(data)
        begun = mark if self._at_start else b""
        self._at_start = data.endswith(b"\n")
        return begun + mark.join(lines)


def _lines(data: bytes) -> list[bytes]:
    """Split at newlines only: a carriage return stays within its line."""
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def pump(source: IO[bytes], sink: Callable[[bytes], object]) -> threading.Thread:
    """Pass the data of a pipe to `sink` in a thread, until the pipe is closed."""
    thread = threading.Thread(target=_pump, args=(source, sink), name="wiretape-output", daemon=True)
    thread.start()
    return thread


def _pump(source: IO[bytes], sink: Callable[[bytes], object]) -> None:
    with source:
        while data := os.read(source.fileno(), _READ):
            sink(data)


def _tagged_writer(descriptor: int, tag: Tag) -> Callable[[bytes], None]:
    """Return a sink that writes tagged lines to a descriptor. If the descriptor is closed, it discards them."""
    lines = TaggedLines(tag)
    broken = False

    def write(data: bytes) -> None:
        nonlocal broken
        if broken:
            return
        left = memoryview(lines.feed(data))
        try:
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            broken = True

    return write
