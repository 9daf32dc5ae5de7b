"""WebSocket frames, read from either side in any cutting, and written for a server."""

from __future__ import annotations

import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.upstream import frame as client_frame

from wiretape.adapters.http1.websocket_frames import (
    NO_STATUS,
    FrameReader,
    WebSocketEvent,
    accept_key,
    close_frame,
    frame,
    message_frame,
)

MASK = b"\x01\x02\x03\x04"
MESSAGES: list[str | bytes] = ["", "hi", "你好", b"\x00\xff", "x" * 125, "x" * 126, "x" * 65_535, "x" * 65_536]


def events(*expected: str | bytes) -> list[WebSocketEvent]:
    return [WebSocketEvent("message", data) for data in expected]


def test_messages_of_every_length_come_back_from_either_side() -> None:
    assert FrameReader().feed(b"".join(message_frame(data) for data in MESSAGES)) == events(*MESSAGES)
    masked = b"".join(
        client_frame(1, data.encode(), MASK) if isinstance(data, str) else client_frame(2, data, MASK)
        for data in MESSAGES
    )
    assert FrameReader().feed(masked) == events(*MESSAGES)


@given(st.lists(st.integers(0, 60), max_size=8))
def test_cutting_never_changes_what_is_read(cuts: list[int]) -> None:
    data = message_frame("你好") + client_frame(2, b"\x00\x01", MASK) + frame(9, b"ping") + close_frame(1001, "gone 走")
    at = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reader = FrameReader()
    got = [event for start, end in itertools.pairwise(at) for event in reader.feed(data[start:end])]
    assert got == [
        *events("你好", b"\x00\x01"),
        WebSocketEvent("ping", b"ping"),
        WebSocketEvent("close", "gone 走", 1001),
    ]


def test_fragments_are_one_message_with_control_frames_between_them() -> None:
    first, last = bytes([0x01, 2]) + "你".encode()[:2], bytes([0x80, 1]) + "你".encode()[2:]
    assert FrameReader().feed(first + frame(9, b"") + last) == [WebSocketEvent("ping", b""), *events("你")]


def test_compressed_messages_share_their_window_or_begin_anew() -> None:
    for anew in (False, True):
        reader, deflate = FrameReader(deflated=True), zlib.compressobj(wbits=-15)
        for text in ("hello hello hello", "hello again"):
            if anew:
                deflate = zlib.compressobj(wbits=-15)
            data = (deflate.compress(text.encode()) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4]
            assert reader.feed(bytes([0xC1, len(data)]) + data) == events(text)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x01a", "unexpected frame with opcode 0"),  # continues a message that was not begun
        (b"\x83\x01a", "unexpected frame with opcode 3"),
        (b"\x8b\x00", "unexpected frame with opcode 11"),
        (b"\x01\x01a\x81\x01b", "unexpected frame with opcode 1"),  # a message within another one
        (b"\x81\x7f" + b"\xff" * 8, "the length of a frame exceeds 63 bits"),
    ],
)
def test_frames_that_break_the_protocol_are_an_error(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FrameReader().feed(data)


def test_a_compressed_message_without_negotiation_is_an_error() -> None:
    with pytest.raises(ValueError, match="compression was not negotiated"):
        FrameReader().feed(bytes([0xC1, 1, 0]))


def test_a_close_may_have_no_code_and_its_reason_is_cut_between_characters() -> None:
    assert FrameReader().feed(close_frame(NO_STATUS, "")) == [WebSocketEvent("close", "", NO_STATUS)]
    (event,) = FrameReader().feed(close_frame(1000, "走" * 100))
    assert event.data == "走" * 41


def test_the_handshake_is_answered_as_the_standard_says() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
