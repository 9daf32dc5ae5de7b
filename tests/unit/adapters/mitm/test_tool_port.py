"""What the ports for wrapped tools say to requests: whole, in pieces, in one go, and to those not meant for them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.support.replaying import session
from tests.support.talking import talk

from wiretape.adapters.mitm.tool_port import ToolPort, ToolReports
from wiretape.adapters.replay_server.server import ReplayHandler
from wiretape.adapters.routing.tool_route import ToolReply, is_own, tool_path, tool_variables
from wiretape.model.http import Ended

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a b","arguments":{"x":1}}}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'


class Events:
    """A recorder that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def begin(self, *values: Any) -> int:
        self.told.append(("begin", *values[:3]))
        return 7

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self.told.append((name, *values))


def reports() -> tuple[ToolReports, Events]:
    events = Events()
    return ToolReports(events, lambda function, *values: function(*values)), events


def test_a_call_is_an_exchange_from_its_request_to_its_result() -> None:
    desk, events = reports()
    path = tool_path("a b")
    assert desk.handle("POST", path, "application/json", CALL) == ToolReply(202, {"exchange": 7})
    assert desk.handle("PUT", f"{path}?exchange=7", "application/json", RESULT) == ToolReply(204)
    assert [told[0] for told in events.told] == [
        "begin",
        "request_data",
        "request_end",
        "response",
        "response_data",
        "end",
    ]
    assert events.told[0] == ("begin", "POST", "tool://local/a%20b", None)
    assert (events.told[1], events.told[-1]) == (("request_data", 7, CALL), ("end", 7, Ended.COMPLETE))
    assert desk.handle("PUT", f"{path}?exchange=7", "application/json", RESULT).status == 404  # only once


def test_a_call_without_a_result_ends_as_its_client_left_it() -> None:
    desk, events = reports()
    desk.handle("POST", tool_path("a"), "application/json; charset=utf-8", CALL)
    assert desk.handle("DELETE", tool_path("a", 7), "", b"") == ToolReply(204)
    assert events.told[-1] == ("end", 7, Ended.CLIENT_CLOSED)


@pytest.mark.parametrize(
    ("method", "target", "kind", "body", "status"),
    [
        ("POST", "/tool:local/a", "text/plain", CALL, 415),  # what any page may send
        ("POST", "/tool:local/a", "application/json", b"{", 400),
        ("PUT", "/tool:local/a", "application/json", RESULT, 404),
        ("PUT", "/tool:local/a?exchange=9", "application/json", RESULT, 404),
        ("PUT", f"/tool:local/a?exchange={'9' * 5000}", "application/json", RESULT, 404),
        ("GET", "/tool:local/a?exchange=7", "", b"", 404),
    ],
)
def test_what_is_no_call_is_refused(method: str, target: str, kind: str, body: bytes, status: int) -> None:
    desk, events = reports()
    assert desk.handle(method, target, kind, body).status == status
    assert events.told == []


def test_a_recorder_that_has_stopped_says_so() -> None:
    desk = ToolReports(Events(), lambda function, *values: None)
    assert desk.handle("POST", tool_path("a"), "application/json", CALL).status == 503


def request(method: str, target: str, body: bytes = b"", host: str = "127.0.0.1:1") -> bytes:
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def said_to(*pieces: bytes) -> list[bytes]:
    """The first lines of what comes back."""
    port = ToolPort(reports()[0])
    serving = asyncio.ensure_future(port.serve())
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    writer.write_eof()
    came = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    port.close()
    await serving
    return re.findall(rb"HTTP/1\.1 [^\r]+", came)


def test_requests_come_whole_byte_by_byte_and_two_at_once() -> None:
    call, result = request("POST", "/tool:local/a", CALL), request("PUT", "/tool:local/a?exchange=7", RESULT)
    answers = [b"HTTP/1.1 202 Accepted", b"HTTP/1.1 204 No Content"]
    assert asyncio.run(said_to(call, result)) == answers
    assert asyncio.run(said_to(call + result)) == answers
    assert asyncio.run(said_to(*[bytes([byte]) for byte in call + result])) == answers


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        (request("POST", "/tool:local/a", CALL, host="evil.example:1"), b"HTTP/1.1 403 Forbidden"),
        (request("POST", "/v1/chat/completions", CALL), b"HTTP/1.1 404 Not Found"),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /" + b"x" * 70_000, b"HTTP/1.1 431 Request Header Fields Too Large"),
    ],
    ids=["another host", "another path", "no HTTP", "endless"],
)
def test_what_is_not_meant_for_the_port_is_refused(sent: bytes, line: bytes) -> None:
    assert asyncio.run(said_to(sent)) == [line]


def test_a_replay_answers_tools_by_post_and_json_only_without_the_interposer() -> None:
    async def never(request: Any, outcome: Any) -> Any:
        raise AssertionError("a tool is not held")

    handler = ReplayHandler(session(), interpose=never)
    json = "content-type: application/json"

    def answer(method: str, target: str, *headers: str) -> bytes:
        lines = [f"{method} {target} HTTP/1.1", "host: localhost", *headers, f"content-length: {len(CALL)}", "", ""]
        return talk(handler, "\r\n".join(lines).encode() + CALL, until=b"}}")

    assert answer("PUT", "/tool:local/a", json).startswith(b"HTTP/1.1 405 ")
    assert answer("POST", "/tool:local/a").startswith(b"HTTP/1.1 415 ")
    missed = answer("POST", "/tool:local/a%20b", json)
    assert missed.startswith(b"HTTP/1.1 400 ")
    assert b"it was never recorded: the tape has no call of a b" in missed


def test_a_process_is_not_led_to_its_own_port() -> None:
    assert tool_variables("record", 4711) == {"WIRETAPE_TOOLS": "record+http://127.0.0.1:4711/tool:local/"}
    assert is_own(4711)
    assert not is_own(4712)
