"""Runs a program and captures its output, which the debugger shows on its screen.

The program has an empty standard input and its own process group, because the debugger reads the keyboard.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from wiretape.adapters.launch.child import CommandNotExecutable, CommandNotFound, find_command, pump
from wiretape.adapters.open_files import usual_limit

Stream = Literal["out", "err"]
_PATIENCE_S = 3.0  # between SIGTERM and SIGKILL


class CaughtProgram:
    """Calls `on_line` for each line, on two threads, and `on_end` with the exit code after the last line."""

    def __init__(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        on_line: Callable[[Stream, str], None],
        on_end: Callable[[int], None],
    ) -> None:
        self._argv, self._environ = list(argv), dict(environ)
        self._on_line, self._on_end = on_line, on_end
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: threading.Thread | None = None

    def start(self) -> None:
        """Start the program. Raises UsageError if it cannot be run."""
        program = find_command(self._argv, self._environ)
        own_group = {} if sys.platform == "win32" else {"process_group": 0}
        try:
            with usual_limit():
                self._process = subprocess.Popen(
                    self._argv,
                    executable=program,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    **own_group,  # type: ignore[call-overload]
                )
        except FileNotFoundError as error:
            raise CommandNotFound(
                f"cannot run {self._argv[0]}: the interpreter in its first line was not found"
            ) from error
        except OSError as error:
            raise CommandNotExecutable(f"cannot run {self._argv[0]}: {error.strerror or error}") from error
        self._waiting = threading.Thread(target=self._wait, name="wiretape-program", daemon=True)
        self._waiting.start()

    def stop(self) -> None:
        """End the process group: with SIGTERM, and after a while with SIGKILL."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        self._signal(signal.SIGTERM)
        timer = threading.Timer(_PATIENCE_S, self._kill)
        timer.daemon = True
        timer.start()

    def join(self) -> None:
        if self._waiting is not None:
            self._waiting.join()

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    def _signal(self, number: int) -> None:
        assert self._process is not None
        with suppress(OSError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, number)

    def _wait(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        lines = {name: _Lines(name, self._on_line) for name in ("out", "err")}
        pumps = [pump(process.stdout, lines["out"].feed), pump(process.stderr, lines["err"].feed)]
        code = process.wait()
        for one in pumps:
            one.join(_PATIENCE_S)  # a background process of the program may keep the pipe open
        for rest in lines.values():
            rest.close()
        self._on_end(128 - code if code < 0 else code)


class _Lines:
    """Splits a stream into lines. The last one may lack a newline."""

    def __init__(self, stream: str, on_line: Callable[[Stream, str], None]) -> None:
        self._stream: Stream = "out" if stream == "out" else "err"
        self._on_line, self._rest = on_line, b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(self._stream, line.decode("utf-8", "replace").rstrip("\r"))

    def close(self) -> None:
        if self._rest:
            self._on_line(self._stream, self._rest.decode("utf-8", "replace"))
            self._rest = b""
