"""A call whose whole body is in the journal is complete, though its recorder was killed before the call's end."""

from __future__ import annotations

import gzip
import itertools
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.taping import JSON_TYPE, SSE_TYPE, Taping

from wiretape.model.http import Ended, body_bytes
from wiretape.tape.journal.stream_end import body_length
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording import recorder, writer_thread
from wiretape.tape.storage import journal_path

ANSWER = b'{"answer": "It is sunny."}'


def killed(directory: Path, taping: Taping, path: Path) -> Path:
    """A copy of what is on disk now: what a recorder leaves that is killed at this moment."""
    copy = directory / "killed" / path.name
    copy.parent.mkdir()
    shutil.copy(journal_path(path), journal_path(copy))
    shutil.copy(path, copy)
    taping.recorder.close()
    return copy


def begun(taping: Taping, status: int, headers: list[tuple[str, str]], method: str = "POST") -> int:
    x = taping.recorder.begin(method, "https://api.example.com/v1/chat", "1.1", JSON_TYPE)
    taping.recorder.request_data(x, b'{"model":"m"}')
    taping.recorder.request_end(x)
    taping.recorder.response(x, status, headers)
    return x


def sized(length: int) -> list[tuple[str, str]]:
    return [*JSON_TYPE, ("content-length", str(length))]


ENCODED = gzip.compress(ANSWER, mtime=0)


@pytest.mark.parametrize(
    ("headers", "sent", "ended"),
    [
        (sized(len(ANSWER)), ANSWER, Ended.COMPLETE),
        (sized(len(ANSWER)), ANSWER[:-1], Ended.RECORDER_STOPPED),
        (JSON_TYPE, ANSWER, Ended.RECORDER_STOPPED),  # more may come
        ([*sized(len(ANSWER)), ("transfer-encoding", "chunked")], ANSWER, Ended.RECORDER_STOPPED),
        ([*sized(len(ANSWER)), ("content-length", "9")], ANSWER, Ended.RECORDER_STOPPED),
        ([*sized(len(ENCODED)), ("content-encoding", "gzip")], ENCODED, Ended.COMPLETE),
        ([*sized(len(ENCODED)), ("content-encoding", "gzip")], ENCODED[:-1], Ended.RECORDER_STOPPED),
        (SSE_TYPE, b'data: {"x": 1}\n\ndata: [DONE]\n\n', Ended.COMPLETE),
        (SSE_TYPE, b'event: message_stop\ndata: {"type":"message_stop"  }\n\n', Ended.COMPLETE),
        (SSE_TYPE, b'data: {"x": 1}\n\n', Ended.RECORDER_STOPPED),
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_a_whole_body_without_an_end_mark(
    tmp_path: Path, headers: list[tuple[str, str]], sent: bytes, ended: Ended, step: int
) -> None:
    path = tmp_path / "a.tape"
    taping = Taping(path)
    x = begun(taping, 200, headers)
    for start in range(0, len(sent), step):
        taping.recorder.response_data(x, sent[start : start + step])
    copy = killed(tmp_path, taping, path)
    (exchange,) = read_tape(copy).exchanges
    assert exchange.ended is (ended if ended is Ended.COMPLETE else None)
    assert exchange.response is not None
    if ended is Ended.COMPLETE:
        assert body_bytes(exchange.response.body) == (ANSWER if sent is ENCODED else sent)
    Taping(copy, append=True).recorder.close()
    assert read_tape(copy).exchanges[0].ended is ended
    assert read_tape(path).exchanges[0].ended is ended  # the recorder that was closed judges alike


@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [("HEAD", 200, sized(99)), ("POST", 204, []), ("GET", 304, sized(99)), ("POST", 200, sized(0))],
)
def test_a_response_without_a_body_is_whole_with_its_head(
    tmp_path: Path, method: str, status: int, headers: list[tuple[str, str]]
) -> None:
    path = tmp_path / "a.tape"
    taping = Taping(path)
    begun(taping, status, headers, method)
    assert read_tape(killed(tmp_path, taping, path)).exchanges[0].ended is Ended.COMPLETE


def test_the_end_of_a_body_that_may_begin_a_secret_is_there(tmp_path: Path) -> None:
    """Text that may be the beginning of a key waits for more; after the last byte nothing more comes."""
    text = b'{"answer": "sk-proj-Ab12Cd34Ef'
    path = tmp_path / "a.tape"
    taping = Taping(path)
    x = begun(taping, 200, sized(len(text)))
    taping.recorder.response_data(x, text)
    (exchange,) = read_tape(killed(tmp_path, taping, path)).exchanges
    assert exchange.ended is Ended.COMPLETE
    assert exchange.response is not None
    assert body_bytes(exchange.response.body).startswith(b'{"answer": "')
    assert len(body_bytes(exchange.response.body)) > len(b'{"answer": "')


def test_a_whole_body_stays_whole_when_the_journal_is_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_thread, "_REWRITE_FROM", 0)
    path = tmp_path / "a.tape"
    taping = Taping(path)
    x = begun(taping, 200, sized(len(ANSWER)))
    taping.recorder.response_data(x, ANSWER)
    for _ in range(3):
        taping.call(b"{}", [b"{}"])
    taping.recorder._binder._rewrite_journal()
    copy = killed(tmp_path, taping, path)
    assert [one.ended for one in read_tape(copy).exchanges] == [Ended.COMPLETE] * 4


@pytest.mark.parametrize("ended", [Ended.CLIENT_CLOSED, Ended.UPSTREAM_CLOSED, Ended.RECORDER_STOPPED])
def test_a_body_of_its_full_length_is_complete_whichever_side_closed(tmp_path: Path, ended: Ended) -> None:
    taping = Taping(tmp_path / "a.tape")
    taping.call(b"{}", [ANSWER], sized(len(ANSWER)), ended=ended)
    taping.recorder.close()
    assert read_tape(tmp_path / "a.tape").exchanges[0].ended is Ended.COMPLETE


@pytest.mark.parametrize(
    ("method", "status", "headers", "length"),
    [
        ("POST", 200, [("content-length", " 12 ")], 12),
        ("POST", 200, [("content-length", "12"), ("content-length", "12")], 12),
        ("POST", 200, [("content-length", "12"), ("content-length", "13")], None),
        ("POST", 200, [("content-length", "-1")], None),
        ("POST", 200, [("content-length", "١٢")], None),
        ("POST", 200, [], None),
        ("HEAD", 200, [], 0),
    ],
)
def test_the_length_that_a_head_states(
    method: str, status: int, headers: list[tuple[str, str]], length: int | None
) -> None:
    assert body_length(method, status, headers) == length


@settings(max_examples=60, deadline=None)
@given(
    body=st.binary(min_size=1, max_size=60), cuts=st.lists(st.integers(0, 60), max_size=5), missing=st.integers(0, 9)
)
def test_a_body_is_complete_exactly_from_its_last_byte_on(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, cuts: list[int], missing: int
) -> None:
    directory = tmp_path_factory.mktemp("ending")
    path = directory / "a.tape"
    taping = Taping(path)
    x = begun(taping, 200, [("content-type", "application/octet-stream"), ("content-length", str(len(body)))])
    sent = body[: max(0, len(body) - missing)]
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    for start, end in itertools.pairwise(places):
        taping.recorder.response_data(x, sent[start:end])
    (exchange,) = read_tape(killed(directory, taping, path)).exchanges
    assert (exchange.ended is Ended.COMPLETE) == (missing == 0)


def test_a_large_compressed_body_whose_rest_cannot_be_decoded_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its decoder was in memory. What is left must not pass for the whole answer."""
    monkeypatch.setattr(recorder, "_MOST_ON_ARRIVAL", 10_000)
    body = gzip.compress(b"".join(b"%d " % n for n in range(9000)))
    path = tmp_path / "a.tape"
    taping = Taping(path)
    monkeypatch.setattr(taping.recorder._binder, "end", lambda draft: None)  # killed before the tape has it
    x = begun(
        taping, 200, [("content-type", "text/plain"), ("content-encoding", "gzip"), ("content-length", str(len(body)))]
    )
    for start in range(0, len(body), 500):
        taping.recorder.response_data(x, body[start : start + 500])
    taping.recorder.end(x, Ended.COMPLETE)
    tape = read_tape(killed(tmp_path, taping, path))
    assert tape.exchanges[0].ended is Ended.RECORDER_STOPPED
    assert any("the end of a large compressed body is lost" in warning for warning in tape.warnings)
