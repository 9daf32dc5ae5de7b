"""The HTTP interface between a wrapped tool in a child process and the recorder or replay server of its program.

A variable names the address: `WIRETAPE_TOOLS=record+http://127.0.0.1:PORT/tool:local/`, or `replay+http…`. Before a
tool runs, the child sends the call. The response is the recorded result, or the instruction to run the tool:

    POST   /tool:local/NAME              MCP's tools/call   200 with the recorded result of MCP: do not run it
                                                            202 {"exchange": 7}: run it
                                                            4xx {"error": {"message": …}}: a miss
    PUT    /tool:local/NAME?exchange=7   MCP's result       204
    DELETE /tool:local/NAME?exchange=7                      204: the call was cancelled

It is plain HTTP on loopback. A web page cannot send this content type without a CORS preflight.
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
class ToolReply:
    """A response to the child."""

    status: int
    body: Json = None

    @property
    def data(self) -> bytes:
        return b"" if self.body is None else orjson.dumps(self.body)


def tool_variables(way: WAY, port: int) -> dict[str, str]:
    """Return the variable for a child. Tools in this process ignore a variable that names one of its own ports."""
    _own_ports.add(port)
    return {VARIABLE: f"{way}+http://127.0.0.1:{port}{PATH}"}


def is_own(port: int) -> bool:
    """True if this process listens on that port."""
    return port in _own_ports


def tool_path(name: str, exchange: int | None = None) -> str:
    return PATH + quote(name, safe="") + (f"?exchange={exchange}" if exchange is not None else "")


def is_tool_path(target: str) -> bool:
    return target.startswith(PATH)


def refused(status: int, message: str) -> ToolReply:
    return ToolReply(status, {"error": {"type": "wiretape", "message": message}})


def asked_for(target: str, content_type: str, body: bytes) -> tuple[str, Json] | ToolReply:
    """Return the tool and the arguments of a POST, or the reply to one that is not valid."""
    if content_type.partition(";")[0].strip().lower() != JSON:
        return refused(415, f"wiretape: the content type of a tool call must be {JSON}")
    try:
        params = obj(obj(orjson.loads(body)).get("params"))
    except orjson.JSONDecodeError as error:
        return refused(400, f"wiretape: the body of a tool call must be JSON: {error}")
    return _name_in(target), params.get("arguments")


def _name_in(target: str) -> str:
    return unquote(target.removeprefix(PATH).partition("?")[0])
