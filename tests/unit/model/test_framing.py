from __future__ import annotations

from zlib import crc32

import pytest

from wiretape.model.framing import AwsFramer, Framer, LineFramer, ListFramer, SseFramer, framer_for, list_framer_for


def split(framer: Framer, data: bytes, size: int | None = None) -> list[bytes]:
    """All frames of `data`, fed in chunks of a size."""
    size = size or max(1, len(data))
    frames = [frame for at in range(0, len(data), size) for frame in framer.feed(data[at : at + size])]
    return [*frames, *framer.close()]


def aws_message(payload: bytes) -> bytes:
    head = (16 + len(payload)).to_bytes(4, "big") + (0).to_bytes(4, "big")
    head += crc32(head).to_bytes(4, "big")
    return head + payload + crc32(head + payload).to_bytes(4, "big")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_ends_after_its_blank_line(end: bytes) -> None:
    data = b"event: a" + end + b"data: 1" + end + end + b": ping" + end + end + b"data: 2" + end + end
    expected = [b"event: a" + end + b"data: 1" + end + end, b": ping" + end + end, b"data: 2" + end + end]
    for size in (1, 2, 3, len(data)):
        assert split(SseFramer(), data, size) == expected


def test_an_event_is_handed_out_with_its_last_byte() -> None:
    framer = SseFramer()
    assert framer.feed(b"data: 1\n") == []
    assert framer.feed(b"\n") == [b"data: 1\n\n"]


def test_the_rest_is_a_last_frame() -> None:
    assert split(SseFramer(), b"data: 1\n\ndata: 2") == [b"data: 1\n\n", b"data: 2"]
    assert split(LineFramer(), b'{"a":1}\n{"b"') == [b'{"a":1}\n', b'{"b"']


def test_a_carriage_return_waits_for_its_line_feed() -> None:
    framer = SseFramer()
    assert framer.feed(b"data: 1\r\n\r") == []
    assert framer.feed(b"\ndata: 2\r\r") == [b"data: 1\r\n\r\n"]
    assert framer.close() == [b"data: 2\r\r"]


def test_further_blank_lines_are_separate_frames() -> None:
    assert split(SseFramer(), b"\n\ndata: 1\n\n\n") == [b"\n", b"\n", b"data: 1\n\n", b"\n"]


def test_an_aws_message_ends_where_its_length_says() -> None:
    data = aws_message(b"one") + aws_message(b"") + aws_message(b"three" * 50)
    for size in (1, 7, len(data)):
        frames = split(AwsFramer(), data, size)
        assert frames == [aws_message(b"one"), aws_message(b""), aws_message(b"three" * 50)]


def test_after_a_broken_aws_prelude_the_rest_is_one_frame() -> None:
    data = aws_message(b"one") + b"this is no event stream at all" + aws_message(b"two")
    for size in (1, len(data)):
        assert split(AwsFramer(), data, size) == [aws_message(b"one"), data[len(aws_message(b"one")) :]]


@pytest.mark.parametrize(
    ("content_type", "first", "kind"),
    [
        ("text/event-stream; charset=utf-8", b"data: 1", SseFramer),
        ("text/event-stream", b'{"error": "quota"}', None),  # an error under the stream's content type
        ("Application/X-NDJSON", b'{"a"', LineFramer),
        ("application/vnd.amazon.eventstream", b"\0\0\0\x10", AwsFramer),
        ("application/json", b"data: 1", None),
        (None, b"data: {}\n\n", SseFramer),
        ("text/plain", b": OPENROUTER PROCESSING\n\n", SseFramer),
        ("text/plain", b"database: 1", None),
        ("application/octet-stream", b'{"error"', None),
    ],
)
def test_the_content_type_decides_and_the_first_bytes_correct_it(
    content_type: str | None, first: bytes, kind: type[Framer] | None
) -> None:
    framer = framer_for(content_type, first)
    assert (None if framer is None else type(framer)) is kind


def test_a_list_is_split_after_its_elements() -> None:
    data = rb'[{"a": "}]\"[{", "b": [{}]}' + b"\n,\r\n" + rb'{"c": "\\"}' + b"\n]\n"
    expected = [rb'[{"a": "}]\"[{", "b": [{}]}', b"\n,\r\n" + rb'{"c": "\\"}', b"\n]\n"]
    for size in (1, 2, 3, len(data)):
        framer = ListFramer()
        assert split(framer, data, size) == expected
        assert framer.closed


def test_an_element_is_handed_out_with_its_last_byte() -> None:
    framer = ListFramer()
    assert framer.feed(b'[{"a": 1') == []
    assert framer.feed(b"}") == [b'[{"a": 1}']
    assert framer.feed(b', {"b') == []
    assert not framer.closed
    assert framer.close() == [b', {"b']


def test_what_follows_a_list_is_one_frame_with_its_end() -> None:
    assert split(ListFramer(), b"[1, 2]{}{}") == [b"[1, 2]{}{}"]


@pytest.mark.parametrize(
    ("content_type", "first", "expected"),
    [
        ("application/json; charset=UTF-8", b'[{"a', True),
        ("application/json", b"[\r\n  {", True),
        (None, b"[{", True),
        ("application/json", b"[1", False),
        ("application/json", b"{", False),
        ("text/html", b"[{", False),
    ],
)
def test_a_list_of_objects_can_be_a_stream(content_type: str | None, first: bytes, expected: bool) -> None:
    assert (list_framer_for(content_type, first) is not None) is expected
