"""Handles standard streams that are closed or broken: output is discarded, and the command continues.

stderr has progress and notices, so its state changes neither tapes nor exit codes. stdout has results: a command that
cannot write them fails, except for the lines that `record` and `replay` print while they listen.
"""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress

_PATIENCE_S = 1.0  # for a full pipe that is non-blocking


def open_streams() -> None:
    """Open closed descriptors 0 to 2 on the null device, and make stderr ignore errors."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # else the next opened file, perhaps a tape, would get this descriptor
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "a", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _ignoring(2, sys.stderr)


def ignore_stdout() -> None:
    """Make stdout ignore errors, for commands whose purpose is not their output."""
    if sys.stdout is sys.__stdout__:
        sys.stdout = _ignoring(1, sys.stdout)


class _Sink(io.FileIO):
    """A file descriptor whose errors are ignored."""

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        with suppress(OSError):
            written = super().write(view)
            if written is None and select.select([], [self], [], _PATIENCE_S)[1]:  # non-blocking and full
                written = super().write(view)
            if written is not None:
                return written
        return view.nbytes


def _ignoring(descriptor: int, stream: io.TextIOWrapper | object) -> io.TextIOWrapper:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    raw = io.BufferedWriter(_Sink(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", line_buffering=True)
