"""A tape of version 1 with every shape, frozen: whatever wiretape becomes, it reads this as it was meant."""

from __future__ import annotations

from pathlib import Path

from wiretape.model.http import Close, Ended, JsonBody, StreamBody, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.writing.writer import write_tape

TAPE = Path(__file__).parent / "shapes.tape"
SYSTEM = (
    "今天是 2026年02月28日 15时05分30秒 星期六。You are a careful assistant. "
    "Answer in one sentence, in the language of the question."
)
CHUNK = (
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1772262330,"model":"m-1",'
    '"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
)


def test_the_header() -> None:
    tape = read_tape(TAPE)
    assert tape.header.started.isoformat() == "2026-03-01T12:00:00+00:00"
    assert (tape.header.recorder, tape.header.note) == ("wiretape 0.1.0", "every shape of version 1")
    assert tape.header.redacted == ["authorization", "header", "set-cookie"]
    assert tape.header.bypassed == ["pypi.example.org"]
    assert tape.incomplete
    assert tape.warnings == (f"{TAPE}: is incomplete: No space left on device",)


def test_the_exchanges() -> None:
    exchanges = read_tape(TAPE).exchanges
    assert [(x.number, x.at, x.ended, x.ended_at) for x in exchanges] == [
        (1, 0, Ended.COMPLETE, 108),
        (2, 158, Ended.COMPLETE, 299),
        (3, 349, Ended.COMPLETE, 457),
        (4, 507, Ended.CLIENT_CLOSED, 622),
        (5, 672, Ended.COMPLETE, 776),
        (6, 826, Ended.UPSTREAM_CLOSED, 930),
        (7, 980, Ended.UPSTREAM_UNREACHABLE, 1010),
        (8, 1010, Ended.COMPLETE, 1055),
    ]
    assert [x.response and (x.response.status, x.response.headers_at) for x in exchanges] == [
        (200, 101),
        (200, 259),
        (200, 450),
        (200, 608),
        (429, 773),
        (500, 927),
        None,
        (101, 1030),
    ]
    first, third = exchanges[0].response, exchanges[2].response
    assert first is not None
    assert first.headers.all("set-cookie") == ("[redacted:set-cookie]", "[redacted:set-cookie]")
    assert third is not None
    assert third.trailers is not None
    assert dict(third.trailers) == {"x-checksum": "[redacted]"}
    assert exchanges[0].request.headers["authorization"] == "Bearer [redacted:authorization:1]"
    assert (exchanges[0].request.method, exchanges[0].request.http) == ("POST", "2")


def test_the_request_bodies() -> None:
    bodies = [x.request.body for x in read_tape(TAPE).exchanges]
    one, two, three, four = bodies[:4]
    assert isinstance(one, JsonBody)
    assert isinstance(two, JsonBody)
    assert isinstance(three, JsonBody)
    assert isinstance(four, JsonBody)
    assert one.value["messages"][0] == {"role": "system", "content": SYSTEM}
    assert body_bytes(one).startswith(rb'{"model": "m-1", "messages": [{"role": "system", "content": "\u4eca')
    assert list(two.value) == ["model", "messages", "stream"]
    assert two.value["messages"][3]["content"] == "晴 7°C (debug: [redacted:authorization:1])"
    assert two.value["messages"][0] is one.value["messages"][0]
    assert list(three.value) == ["stream", "messages", "model"]
    assert three.value["stream"] is False
    assert len(three.value["messages"]) == 5
    assert (four.value, four.exact) == ({"prompt": "<b>", "n": 1.5}, False)
    assert [body_bytes(body) for body in bodies[4:7]] == [b'{"a":1,"a":2}', b"\x89PNG\r\n\x1a\n\x00", b""]


def test_the_response_bodies() -> None:
    bodies = [x.response.body if x.response else None for x in read_tape(TAPE).exchanges]
    assert body_bytes(bodies[0]).endswith(b'"usage":{"prompt_tokens":90,"completion_tokens":12}}')
    stream, frames = bodies[1], bodies[3]
    assert isinstance(stream, StreamBody)
    assert [frame.decode() for frame in stream.frames] == [
        CHUNK % "晴",
        CHUNK % "，7°C",
        CHUNK % " key [redacted:authorization:1]",
        CHUNK % " end",
        ": ping\n\n",
        "data: [DONE]\n\n",
    ]
    assert (list(stream.ms), stream.rewritten) == ([10, 10, 22, 25, 29, 38], (2, 3))
    assert body_bytes(bodies[2]) == b'{\n  "ok": true\n}'
    assert isinstance(frames, StreamBody)
    assert frames.binary
    assert [len(frame) for frame in frames.frames] == [23, 9]
    assert body_bytes(bodies[4]).decode() == "slow down 慢一点"
    assert body_bytes(bodies[5]) == b"\xff\xfe"


def test_the_websocket() -> None:
    exchange = read_tape(TAPE).exchanges[7]
    assert exchange.close == Close(1000, "done", "client")
    assert [(m.at, m.sender) for m in exchange.messages] == [
        (1035, "client"),
        (1040, "server"),
        (1045, "client"),
        (1050, "server"),
        (1050, "server"),
    ]
    first, _, third, text, binary = (message.body for message in exchange.messages)
    assert isinstance(first, JsonBody)
    assert isinstance(third, JsonBody)
    assert third.value["input"][0] is first.value["input"][0]
    assert third.value["input"][1]["content"] == "And dinner."
    assert (body_bytes(text), body_bytes(binary)) == (b"not json", b"\x00\x01")


def test_written_again_it_says_the_same(tmp_path: Path) -> None:
    tape = read_tape(TAPE)
    write_tape(tmp_path / "again.tape", tape.header, tape.exchanges)
    again = read_tape(tmp_path / "again.tape")
    assert again.exchanges == tape.exchanges
    assert again.header == tape.header
    assert (tmp_path / "again.tape").read_text() == TAPE.read_text().rpartition("\n\n")[0] + "\n"
