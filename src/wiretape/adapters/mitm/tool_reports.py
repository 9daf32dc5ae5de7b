"""The recorder's side of wrapped tools in the program that it records, see `tool_route`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from wiretape.adapters.routing.tool_route import ANSWERED, DONE, RUN, Reply, asked_for, refused
from wiretape.model.http import Ended
from wiretape.model.jsonvalue import Json
from wiretape.wire.mcp.tool_exchange import HEADERS, tool_url

FromTape: TypeAlias = "Callable[[str, Json], Json | None]"
"""MCP's result for a tool's call, from a tape; None: the tool is to run."""

_DIGITS: Final = 18  # of an exchange's number, at most


class ToolReports:
    """Each call becomes an exchange, begun when it is asked for, ended when its result is brought.

    `safely` calls the recorder: whatever goes wrong there is told, and gives None. `from_tape` is asked first, and
    `on_call` is told the numbers of the calls that run.
    """

    def __init__(self, recorder: Any, safely: Callable[..., Any]) -> None:
        self._recorder = recorder
        self._safely = safely
        self.from_tape: FromTape = lambda name, arguments: None
        self.on_call: Callable[[int], None] = lambda exchange: None
        self._running: set[int] = set()

    def handle(self, method: str, target: str, content_type: str, body: bytes) -> Reply:
        if method == "POST":
            return self._call(target, content_type, body)
        exchange = _exchange_in(target)
        if exchange not in self._running or method not in ("PUT", "DELETE"):
            return refused(404, f"wiretape: {method} {target} is about no call of a tool that is under way")
        self._running.discard(exchange)
        if method == "PUT":
            self._safely(self._recorder.response, exchange, 200, HEADERS)
            self._safely(self._recorder.response_data, exchange, body)
        self._safely(self._recorder.end, exchange, Ended.COMPLETE if method == "PUT" else Ended.CLIENT_CLOSED)
        return Reply(DONE)

    def _call(self, target: str, content_type: str, body: bytes) -> Reply:
        asked = asked_for(target, content_type, body)
        if isinstance(asked, Reply):
            return asked
        name, arguments = asked
        known = self._safely(self.from_tape, name, arguments)
        if known is not None:
            return Reply(ANSWERED, known)
        exchange = self._safely(self._recorder.begin, "POST", tool_url(name), None, HEADERS)
        if exchange is None:
            return refused(503, "nothing is recorded any more")
        self._safely(self._recorder.request_data, exchange, body)
        self._safely(self._recorder.request_end, exchange)
        self._running.add(exchange)
        self.on_call(exchange)
        return Reply(RUN, {"exchange": exchange})


def _exchange_in(target: str) -> int:
    """The exchange that a report is about; 0 for none."""
    number = target.partition("?exchange=")[2]
    return int(number) if number.isdecimal() and len(number) <= _DIGITS else 0
