from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.taping import JSON_TYPE, Taping

from wiretape.errors import NotATape, TapeDamaged, TapeError, TapeTooNew
from wiretape.model.http import Ended, JsonBody, StreamBody, body_bytes
from wiretape.tape.reading import reader
from wiretape.tape.reading.reader import Tape, read_tape

HEADER = {"wiretape": 1, "started": "2026-03-01T12:00:00Z", "recorder": "wiretape 0.1.0", "redacted": []}
REQUEST = {
    "exchange": 1,
    "at": 0,
    "request": {"method": "POST", "url": "https://a.example/", "headers": {}, "body": {"json": {"k": [1, 2]}}},
}
RESPONSE = {
    "exchange": 1,
    "at": 9,
    "response": {"status": 200, "headers": {"x-a": ["1", "2"]}, "headers_at": 4, "body": {"text": "天气"}},
    "ended": "complete",
}


def pretty(*documents: Any) -> str:
    return "\n".join(json.dumps(d, indent=2, ensure_ascii=False) + "\n" for d in documents)


def read(tmp_path: Path, text: str | bytes, name: str = "some.tape") -> Tape:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_tape(path)


def lines(*documents: Any) -> str:
    return "".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents)


SPELLINGS: dict[str, Callable[..., str]] = {
    "as written": pretty,
    "CRLF": lambda *d: pretty(*d).replace("\n", "\r\n"),
    "JSON Lines": lines,
    "stray blank lines": lambda *d: "\n\n" + pretty(*d).replace('"k"', '\n\n"k"').replace("\n\n", "\n\n\n\n"),
    "nothing between": lambda *d: "".join(map(json.dumps, d)),
    "a byte order mark": lambda *d: "\ufeff" + pretty(*d),
    "no last newline": lambda *d: pretty(*d).rstrip(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_any_spelling_of_the_documents_is_read(tmp_path: Path, spelling: str) -> None:
    tape = read(tmp_path, SPELLINGS[spelling](HEADER, REQUEST, RESPONSE))
    assert tape.warnings == ()
    assert not tape.incomplete
    (exchange,) = tape.exchanges
    assert exchange.request.body == JsonBody({"k": [1, 2]})
    assert exchange.response is not None
    assert exchange.response.headers.all("X-A") == ("1", "2")
    assert body_bytes(exchange.response.body).decode() == "天气"
    assert (exchange.ended, exchange.ended_at, exchange.response.headers_at) == (Ended.COMPLETE, 9, 4)


@pytest.mark.parametrize("name", ["some.tape", "some.tape.zst"])
def test_a_torn_last_document_costs_only_itself(tmp_path: Path, name: str) -> None:
    if name.endswith(".zst"):
        pytest.importorskip("backports.zstd")
    whole = pretty(HEADER, REQUEST, RESPONSE).encode()
    begins = whole.rindex(b"\n{") + 1
    line = whole[:begins].count(b"\n") + 1
    for cut in (begins + 1, begins + 30, whole.rindex("天".encode()) + 1, len(whole) - 3):
        path = tmp_path / name
        data = whole[:cut]
        if name.endswith(".zst"):
            from backports import zstd

            data = zstd.compress(data)
        tape = read(tmp_path, data, name)
        assert tape.warnings == (f"{path}:{line}: the last document is cut off and was left out",)
        assert [(x.number, x.response) for x in tape.exchanges] == [(1, None)]


def test_a_compressed_tape_cut_anywhere_gives_what_decodes(tmp_path: Path) -> None:
    pytest.importorskip("backports.zstd")
    path = tmp_path / "cut.tape.zst"
    taping = Taping(path)
    for number in range(5):
        taping.call(b'{"n":%d}' % number, [b"{}"])
    taping.recorder.close()
    data = path.read_bytes()
    counts = []
    for cut in range(len(data) // 2, len(data), 7):
        path.write_bytes(data[:cut])
        counts.append(len(read_tape(path).exchanges))
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= 5


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("", NotATape, r"some\.tape: is empty; wiretape record writes tapes"),
        (" \n", NotATape, r"some\.tape: is empty"),
        ("hello", NotATape, r"some\.tape: is not a tape: it is not JSON text"),
        (b"\x89PNG\r\n\x1a\n\0", NotATape, "is not a tape"),
        ("[1, 2]", NotATape, "does not begin with a header"),
        ('{"log": {"version": "1.2"}}', NotATape, "does not begin with a header"),
        ('{"wiretape": 1, "star', TapeDamaged, "the header is cut off"),
        (pretty({**HEADER, "wiretape": 2}), TapeTooNew, r"version 2 .* up to 1: pip install --upgrade wiretape"),
        (pretty({"wiretape": 1, "recorder": "x"}), TapeDamaged, r"some\.tape:1: the header is wrong: started: "),
        (pretty(HEADER, {**REQUEST, "rekwest": 1}), TapeDamaged, r"some\.tape:8: rekwest: extra inputs"),
        (pretty(HEADER, {"exchange": 1}), TapeDamaged, r":8: neither a request, a response"),
        (pretty(HEADER, RESPONSE), TapeDamaged, r":8: exchange 1 has no request before this"),
        (pretty(HEADER, REQUEST, REQUEST), TapeDamaged, r"exchange 1 has a second request"),
        (pretty(HEADER, {**REQUEST, "at": "soon"}), TapeDamaged, r":8: at: "),
        (pretty(HEADER, REQUEST).replace('"at": 0', '"at": 0,,') + pretty(RESPONSE), TapeDamaged, r"some\.tape:10: "),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, error: type[TapeError], says: str) -> None:
    with pytest.raises(error, match=says):
        read(tmp_path, text)


def body(shape: Any) -> str:
    return pretty(HEADER, {**REQUEST, "request": {**REQUEST["request"], "body": shape}})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ({"jsn": 1}, "body: must have exactly one of base64, events, frames, json, like, text"),
        ({"json": 1, "text": ""}, "body: must have exactly one of"),
        ({"json": 1, "layout": "wide"}, "layout: "),
        ({"base64": "###"}, "body.base64: no base64"),
        ({"text": 3}, "text: "),
        ({"events": ["a"], "ms": "1 2"}, "1 frames, but 2 times"),
        ({"events": ["a", "~9,0:b"], "ms": "1 2"}, r"events\[1\]: takes 9 \+ 0 characters of a frame that has 1"),
        ({"events": ["~x"], "ms": "1"}, r"events\[0\]: a frame that begins with ~"),
        ({"like": "7", "base": "00", "patch": []}, "like: 7 has no JSON body before this"),
        ({"like": "7"}, "base: "),
    ],
)
def test_a_wrong_body_is_named(tmp_path: Path, shape: Any, says: str) -> None:
    with pytest.raises(TapeDamaged, match=r"some\.tape:8: .*" + says):
        read(tmp_path, body(shape))


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(TapeError, match=r"gone\.tape: no such file"):
        read_tape(tmp_path / "gone.tape")
    with pytest.raises(TapeError, match="is a directory, not a tape; wiretape ls"):
        read_tape(tmp_path)


def recorded(path: Path, calls: int = 3) -> None:
    taping = Taping(path)
    for steps in range(1, calls + 1):
        messages = [{"role": "user", "content": f"step {n} " * 30} for n in range(steps)]
        taping.call(orjson.dumps({"messages": messages}), [b"{}"])
    taping.recorder.close()


def test_a_hand_edit_further_up_is_noticed_and_named(tmp_path: Path) -> None:
    path = tmp_path / "edited.tape"
    recorded(path)
    path.write_text(path.read_text().replace("step 0 step 0", "STEP 0 step 0"))
    tape = read_tape(path)
    (warning,) = tape.warnings
    assert "x2: builds on the body of 1, which was changed after it was written" in warning
    assert warning.startswith(f"{path}:")
    last = tape.exchanges[2].request.body
    assert isinstance(last, JsonBody)
    assert last.value["messages"][0]["content"].startswith("STEP 0")  # the edit reaches those who build on it


def test_a_patch_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "edited.tape"
    recorded(path)
    path.write_text(path.read_text().replace('"/messages/-"', '"/messages/7"', 1))
    with pytest.raises(TapeDamaged, match=r"patch\[0\] \(/messages/7\) does not fit what it changes: the list has 1"):
        read_tape(path)


def test_unchanged_messages_are_the_same_objects(tmp_path: Path) -> None:
    path = tmp_path / "shared.tape"
    recorded(path, 20)
    bodies = [exchange.request.body for exchange in read_tape(path).exchanges]
    histories = [body.value["messages"] for body in bodies if isinstance(body, JsonBody)]
    assert len(histories) == 20
    for shorter, longer in pairwise(histories):
        assert all(a is b for a, b in zip(shorter, longer, strict=False))


def test_frames_are_expanded_only_when_looked_at(tmp_path: Path) -> None:
    events = ["data: " + "x" * 2000 + "\n\n", *["~1000,1000:"] * 999]
    shape = {"events": events, "ms": " ".join("0" * 1000)}
    response = {**RESPONSE, "response": {**RESPONSE["response"], "body": shape}}  # type: ignore[dict-item]
    tape = read(tmp_path, pretty(HEADER, REQUEST, response))
    stream = tape.exchanges[0].response
    assert stream is not None
    assert isinstance(stream.body, StreamBody)
    assert len(stream.body.frames) == 1000
    assert type(stream.body.frames).__name__ == "PackedFrames"
    assert len(stream.body.frames[999]) == 2000
    assert stream.body.frames[1:3] == [stream.body.frames[1], stream.body.frames[2]]


def test_a_journal_left_behind_is_taken_into_account(tmp_path: Path) -> None:
    path = tmp_path / "open.tape"
    taping = Taping(path)
    taping.call(b'{"a":1}', [b"{}"])
    x = taping.recorder.begin("POST", "https://a.example/open", "1.1", JSON_TYPE)
    taping.recorder.request_data(x, b'{"stream":true}')
    taping.recorder.request_end(x)
    taping.recorder.response(x, 200, [("content-type", "text/event-stream")])
    taping.recorder.response_data(x, b"data: 1\n\ndata: 2\n\n")
    tape = read_tape(path)
    assert len(tape.exchanges) == 2
    assert tape.incomplete
    assert "the recorder has not closed this tape (yet)" in tape.warnings[0]
    seen = tape.exchanges[1]
    assert seen.ended is None
    assert seen.request.body == JsonBody({"stream": True})
    assert seen.response is not None
    assert body_bytes(seen.response.body) == b"data: 1\n\ndata: 2\n\n"
    taping.recorder.close()


def test_a_torn_journal_record_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "torn.tape"
    taping = Taping(path)
    x = taping.recorder.begin("GET", "https://a.example/", "1.1", [])
    taping.recorder.response(x, 200, JSON_TYPE)
    taping.recorder.response_data(x, b'{"whole":1}\n')
    taping.recorder.response_data(x, b'{"torn":2}\n')
    data = (tmp_path / "torn.tape.journal").read_bytes()
    taping.recorder.close()
    other = tmp_path / "other.tape"
    other.write_text(pretty(HEADER))
    (tmp_path / "other.tape.journal").write_bytes(data[:-5])
    tape = read_tape(other)
    assert tape.exchanges[0].response is not None
    assert body_bytes(tape.exchanges[0].response.body) == b'{"whole":1}\n'
    assert any("byte " in warning and "the last record is cut off" in warning for warning in tape.warnings)


def test_a_journal_without_its_tape_is_a_tape(tmp_path: Path) -> None:
    path = tmp_path / "lost.tape"
    taping = Taping(path)
    x = taping.recorder.begin("GET", "https://a.example/", "1.1", [])
    taping.recorder.request_end(x)
    path.write_bytes(b"")
    assert [exchange.number for exchange in read_tape(path).exchanges] == [1]
    taping.recorder.end(x, Ended.COMPLETE)
    taping.recorder.close()


def test_an_older_tape_is_migrated_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "VERSION", 3)

    def rename(old: str, new: str) -> Callable[[list[Any]], list[Any]]:
        return lambda documents: [{new if key == old else key: v for key, v in d.items()} for d in documents]

    monkeypatch.setattr(reader, "MIGRATIONS", {1: rename("nr", "no"), 2: rename("no", "exchange")})
    old = {"nr" if key == "exchange" else key: value for key, value in REQUEST.items()}
    assert read(tmp_path, pretty(HEADER, old)).exchanges[0].number == 1
