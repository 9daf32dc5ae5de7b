"""Tapes made of tapes: redacted, cut, merged."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from wiretape.errors import TapeError, TapeUnwritable, UsageError
from wiretape.model.http import (
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
)
from wiretape.tape.editing.edit import Edited, cut_tape, merge_tapes, moved, redact_tape
from wiretape.tape.format.documents import VERSION, Header
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import TapeFile
from wiretape.tape.writing.writer import TapeWriter, document_text, header_document, replace_tape, write_tape

STARTED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECRET = "zX81-plain-Credential-77-without-shape"
LONG = "You are a careful assistant. " * 30


def header(**more: object) -> Header:
    return Header.model_validate(
        {"wiretape": VERSION, "started": STARTED.isoformat(), "recorder": "wiretape test", **more}
    )


def call(number: int, at: int, *texts: str) -> Exchange:
    """An exchange of a loop: the system prompt, then every text so far."""
    messages = [{"role": "system", "content": LONG}, *({"role": "user", "content": text} for text in texts)]
    return Exchange(
        number,
        at,
        Request(
            "POST",
            "https://api.example/v1/chat/completions",
            Headers([("content-type", "application/json"), ("authorization", "Bearer [redacted:authorization:1]")]),
            JsonBody({"model": "m", "messages": messages}),
            "1.1",
        ),
        Response(200, Headers([("content-type", "application/json")]), at + 10, JsonBody({"id": f"r{number}"})),
        Ended.COMPLETE,
        at + 20,
    )


def loop(count: int) -> list[Exchange]:
    return [call(n, n * 1000, *(f"step {i}" for i in range(n))) for n in range(1, count + 1)]


def written(path: Path, exchanges: list[Exchange], **more: object) -> Path:
    write_tape(path, header(**more), exchanges)
    return path


def likes(path: Path) -> dict[int, str]:
    """Which exchange's body is stored as a change of which."""
    documents = [orjson.loads(part) for part in path.read_bytes().split(b"\n\n")]
    return {
        document["exchange"]: document["request"]["body"]["like"]
        for document in documents
        if "like" in document.get("request", {}).get("body", {})
    }


# -- cut ---------------------------------------------------------------------------------------------------------


def test_cut_keeps_numbers_times_and_values_and_rebases_chains(tmp_path: Path) -> None:
    source = written(tmp_path / "whole.tape", loop(5), note="a note", provenance="by hand", redacted=["authorization"])
    assert likes(source)[4] == "3"
    tape = read_tape(source)
    out = tmp_path / "part.tape"
    assert cut_tape(tape, out, lambda e: e.number in (2, 4, 5), Redactor()).exchanges == 3
    part = read_tape(out)
    assert part.exchanges == tuple(e for e in tape.exchanges if e.number in (2, 4, 5))
    assert likes(out) == {4: "2", 5: "4"}
    assert part.warnings == ()
    assert part.header.parent == "whole.tape"
    assert part.header.note == "a note"
    assert part.header.provenance == "by hand"
    assert part.header.started == STARTED
    assert part.header.redacted == ["authorization"]


def test_cut_that_keeps_nothing_writes_nothing(tmp_path: Path) -> None:
    tape = read_tape(written(tmp_path / "whole.tape", loop(2)))
    with pytest.raises(UsageError, match="none of its 2 exchanges is asked for; nothing was written"):
        cut_tape(tape, tmp_path / "part.tape", lambda e: False, Redactor())
    assert not (tmp_path / "part.tape").exists()


def test_every_kind_of_exchange_survives_a_cut(tmp_path: Path) -> None:
    ws = Exchange(
        2,
        50,
        Request("GET", "wss://api.example/v1/ws", Headers([("upgrade", "websocket")])),
        Response(101, Headers([("upgrade", "websocket")]), 60),
        Ended.CLIENT_CLOSED,
        900,
        (
            WsMessage(70, "client", JsonBody({"type": "response.create", "input": LONG})),
            WsMessage(80, "server", TextBody("not json")),
            WsMessage(90, "server", BytesBody(b"\x00\xff")),
        ),
        Close(1000, "done", "client"),
    )
    stream = Exchange(
        3,
        55,
        Request("POST", "https://api.example/v1/x", Headers(), BytesBody(b"\xff\xfe")),
        Response(
            200,
            Headers([("content-type", "text/event-stream")]),
            61,
            StreamBody((b'data: {"a":1}\n\n', b"data: [DONE]\n\n"), (0, 7)),
            Headers([("server-timing", "x;dur=1")]),
        ),
        Ended.UPSTREAM_CLOSED,
        905,
    )
    dead = Exchange(4, 56, Request("GET", "https://gone.example/", Headers()), None, Ended.UPSTREAM_UNREACHABLE, 70)
    still_open = Exchange(5, 57, Request("GET", "https://api.example/", Headers()))
    exchanges = [*loop(1), ws, stream, dead, still_open]
    tape = read_tape(written(tmp_path / "whole.tape", exchanges))
    assert tape.exchanges == tuple(exchanges)
    cut_tape(tape, tmp_path / "part.tape", lambda e: e.number > 1, Redactor())
    assert read_tape(tmp_path / "part.tape").exchanges == tuple(exchanges[1:])


def test_what_a_tape_lacks_is_still_said_after_a_cut(tmp_path: Path) -> None:
    source = tmp_path / "whole.tape"
    documents: list[bytes] = [document_text(header_document(header()))]
    writer = TapeWriter(documents.append)
    for exchange in loop(2):
        writer.exchange(exchange)
    writer.incomplete(2500, "disk full", [2])
    replace_tape(source, documents)
    cut_tape(read_tape(source), tmp_path / "with.tape", lambda e: e.number == 2, Redactor())
    cut_tape(read_tape(source), tmp_path / "without.tape", lambda e: e.number == 1, Redactor())
    assert read_tape(tmp_path / "with.tape").incomplete
    assert not read_tape(tmp_path / "without.tape").incomplete


# -- merge -------------------------------------------------------------------------------------------------------


def test_merge_orders_by_the_clock_and_numbers_anew(tmp_path: Path) -> None:
    a = written(
        tmp_path / "a.tape", [call(1, 0, "a1"), call(2, 5000, "a1", "a2")], note="first", bypassed=["x.example"]
    )
    late = header(started=(STARTED + timedelta(seconds=2)).isoformat(), redacted=["cookie"], bypassed=["y.example"])
    write_tape(tmp_path / "b.tape", late, [call(1, 100, "b1"), call(3, 3000, "b1", "b2")])
    out = tmp_path / "all.tape"
    edited = merge_tapes([read_tape(tmp_path / "b.tape"), read_tape(a)], out, "wiretape 9", Redactor())
    assert edited == Edited(4, {})
    merged = read_tape(out)
    texts = [exchange.request.body.value["messages"][-1]["content"] for exchange in merged.exchanges]  # type: ignore[union-attr]
    assert [(e.number, e.at) for e in merged.exchanges] == [(1, 0), (2, 2100), (3, 5000), (4, 5000)]
    assert texts == ["a1", "b1", "b2", "a2"]
    assert merged.exchanges[1] == replace(moved(call(1, 100, "b1"), 2000), number=2)
    assert merged.exchanges[1].response is not None
    assert merged.exchanges[1].response.headers_at == 2110
    assert merged.exchanges[1].ended_at == 2120
    assert merged.header.started == STARTED
    assert merged.header.recorder == "wiretape 9"
    assert merged.header.note == "merged from b.tape, a.tape; first"
    assert merged.header.redacted == ["cookie"]
    assert merged.header.bypassed == ["x.example", "y.example"]
    assert merged.warnings == ()


def test_merge_moves_messages_too() -> None:
    message = WsMessage(7, "server", TextBody("x"))
    exchange = Exchange(1, 5, Request("GET", "wss://h/"), Response(101, Headers(), 6), None, None, (message,))
    assert moved(exchange, 100).messages == (WsMessage(107, "server", TextBody("x")),)
    assert moved(exchange, 100).ended_at is None


# -- redact ------------------------------------------------------------------------------------------------------


def imported(path: Path) -> Path:
    """A tape from elsewhere, written without redaction; the credential comes last."""
    first = call(1, 0, f"a tool printed {SECRET}")
    second = call(2, 1000, f"a tool printed {SECRET}", "go on")
    second = replace(
        second,
        request=replace(second.request, headers=Headers([("authorization", f"Bearer {SECRET}"), ("x-own", "1")])),
        response=replace(second.response, body=BytesBody(b"\xff " + SECRET.encode())),
    )
    return written(path, [first, second], note=f"key {SECRET}")


def test_redact_in_place_says_what_it_replaced(tmp_path: Path) -> None:
    path = imported(tmp_path / "x.tape")
    before = read_tape(path)
    edited = redact_tape(path, path, Redactor())
    assert edited.redacted == {"authorization": 4, "header": 1}
    assert SECRET not in path.read_bytes().decode(errors="replace")
    after = read_tape(path)
    assert after.warnings == ()
    assert after.header.redacted == ["authorization", "header"]
    assert after.header.note == "key [redacted:authorization:2]"
    placeholder = "[redacted:authorization:2]"  # the tape already had a first one
    body = after.exchanges[0].request.body
    assert isinstance(body, JsonBody)
    assert body.value["messages"][1]["content"] == f"a tool printed {placeholder}"
    assert after.exchanges[1].request.headers.pairs() == [
        ("authorization", f"Bearer {placeholder}"),
        ("x-own", "[redacted]"),
    ]
    assert after.exchanges[1].response is not None
    assert after.exchanges[1].response.body == BytesBody(b"\xff " + placeholder.encode())
    assert after.exchanges[0].response == before.exchanges[0].response
    assert os.listdir(tmp_path) == ["x.tape"]


@pytest.mark.parametrize("torn", [False, True])
def test_a_journal_that_a_crash_left_is_folded_in_and_goes(tmp_path: Path, torn: bool) -> None:
    live = tmp_path / "live" / "x.tape"
    live.parent.mkdir()
    recorder = Recorder(live, clock=time.monotonic, started=STARTED, redactor=Redactor())
    x = recorder.begin("POST", "https://api.example/v1", "1.1", [("content-type", "text/plain")])
    recorder.request_data(x, f"the tool printed {SECRET} \n".encode())
    path = tmp_path / "x.tape"
    journal = tmp_path / "x.tape.journal"
    if not torn:
        path.write_bytes(live.read_bytes())
    journal.write_bytes(live.with_name("x.tape.journal").read_bytes())
    recorder.close()
    assert SECRET in journal.read_text()
    assert redact_tape(path, path, Redactor([SECRET])).redacted == {"pattern": 1}
    assert os.listdir(tmp_path / "live") == ["x.tape"]
    assert sorted(os.listdir(tmp_path)) == ["live", "x.tape"]
    (exchange,) = read_tape(path).exchanges
    assert exchange.request.body == TextBody("the tool printed [redacted:pattern:1] \n")
    assert exchange.ended is None


def test_compressed_tapes_are_edited_too(tmp_path: Path) -> None:
    pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd", reason="no zstd")
    path = imported(tmp_path / "x.tape.zst")
    assert redact_tape(path, path, Redactor()).redacted == {"authorization": 4, "header": 1}
    assert path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    assert read_tape(path).exchanges[1].request.headers["authorization"] == "Bearer [redacted:authorization:2]"
    cut_tape(read_tape(path), tmp_path / "y.tape", lambda e: e.number == 2, Redactor())
    assert len(read_tape(tmp_path / "y.tape").exchanges) == 1


def test_a_cut_of_a_tape_from_elsewhere_is_redacted(tmp_path: Path) -> None:
    tape = read_tape(imported(tmp_path / "x.tape"))
    cut_tape(tape, tmp_path / "y.tape", lambda e: True, Redactor())
    assert SECRET not in (tmp_path / "y.tape").read_text()


def test_redacting_twice_changes_nothing(tmp_path: Path) -> None:
    path = imported(tmp_path / "x.tape")
    redact_tape(path, path, Redactor())
    once, when = path.read_bytes(), path.stat().st_mtime_ns
    assert redact_tape(path, path, Redactor()).redacted == {}
    assert path.read_bytes() == once
    assert path.stat().st_mtime_ns == when


def test_redact_to_another_file_leaves_the_tape(tmp_path: Path) -> None:
    path = imported(tmp_path / "x.tape")
    before = path.read_bytes()
    redact_tape(path, tmp_path / "y.tape", Redactor())
    assert path.read_bytes() == before
    assert SECRET not in (tmp_path / "y.tape").read_text()


def test_frames_that_were_rewritten_before_stay_marked(tmp_path: Path) -> None:
    frames = (b'data: {"t":"[redacted:x:1]"}\n\n', b'data: {"t":"a"}\n\n', f'data: {{"t":"{SECRET}"}}\n\n'.encode())
    exchange = call(1, 0, "hi")
    response = Response(200, Headers(), 10, StreamBody(frames, (0, 1, 2), rewritten=(0,)))
    path = written(tmp_path / "x.tape", [replace(exchange, response=response)])
    redact_tape(path, path, Redactor([SECRET]))
    body = read_tape(path).exchanges[0].response.body  # type: ignore[union-attr]
    assert isinstance(body, StreamBody)
    assert body.rewritten == (0, 2)
    assert tuple(body.frames)[2] == b'data: {"t":"[redacted:pattern:1]"}\n\n'


def test_redact_finds_what_is_split_over_websocket_messages(tmp_path: Path) -> None:
    key = "sk-ant-api03-AbC9dEf8GhI7jKl6MnO5pQr4"
    messages = tuple(
        WsMessage(10 + i, "server", JsonBody({"type": "response.output_text.delta", "delta": delta}, "spaced"))
        for i, delta in enumerate(["the key: ", key[:9], key[9:], " ok"])
    )
    ws = Exchange(1, 5, Request("GET", "wss://h/"), Response(101, Headers(), 6), Ended.COMPLETE, 50, messages)
    path = written(tmp_path / "ws.tape", [replace(ws, close=Close(1000, "", "client"))])
    assert redact_tape(path, path, Redactor()).redacted == {"api-key": 1}
    bodies = [message.body for message in read_tape(path).exchanges[0].messages]
    assert [b.value["delta"] for b in bodies if isinstance(b, JsonBody)] == [
        "the key: ",
        "[redacted:api-key:1]",
        "",
        " ok",
    ]
    assert redact_tape(path, path, Redactor()).redacted == {}


def test_a_failing_write_leaves_the_tape_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = imported(tmp_path / "x.tape")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TapeUnwritable, match="No space left on device"):
        redact_tape(path, path, Redactor())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.tape"]


def test_a_tape_that_is_being_recorded_is_not_rewritten(tmp_path: Path) -> None:
    path = imported(tmp_path / "x.tape")
    recorder = TapeFile(path)
    with pytest.raises(TapeUnwritable, match="is being written by another wiretape"):
        redact_tape(path, path, Redactor())
    recorder.close()
    assert redact_tape(path, path, Redactor()).redacted


def test_a_missing_tape_is_named_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.tape"
    with pytest.raises(TapeError, match=r"none\.tape: no such file"):
        redact_tape(path, path, Redactor())
    assert not path.exists()


def numbers_and_texts(path: Path) -> list[tuple[int, str]]:
    found = []
    for exchange in read_tape(path).exchanges:
        body = exchange.request.body
        assert isinstance(body, JsonBody)
        found.append((exchange.number, body.value["messages"][-1]["content"]))
    return found


def test_a_tape_merged_with_its_copy_is_itself(tmp_path: Path) -> None:
    a, copy, out = (tmp_path / f"{name}.tape" for name in ("a", "copy", "out"))
    write_tape(a, header(), [call(1, 0, "one"), call(2, 900, "one", "two")])
    copy.write_bytes(a.read_bytes())
    edited = merge_tapes([read_tape(a), read_tape(copy), read_tape(a)], out, "w", Redactor())
    assert (edited.exchanges, edited.shared) == (2, 4)
    assert read_tape(out).exchanges == read_tape(a).exchanges


def test_cuts_that_overlap_merge_to_the_whole(tmp_path: Path) -> None:
    whole, first, last, out = (tmp_path / f"{name}.tape" for name in ("whole", "first", "last", "out"))
    texts = ["one", "two", "three", "four"]
    write_tape(whole, header(), [call(n, 900 * n, *texts[:n]) for n in range(1, 5)])
    cut_tape(read_tape(whole), first, lambda exchange: exchange.number <= 3, Redactor())
    cut_tape(read_tape(whole), last, lambda exchange: exchange.number >= 2, Redactor())
    assert merge_tapes([read_tape(last), read_tape(first)], out, "w", Redactor()).shared == 2
    assert numbers_and_texts(out) == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]


def test_forks_share_their_first_calls_and_keep_what_differs(tmp_path: Path) -> None:
    whole, fork, out = (tmp_path / f"{name}.tape" for name in ("whole", "fork", "out"))
    write_tape(whole, header(), [call(1, 0, "one"), call(2, 900, "one", "two")])
    write_tape(fork, header(), [call(1, 0, "one"), call(2, 900, "one", "other")])
    assert merge_tapes([read_tape(whole), read_tape(fork)], out, "w", Redactor()).shared == 1
    assert numbers_and_texts(out) == [(1, "one"), (2, "two"), (3, "other")]


def test_gaps_of_copies_are_kept_once(tmp_path: Path) -> None:
    a, out = tmp_path / "a.tape", tmp_path / "out.tape"
    write_tape(a, header(), [call(1, 0, "one")])
    gap = {"at": 5, "incomplete": {"reason": "disk full", "exchanges": [1]}}
    a.write_bytes(a.read_bytes() + b"\n" + document_text(gap))
    merge_tapes([read_tape(a), read_tape(a)], out, "w", Redactor())
    assert read_tape(out).gaps == (f"{out}: is incomplete: disk full",)
