"""AWS event stream messages: every header type, both checksums, and recognition of a body."""

from __future__ import annotations

from zlib import crc32

import pytest
from tests.support.wire_binary import AWS, binary, event, message

from wiretape.model.http import Body, BytesBody, Headers, Response, TextBody
from wiretape.wire.bedrock.event_stream import (
    AwsMessage,
    Corrupt,
    error_value,
    is_event_stream,
    parse_message,
    read_events,
)


def sealed(head: bytes, payload: bytes) -> bytes:
    prelude = (len(head) + len(payload) + 16).to_bytes(4, "big") + len(head).to_bytes(4, "big")
    whole = prelude + crc32(prelude).to_bytes(4, "big") + head + payload
    return whole + crc32(whole).to_bytes(4, "big")


def test_headers_of_every_type() -> None:
    values = [
        (b"\x00", True),
        (b"\x01", False),
        (b"\x02\xff", -1),
        (b"\x03\x01\x00", 256),
        (b"\x04\x00\x00\x00\x07", 7),
        (b"\x05" + (8).to_bytes(8, "big"), 8),
        (b"\x06\x00\x02\xab\xcd", "abcd"),
        (b"\x07\x00\x03\xe4\xbd\xa0", "你"),
        (b"\x08" + (1_700_000_000_000).to_bytes(8, "big"), 1_700_000_000_000),
        (b"\x09" + bytes(range(16)), bytes(range(16)).hex()),
    ]
    head = b"".join(b"\x02" + f"h{n}".encode() + raw for n, (raw, _) in enumerate(values))
    parsed = parse_message(sealed(head, b"{}"))
    assert parsed == AwsMessage({f"h{n}": value for n, (_, value) in enumerate(values)}, b"{}")


@pytest.mark.parametrize("head", [b"\x05ab", b"\x01a", b"\x01a\x0c", b"\x01a\x07\x00\x09ab", b"\x01a\x05\x00"])
def test_headers_that_cannot_be_read(head: bytes) -> None:
    found = parse_message(sealed(head, b"{}"))
    assert isinstance(found, Corrupt)
    assert found.problem == "the headers of a message cannot be read"


def test_headers_longer_than_the_message() -> None:
    prelude = (20).to_bytes(4, "big") + (900).to_bytes(4, "big")
    whole = prelude + crc32(prelude).to_bytes(4, "big") + b"abcd"
    found = parse_message(whole + crc32(whole).to_bytes(4, "big"))
    assert isinstance(found, Corrupt)


def test_corrupt_messages_state_their_problem() -> None:
    frame = event("messageStart", {"role": "assistant"})
    changed = frame[:-8] + bytes([frame[-8] ^ 1]) + frame[-7:]
    for data, said in (
        (frame[:7], "inside the head"),
        (frame[:40], f"40 of {len(frame)} bytes"),
        (b"\x01" + frame[1:], "checksum of a message's head"),
        (changed, "checksum of a message is"),
    ):
        found = parse_message(data)
        assert isinstance(found, Corrupt)
        assert said in found.problem
        assert found.data == data


@pytest.mark.parametrize(
    ("body", "labelled", "expected"),
    [
        (binary([event("x", {})]), False, True),
        (BytesBody(event("x", {})), False, True),
        (binary([event("x", {})[:5], event("x", {})[5:]]), False, True),
        (TextBody("\x00\x00\x01�"), True, True),
        (TextBody("\x00\x00\x01�"), False, False),
        (TextBody('{"message": "no"}'), True, False),
        (TextBody("data: {}\n\n"), True, False),
        (TextBody(""), True, False),
        (None, True, False),
    ],
)
def test_event_streams_are_recognized(body: Body | None, labelled: bool, expected: bool) -> None:
    assert is_event_stream(Response(200, Headers(AWS if labelled else []), 0, body)) is expected


def test_messages_keep_their_times_and_other_bytes_are_kept() -> None:
    frames = [event("a", {"x": 1}), event("b", b"no json"), b"rubbish rubbish"]
    read = read_events(Response(200, Headers(AWS), 0, binary(frames)))
    assert [tuple(e) for e in read.events] == [("event", "a", {"x": 1}, 0), ("event", "b", "no json", 1)]
    assert [bad.data for bad in read.corrupt] == [b"rubbish rubbish"]


def test_an_error_without_a_body() -> None:
    frame = message(b"", message_type="error", error_code="Gone", error_message="It is gone.")
    [found] = read_events(Response(200, Headers(AWS), 0, binary([frame]))).events
    assert (found.kind, found.name, found.value) == ("error", "Gone", {"message": "It is gone."})
    assert error_value("fooException", {})["error"]["message"] == "fooException"
