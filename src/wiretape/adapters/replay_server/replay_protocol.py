"""One connection of the replay server, with a shorter way for what needs neither uvicorn's parser nor waiting."""

from __future__ import annotations

from typing import Any, Final

from wiretape.adapters.http1.whole_requests import plain_head
from wiretape.adapters.replay_server.http_connection import HttpConnection
from wiretape.adapters.replay_server.server import DECIDED, Decided, ReplayApp
from wiretape.adapters.replay_server.whole_answers import whole_answer

_END: Final = b"\r\n\r\n"  # of a head
_LONG: Final = 16 * 1024  # bytes of an answer


class ReplayProtocol(HttpConnection):
    """Answers at once what can be.

    Most requests are a plain head and a body of a known length, and most answers are known as soon as the request is.
    These are read and written here, each in one piece: without a parser, a task and several messages for each. All
    others go uvicorn's way; an answer that turns out to need it takes its request along.

    What came for several connections at once is answered first, and written then: writing wakes up who waits for it,
    and this costs as much as half an answer.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        self._replay: ReplayApp = self.config.app  # type: ignore[assignment]
        self._decided: Decided | None = None  # what becomes of the request that the parser is given
        self._parts: list[bytes] = []  # of a request that may be answered at once, if more of its body is to come
        self._missing = 0  # so many bytes of it
        self._answers: list[bytes] = []  # of this turn of the loop,
        self._told: list[Decided] = []  # and what they answer

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()  # who is in the middle of a request is not idle
        if self._missing > len(data):
            self._parts.append(data)
            self._missing -= len(data)
            return
        if self._parts:
            data = b"".join([*self._parts, data])
            self._parts, self._missing = [], 0
        while data:
            data = self._at_once(data) if self._may_be_at_once() else self._parsed(data)

    def _may_be_at_once(self) -> bool:
        if self._first_line is None or self._first_line.holds or self.flow.write_paused or not self._replay.at_once:
            return False
        return self.cycle is None or self.cycle.response_complete

    def _at_once(self, data: bytes) -> bytes:
        """Answer the request that the data begins with, if that needs nothing more; gives what stands behind it."""
        end = data.find(_END)
        head = plain_head(data[:end]) if end > 0 else None
        if head is None:
            return self._parsed(data)
        start = end + len(_END)
        stop = start + head.length
        if len(data) < stop:
            self._parts, self._missing = [data], stop - len(data)
            return b""
        decided = self._replay.decide(head.method, head.target, head.headers, data[start:stop])
        sent = whole_answer(decided.shown)
        if sent is not None:
            if not self._answers:
                self.loop.call_soon(self._write)
            self._answers.append(sent)
            self._told.append(decided)
            if len(sent) > _LONG:
                self._write()  # where nobody reads them, the next requests wait
        else:
            self._decided = decided
            self._parsed(data[:stop])
        return data[stop:]

    def eof_received(self) -> bool:  # type: ignore[override]
        self._write()
        return super().eof_received()

    def shutdown(self) -> None:
        self._write()
        super().shutdown()

    def _write(self) -> None:
        if not self._answers:
            return
        if not self.transport.is_closing():
            self.transport.write(b"".join(self._answers))
        told, self._answers, self._told = self._told, [], []
        for decided in told:
            self._replay.tell(decided)

    # -- uvicorn's way ------------------------------------------------------------------------------------------------

    def _parsed(self, data: bytes) -> bytes:
        """Takes all of it; gives nothing back."""
        self._write()
        self.parse(data)
        return b""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._decided is not None:
            scope: Any = self.scope
            scope[DECIDED], self._decided = self._decided, None
