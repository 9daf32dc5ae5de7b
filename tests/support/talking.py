"""Raw requests to a replay server on loopback, and their responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from tests.support.replaying import chat, session, user
from wiretape.adapters.http1.server import Handler, listen, serve
from wiretape.adapters.replay_server.server import ReplayHandler
from wiretape.model.http import Exchange

PATH = "/api.example.com/v1/chat/completions"


def asked(text: str, *headers: str, method: str = "POST", version: str = "1.1", target: str = PATH) -> bytes:
    """A chat request, as its bytes."""
    body = orjson.dumps(chat(user(text)))
    return head(*headers, f"content-length: {len(body)}", method=method, version=version, target=target) + body


def head(*headers: str, method: str = "POST", version: str = "1.1", target: str = PATH) -> bytes:
    lines = [f"{method} {target} HTTP/{version}", "host: localhost", "content-type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def app_for(*recorded: Exchange, pace: float = 0, **options: object) -> ReplayHandler:
    return ReplayHandler(session(*recorded), pace, **options)  # type: ignore[arg-type]


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[int]:
    """The port of a server that runs in this block."""
    listening, stop = listen(), asyncio.Event()
    serving = asyncio.ensure_future(serve(handler, listening, stop))
    try:
        yield listening.getsockname()[1]
    finally:
        stop.set()
        await serving


def talk(handler: Handler, *sent: bytes, until: bytes = b"", half_closed: bool = False) -> bytes:
    """The response to bytes that are sent one after the other: all until the server closes, or until these bytes.

    `half_closed`: the client closes its half of the connection behind them.
    """

    async def talking() -> bytes:
        async with served(handler) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
            for part in sent:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.01)
            if half_closed:
                writer.write_eof()
            try:
                if until:
                    return await asyncio.wait_for(reader.readuntil(until), 30)
                return await asyncio.wait_for(reader.read(), 30)
            finally:
                writer.close()
                await writer.wait_closed()

    return asyncio.run(talking())
