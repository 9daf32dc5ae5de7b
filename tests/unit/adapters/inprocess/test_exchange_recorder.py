"""How an exchange of this process ends on the tape, by what its library raised."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, SafeRecorder, ended_by
from wiretape.model.http import Ended

httpx = pytest.importorskip("httpx")


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (httpx.ConnectError("refused"), Ended.UPSTREAM_UNREACHABLE),
        (httpx.ConnectTimeout("late"), Ended.UPSTREAM_UNREACHABLE),
        (socket.gaierror(8, "no such host"), Ended.UPSTREAM_UNREACHABLE),
        (ConnectionRefusedError(), Ended.UPSTREAM_UNREACHABLE),
        (httpx.ReadTimeout("late"), Ended.TIMEOUT),
        (TimeoutError(), Ended.TIMEOUT),
        (httpx.RemoteProtocolError("peer closed"), Ended.UPSTREAM_CLOSED),
        (caused(httpx.ReadError("broken"), ConnectionResetError()), Ended.UPSTREAM_CLOSED),
        (ConnectionResetError(), Ended.UPSTREAM_CLOSED),
    ],
)
def test_errors_say_who_ended_it(error: Exception, ended: Ended) -> None:
    assert ended_by(error) is ended


class Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def begin(self, *values: Any) -> int:
        return 1

    def response_data(self, *values: Any) -> None:
        pass

    def end(self, *values: Any) -> None:
        self.told.append(values)


def begin_exchange() -> tuple[ExchangeRecorder, Recorder]:
    recorder: Any = Recorder()
    made = SafeRecorder(recorder, print).begin("POST", "https://api.openai.com/", [])
    assert made is not None
    return made, recorder


def test_a_cancellation_is_the_program_s_own_end_and_only_the_first_end_counts() -> None:
    made, recorder = begin_exchange()
    made.received(b"data: 1\n\n")
    made.failed(asyncio.CancelledError())
    made.end()
    assert recorder.told == [(1, Ended.CLIENT_CLOSED)]


def test_what_comes_after_the_end_does_not_count() -> None:
    """A library may tell the close on one thread while another has told the end."""
    recorder = Recorder()
    taken = ExchangeRecorder(SafeRecorder(recorder, pytest.fail), 1)  # type: ignore[arg-type]
    taken.end()
    told = list(recorder.told)
    taken.closed_ws(1000, "", "client")
    taken.message("server", "late")
    taken.received(b"late")
    taken.sent(b"late")
    taken.sent_all()
    taken.response(200, [])
    taken.end(Ended.CLIENT_CLOSED)
    assert recorder.told == told
