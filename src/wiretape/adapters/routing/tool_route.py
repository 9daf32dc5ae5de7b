"""How a wrapped tool in a child process speaks to the recorder, or to the replay server, that started its program.

The child is told where by a variable: `WIRETAPE_TOOLS=record+http://127.0.0.1:PORT/tool:local/`, or `replay+http…`.
It asks before a tool runs, and is told the recorded answer, or to run the tool and to bring what came of it:

    POST   /tool:local/NAME              MCP's tools/call   200 with MCP's result, the tape's: the tool is not run
                                                            202 {"exchange": 7}: run it
                                                            4xx {"error": {"message": …}}: a miss
    PUT    /tool:local/NAME?exchange=7   MCP's result       204
    DELETE /tool:local/NAME?exchange=7                      204: it was cancelled, there is no result

Plain HTTP on loopback; a page in a browser cannot send the content type without being asked first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, unquote

import orjson

from wiretape.model.jsonvalue import Json
from wiretape.wire.lenient import obj

VARIABLE: Final = "WIRETAPE_TOOLS"
PATH: Final = "/tool:local/"
JSON: Final = "application/json"
ANSWERED: Final = 200
RUN: Final = 202
DONE: Final = 204
WAY: TypeAlias = Literal["record", "replay"]

_own_ports: set[int] = set()


@dataclass(frozen=True, slots=True)
class Reply:
    """What the child is told."""

    status: int
    body: Json = None

    @property
    def data(self) -> bytes:
        return b"" if self.body is None else orjson.dumps(self.body)


def tool_variables(way: WAY, port: int) -> dict[str, str]:
    """What leads the tools of a child to this port. Those of this process itself are not led to a port of its own."""
    _own_ports.add(port)
    return {VARIABLE: f"{way}+http://127.0.0.1:{port}{PATH}"}


def is_own(port: int) -> bool:
    """Whether this process serves there."""
    return port in _own_ports


def tool_path(name: str, exchange: int | None = None) -> str:
    return PATH + quote(name, safe="") + (f"?exchange={exchange}" if exchange is not None else "")


def is_tool_path(target: str) -> bool:
    return target.startswith(PATH)


def refused(status: int, message: str) -> Reply:
    return Reply(status, {"error": {"type": "wiretape", "message": message}})


def asked_for(target: str, content_type: str, body: bytes) -> tuple[str, Json] | Reply:
    """The tool that a POST names, and its arguments; what is wrong with it otherwise."""
    if content_type.partition(";")[0].strip().lower() != JSON:
        return refused(415, f"wiretape: a tool's call is sent as {JSON}")
    try:
        params = obj(obj(orjson.loads(body)).get("params"))
    except orjson.JSONDecodeError as error:
        return refused(400, f"wiretape: a tool's call is JSON, and this is none: {error}")
    return _name_in(target), params.get("arguments")


def _name_in(target: str) -> str:
    return unquote(target.removeprefix(PATH).partition("?")[0])
