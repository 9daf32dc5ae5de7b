"""Records one exchange of this process: passes what a patch sees to the recorder. Never raises."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from wiretape.model.http import Ended, Sender
from wiretape.wire.mcp.tool_exchange import HEADERS

if TYPE_CHECKING:
    from wiretape.tape.recording.recorder import Recorder


class SafeRecorder:
    """A recorder for many threads. If it fails, the program's traffic continues.

    In a forked process it does nothing: the copy shares the recorder's file, but lacks its threads.
    """

    def __init__(self, recorder: Recorder, on_trouble: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._on_trouble = on_trouble
        self._process = os.getpid()
        self._open: set[int] = set()
        self._lock = threading.RLock()  # an exchange may end in a destructor, which may run during another event

    def begin(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        number = self.record("begin", method, url, None, list(headers))
        if number is None:
            return None
        self._open.add(number)
        return ExchangeRecorder(self, number)

    @property
    def open_exchanges(self) -> int:
        """The number of exchanges that have begun and not ended."""
        return len(self._open)

    def end(self, number: int, ended: Ended) -> None:
        self._open.discard(number)
        self.record("end", number, ended)

    def record(self, event: str, *values: Any) -> Any:
        """Call a method of the recorder. Return None if it fails."""
        if os.getpid() != self._process:
            return None
        try:
            with self._lock:
                return getattr(self._recorder, event)(*values)
        except Exception as error:
            self._on_trouble(f"recording failed: {type(error).__name__}: {error}")
            return None


class ExchangeRecorder:
    """An exchange that is being recorded. Events after its first end are ignored."""

    __slots__ = ("_ended", "_number", "_recorder")

    def __init__(self, recorder: SafeRecorder, number: int) -> None:
        self._recorder = recorder
        self._number = number
        self._ended = False

    @property
    def number(self) -> int:
        """The number of the exchange on the tape."""
        return self._number

    def _record(self, event: str, *values: Any) -> None:
        if not self._ended:
            self._recorder.record(event, self._number, *values)

    def sent(self, data: bytes) -> None:
        if data:
            self._record("request_data", data)

    def sent_all(self) -> None:
        self._record("request_end")

    def response(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self._record("response", status, list(headers))

    def received(self, data: bytes) -> None:
        if data:
            self._record("response_data", data)

    def message(self, sender: Sender, data: str | bytes) -> None:
        self._record("message", sender, data)

    def closed_ws(self, code: int, reason: str, sender: Sender | None) -> None:
        self._record("close_ws", code, reason, sender)

    def end(self, ended: Ended = Ended.COMPLETE) -> None:
        if not self._ended:
            self._ended = True
            self._recorder.end(self._number, ended)

    def hung_up(self) -> None:
        """The program closed the response. The recorder knows whether the response was complete."""
        self.end(Ended.CLIENT_CLOSED)

    def failed(self, error: BaseException) -> None:
        """The library raised an error, or the task was cancelled."""
        if isinstance(error, Exception):
            self.end(ended_by(error))
        else:
            self.hung_up()


class ToolCallRecorder:
    """A call of a wrapped tool that is being recorded: an exchange with one complete answer, or none."""

    def __init__(self, exchange: ExchangeRecorder) -> None:
        self._exchange = exchange

    @property
    def number(self) -> int:
        return self._exchange.number

    def answered(self, data: bytes) -> None:
        self._exchange.response(200, HEADERS)
        self._exchange.received(data)
        self._exchange.end()

    def abandoned(self) -> None:
        self._exchange.end(Ended.CLIENT_CLOSED)


def ended_by(error: Exception) -> Ended:
    """How an exchange ended, by the class names of an error and its causes: HTTP libraries use the same words."""
    names = " ".join(type(one).__name__ for one in _causes(error))
    broken = any(word in names for word in ("Reset", "Aborted", "Disconnected", "BrokenPipe"))
    if not broken and any(word in names for word in ("Connect", "Resolution", "gaierror", "DNS")):
        return Ended.UPSTREAM_UNREACHABLE
    return Ended.TIMEOUT if "Timeout" in names else Ended.UPSTREAM_CLOSED


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
