"""One frame of many chunks costs what its bytes cost, not their square."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import pytest

from wiretape.model.framing import LineFramer, ListFramer, SseFramer
from wiretape.wire.sse import NdjsonDecoder, SseDecoder

CHUNK = 4096


class Splitter(Protocol):
    def feed(self, chunk: bytes) -> list[bytes]: ...
    def close(self) -> list[bytes]: ...


def seconds(make: Callable[[], Splitter], data: bytes) -> tuple[float, int]:
    """CPU time for all chunks, and how many frames came."""
    splitter = make()
    start = time.process_time()
    frames = sum(len(splitter.feed(data[at : at + CHUNK])) for at in range(0, len(data), CHUNK))
    frames += len(splitter.close())
    return time.process_time() - start, frames


@pytest.mark.parametrize(
    ("make", "before", "fill", "after"),
    [
        (SseFramer, b"data: ", b"x", b"\n\n"),
        (SseDecoder, b"data: ", b"x", b"\n\n"),
        (LineFramer, b'{"a":"', b"x", b'"}\n'),
        (NdjsonDecoder, b'{"a":"', b"x", b'"}\n'),
        (ListFramer, b'[{"a":"', b"x\\n", b'"}'),
    ],
)
def test_ten_times_the_length_costs_about_ten_times_as_much(
    make: Callable[[], Splitter], before: bytes, fill: bytes, after: bytes
) -> None:
    def body(size: int) -> bytes:
        return before + fill * (size // len(fill)) + after

    short = min(seconds(make, body(1_000_000))[0] for _ in range(3))
    took, frames = min(seconds(make, body(10_000_000)) for _ in range(2))
    assert frames == 1
    assert took < 40 * max(short, 0.002)  # joined and searched anew for each chunk it would be a hundred times
