"""Graceful GOAWAY frames are taken out of what a server sends, however its bytes are cut; all others pass."""

from __future__ import annotations

import pytest

pytest.importorskip("mitmproxy.addons", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from hyperframe.frame import DataFrame, Frame, GoAwayFrame, SettingsFrame
from hypothesis import given
from hypothesis import strategies as st

from wiretape.adapters.mitm._compat.goaway import GoawayFilter

FRAMES = st.one_of(
    st.builds(lambda data: DataFrame(1, data=data), st.binary(max_size=40)),
    st.just(SettingsFrame(settings={3: 100})),
    st.builds(lambda last: GoAwayFrame(last_stream_id=last, error_code=0), st.integers(0, 2**31 - 1)),
    st.builds(lambda code: GoAwayFrame(last_stream_id=5, error_code=code), st.integers(1, 13)),
)


def is_graceful(frame: Frame) -> bool:
    return isinstance(frame, GoAwayFrame) and frame.error_code == 0


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(1, 30), min_size=1))
def test_only_graceful_goaways_are_taken_out(frames: list[Frame], sizes: list[int]) -> None:
    sent = b"".join(frame.serialize() for frame in frames)
    goaway, passed, at = GoawayFilter(), b"", 0
    while at < len(sent):
        size = sizes[at % len(sizes)]
        passed += goaway.feed(sent[at : at + size])
        at += size
    assert passed == b"".join(frame.serialize() for frame in frames if not is_graceful(frame))
    graceful = [frame.last_stream_id for frame in frames if is_graceful(frame)]
    assert goaway.last == (graceful[-1] if graceful else None)


def test_a_frame_passes_as_it_comes() -> None:
    """A large frame is not held until it is whole."""
    sent = DataFrame(1, data=b"x" * 100).serialize()
    assert GoawayFilter().feed(sent[:50]) == sent[:50]
