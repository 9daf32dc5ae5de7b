"""One connection of the replay server: uvicorn's, and a shorter way for requests whose answers need no waiting.

Imported when a server starts: uvicorn takes a while to import.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wiretape.adapters.first_line import FirstLine
from wiretape.adapters.sending import TRANSPORT
from wiretape.adapters.server import DECIDED, ReplayApp
from wiretape.adapters.whole_answers import whole_answer


class ReplayProtocol(HttpToolsProtocol):
    """Hands its transport to the app: a recorded cut must be cut here, too. Takes methods of any name.

    Most answers are one body that is known as soon as the request is. They are written at once, head and body together,
    without a task, an event and three messages for each. All others go uvicorn's way.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        self._replay: ReplayApp = self.config.app  # type: ignore[assignment]
        self._first_line: FirstLine | None = FirstLine()  # None while a message is on its way
        self._method = ""
        self._parts: list[bytes] | None = None  # the body of a request that may be answered at once

    def data_received(self, data: bytes) -> None:
        if self._first_line is not None:
            data = self._first_line.known(data)
            self._method = self._first_line.method
        if data:
            super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._first_line = None
        scope: Any = self.scope
        scope[TRANSPORT] = self.transport

    def on_headers_complete(self) -> None:
        if self._may_be_at_once():
            self._parts = []
        else:
            self._start()

    def on_body(self, body: bytes) -> None:
        if self._parts is not None:
            self._parts.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._parts is None:
            super().on_message_complete()
        else:
            body, self._parts = b"".join(self._parts), None
            self._answer(body)
        self._first_line, self._method = FirstLine(), ""

    def _may_be_at_once(self) -> bool:
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or self.expect_100_continue or self.flow.write_paused or not self._replay.at_once:
            return False
        parser = self.parser
        if parser.get_http_version() != "1.1" or not parser.should_keep_alive() or parser.should_upgrade():
            return False
        return parser.get_method() != b"HEAD"

    def _answer(self, body: bytes) -> None:
        method = self._method or self.parser.get_method().decode("ascii")
        decided = self._replay.decide(method, self.url.decode("latin-1"), self.headers, body)
        sent = whole_answer(decided.shown)
        if sent is None:
            scope: Any = self.scope
            scope[DECIDED] = decided
            self._start()
            super().on_message_complete()
            return
        self.transport.write(sent)
        self.on_response_complete()
        self._replay.tell(decided)

    def _start(self) -> None:
        super().on_headers_complete()
        if self._method:  # the app runs later
            self.scope["method"] = self._method
