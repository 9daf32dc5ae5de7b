from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.taping import SSE_TYPE, Taping

from wiretape.model.http import Ended, body_bytes
from wiretape.tape.journal.journal import Journal, read_journal
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording import writer_thread


def test_records_can_be_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", {"wiretape": 1})
    one = journal.append(b"to", b"1", 5, b"line\nline")
    two = journal.append(b"from", b"1", 6, b"")
    assert journal.read(one) == b"line\nline"
    assert journal.read_all([one, two, one]) == [(5, b"line\nline"), (6, b""), (5, b"line\nline")]
    journal.close()
    assert not (tmp_path / "j").exists()


def test_no_journal_is_none(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none") is None


@pytest.mark.parametrize("rubbish", [b"", b"\n", b"x", b"\0" * 64, b"to 1 2 99999\nshort\n", b"request 1 0 2\n{}\n"])
def test_rubbish_is_no_reason_to_fail(tmp_path: Path, rubbish: bytes) -> None:
    (tmp_path / "j").write_bytes(rubbish)
    left = read_journal(tmp_path / "j")
    assert left is not None
    assert left.drafts == {}
    assert bool(left.warnings or left.damage) == bool(rubbish)


def test_a_long_recording_does_not_keep_a_long_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open exchange holds what came for it, and nothing of those that ended."""
    monkeypatch.setattr(writer_thread, "_REWRITE_FROM", 50_000)
    path = tmp_path / "long.tape"
    taping = Taping(path)
    recorder = taping.recorder
    x = recorder.begin("GET", "https://events.example/", "1.1", [])
    recorder.request_end(x)
    recorder.response(x, 200, SSE_TYPE)
    ws = recorder.begin("GET", "wss://socket.example/", "1.1", [])
    recorder.request_end(ws)
    recorder.response(ws, 101, [])
    sizes = []
    for number in range(100):
        recorder.response_data(x, b"data: tick %d\n\n" % number)
        recorder.message(ws, "server", f'{{"n":{number}}}')
        taping.call(b'{"n":"%b"}' % (b"%d " % number * 2000), [b"{}"])
        while len(taping.exchanges) < number - 5:
            time.sleep(0.001)  # let the other thread keep up
        sizes.append((tmp_path / "long.tape.journal").stat().st_size)
    live = read_tape(path)
    assert [exchange.number for exchange in live.exchanges] == list(range(1, 103))
    assert live.exchanges[0].response is not None
    ticks = b"".join(b"data: tick %d\n\n" % number for number in range(100))
    assert body_bytes(live.exchanges[0].response.body) == ticks
    assert [body_bytes(m.body) for m in live.exchanges[1].messages] == [b'{"n":%d}' % n for n in range(100)]
    recorder.end(x, Ended.COMPLETE)
    recorder.end(ws, Ended.COMPLETE)
    assert recorder.close().troubles == ()
    assert sum(after < before for before, after in pairwise(sizes)) > 0
    done = read_tape(path)
    assert done.exchanges[0].response == live.exchanges[0].response
    assert [body_bytes(m.body) for m in done.exchanges[1].messages] == [b'{"n":%d}' % n for n in range(100)]


def test_what_is_known_of_the_tape_survives_rewriting(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", {"wiretape": 1})
    journal.note(b"bypassed", 1, b"pypi.example")
    journal.note(b"redacted", 2, b'["authorization"]')
    journal.rewrite([])
    left = read_journal(tmp_path / "j")
    assert left is not None
    assert (left.header, left.bypassed, left.redacted) == ({"wiretape": 1}, ["pypi.example"], ["authorization"])
    journal.close()


@pytest.mark.slow
def test_rewriting_while_chunks_come_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other thread rewrites the journal at every job."""
    monkeypatch.setattr(writer_thread, "_REWRITE_FROM", 0)
    monkeypatch.setattr(writer_thread, "_GATHER_S", 0)
    path = tmp_path / "busy.tape"
    taping = Taping(path)
    recorder = taping.recorder
    x = recorder.begin("GET", "https://events.example/", "1.1", [])
    recorder.request_end(x)
    recorder.response(x, 200, SSE_TYPE)
    ws = recorder.begin("GET", "wss://socket.example/", "1.1", [])
    for number in range(400):
        recorder.response_data(x, b"data: tick %d\n\n" % number)
        recorder.message(ws, "client", f"message {number}")
        if number % 4 == 0:
            taping.call(b'{"n":%d}' % number, [b"data: %d\n\n" % number], SSE_TYPE)
    recorder.end(x, Ended.COMPLETE)
    recorder.end(ws, Ended.COMPLETE)
    assert recorder.close().troubles == ()
    exchanges = read_tape(path).exchanges
    assert exchanges[0].response is not None
    assert body_bytes(exchanges[0].response.body) == b"".join(b"data: tick %d\n\n" % number for number in range(400))
    assert [body_bytes(m.body) for m in exchanges[1].messages] == [b"message %d" % number for number in range(400)]
    answers = [body_bytes(exchange.response.body) for exchange in exchanges[2:] if exchange.response]
    assert answers == [b"data: %d\n\n" % number for number in range(0, 400, 4)]


def test_a_large_record_that_the_system_takes_in_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "writev"):
        pytest.skip("no writev on this system")
    journal = Journal(tmp_path / "j", {"wiretape": 1})
    data = os.urandom(50_000)
    for taken in (1, 5, 20_000, 50_010):
        monkeypatch.setattr(os, "writev", lambda fd, parts, n=taken: os.write(fd, b"".join(parts)[:n]))
        assert journal.read(journal.append(b"to", b"1", 5, data)) == data
    left = read_journal(tmp_path / "j")
    assert left is not None
    assert len(left.damage) == 1  # records without a request: read up to here
    assert (tmp_path / "j").stat().st_size == journal.size
    journal.close()


def test_a_large_open_exchange_does_not_make_every_exchange_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_thread, "_REWRITE_FROM", 2000)
    monkeypatch.setattr(writer_thread, "_REWRITE_MOST", 1000)
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: [synced.append(descriptor), fsync(descriptor)])
    taping = Taping(tmp_path / "run.tape")
    x = taping.recorder.begin("GET", "https://api.example.com/v1/stream", "1.1", [])
    taping.recorder.request_end(x)
    taping.recorder.response(x, 200, SSE_TYPE)
    taping.recorder.response_data(x, b"data: word\n\n" * 1000)
    for _ in range(20):
        taping.call(b"{}", [b"{}"])
    taping.recorder.end(x, Ended.COMPLETE)
    taping.recorder.close()
    assert len(read_tape(tmp_path / "run.tape").exchanges) == 21
    assert len(synced) < 5


@pytest.mark.parametrize(
    "end", [b"request 1 5 \n", b"request 1 5 \nrest", b"from 1 5 \n{}", b"request 99999999999999999999 5 2\n{}\n"]
)
def test_a_record_without_a_length_or_with_a_number_of_20_digits_is_damage(tmp_path: Path, end: bytes) -> None:
    journal = Journal(tmp_path / "j", {"wiretape": 1})
    journal.close(keep=True)
    with (tmp_path / "j").open("ab") as file:
        file.write(end)
    left = read_journal(tmp_path / "j")
    assert left is not None
    assert len(left.damage) == 1
