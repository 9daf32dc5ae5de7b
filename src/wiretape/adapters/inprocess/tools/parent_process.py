"""Wrapped tools in a program that `wiretape record` or `wiretape replay` started: they call it over HTTP on loopback.

A variable in the environment of the program holds the address, see `tool_route`. If a recorder is unreachable, the tool
runs unrecorded, and a notice is printed once. If a replay is unreachable, the call is a miss: the tool does not run.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import orjson

from wiretape.adapters.routing.tool_route import ANSWERED, DONE, JSON, RUN, VARIABLE, is_own, tool_path
from wiretape.errors import MissError
from wiretape.model.jsonvalue import Json
from wiretape.wire.lenient import number, obj, string
from wiretape.wire.mcp.tool_exchange import ToolAnswer, call_body, parse_answer

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

_TIMEOUT: Final = 30  # seconds
_HEADERS: Final = {"content-type": JSON}


def parent_process() -> ParentProcess | None:
    """The wiretape process that started this program; None without one, or if it is this process.

    Raises MissError if the variable announces a replay without an address.
    """
    value = os.environ.get(VARIABLE)
    found = _parsed(value) if value else None
    return None if found is None or is_own(found.port) else found


@lru_cache(8)
def _parsed(value: str) -> ParentProcess | None:
    mode, _, url = value.partition("+")
    place = _host_and_port(url) if mode in ("record", "replay") else None
    if place is not None:
        return ParentProcess(mode == "replay", *place)
    if mode.startswith("replay"):
        raise MissError(f"{VARIABLE} is not valid: {value}\n  tools do not run in a replay; unset it to run them")
    with suppress(OSError, ValueError):  # a program with a closed stderr continues
        print(f"wiretape: {VARIABLE} is not valid: {value}", file=sys.stderr)
    return None


def _host_and_port(url: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port above 65535, or half an IPv6 address
        return None
    return (parts.hostname, port) if parts.scheme == "http" and parts.hostname and port else None


class ReportedCall:
    """A tool call that the parent process records: it waits for one result."""

    def __init__(self, parent: ParentProcess, name: str, exchange: int) -> None:
        self._parent = parent
        self._path = tool_path(name, exchange)
        self._name = name

    def answered(self, data: bytes) -> None:
        self._parent.report("PUT", self._path, data, self._name)

    def abandoned(self) -> None:
        self._parent.report("DELETE", self._path, b"", self._name)


class ParentProcess:
    """The recorder or the replay that started this program."""

    def __init__(self, replays: bool, host: str, port: int) -> None:
        self.replays = replays
        self.port = port
        self._where = f"{host}:{port}"
        self._idle: list[HTTPConnection] = []
        self._printed: set[str] = set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._idle.clear)  # two processes cannot share a connection

    def call(self, name: str, arguments: Json) -> tuple[ToolAnswer | None, ReportedCall | None]:
        """Announce a call. Return the recorded result, or where to report the result; neither: run it unrecorded.

        Raises MissError if the tape has no answer.
        """
        from http.client import HTTPException

        try:
            status, body = self._send("POST", tool_path(name), orjson.dumps(call_body(name, arguments)))
            answer = orjson.loads(body) if body else None
        except (OSError, HTTPException, ValueError, TypeError) as error:
            self._failed(name, f"{type(error).__name__}: {error}")
            return None, None
        if status == ANSWERED and "result" in obj(answer):
            return parse_answer(answer), None
        if status == RUN and not self.replays:
            return None, ReportedCall(self, name, number(obj(answer).get("exchange")) or 0)
        why = string(obj(obj(answer).get("error")).get("message")) or f"answered {status}"
        if self.replays and status < 500:
            raise MissError(why)
        self._failed(name, why)
        return None, None

    def report(self, method: str, path: str, data: bytes, name: str) -> None:
        """Report a result. If this fails, the program continues with the result."""
        from http.client import HTTPException

        try:
            status, _ = self._send(method, path, data)
        except (OSError, HTTPException) as error:
            self._print(name, f"{type(error).__name__}: {error}")
            return
        if status != DONE:
            self._print(name, f"the recorder answered {status}")

    def _failed(self, name: str, why: str) -> None:
        if self.replays:
            raise MissError(
                f"the tool {name} was not run: wiretape replay at {self._where} did not answer for it ({why})\n"
                f"  {VARIABLE} marks this program as replayed: unset it to run the tool"
            )
        self._print(name, why)

    def _print(self, name: str, why: str) -> None:
        if why not in self._printed:
            self._printed.add(why)
            with suppress(OSError, ValueError):  # a program with a closed stderr continues
                print(f"wiretape: a call of the tool {name} was not recorded: {why}", file=sys.stderr)

    def _send(self, method: str, path: str, data: bytes) -> tuple[int, bytes]:
        from http.client import HTTPConnection

        try:
            connection = self._idle.pop()  # atomic: other threads send, too
        except IndexError:
            connection = None
        if connection is not None:
            with suppress(ConnectionError):  # the server closed it while it was idle: a new one may work
                return self._send_on(connection, method, path, data)
        return self._send_on(HTTPConnection(self._where, timeout=_TIMEOUT), method, path, data)

    def _send_on(self, connection: HTTPConnection, method: str, path: str, data: bytes) -> tuple[int, bytes]:
        from wiretape.adapters.inprocess.sockets.http1_sockets import claimed

        try:
            with claimed(connection):  # the patches ignore it: it is not a request of the program
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
