"""Server-sent events: every line end, split anywhere."""

from __future__ import annotations

import pytest

from wiretape.wire.sse import NdjsonDecoder, SseDecoder, SseEvent


def read(data: bytes, size: int | None = None) -> list[SseEvent]:
    decoder = SseDecoder()
    chunks = [data] if size is None else [data[i : i + size] for i in range(0, len(data), size)]
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.close()


def data_of(events: list[SseEvent]) -> list[tuple[str, str]]:
    return [(event.name, event.text) for event in events]


CASES = [
    (b"data: a\n\n", [("", "a")]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", "a"), ("", "b")]),
    (b"data: a\r\rdata: b\r\r", [("", "a"), ("", "b")]),
    (b"data:{}\n\n", [("", "{}")]),
    (b"data:  two\n\n", [("", " two")]),
    (b"data: a\ndata: b\n\n", [("", "a\nb")]),
    (b"data\ndata: b\n\n", [("", "\nb")]),
    (b": OPENROUTER PROCESSING\n\ndata: a\n\n", [("", "a")]),
    (b"event: ping\ndata: {}\n\n", [("ping", "{}")]),
    (b"event:done\ndata: [DONE]\n\n", [("done", "[DONE]")]),
    (b"event: lonely\n\n", [("lonely", "")]),
    (b"id: 7\nretry: 10\ndata: a\n\n", [("", "a")]),
    (b"data: last without a blank line", [("", "last without a blank line")]),
    (b"data: last with a line end\n", [("", "last with a line end")]),
    (b"\xef\xbb\xbfdata: after a mark\n\n", [("", "after a mark")]),
    ("data: 今天\n\n".encode(), [("", "今天")]),
    (b'data: {"a":1}   \n\n', [("", '{"a":1}   ')]),
    (b"\n\n\n\ndata: a\n\n\n\n", [("", "a")]),
    (b"data: a\nunknown: x\n\n", [("", "a")]),
    (b"", []),
]


@pytest.mark.parametrize(("data", "expected"), CASES)
@pytest.mark.parametrize("size", [None, 1, 2, 3, 5])
def test_events_do_not_depend_on_the_chunks(data: bytes, expected: list[tuple[str, str]], size: int | None) -> None:
    assert data_of(read(data, size)) == expected


def test_a_carriage_return_at_the_end_of_a_chunk_waits_for_its_line_feed() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r") == []
    assert decoder.feed(b"\ndata: b\r\n\r") == []
    assert data_of(decoder.feed(b"\n")) == [("", "a\nb")]


def test_an_event_is_returned_with_its_blank_line() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert data_of(decoder.feed(b"\n")) == [("", "a")]


def test_an_id_stays_until_the_next_one() -> None:
    assert [e.id for e in read(b"id: 1\ndata: a\n\ndata: b\n\n")] == ["1", "1"]


def test_lines_of_json_with_and_without_the_last_line_end() -> None:
    decoder = NdjsonDecoder()
    events = decoder.feed(b'{"a":1}\r\n\n{"b"')
    assert [e.data for e in events] == [b'{"a":1}']
    assert [e.data for e in decoder.feed(b":2}")] == []
    assert [e.data for e in decoder.close()] == [b'{"b":2}']
