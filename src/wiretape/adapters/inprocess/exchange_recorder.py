"""One exchange on its way to a tape, in process: what a door sees of it, told to the recorder. Never raises."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from wiretape.model.http import Ended, Sender
from wiretape.tape.recording.recorder import Recorder
from wiretape.wire.mcp.tool_exchange import HEADERS


class SafeRecorder:
    """A recorder that many threads may speak to. Whatever fails in here, the traffic flows on.

    In a forked process nothing is told: it has the recorder's file, and not its threads.
    """

    def __init__(self, recorder: Recorder, on_trouble: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._on_trouble = on_trouble
        self._process = os.getpid()
        self._under_way: set[int] = set()
        self._lock = threading.RLock()  # an exchange may end in a destructor, which may run while another one is told

    def take(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        number = self.tell("begin", method, url, None, list(headers))
        if number is None:
            return None
        self._under_way.add(number)
        return ExchangeRecorder(self, number)

    @property
    def under_way(self) -> int:
        """How many exchanges have begun and not ended."""
        return len(self._under_way)

    def end(self, number: int, ended: Ended) -> None:
        self._under_way.discard(number)
        self.tell("end", number, ended)

    def tell(self, event: str, *values: Any) -> Any:
        if os.getpid() != self._process:
            return None
        try:
            with self._lock:
                return getattr(self._recorder, event)(*values)
        except Exception as error:
            self._on_trouble(f"recording failed: {type(error).__name__}: {error}")
            return None


class ExchangeRecorder:
    """An exchange that is being recorded. Its end is told once; what comes after that does not count."""

    __slots__ = ("_ended", "_number", "_safe_recorder")

    def __init__(self, taker: SafeRecorder, number: int) -> None:
        self._safe_recorder = taker
        self._number = number
        self._ended = False

    @property
    def number(self) -> int:
        """The exchange's, on the tape."""
        return self._number

    def _tell(self, event: str, *values: Any) -> None:
        if not self._ended:
            self._safe_recorder.tell(event, self._number, *values)

    def sent(self, data: bytes) -> None:
        if data:
            self._tell("request_data", data)

    def sent_all(self) -> None:
        self._tell("request_end")

    def response(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self._tell("response", status, list(headers))

    def received(self, data: bytes) -> None:
        if data:
            self._tell("response_data", data)

    def message(self, sender: Sender, data: str | bytes) -> None:
        self._tell("message", sender, data)

    def closed_ws(self, code: int, reason: str, sender: Sender | None) -> None:
        self._tell("close_ws", code, reason, sender)

    def end(self, ended: Ended = Ended.COMPLETE) -> None:
        if not self._ended:
            self._ended = True
            self._safe_recorder.end(self._number, ended)

    def hung_up(self) -> None:
        """The program closed the response. The recorder knows whether it had heard all there is."""
        self.end(Ended.CLIENT_CLOSED)

    def failed(self, error: BaseException) -> None:
        """An error of the library, or one that came from outside: a cancellation."""
        if isinstance(error, Exception):
            self.end(ended_by(error))
        else:
            self.hung_up()


class ToolCallRecorder:
    """A tool's call that is being recorded: an exchange whose answer comes whole, or not at all."""

    def __init__(self, taken: ExchangeRecorder) -> None:
        self._taken = taken

    @property
    def number(self) -> int:
        return self._taken.number

    def answered(self, data: bytes) -> None:
        self._taken.response(200, HEADERS)
        self._taken.received(data)
        self._taken.end()

    def abandoned(self) -> None:
        self._taken.end(Ended.CLIENT_CLOSED)


def ended_by(error: Exception) -> Ended:
    """HTTP libraries agree on the words at least. One may say which it means only in the cause."""
    names = " ".join(type(one).__name__ for one in _causes(error))
    broken = any(word in names for word in ("Reset", "Aborted", "Disconnected", "BrokenPipe"))
    if not broken and any(word in names for word in ("Connect", "Resolution", "gaierror", "DNS")):
        return Ended.UPSTREAM_UNREACHABLE
    return Ended.TIMEOUT if "Timeout" in names else Ended.UPSTREAM_CLOSED


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
