"""Law 3: decode(encode(x)) = x, for every body and every record."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.taping import STARTED, Taping, layouts, objects, spell, texts, values

from wiretape.model.http import (
    Body,
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    StreamBody,
    TextBody,
    WsMessage,
    body_bytes,
)
from wiretape.tape.format import patch
from wiretape.tape.format.bodies import Base, body_of, plain_body, response_body, shape_of
from wiretape.tape.format.documents import Header
from wiretape.tape.format.incremental_parser import BodyParser
from wiretape.tape.format.json_layout import NotCarried
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.writing.writer import write_tape


def no_base(name: str) -> Base:
    raise AssertionError(name)


def same(a: Any, b: Any) -> bool:
    """Equal values, types and key order."""
    return bool(orjson.dumps(a) == orjson.dumps(b))


def ignore(_: str) -> None:
    raise AssertionError("nothing to warn of")


# -- bodies ------------------------------------------------------------------------------------------------------

spelled = st.builds(spell, objects | st.lists(values, max_size=4), layouts, st.booleans())
raw_bodies = spelled | st.binary(min_size=1, max_size=40) | texts.map(str.encode).filter(bool)


@given(raw=raw_bodies)
def test_any_response_body_is_replayed_byte_for_byte(raw: bytes) -> None:
    body = plain_body(raw)
    assert body is not None
    shape = orjson.loads(orjson.dumps(shape_of(body)))
    assert body_bytes(body_of(shape, no_base, ignore)) == raw


events = st.lists(
    texts.map(lambda t: f"data: {t}\n\n".encode()) | st.sampled_from([b"~1,2:x\n\n", b"\n", b"~"]), max_size=8
)


@given(frames=events, cuts=st.lists(st.integers(1, 9), max_size=20), tail=st.binary(max_size=3))
def test_any_stream_is_replayed_frame_by_frame(frames: list[bytes], cuts: list[int], tail: bytes) -> None:
    data = b"".join(frames) + tail
    chunks, at = [], 0
    for number, size in enumerate(cuts):
        chunks.append((number * 3, data[at : at + size]))
        at += size
    chunks.append((99, data[at:]))
    body = response_body(chunks, "text/event-stream")
    if body is None:
        assert data == b""
        return
    assert body_bytes(body) == data
    read = body_of(orjson.loads(orjson.dumps(shape_of(body))), no_base, ignore)
    assert read == body
    assert body_bytes(read) == data


@given(value=objects, layout=layouts, ascii=st.booleans())
def test_a_parsed_request_keeps_values_and_spelling(value: Any, layout: Any, ascii: bool) -> None:
    raw = spell(value, layout, ascii)
    try:
        parsed = BodyParser().parse(raw)
    except NotCarried:
        assert "-0" in raw.decode()  # the only thing here that JSON values cannot carry
        return
    assert same(parsed.value, value) or not parsed.exact
    if parsed.exact:
        assert body_bytes(JsonBody(parsed.value, parsed.layout, parsed.ascii)) == raw


# -- patches -----------------------------------------------------------------------------------------------------


@given(old=objects, new=objects)
def test_the_patch_between_two_values_makes_one_of_the_other(old: Any, new: Any) -> None:
    before = orjson.dumps(old)
    changes, keys = patch.diff(old, new)
    made = patch.apply(old, orjson.loads(orjson.dumps(changes)), keys)
    assert same(made, new)
    assert orjson.dumps(old) == before  # untouched


messages = st.lists(st.sampled_from([{"role": "user", "content": c} for c in "abcdef"]), max_size=8)


@given(old=messages, new=messages)
def test_patches_of_histories(old: Any, new: Any) -> None:
    changes, keys = patch.diff({"messages": old}, {"messages": new})
    assert same(patch.apply({"messages": old}, changes, keys), {"messages": new})


# -- sharing -----------------------------------------------------------------------------------------------------

content = st.sampled_from(["", "x" * 30, "y" * 90, "天气" * 20, 1, 1.0, True, None, [], {"a": [1]}])
member = st.fixed_dictionaries({"role": st.sampled_from(["user", "tool"]), "content": content})
histories = st.lists(
    st.fixed_dictionaries({"m": st.lists(member, max_size=6), "t": st.lists(content, max_size=3)}), max_size=8
)


@settings(max_examples=60)
@given(bodies=histories, layout=layouts, ascii=st.booleans())
def test_shared_bodies_equal_unshared_bodies(bodies: list[Any], layout: Any, ascii: bool) -> None:
    parser = BodyParser()
    for body in bodies:
        raw = spell(body, layout, ascii)
        parsed = parser.parse(raw)
        assert same(parsed.value, body)
        assert body_bytes(JsonBody(parsed.value, parsed.layout, parsed.ascii)) == raw
        if parsed.base is not None and parsed.key is not None:
            old, new = parsed.base.value[parsed.key], parsed.value[parsed.key]
            assert all(a is b for a, b in zip(old[: parsed.common], new[: parsed.common], strict=True))


@settings(max_examples=40, deadline=None)
@given(bodies=histories, layout=layouts, answers=st.lists(raw_bodies, min_size=8, max_size=8))
def test_a_recorded_loop_is_decoded_as_it_crossed_the_wire(
    bodies: list[Any], layout: Any, answers: list[bytes]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "loop.tape"
        taping = Taping(path)
        raws = [spell(body, layout) for body in bodies]
        for raw, answer in zip(raws, answers, strict=False):
            taping.call(raw, [answer])
        assert not taping.recorder.close().incomplete, taping.troubles
        tape = read_tape(path)
        assert tape.warnings == ()
        assert [body_bytes(x.request.body) for x in tape.exchanges] == raws
        assert [body_bytes(x.response.body) for x in tape.exchanges if x.response] == answers[: len(raws)]
        assert list(tape.exchanges) == taping.exchanges


# -- records -----------------------------------------------------------------------------------------------------

names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
headers = st.lists(st.tuples(names, texts), max_size=4).map(Headers)
times = st.integers(0, 10**6)
json_bodies = st.builds(JsonBody, objects, layouts, st.booleans(), st.booleans())
streams = st.lists(texts.map(str.encode), max_size=4).flatmap(
    lambda frames: st.builds(
        StreamBody, st.just(tuple(frames)), st.just(tuple(range(len(frames)))), st.booleans(), st.just(())
    )
)
bodies = json_bodies | streams | st.builds(TextBody, texts) | st.builds(BytesBody, st.binary(max_size=9))
requests = st.builds(Request, names, texts, headers, st.none() | bodies, st.none() | st.sampled_from(["1.1", "2"]))
responses = st.builds(Response, st.integers(100, 599), headers, times, st.none() | bodies, st.none() | headers)
ws_messages = st.builds(WsMessage, times, st.sampled_from(["client", "server"]), bodies)
closes = st.builds(Close, st.integers(1000, 4999), texts, st.sampled_from(["client", "server", None]))


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    """A whole exchange: answered, unanswered, or a WebSocket."""
    at, ended, end = draw(times), draw(st.sampled_from(Ended)), draw(times)
    request = draw(requests)
    kind = draw(st.sampled_from(["answered", "unanswered", "websocket"]))
    if kind == "unanswered":
        return Exchange(1, at, request, None, ended, at + end)
    response = draw(responses)
    if kind == "answered":
        return Exchange(1, at, request, response, ended, at + end)
    found = tuple(draw(st.lists(ws_messages, min_size=1, max_size=4)))
    return Exchange(1, at, request, response, ended, at + end, found, draw(st.none() | closes))


def in_order(exchange: Exchange, number: int) -> Exchange:
    """Times that can have happened."""
    from dataclasses import replace

    at = exchange.at
    response = exchange.response and replace(exchange.response, headers_at=at + 1)
    messages = tuple(replace(message, at=at + 2 + i) for i, message in enumerate(exchange.messages))
    end = at + 2 + len(messages) + (exchange.ended_at or 0)
    return replace(exchange, number=number, response=response, messages=messages, ended_at=end)


def comparable(body: Body | None) -> Any:
    """A body with what counts in JSON values: types and key order."""
    return (orjson.dumps(body.value), body.layout, body.ascii, body.exact) if isinstance(body, JsonBody) else body


@settings(max_examples=60, deadline=None)
@given(found=st.lists(exchanges(), max_size=3), suffix=st.sampled_from([".tape", ".tape.zst"]))
def test_any_exchange_survives_the_tape(found: list[Exchange], suffix: str) -> None:
    found = [in_order(exchange, number) for number, exchange in enumerate(found, 1)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"any{suffix}"
        header = Header(started=STARTED, recorder="test", note="天气")
        write_tape(path, header, found)
        tape = read_tape(path)
    assert tape.header == header
    assert tape.warnings == ()
    assert tape.exchanges == tuple(found)
    for read, written in zip(tape.exchanges, found, strict=True):
        assert comparable(read.request.body) == comparable(written.request.body)
        assert [comparable(m.body) for m in read.messages] == [comparable(m.body) for m in written.messages]
