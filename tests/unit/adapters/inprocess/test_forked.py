"""A process that forks inside a context: the copy answers, and does not write the tape of the other one."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from tests.support.replaying import chat, exchange, reply, user

import wiretape
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Ended, Headers
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape, read_tape

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
OPENAI = "https://api.openai.com/v1/chat/completions"
HEADER = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
TAPE = Tape(Path("hand.tape"), HEADER, (exchange(1, chat(user("hi")), reply("one"), url=OPENAI),), (), False)


def forked(child: Callable[[], bool]) -> bool:
    """What a copy of this process gives; one that hangs is ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is what this is about
        process = os.fork()
    if not process:
        signal.alarm(10)
        try:
            os._exit(0 if child() else 1)
        finally:
            os._exit(2)
    return os.waitpid(process, 0)[1] == 0


def asked(text: str) -> LiveRequest:
    headers = Headers([("content-type", "application/json")])
    return LiveRequest("POST", OPENAI, headers, orjson.dumps(chat(user(text))))


def test_a_copy_writes_nothing_on_the_tape_and_says_so_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tape = tmp_path / "x.tape"
    with wiretape.record(tape) as made:
        begun = made.begin_exchange("POST", OPENAI, [])
        assert begun is not None

        def child() -> bool:
            begun.response(200, [])
            begun.received(b"of the copy")
            begun.end()
            taken = [made.begin_exchange("POST", OPENAI, []), made.begin_tool_call("weather", {})]
            made.__exit__(None, None, None)  # as what the copy raises goes past it
            return taken == [None, None]

        assert forked(child)
        begun.response(204, [])
        begun.end()
        second = made.begin_exchange("POST", OPENAI, [])
        assert second is not None
        second.end(Ended.TIMEOUT)
    said = (
        f"wiretape: {tape}: the requests of a forked process are not recorded; wiretape record -o TAPE -- CMD records"
    )
    assert capfd.readouterr().err.count(said) == 1
    read = read_tape(tape)
    assert [(one.number, one.ended) for one in read.exchanges] == [(1, Ended.COMPLETE), (2, Ended.TIMEOUT)]
    assert [one.response.status for one in read.exchanges if one.response is not None] == [204]
    assert read.warnings == ()


def test_a_copy_is_answered_though_another_thread_was_asking_and_tells_its_own_misses(
    capfd: pytest.CaptureFixture[str],
) -> None:
    asking, done = threading.Event(), threading.Event()
    with wiretape.replay(TAPE) as ctx:

        def ask() -> None:
            with ctx.lock:
                asking.set()
                done.wait()

        thread = threading.Thread(target=ask)
        thread.start()
        asking.wait()
        answered = forked(lambda: (ctx.answer(asked("hi")).status, ctx.answer(asked("ho")).status) == (200, 400))
        done.set()
        thread.join()
        assert answered
        assert ctx.answer(asked("hi")).status == 200  # each process plays the tape for itself
    assert capfd.readouterr().err.startswith("wiretape: in a forked process: no call on hand.tape answers POST /v1")


def test_an_exchange_that_is_under_way_when_the_recording_ends_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tape = tmp_path / "x.tape"
    with wiretape.record(tape) as made:
        for _ in range(3):
            taken = made.begin_exchange("POST", OPENAI, [])
            assert taken is not None
        taken.end()
    assert capsys.readouterr().err == (
        f"wiretape: {tape}: 2 exchanges were still open when the recording ended: "
        "the tape has only what arrived before\n"
    )
    assert [one.ended for one in read_tape(tape).exchanges].count(Ended.RECORDER_STOPPED) == 2
