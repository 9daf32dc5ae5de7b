"""Small inputs that decode to much are refused, with the limit; what is genuine passes, or passes with the option."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wiretape.adapters.http1.websocket_frames import FrameReader
from wiretape.adapters.importers.importing import import_data
from wiretape.adapters.importers.source import RefusedEntry
from wiretape.cli.main import main
from wiretape.errors import TapeDamaged, TapeError
from wiretape.matching.live import plain_bytes
from wiretape.tape.format import codings
from wiretape.tape.format.codings import TooLarge, decode, decoder_for, most_decoded, size_in_bytes
from wiretape.tape.reading.reader import read_tape

HEADER = b'{"wiretape": 1, "started": "2026-03-01T12:00:00Z", "recorder": "w"}\n\n'
LIMIT = 4 * 1024 * 1024
BOMB = b" " * (10 * LIMIT)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codings, "MOST_DECODED", LIMIT)
    monkeypatch.delenv(codings.MAX_SIZE, raising=False)


@contextmanager
def little_memory() -> Iterator[None]:
    """Fails if the block takes much more than the limit."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 6 * LIMIT
    finally:
        tracemalloc.stop()


def encoded(name: str, data: bytes) -> bytes:
    if name == "gzip":
        return gzip.compress(data)
    if name == "deflate":
        return zlib.compress(data)
    if name == "br":
        return bytes(pytest.importorskip("brotli").compress(data, quality=5))
    return bytes(pytest.importorskip("backports.zstd").compress(data))


ENCODINGS = ["gzip", "deflate", "br", "zstd"]
NESTED = [("gzip", "gzip"), ("br", "gzip"), ("gzip", "br"), ("zstd", "zstd"), ("deflate", "zstd"), ("br", "br")]


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_body_that_decodes_to_too_much_is_refused(name: str) -> None:
    data = encoded(name, BOMB)
    with little_memory(), pytest.raises(TooLarge, match=r"more than the limit of [0-9,]+ bytes"):
        decode(decoder_for(name), data)  # type: ignore[arg-type]
    with little_memory():
        assert plain_bytes(data, name) == data


@pytest.mark.parametrize(("first", "second"), NESTED)
def test_nested_encodings_are_limited_too(first: str, second: str) -> None:
    data = encoded(second, encoded(first, BOMB))
    with little_memory(), pytest.raises(TooLarge):
        decode(decoder_for(f"{first}, {second}"), data)  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "second"), [*NESTED, *[(name, "identity") for name in ENCODINGS]])
def test_genuine_bodies_are_decoded_whole(first: str, second: str) -> None:
    data = json.dumps([{"number": n, "text": f"{n * 7919 % 10007}"} for n in range(80_000)]).encode()
    sent = encoded(first, data)
    sent = sent if second == "identity" else encoded(second, sent)
    assert len(data) > 1024 * 1024  # more than one step
    assert decode(decoder_for(f"{first}, {second}"), sent) == data  # type: ignore[arg-type]


def test_a_compressed_tape_that_decodes_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bomb.tape.zst"
    path.write_bytes(encoded("zstd", HEADER + BOMB))
    with little_memory(), pytest.raises(TapeError, match=r"bomb\.tape\.zst: is not read: .*WIRETAPE_MAX_SIZE=4g"):
        read_tape(path)
    assert main(["show", str(path)]) == 2
    monkeypatch.setenv(codings.MAX_SIZE, "4g")
    assert read_tape(path).exchanges == ()
    capsys.readouterr()


def test_a_compressed_tape_damaged_in_the_middle_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.tape.zst"
    path.write_bytes(encoded("zstd", HEADER) + b"rubbish" * 20)
    with pytest.raises(TapeDamaged, match="cannot be decompressed behind byte 69 of its text"):
        read_tape(path)
    assert len(read_tape(path, partial=True).damage) == 1


def test_events_that_unpack_to_too_much_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    events = ["data: " + "x" * 100_000, *["~100000,0:x"] * 2000]
    body = {"events": events, "ms": " ".join("0" * len(events))}
    request = {"exchange": 1, "at": 0, "request": {"method": "GET", "url": "u", "headers": {}}}
    response = {"status": 200, "headers": {}, "headers_at": 1, "body": body}
    documents = [request, {"exchange": 1, "at": 9, "response": response, "ended": "complete"}]
    path.write_bytes(HEADER + b"\n\n".join(json.dumps(one).encode() for one in documents))
    with little_memory(), pytest.raises(TapeDamaged, match=r"body\.events: is not read: it unpacks to more than"):
        read_tape(path)


def har(*bodies: bytes) -> bytes:
    import base64

    headers = [{"name": "content-encoding", "value": "gzip"}, {"name": "content-type", "value": "text/plain"}]
    entries = [
        {
            "request": {"method": "GET", "url": "https://a.example/", "headers": []},
            "response": {
                "status": 200,
                "headers": headers,
                "content": {"text": base64.b64encode(body).decode(), "encoding": "base64"},
            },
        }
        for body in bodies
    ]
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def reasons(data: bytes) -> list[str]:
    return [one.reason for one in import_data("a", data) if isinstance(one, RefusedEntry)]


def test_a_har_with_a_body_that_decodes_to_too_much_is_refused() -> None:
    with little_memory():
        (reason,) = reasons(har(gzip.compress(BOMB)))
    assert "encoded with gzip, is refused: it decodes to more than the limit of" in reason


def test_many_bodies_that_decode_to_too_much_together_are_refused() -> None:
    each = gzip.compress(b" " * (LIMIT - 1000))
    (reason,) = reasons(har(*[each] * 5))
    assert "its bodies decode to more than the limit of" in reason


def test_yaml_aliases_are_limited_by_what_they_unfold_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = ["a: &a [x,x,x,x,x,x,x,x,x,x]\n"]
    levels += [f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(4)]
    request = "{method: POST, uri: 'https://api.openai.com/v1/chat/completions', body: *e, headers: {}}"
    entry = f"- request: {request}\n  response: {{status: {{code: 200}}, headers: {{}}}}\n"
    text = "".join(levels) + f"interactions:\n{entry}"
    (reason,) = reasons(text.encode())
    assert "its YAML aliases unfold to more than the limit of 4,194,304 bytes" in reason
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(text + "version: 1\n", encoding="utf-8")
    assert main(["import", "a.yaml", "-o", "a.tape"]) == 2
    monkeypatch.setenv(codings.MAX_SIZE, "")  # restored afterwards: the option sets it
    assert main(["import", "a.yaml", "-o", "a.tape", "--max-size", "1g"]) == 0
    assert main(["import", "a.yaml", "-o", "a.tape", "--force", "--max-size", "much"]) == 2
    assert "'much' is not a size; write it like 500m or 4g" in capsys.readouterr().err


def test_yaml_nested_deeply_is_refused() -> None:
    (reason,) = reasons(b"interactions:\n- request: &a x\n  b: *a\n  c: " + b"[" * 20_000)
    assert reason.startswith("is not YAML")


def test_a_websocket_message_that_inflates_to_too_much_is_refused() -> None:
    deflate = zlib.compressobj(wbits=-15)
    payload = (deflate.compress(BOMB) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4]
    frame = bytes([0xC1, 127]) + len(payload).to_bytes(8, "big") + payload
    with little_memory(), pytest.raises(ValueError, match=r"decodes to more than [0-9,]+ bytes"):
        FrameReader(deflated=True).feed(frame)


@pytest.mark.parametrize(("text", "size"), [("10", 10), ("4g", 4 << 30), ("64 MB", 64 << 20), ("1GiB", 1 << 30)])
def test_sizes(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert size_in_bytes(text) == size
    monkeypatch.setenv(codings.MAX_SIZE, text)
    assert most_decoded(1) == max(200, size)
