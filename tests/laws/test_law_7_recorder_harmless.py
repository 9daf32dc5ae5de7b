"""Law 7, the recorder's side: if recording fails, no event raises, the tape states it, and a warning is printed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.taping import Taping

from wiretape.model.http import Ended, body_bytes
from wiretape.tape import storage
from wiretape.tape.journal.journal import Journal
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import TapeFile

texts = st.text(max_size=8)
pairs = st.lists(st.tuples(texts, texts), max_size=3)
numbers = st.integers(0, 4)
events = st.one_of(
    st.tuples(st.just("begin"), texts, texts, st.none() | texts, pairs),
    st.tuples(st.just("request_data"), numbers, st.binary(max_size=20)),
    st.tuples(st.just("request_end"), numbers),
    st.tuples(st.just("response"), numbers, st.integers(100, 599), pairs),
    st.tuples(st.just("response_data"), numbers, st.binary(max_size=20)),
    st.tuples(st.just("message"), numbers, st.sampled_from(["client", "server"]), texts | st.binary(max_size=9)),
    st.tuples(st.just("close_ws"), numbers, st.integers(1000, 4999), texts, st.sampled_from(["client", None])),
    st.tuples(st.just("end"), numbers, st.sampled_from(Ended)),
    st.tuples(st.just("bypassed"), texts),
)


@settings(max_examples=60, deadline=None)
@given(found=st.lists(events, max_size=25))
def test_any_events_in_any_order_leave_a_tape_that_can_be_read(found: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "odd.tape"
        taping = Taping(path)
        begun = 0
        for name, *arguments in found:
            begun += name == "begin"
            getattr(taping.recorder, name)(*arguments)
        summary = taping.recorder.close()
        tape = read_tape(path)
    assert summary.exchanges == begun
    assert tape.incomplete == summary.incomplete
    assert len(tape.exchanges) == begun
    assert all(exchange.ended is not None for exchange in tape.exchanges)


class Failing:
    """An operation that fails between its `first` and its `last` call."""

    def __init__(self, real: Callable[..., Any], first: int, last: int, error: int) -> None:
        self.real, self.first, self.last, self.error, self.calls = real, first, last, error, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.first <= self.calls <= self.last:
            raise OSError(self.error, os.strerror(self.error))
        return self.real(*args, **kwargs)


def run(taping: Taping, calls: int = 6) -> None:
    for number in range(calls):
        taping.call(b'{"n":%d}' % number, [b"data: %d\n\n" % number], [("content-type", "text/event-stream")])


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("first", [2, 3, 8, 9])
def test_a_full_disk_is_reported_once_and_noted_on_the_tape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, first: int
) -> None:
    """The journal cannot be written for a while."""
    path = tmp_path / "full.tape"
    taping = Taping(path)
    failing = Failing(Journal.append, first, first + 6, error)
    monkeypatch.setattr(Journal, "append", lambda *args: failing(*args))
    run(taping)
    summary = taping.recorder.close()
    assert len(taping.troubles) == 1
    assert os.strerror(error) in taping.troubles[0]
    assert str(path) in taping.troubles[0]
    assert summary.incomplete
    assert summary.exchanges == 6
    tape = read_tape(path)
    assert tape.incomplete
    assert any(os.strerror(error) in warning for warning in tape.warnings)
    complete = [x for x in tape.exchanges if x.ended is Ended.COMPLETE]
    assert 0 < len(complete) < 6
    for exchange in complete:  # what passes for whole is whole
        assert exchange.response is not None
        assert body_bytes(exchange.request.body) == b'{"n":%d}' % (exchange.number - 1)
        assert body_bytes(exchange.response.body) == b"data: %d\n\n" % (exchange.number - 1)


def test_documents_that_could_not_be_written_are_written_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tape cannot be written, the journal can."""
    path = tmp_path / "later.tape"
    taping = Taping(path)
    failing = Failing(TapeFile.append, 3, 6, errno.ENOSPC)
    monkeypatch.setattr(TapeFile, "append", lambda *args: failing(*args))
    run(taping)
    assert taping.recorder.close().incomplete  # a warning was printed, and the tape states it, too
    tape = read_tape(path)
    assert [x.number for x in tape.exchanges] == [1, 2, 3, 4, 5, 6]
    assert all(x.ended is Ended.COMPLETE for x in tape.exchanges)


def test_a_body_that_did_not_get_onto_the_tape_is_no_base_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies large enough to be shared, the same one again and longer ones, while the tape cannot be written."""
    path = tmp_path / "base.tape"
    taping = Taping(path)
    failing = Failing(TapeFile.append, 3, 6, errno.ENOSPC)
    monkeypatch.setattr(TapeFile, "append", lambda *args: failing(*args))
    messages = [{"role": "system", "content": "x" * 2000}]
    bodies = []
    for number in range(8):
        messages.append({"role": "user", "content": f"step {number // 2}"})
        bodies.append(orjson.dumps({"messages": messages[: 2 + number // 2]}))
        taping.call(bodies[-1], [b"{}"])
    taping.recorder.close()
    tape = read_tape(path)
    assert [body_bytes(x.request.body) for x in tape.exchanges] == bodies
    assert all(x.ended is Ended.COMPLETE for x in tape.exchanges)


def test_a_tape_that_can_never_be_written_leaves_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "never.tape"
    taping = Taping(path)
    with monkeypatch.context() as patched:
        failing = Failing(TapeFile.append, 3, 10**6, errno.ENOSPC)
        patched.setattr(TapeFile, "append", lambda *args: failing(*args))
        run(taping)
        assert taping.recorder.close().incomplete
    assert len(taping.troubles) == 1
    tape = read_tape(path)
    assert [x.number for x in tape.exchanges] == [1, 2, 3, 4, 5, 6]
    assert tape.incomplete
    assert "journal" in tape.warnings[0]
    again = Taping(path, append=True)  # the next writer folds it in
    again.recorder.close()
    folded = read_tape(path)
    assert folded.exchanges == tape.exchanges
    assert not (tmp_path / "never.tape.journal").exists()


def test_a_half_written_document_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "half.tape"
    taping = Taping(path)
    real, calls = storage.write_all, []

    def half(descriptor: int, data: bytes) -> None:
        calls.append(data)
        if b'"response"' in data and b'"exchange": 2' in data and len(calls) < 40:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor, data)

    monkeypatch.setattr(storage, "write_all", half)
    run(taping, 3)
    taping.recorder.close()
    tape = read_tape(path)
    assert {x.number for x in tape.exchanges} == {1, 2, 3}
    assert not any("cut off" in warning for warning in tape.warnings)


def test_a_failing_redactor_never_harms_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor()
    taping = Taping(tmp_path / "broken.tape", redactor=redactor)

    def broken(*_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(redactor, "learn", broken)
    run(taping, 2)
    summary = taping.recorder.close()
    assert summary.incomplete
    assert summary.exchanges == 2
    assert taping.troubles == [
        f"{tmp_path / 'broken.tape'}: recording is incomplete: RuntimeError: a bug; please report this"
    ]


def test_a_listener_that_breaks_loses_nothing(tmp_path: Path) -> None:
    def broken(_: object) -> None:
        raise ValueError("cannot print")

    from tests.support.taping import STARTED, Clock

    from wiretape.tape.recording.recorder import Recorder

    path = tmp_path / "told.tape"
    recorder = Recorder(
        path, clock=Clock(), started=STARTED, redactor=Redactor(), on_exchange=broken, on_trouble=broken
    )
    x = recorder.begin("GET", "https://a.example/", None, [])
    recorder.end(x, Ended.COMPLETE)
    recorder.close()
    assert len(read_tape(path).exchanges) == 1
