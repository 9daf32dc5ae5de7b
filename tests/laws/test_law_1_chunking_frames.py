"""Law 1, for frames: chunking never changes how a stream is split, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretape.model.framing import AwsFramer, Framer, LineFramer, ListFramer, SseFramer

FRAMERS = [SseFramer, LineFramer, AwsFramer, ListFramer]
PARTS = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"data: ",
    b": ping",
    "天气".encode(),
    b"{}",
    b"a",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"\\",
    b",",
]
AWS_PARTS = [bytes.fromhex("000000100000000005c248eb7d98c8ff"), b"\0\0\0\x10", b"\0"]
streams = st.lists(st.sampled_from(PARTS + AWS_PARTS), max_size=30).map(b"".join) | st.binary(max_size=60)


def frames_of(make: Callable[[], Framer], chunks: list[bytes]) -> list[bytes]:
    framer = make()
    return [*(frame for chunk in chunks for frame in framer.feed(chunk)), *framer.close()]


@pytest.mark.parametrize("make", FRAMERS)
@given(data=streams, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_split_anywhere(make: Callable[[], Framer], data: bytes, cuts: list[int]) -> None:
    whole = frames_of(make, [data])
    assert b"".join(whole) == data
    assert all(whole)
    assert frames_of(make, [bytes([byte]) for byte in data]) == whole
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [data[a:b] for a, b in pairwise(places)]
    assert frames_of(make, pieces) == whole
