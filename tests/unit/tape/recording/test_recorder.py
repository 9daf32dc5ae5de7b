from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import tracemalloc
import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.taping import JSON_TYPE, SSE_TYPE, STARTED, Clock, Taping

from wiretape.errors import NotATape, TapeUnwritable
from wiretape.model.http import BytesBody, Close, Ended, Exchange, JsonBody, StreamBody, TextBody, WsMessage, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.reading.splitting import split_documents
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

KEY = "sk-proj-Zq8Lw3Xv9Rt5Yb2Nm7Kc4Hd6"


def documents(path: Path) -> list[Any]:
    return [piece.value for piece in split_documents(path.read_bytes(), path)[0]]


def tape_path(tmp_path: Path) -> Path:
    return tmp_path / "run.tape"


def history(steps: int) -> bytes:
    messages = [{"role": "system", "content": "You are careful. " * 40}]
    messages += [{"role": "user", "content": f"step {number} of the plan"} for number in range(steps)]
    return orjson.dumps({"model": "m", "messages": messages})


def test_an_exchange_is_written_when_it_ends(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path), note="a note", provenance="a test")
    x = taping.call(b'{"a":1}', [b'{"b"', b":2}"])
    assert x == 1
    summary = taping.recorder.close()
    assert (summary.exchanges, summary.troubles, summary.incomplete) == (1, (), False)
    header, request, response = documents(tape_path(tmp_path))
    assert header["note"] == "a note"
    assert header["wiretape"] == 1
    assert request == {
        "exchange": 1,
        "at": 0,
        "request": {
            "method": "POST",
            "url": "https://api.example.com/v1/chat/completions",
            "http": "1.1",
            "headers": {"content-type": "application/json"},
            "body": {"json": {"a": 1}},
        },
    }
    assert response == {
        "exchange": 1,
        "at": 7,
        "response": {
            "status": 200,
            "headers": {"content-type": "application/json"},
            "headers_at": 5,
            "body": {"json": {"b": 2}},
        },
        "ended": "complete",
    }
    assert [exchange.number for exchange in taping.exchanges] == [1]
    assert not (tmp_path / "run.tape.journal").exists()


def test_a_request_stores_only_what_its_call_adds(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    for steps in (1, 2, 3):
        taping.call(history(steps), [b"{}"])
    taping.recorder.close()
    bodies = [d["request"]["body"] for d in documents(tape_path(tmp_path)) if "request" in d]
    assert [body.get("like") for body in bodies] == [None, "1", "2"]
    added = {"role": "user", "content": "step 2 of the plan"}
    assert bodies[2]["patch"] == [{"op": "add", "path": "/messages/-", "value": added}]
    first, second, third = (exchange.request.body for exchange in read_tape(tape_path(tmp_path)).exchanges)
    assert isinstance(first, JsonBody)
    assert isinstance(second, JsonBody)
    assert isinstance(third, JsonBody)
    assert body_bytes(third) == history(3)
    assert first.value["messages"][0] is third.value["messages"][0]  # the same object in memory
    assert second.value["messages"][1] is third.value["messages"][1]


def test_interleaved_agents_each_build_on_their_own_history(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))

    def body(agent: str, steps: int) -> bytes:
        messages = [{"role": "system", "content": f"{agent} " * 200}]
        return orjson.dumps({"messages": messages + [{"role": "user", "content": f"{agent}{n}"} for n in range(steps)]})

    for steps in range(1, 4):
        for agent in ("planner", "writer", "critic"):
            taping.call(body(agent, steps), [b"{}"])
    taping.recorder.close()
    likes = [d["request"]["body"].get("like") for d in documents(tape_path(tmp_path)) if "request" in d]
    assert likes == [None, None, None, "1", "2", "3", "4", "5", "6"]


def test_a_moved_cache_marker_is_a_small_patch(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    marker = {"type": "ephemeral"}

    def body(steps: int) -> bytes:
        texts: list[dict[str, Any]] = [{"type": "text", "text": f"step {n} " * 40} for n in range(steps)]
        texts[-1] = {**texts[-1], "cache_control": marker}
        return orjson.dumps({"messages": [{"role": "user", "content": [text]} for text in texts]})

    for steps in (3, 4):
        taping.call(body(steps), [b"{}"])
    taping.recorder.close()
    second = [d["request"]["body"] for d in documents(tape_path(tmp_path)) if "request" in d][1]
    assert [(op["op"], op["path"]) for op in second["patch"]] == [
        ("remove", "/messages/2/content/0/cache_control"),
        ("add", "/messages/-"),
    ]
    assert body_bytes(read_tape(tape_path(tmp_path)).exchanges[1].request.body) == body(4)


def test_frames_are_timed_by_their_last_byte(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    recorder, clock = taping.recorder, taping.clock
    x = recorder.begin("GET", "https://api.example.com/", "2", [])
    recorder.request_end(x)
    recorder.response(x, 200, SSE_TYPE)
    for wait, chunk in ((10, b"data: 1\n"), (20, b"\ndata: 2"), (30, b"\n\n"), (40, b"data: rest")):
        clock.tick(wait)
        recorder.response_data(x, chunk)
    recorder.end(x, Ended.UPSTREAM_CLOSED)
    recorder.close()
    exchange = read_tape(tape_path(tmp_path)).exchanges[0]
    assert exchange.response is not None
    body = exchange.response.body
    assert isinstance(body, StreamBody)
    assert list(body.frames) == [b"data: 1\n\n", b"data: 2\n\n", b"data: rest"]
    assert list(body.ms) == [30, 60, 100]
    assert exchange.ended is Ended.UPSTREAM_CLOSED


def test_a_stream_that_the_client_left_is_kept_and_marked(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    taping.call(b"{}", [b"data: 1\n\n", "data: 天".encode()[:-1]], SSE_TYPE, ended=Ended.CLIENT_CLOSED)
    taping.recorder.close()
    exchange = read_tape(tape_path(tmp_path)).exchanges[0]
    assert exchange.ended is Ended.CLIENT_CLOSED
    assert exchange.response is not None
    assert body_bytes(exchange.response.body) == b"data: 1\n\n" + "data: 天".encode()[:-1]


DONE = b'data: {"x": 1}\n\ndata: [DONE]\n\n'
STOP = b'event: message_stop\ndata: {"type":"message_stop"            }\n\n'


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        (DONE, Ended.COMPLETE),
        (DONE.replace(b": [", b":["), Ended.COMPLETE),
        (STOP, Ended.COMPLETE),
        (DONE[:-6], Ended.CLIENT_CLOSED),
        (b'data: {"text": "data: [DONE]"}\n\n', Ended.CLIENT_CLOSED),
        (b'data: {"delta": {"text": "{\\"type\\":\\"message_stop\\"}"}}\n\n', Ended.CLIENT_CLOSED),
    ],
)
@pytest.mark.parametrize("cut", [1, 3, 14])
def test_a_client_that_hangs_up_at_the_last_event_heard_all(
    text: bytes, ended: Ended, cut: int, tmp_path: Path
) -> None:
    taping = Taping(tape_path(tmp_path))
    taping.call(b"{}", [text[:-cut], text[-cut:]], SSE_TYPE, ended=Ended.CLIENT_CLOSED)
    taping.recorder.close()
    assert read_tape(tape_path(tmp_path)).exchanges[0].ended is ended


def test_an_error_answer_is_kept_as_the_upstream_sent_it(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    recorder = taping.recorder
    x = recorder.begin("POST", "https://api.example.com/", "1.1", [])
    recorder.request_end(x)
    recorder.response(x, 429, [("retry-after", "7"), ("x-a", "1"), ("x-a", "2")])
    recorder.response_data(x, b'{"error":"slow down"}')
    recorder.end(x, Ended.COMPLETE, trailers=[("x-a", "3")])
    recorder.close()
    response = read_tape(tape_path(tmp_path)).exchanges[0].response
    assert response is not None
    assert response.status == 429
    assert response.headers["retry-after"] == "7"
    assert len(response.headers.all("x-a")) == 2
    assert response.trailers is not None
    assert body_bytes(response.body) == b'{"error":"slow down"}'


def test_an_unanswered_request_has_an_end_only(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    x = taping.recorder.begin("POST", "https://api.example.com/", "1.1", [])
    taping.recorder.request_data(x, b'{"cut')
    taping.recorder.end(x, Ended.UPSTREAM_UNREACHABLE)
    taping.recorder.close()
    exchange = read_tape(tape_path(tmp_path)).exchanges[0]
    assert exchange.response is None
    assert exchange.ended is Ended.UPSTREAM_UNREACHABLE
    assert exchange.request.body == TextBody('{"cut')


def test_open_exchanges_end_when_the_recorder_does(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    x = taping.recorder.begin("GET", "https://api.example.com/events", "1.1", [])
    taping.recorder.request_end(x)
    taping.recorder.response(x, 200, SSE_TYPE)
    taping.recorder.response_data(x, b"data: so far\n\n")
    assert taping.recorder.close().exchanges == 1
    exchange = read_tape(tape_path(tmp_path)).exchanges[0]
    assert exchange.ended is Ended.RECORDER_STOPPED
    assert exchange.response is not None
    assert body_bytes(exchange.response.body) == b"data: so far\n\n"


ENCODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": lambda data: zlib.compress(data, wbits=-15),
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_content_encoding_is_undone(tmp_path: Path, name: str, size: int) -> None:
    data = orjson.dumps({"text": "so it goes " * 300})
    encoded = ENCODERS[name](data)
    headers = [("content-encoding", name.split()[-1]), *JSON_TYPE]
    taping = Taping(tape_path(tmp_path))
    chunks = [encoded[at : at + size] for at in range(0, len(encoded), size)]
    x = taping.recorder.begin("POST", "https://api.example.com/", "1.1", headers)
    for chunk in chunks:
        taping.recorder.request_data(x, chunk)
    taping.recorder.request_end(x)
    taping.recorder.response(x, 200, headers)
    for chunk in chunks:
        taping.recorder.response_data(x, chunk)
    taping.recorder.end(x, Ended.COMPLETE)
    taping.recorder.close()
    exchange = read_tape(tape_path(tmp_path)).exchanges[0]
    assert exchange.response is not None
    assert body_bytes(exchange.request.body) == body_bytes(exchange.response.body) == data
    assert exchange.response.headers["content-encoding"] == name.split()[-1]  # kept under its own name


@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        ("gzip", b'{"plain":true}', b'{"plain":true}'),  # a content-encoding that is not true
        ("snappy", b"\xff\x00odd", b"\xff\x00odd"),  # nobody here can undo it
        ("identity", b"{}", b"{}"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"[1]", mtime=0), mtime=0), b"[1]"),
        ("gzip", gzip.compress(b"one", mtime=0) + gzip.compress(b" two", mtime=0), b"one two"),
    ],
)
def test_odd_content_encodings(tmp_path: Path, encoding: str, data: bytes, expected: bytes) -> None:
    taping = Taping(tape_path(tmp_path))
    taping.call(b"{}", [data], [("content-encoding", encoding)])
    assert taping.recorder.close().troubles == ()
    response = read_tape(tape_path(tmp_path)).exchanges[0].response
    assert response is not None
    assert body_bytes(response.body) == expected


def test_a_compressed_body_cut_short_keeps_what_decodes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 40
    encoded = gzip.compress(data, 1)
    taping = Taping(tape_path(tmp_path))
    taping.call(b"{}", [encoded[:-20]], [("content-encoding", "gzip")], ended=Ended.UPSTREAM_CLOSED)
    taping.recorder.close()
    response = read_tape(tape_path(tmp_path)).exchanges[0].response
    assert response is not None
    kept = body_bytes(response.body)
    assert len(kept) > 0
    assert data.startswith(kept)


def test_a_large_compressed_body_is_decoded_in_the_other_thread(tmp_path: Path) -> None:
    data = b'{"n":"' + b"0" * 9_000_000 + b'"}'
    encoded = gzip.compress(data, 1)
    taping = Taping(tape_path(tmp_path))
    taping.call(b"{}", [encoded[at : at + 4096] for at in range(0, len(encoded), 4096)], [("content-encoding", "gzip")])
    assert taping.recorder.close().troubles == ()
    response = read_tape(tape_path(tmp_path)).exchanges[0].response
    assert response is not None
    assert body_bytes(response.body) == data


def test_each_websocket_message_is_on_the_tape_before_the_connection_closes(tmp_path: Path) -> None:
    seen: list[tuple[int, WsMessage]] = []
    all_seen = threading.Event()

    def told(exchange: Exchange, message: WsMessage) -> None:
        seen.append((exchange.number, message))
        if len(seen) == 5:
            all_seen.set()

    taping = Taping(tape_path(tmp_path), on_message=told)
    recorder = taping.recorder
    x = recorder.begin("GET", "wss://api.example.com/v1/responses", "1.1", [])
    recorder.request_end(x)
    recorder.response(x, 101, [])
    big = "context " * 60
    recorder.message(x, "client", json.dumps({"type": "response.create", "input": [big]}, separators=(",", ":")))
    recorder.message(x, "server", '{"type": "response.completed"}')
    recorder.message(x, "client", json.dumps({"type": "response.create", "input": [big, "2"]}, separators=(",", ":")))
    recorder.message(x, "server", b"\x00\x01")
    recorder.message(x, "server", "not json")
    assert all_seen.wait(60)
    live = read_tape(tape_path(tmp_path)).exchanges[0]
    assert live.ended is None
    assert len(live.messages) == 5
    recorder.close_ws(x, 1000, "bye", "client")
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    exchange = read_tape(tape_path(tmp_path)).exchanges[0]
    assert exchange.close == Close(1000, "bye", "client")
    assert exchange.ended is Ended.COMPLETE
    bodies = [message.body for message in exchange.messages]
    assert bodies[1] == JsonBody({"type": "response.completed"}, "spaced")
    assert bodies[3:] == [BytesBody(b"\x00\x01"), TextBody("not json")]
    shapes = [d["message"]["body"] for d in documents(tape_path(tmp_path)) if "message" in d]
    assert shapes[2]["like"] == "1.1"
    assert shapes[2]["patch"] == [{"op": "add", "path": "/input/-", "value": "2"}]
    assert exchange == taping.exchanges[0]
    assert [message for _, message in seen] == list(exchange.messages)


@pytest.mark.slow
def test_a_long_websocket_does_not_pile_up_in_memory(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    recorder = taping.recorder
    x = recorder.begin("GET", "wss://api.example.com/", "1.1", [])
    recorder.request_end(x)
    recorder.response(x, 101, [])
    tracemalloc.start()
    for _ in range(120):
        recorder.message(x, "server", os.urandom(200_000))
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000
    assert len(read_tape(tape_path(tmp_path)).exchanges[0].messages) == 120


def test_exchanges_that_wait_for_the_other_thread_keep_no_bodies_in_memory(tmp_path: Path) -> None:
    waits, shown = threading.Event(), threading.Event()

    def show(exchange: Exchange) -> None:
        waits.set()
        shown.wait(60)

    recorder = Recorder(
        tape_path(tmp_path),
        clock=Clock(),
        started=STARTED,
        redactor=Redactor(),
        on_exchange=show,
        on_trouble=pytest.fail,
    )

    def call(body: bytes) -> None:
        x = recorder.begin("POST", "https://api.example.com/", "1.1", JSON_TYPE)
        recorder.request_data(x, body)
        recorder.request_end(x)
        recorder.response(x, 200, JSON_TYPE)
        recorder.response_data(x, body)
        recorder.end(x, Ended.COMPLETE)

    for _ in range(10):  # the kept texts of recent requests are there by now
        call(orjson.dumps({"text": os.urandom(50_000).hex()}))
    assert waits.wait(60)
    tracemalloc.start()
    for _ in range(40):
        call(orjson.dumps({"text": os.urandom(50_000).hex()}))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    shown.set()
    assert recorder.close().exchanges == 50
    assert grown < 2_500_000, "40 exchanges have 8 MB of bodies"


def test_a_long_journal_that_is_still_needed_is_not_synced_at_every_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("wiretape.tape.storage.sync", synced.append)
    taping = Taping(tape_path(tmp_path))
    recorder = taping.recorder
    x = recorder.begin("POST", "https://api.example.com/", "1.1", JSON_TYPE)
    for _ in range(9):
        recorder.request_data(x, os.urandom(500_000).hex().encode())
    for _ in range(30):
        taping.call(b'{"a":1}', [b"{}"])
    recorder.request_end(x)
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    assert len(read_tape(tape_path(tmp_path)).exchanges) == 31
    assert len(synced) <= 3


def test_concurrent_exchanges_keep_the_numbers_of_their_start(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    recorder = taping.recorder
    first = recorder.begin("POST", "https://a.example/", "1.1", [])
    second = recorder.begin("POST", "https://b.example/", "1.1", [])
    for x in (second, first):
        recorder.request_end(x)
        recorder.response(x, 200, JSON_TYPE)
        recorder.response_data(x, b"[%d]" % x)
        recorder.end(x, Ended.COMPLETE)
    recorder.close()
    tape = read_tape(tape_path(tmp_path))
    assert [(x.number, x.request.url) for x in tape.exchanges] == [(1, "https://a.example/"), (2, "https://b.example/")]


def test_appending_numbers_on_and_counts_time_from_the_start_of_the_tape(tmp_path: Path) -> None:
    path = tape_path(tmp_path)
    first = Taping(path)
    first.call(b'{"a":1}', [b"{}"])
    first.recorder.close()
    clock = Clock()
    later = Recorder(path, clock=clock, started=STARTED + timedelta(hours=1), redactor=Redactor(), append=True)
    x = later.begin("GET", "https://api.example.com/", None, [])
    assert x == 2
    later.end(x, Ended.TIMEOUT)
    later.close()
    tape = read_tape(path)
    assert [(x.number, x.at) for x in tape.exchanges] == [(1, 0), (2, 3_600_000)]
    assert tape.header.started == STARTED


def test_recording_anew_replaces_the_tape(tmp_path: Path) -> None:
    path = tape_path(tmp_path)
    for _ in range(2):
        taping = Taping(path)
        taping.call(b'{"a":1}', [b"{}"])
        taping.recorder.close()
    assert len(read_tape(path).exchanges) == 1


@pytest.mark.parametrize("append", [True, False])
def test_a_file_that_is_no_tape_is_not_overwritten(tmp_path: Path, append: bool) -> None:
    path = tmp_path / "agent.py"
    path.write_text("print('hello')\n")
    with pytest.raises(NotATape, match=r"agent\.py"):
        Taping(path, append=append)
    assert path.read_text() == "print('hello')\n"


@pytest.mark.parametrize("name", ["run.tape", "run.tape.zst"])
def test_two_recorders_on_one_tape_are_refused(tmp_path: Path, name: str) -> None:
    if name.endswith(".zst"):
        pytest.importorskip("backports.zstd")
    first = Taping(tmp_path / name)
    with pytest.raises(TapeUnwritable, match=r"run\.tape.* is being written by another wiretape"):
        Taping(tmp_path / name, append=True)
    first.call(b'{"a":1}', [b"{}"])
    first.recorder.close()
    second = Taping(tmp_path / name, append=True)  # the lock went with its owner
    second.call(b'{"a":2}', [b"{}"])
    second.recorder.close()
    assert [x.number for x in read_tape(tmp_path / name).exchanges] == [1, 2]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(TapeUnwritable, match=r"closed/run\.tape: cannot be written: Permission denied"):
        Taping(closed / "run.tape")


def test_a_directory_in_the_place_of_the_tape_is_named(tmp_path: Path) -> None:
    with pytest.raises(TapeUnwritable, match="cannot be written"):
        Taping(tmp_path)


def test_bypassed_hosts_and_kinds_of_secrets_stand_in_the_header(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    taping.call(b"{}", [b"{}"], request_headers=[("authorization", f"Bearer {KEY}")])
    taping.recorder.bypassed("pypi.example")
    taping.recorder.bypassed("pypi.example")
    assert taping.recorder.close().bypassed == ("pypi.example",)
    header = read_tape(tape_path(tmp_path)).header
    assert header.bypassed == ["pypi.example"]
    assert header.redacted == ["authorization"]


@pytest.mark.parametrize("cut", [1, 3, 20])
@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_no_secret_reaches_the_disk_however_it_is_split(tmp_path: Path, cut: int, encoding: str | None) -> None:
    """Not even while the exchange is open, in the journal."""
    taping = Taping(tape_path(tmp_path))
    recorder = taping.recorder
    x = recorder.begin("POST", f"https://a.example/?key={KEY}", "1.1", [("authorization", f"Bearer {KEY}")])
    body = b'{"echo":"' + KEY.encode() + b'","then":"more"}'
    wire = gzip.compress(body, 0) if encoding else body  # level 0 leaves the text as it is
    headers = [("content-encoding", encoding)] if encoding else []

    def disk() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    for at in range(0, len(body), cut):
        recorder.request_data(x, body[at : at + cut])
        assert KEY.encode() not in disk()
    recorder.request_end(x)
    recorder.response(x, 200, headers)
    for at in range(0, len(wire), cut):
        recorder.response_data(x, wire[at : at + cut])
        assert KEY.encode() not in disk()
    assert b"journal" in disk()
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    assert KEY.encode() not in disk()
    exchange = read_tape(tape_path(tmp_path)).exchanges[0]
    assert exchange.response is not None
    assert b"redacted" in body_bytes(exchange.request.body)
    assert b'"then":"more"' in body_bytes(exchange.response.body)


def test_a_redacted_history_still_shares(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))

    def body(steps: int) -> bytes:
        texts = [f"export KEY={KEY}; step {n} " * 10 for n in range(steps)]
        return orjson.dumps({"messages": [{"role": "user", "content": text} for text in texts]})

    for steps in (1, 2, 3):
        taping.call(body(steps), [b"{}"], request_headers=[("authorization", f"Bearer {KEY}")])
    taping.recorder.close()
    text = tape_path(tmp_path).read_text()
    assert KEY not in text
    assert [d["request"]["body"].get("like") for d in documents(tape_path(tmp_path)) if "request" in d] == [
        None,
        "1",
        "2",
    ]
    tape = read_tape(tape_path(tmp_path))
    assert list(tape.exchanges) == taping.exchanges
    assert tape.warnings == ()


def test_bytes_that_are_no_text_in_heads_are_kept_readably(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    x = taping.recorder.begin("GET", "https://a.example/caf\udce9", "1.1", [("user-agent", "na\udcefve")])
    taping.recorder.end(x, Ended.COMPLETE)
    assert taping.recorder.close().troubles == ()
    assert read_tape(tape_path(tmp_path)).exchanges[0].request.url == "https://a.example/café"


def test_close_twice_is_close_once(tmp_path: Path) -> None:
    taping = Taping(tape_path(tmp_path))
    taping.call(b"{}", [b"{}"])
    assert taping.recorder.close() == taping.recorder.close()


@pytest.mark.parametrize("sent_by", ["client", "server"])
def test_a_body_that_swells_when_decoded_is_kept_as_it_came_and_told(tmp_path: Path, sent_by: str) -> None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([*(compressor.compress(bytes(1 << 20)) for _ in range(80)), compressor.flush()])
    told: list[str] = []
    recorder = Recorder(
        tape_path(tmp_path), clock=Clock(), started=STARTED, redactor=Redactor(), on_trouble=told.append
    )
    heads = [("content-type", "text/event-stream"), ("content-encoding", "gzip")]
    x = recorder.begin("POST", "https://h.example/v1", "1.1", heads if sent_by == "client" else [])
    for at in range(0, len(bomb) if sent_by == "client" else 0, 5000):
        recorder.request_data(x, bomb[at : at + 5000])
    recorder.request_end(x)
    recorder.response(x, 200, heads if sent_by == "server" else [])
    for at in range(0, len(bomb) if sent_by == "server" else 0, 5000):
        recorder.response_data(x, bomb[at : at + 5000])
    recorder.end(x, Ended.COMPLETE)
    summary = recorder.close()
    assert not summary.incomplete
    what = "request" if sent_by == "client" else "response"
    warning = f"x1: the body of the {what} decodes to more than 64 MB and 200 times its size: it is kept encoded"
    assert told == [f"{tape_path(tmp_path)}: {warning}, as it came"]
    (exchange,) = read_tape(tape_path(tmp_path)).exchanges
    assert exchange.response is not None
    side = exchange.request if sent_by == "client" else exchange.response
    assert side.body == BytesBody(bomb)
    assert side.headers["content-encoding"] == "gzip"


_PEAK = """
import os, resource, sys, time
from datetime import UTC, datetime
from pathlib import Path
from wiretape.model.http import Ended
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

path, size = Path(sys.argv[1]), 32 << 20
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before = peak()
if not path.exists():
    recorder = Recorder(path, clock=time.monotonic, started=datetime.now(UTC), redactor=Redactor())
    x = recorder.begin("GET", "https://h.example/v1", "1.1", [("authorization", "Bearer Zq81mfLate77CredentialX29")])
    recorder.request_end(x)
    recorder.response(x, 200, [("content-type", "application/octet-stream")])
    for _ in range(size >> 16):
        recorder.response_data(x, os.urandom(1 << 16))
    recorder.end(x, Ended.COMPLETE)
    assert not recorder.close().incomplete
else:
    assert len(read_tape(path).exchanges[0].response.body.data) == size
print((peak() - before) / size)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs resource.getrusage")
def test_a_large_body_is_recorded_and_read_in_a_few_times_its_size(tmp_path: Path) -> None:
    for what in ("record", "read"):
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, str(tape_path(tmp_path))], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 4.5, what  # a text of the body alone would take four times it
