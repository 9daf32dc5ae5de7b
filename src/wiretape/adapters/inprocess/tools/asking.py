"""A wrapped tool in a program that `wiretape record` or `wiretape replay` started: it asks them, over HTTP on loopback.

Where they are is said by a variable of the child's alone, see `tool_route`. A recorder that cannot be reached harms
nothing: the tool runs, unrecorded, and that is said once. A replay that cannot be reached is a miss: nothing runs.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Final

import orjson

from wiretape.adapters.inprocess.sockets.http1_sockets import claimed
from wiretape.adapters.routing.tool_route import ANSWERED, DONE, JSON, RUN, VARIABLE, tool_path
from wiretape.errors import MissError
from wiretape.model.jsonvalue import Json
from wiretape.wire.lenient import number, obj, string
from wiretape.wire.mcp.tool_exchange import ToolAnswer, call_body, read_answer

_LONGEST: Final = 30  # seconds: it answers at once, or is stopped
_HEADERS: Final = {"content-type": JSON}


class Reported:
    """A call that is being recorded out there: it wants to know what came of it, once."""

    def __init__(self, outside: Outside, name: str, exchange: int) -> None:
        self._outside = outside
        self._path = tool_path(name, exchange)
        self._name = name

    def answered(self, data: bytes) -> None:
        self._outside.report("PUT", self._path, data, self._name)

    def abandoned(self) -> None:
        self._outside.report("DELETE", self._path, b"", self._name)


class Outside:
    """What started this program."""

    def __init__(self, replays: bool, host: str, port: int) -> None:
        self.replays = replays
        self.port = port
        self._where = f"{host}:{port}"
        self._idle: list[HTTPConnection] = []
        self._said: set[str] = set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._idle.clear)  # two processes cannot share one connection

    def ask(self, name: str, arguments: Json) -> ToolAnswer | Reported | None:
        """The tape's answer; or the call is recorded, and runs; None: it runs, and nobody wants to know.

        Raises MissError where the tape has no answer.
        """
        try:
            status, body = self._send("POST", tool_path(name), orjson.dumps(call_body(name, arguments)))
            told = orjson.loads(body) if body else None
        except (OSError, HTTPException, ValueError, TypeError) as error:
            self._failed(name, f"{type(error).__name__}: {error}")
            return None
        if status == ANSWERED and "result" in obj(told):
            return read_answer(told)
        if status == RUN and not self.replays:
            return Reported(self, name, number(obj(told).get("exchange")) or 0)
        why = string(obj(obj(told).get("error")).get("message")) or f"answered {status}"
        if self.replays and status < 500:
            raise MissError(why)
        self._failed(name, why)
        return None

    def report(self, method: str, path: str, data: bytes, name: str) -> None:
        """Whatever fails in here, the tool's result goes on to the program."""
        try:
            status, _ = self._send(method, path, data)
        except (OSError, HTTPException) as error:
            self._say(name, f"{type(error).__name__}: {error}")
            return
        if status != DONE:
            self._say(name, f"the recorder answered {status}")

    def _failed(self, name: str, why: str) -> None:
        if self.replays:
            raise MissError(
                f"the tool {name} was not run: wiretape replay at {self._where} did not answer for it ({why})\n"
                f"  {VARIABLE} says that this program is replayed: without it the tool runs"
            )
        self._say(name, why)

    def _say(self, name: str, why: str) -> None:
        if why not in self._said:
            self._said.add(why)
            with suppress(OSError, ValueError):  # a program whose stderr is closed goes on
                print(f"wiretape: a call of the tool {name} was not recorded: {why}", file=sys.stderr)

    def _send(self, method: str, path: str, data: bytes) -> tuple[int, bytes]:
        try:
            connection = self._idle.pop()  # at once: other threads ask, too
        except IndexError:
            connection = None
        if connection is not None:
            with suppress(ConnectionError):  # it was closed for having been idle: that says nothing of a new one
                return self._sent(connection, method, path, data)
        return self._sent(HTTPConnection(self._where, timeout=_LONGEST), method, path, data)

    def _sent(self, connection: HTTPConnection, method: str, path: str, data: bytes) -> tuple[int, bytes]:
        try:
            with claimed(connection):  # it is no call of the program's
                connection.request(method, path, data, _HEADERS)
            response: HTTPResponse = connection.getresponse()
            body = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return response.status, body
