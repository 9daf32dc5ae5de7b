"""Marks what a program prints, line by line, with the number of the call that was answered last: `[3] text`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import IO

Tag = Callable[[], int | None]
_READ = 65536


class TaggedLines:
    """One stream. A tag stands where a line begins; what is no text passes as it is, from its first NUL byte on."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self._at_start = True
        self._binary = False

    def feed(self, data: bytes) -> bytes:
        """The same bytes, with a tag before each line that begins in them. Nothing is held back."""
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
    """Lines by their newlines alone: a carriage return stays within its line."""
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def pump(source: IO[bytes], sink: Callable[[bytes], object]) -> threading.Thread:
    """Hand on what comes out of a pipe as it comes, in a thread that ends with the pipe."""
    thread = threading.Thread(target=_pump, args=(source, sink), name="wiretape-output", daemon=True)
    thread.start()
    return thread


def _pump(source: IO[bytes], sink: Callable[[bytes], object]) -> None:
    with source:
        while data := os.read(source.fileno(), _READ):
            sink(data)


def tagged_onto(descriptor: int, tag: Tag) -> Callable[[bytes], None]:
    """A sink that writes to one of our own streams. When nobody reads that any more, the program goes on unread."""
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
