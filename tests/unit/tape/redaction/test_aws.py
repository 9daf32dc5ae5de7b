"""Secrets in AWS event streams: what is replaced leaves lengths and checksums right."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from zlib import crc32

import orjson
import pytest

from wiretape.model.framing import AwsFramer
from wiretape.model.http import Ended, StreamBody
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor
from wiretape.tape.redaction.aws import opened

SECRET = "zX81-plain-Credential-77-without-shape"
HEAD = b"\x0b:event-type\x07\x00\x05chunk"


def message(payload: bytes, head: bytes = HEAD) -> bytes:
    prelude = (16 + len(head) + len(payload)).to_bytes(4, "big") + len(head).to_bytes(4, "big")
    body = prelude + crc32(prelude).to_bytes(4, "big") + head + payload
    return body + crc32(body).to_bytes(4, "big")


def converse(text: str) -> bytes:
    return message(orjson.dumps({"contentBlockIndex": 0, "delta": {"text": text}, "p": "abcdefgh"}))


def invoke(text: str) -> bytes:
    inner = orjson.dumps({"type": "content_block_delta", "index": 0, "delta": {"text": text}})
    return message(orjson.dumps({"bytes": b64encode(inner).decode(), "p": "abcd"}))


def texts(frames: list[bytes]) -> list[str]:
    found = []
    for frame in frames:
        assert frame == message(frame[12 + len(HEAD) : -4])  # sums are right
        event = opened(frame)
        assert event is not None
        found.append(orjson.loads(event.text)["delta"]["text"])
    return found


@pytest.mark.parametrize("make", [converse, invoke])
def test_a_secret_split_over_messages(make: type[bytes]) -> None:
    redactor = Redactor()
    redactor.learn([("authorization", f"Bearer {SECRET}")], "")
    frames = [make(text) for text in ("the key is ", SECRET[:11], SECRET[11:] + " ok", "bye")]
    made, rewritten = redactor.frames(frames)
    assert texts(list(made)) == ["the key is ", "[redacted:authorization:1]", " ok", "bye"]
    assert rewritten == (1, 2)
    assert made[0] is frames[0]
    assert redactor.frames(made) == (made, ())


def test_damaged_messages_are_searched_as_bytes() -> None:
    redactor = Redactor()
    redactor.learn([("authorization", f"Bearer {SECRET}")], "")
    broken = b"\x00\x00\x00\x10" + SECRET.encode() + b"\xff"
    assert opened(broken) is None
    assert redactor.frames([broken])[0] == [b"\x00\x00\x00\x10[redacted:authorization:1]\xff"]
    assert opened(message(b"\xff")) is None
    assert opened(message(b"")) is not None


def test_a_recorded_event_stream_still_splits_into_its_messages(tmp_path: Path) -> None:
    ticks = count()
    path = tmp_path / "aws.tape"
    recorder = Recorder(
        path, clock=lambda: next(ticks) / 100, started=datetime(2026, 1, 1, tzinfo=UTC), redactor=Redactor()
    )
    x = recorder.begin("POST", "https://bedrock.example/model/m/converse-stream", "1.1", [("x-api-key", SECRET)])
    recorder.request_end(x)
    recorder.response(x, 200, [("content-type", "application/vnd.amazon.eventstream")])
    stream = b"".join([converse("hello "), converse(f"it is {SECRET}."), converse("bye")])
    for at in range(0, len(stream), 7):
        recorder.response_data(x, stream[at : at + 7])
        assert SECRET.encode() not in path.with_name("aws.tape.journal").read_bytes()
    recorder.end(x, Ended.COMPLETE)
    assert recorder.close().troubles == ()
    body = read_tape(path).exchanges[0].response.body  # type: ignore[union-attr]
    assert isinstance(body, StreamBody)
    assert body.binary
    assert texts(list(body.frames)) == ["hello ", "it is [redacted:x-api-key:1].", "bye"]
    assert AwsFramer().feed(b"".join(body.frames)) == list(body.frames)
