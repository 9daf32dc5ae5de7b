from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.taping import Taping

from wiretape.model.http import BytesBody, Ended, JsonBody, Layout, StreamBody, TextBody, body_bytes
from wiretape.tape.format.bodies import digest, json_body, plain_body, response_body, shape_of
from wiretape.tape.format.frames import from_base64, to_base64
from wiretape.tape.format.json_layout import element_encoder
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.writing.body_store import BodyStore


@pytest.mark.parametrize(
    ("raw", "shape"),
    [
        (b'{"a":1}', {"json": {"a": 1}}),
        (b'{"a": [1, 2]}', {"json": {"a": [1, 2]}, "layout": "spaced"}),
        (b'{\n  "a": 1\n}', {"json": {"a": 1}, "layout": "indent2"}),
        (b'{\n    "a": [\n        1\n    ]\n}', {"json": {"a": [1]}, "layout": "indent4"}),
        (b'{"a":"\\u5929"}', {"json": {"a": "天"}, "ascii": True}),
        ('{"a":"天"}'.encode(), {"json": {"a": "天"}}),
        (b"[]", {"json": []}),
        (b'{"a":1}\n', {"text": '{"a":1}\n'}),  # no layout ends so
        (b'\n\n{"a":1}', {"text": '\n\n{"a":1}'}),
        (b'{"a":1,"a":2}', {"text": '{"a":1,"a":2}'}),
        (b'{"a":NaN}', {"text": '{"a":NaN}'}),
        (b'{"a":18446744073709551616}', {"text": '{"a":18446744073709551616}'}),
        (b'{"a":-0}', {"text": '{"a":-0}'}),
        (b'{"a":1.50}', {"text": '{"a":1.50}'}),
        (b"plain", {"text": "plain"}),
        (b"\xff\x00", {"base64": "/wA="}),
    ],
)
def test_a_response_body_takes_the_nicest_shape_that_gives_its_bytes(raw: bytes, shape: object) -> None:
    body = plain_body(raw)
    assert body is not None
    assert shape_of(body) == shape
    assert body_bytes(body) == raw


def test_an_empty_body_is_none() -> None:
    assert plain_body(b"") is None
    assert response_body([], "text/event-stream") is None


@pytest.mark.parametrize(
    ("raw", "shape"),
    [
        (b'{"a":1.50,"b":"\\u003c"}', {"json": {"a": 1.5, "b": "<"}, "exact": False}),
        (b' {"a" : 1}\n', {"json": {"a": 1}, "exact": False}),
        (b'{"a":1,"a":2}', {"text": '{"a":1,"a":2}'}),
        (b'{"a":{"b":1,"b":1}}', {"text": '{"a":{"b":1,"b":1}}'}),
        (b'{"a":Infinity}', {"text": '{"a":Infinity}'}),
        (b'{"a":"\\ud83d"}', {"text": '{"a":"\\ud83d"}'}),
        (b'{"a":-0}', {"text": '{"a":-0}'}),
        (b'{"a":-9223372036854775809}', {"text": '{"a":-9223372036854775809}'}),
        (b'{"a":18446744073709551615}', {"json": {"a": 18446744073709551615}}),
        (b'{"a":"\xff"}', {"base64": "eyJhIjoi/yJ9"}),
        (b'{"a":1e400}', {"text": '{"a":1e400}'}),
        (b"grant_type=x", {"text": "grant_type=x"}),
    ],
)
def test_a_request_body_keeps_its_values_or_stays_as_it_is(raw: bytes, shape: object) -> None:
    placed = BodyStore(None).place("1", raw)
    assert placed is not None
    assert placed[0] == shape
    if not isinstance(placed[1], JsonBody) or placed[1].exact:
        assert body_bytes(placed[1]) == raw


def test_a_stream_is_stored_event_by_event() -> None:
    chunks = [(3, b'data: {"id":"abc-1","delta":"He"}\n\n'), (9, b'data: {"id":"abc-1","delta":"llo"}\n\ndata: [DONE]')]
    body = response_body(chunks, "text/event-stream")
    assert body is not None
    assert shape_of(body) == {
        "events": ['data: {"id":"abc-1","delta":"He"}\n\n', "~29,4:llo", "data: [DONE]"],
        "ms": "3 9 9",
    }


def test_a_function_call_stream_stays_events() -> None:
    event = b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\\"a"}}]}}]}\n\n'
    body = response_body([(0, event * 2)], "text/event-stream")
    assert isinstance(body, StreamBody)
    assert list(body.frames) == [event, event]


def test_a_stream_that_is_no_text_is_stored_as_binary_frames() -> None:
    body = response_body([(1, b"data: \xff\n\n")], "text/event-stream")
    assert body is not None
    assert shape_of(body) == {"frames": ["ZGF0YTog/woK"], "ms": "1"}


def test_rewritten_frames_are_marked() -> None:
    shape = shape_of(StreamBody((b"a\n\n", b"b\n\n"), (0, 1), rewritten=(1,)))
    assert shape == {"events": ["a\n\n", "b\n\n"], "ms": "0 1", "rewritten": [1]}


def test_other_bodies_have_their_own_shapes() -> None:
    assert shape_of(TextBody("天")) == {"text": "天"}
    assert shape_of(BytesBody(b"\x00")) == {"base64": "AA=="}


def test_a_digest_depends_on_what_the_body_says_not_on_how_the_file_is_laid_out() -> None:
    shape = {"json": {"a": [1, "天"]}}
    again = orjson.loads(orjson.dumps(shape, option=orjson.OPT_INDENT_2))
    assert digest(shape) == digest(again) == "68116dac"
    assert digest({"json": {"a": [1.0, "天"]}}) != digest(shape)


@pytest.mark.parametrize("depth", [240, 250, 260, 900])
@pytest.mark.parametrize("form", [b'{"a":%b}', b'{"a": %b}', b"%b"])
def test_nesting_that_is_too_deep_for_the_encoder_stays_text(tmp_path: Path, depth: int, form: bytes) -> None:
    """It reads 1,024 levels and writes 254."""
    raw = form % (b"[" * depth + b"]" * depth)
    taping = Taping(tmp_path / "deep.tape")
    taping.call(raw, [raw])
    taping.call(raw[:-1] + b"}" if form != b"%b" else raw, [raw])
    x = taping.recorder.begin("GET", "wss://a.example/", "1.1", [])
    taping.recorder.message(x, "client", raw.decode())
    taping.recorder.message(x, "server", raw.decode())
    taping.recorder.end(x, Ended.COMPLETE)
    assert taping.recorder.close().troubles == ()
    tape = read_tape(tmp_path / "deep.tape")
    assert list(tape.exchanges) == taping.exchanges
    first = tape.exchanges[0]
    assert first.response is not None
    assert body_bytes(first.request.body) == body_bytes(first.response.body) == raw
    assert [body_bytes(message.body) for message in tape.exchanges[2].messages] == [raw, raw]


def test_a_body_nested_too_deeply_for_the_fast_encoder_has_a_hash() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    assert digest({"json": deep}) == digest({"json": [deep[0]]}) != digest({"json": deep[0]})


def test_much_base64_is_read_like_little() -> None:
    data = bytes(range(256)) * 14_000
    assert from_base64(to_base64(data), "here") == data
    for wrong in ("AA==" + "A" * (5 << 20), "A" * (5 << 20) + "!AAA", "A" * ((4 << 20) + 1)):
        with pytest.raises(ValueError, match="here: no base64"):
            from_base64(wrong, "here")


def test_a_large_body_is_written_as_a_small_one_would_be(tmp_path: Path) -> None:
    data = bytes(range(256)) * 14_001 + b"\xff"
    taping = Taping(tmp_path / "run.tape")
    taping.call(b"\xff" + data, [data], [("content-type", "application/octet-stream")])
    taping.recorder.close()
    text = (tmp_path / "run.tape").read_bytes()
    for body in (b"\xff" + data, data):
        assert b'    "body": {\n      "base64": "' + to_base64(body).encode() + b'"\n    }\n' in text
    (exchange,) = read_tape(tmp_path / "run.tape").exchanges
    assert exchange.response is not None
    assert (exchange.request.body, exchange.response.body) == (BytesBody(b"\xff" + data), BytesBody(data))


@pytest.mark.parametrize("layout", ["compact", "spaced"])
@settings(max_examples=20, deadline=None)
@given(text=st.text(max_size=30), number=st.floats(allow_nan=False, allow_infinity=False))
def test_a_large_body_is_spelled_part_by_part_as_it_is_in_one_piece(layout: Layout, text: str, number: float) -> None:
    """Long texts take another encoder, and members of a large object are spelled one by one."""
    long = (text + "\u2028\x7f\x1f é/\\") * (300_000 // (len(text) + 8))
    value = {"model": text, "messages": [{"role": "user", "content": long, "n": number}], text + "!": [1, number]}
    separators = (",", ":") if layout == "compact" else None
    raw = json.dumps(value, ensure_ascii=False, separators=separators).encode()
    body = json_body(raw)
    if body is not None:  # a number may be spelled differently by the two encoders
        assert body_bytes(body) == raw
    assert (
        element_encoder(layout, False)({"content": long})
        == json.dumps({"content": long}, ensure_ascii=False, separators=separators).encode()
    )
    assert json_body(json.dumps({"content": long}, ensure_ascii=False, separators=separators).encode()) is not None
