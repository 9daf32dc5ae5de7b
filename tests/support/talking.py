"""Raw requests to a replay server on loopback, and what comes back for them."""

from __future__ import annotations

import asyncio

import orjson

from tests.support.replaying import chat, session, user
from wiretape.adapters.replay_server.listening import listen, serve
from wiretape.adapters.replay_server.server import ReplayApp
from wiretape.model.http import Exchange

PATH = "/api.example.com/v1/chat/completions"


def asked(text: str, *headers: str, method: str = "POST", version: str = "1.1", target: str = PATH) -> bytes:
    """A chat request, as its bytes."""
    body = orjson.dumps(chat(user(text)))
    return head(*headers, f"content-length: {len(body)}", method=method, version=version, target=target) + body


def head(*headers: str, method: str = "POST", version: str = "1.1", target: str = PATH) -> bytes:
    lines = [f"{method} {target} HTTP/{version}", "host: localhost", "content-type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def app_for(*recorded: Exchange, pace: float = 0, **options: object) -> ReplayApp:
    return ReplayApp(session(*recorded), pace, **options)  # type: ignore[arg-type]


def talk(app: ReplayApp, *sent: bytes, until: bytes = b"", says_no_more: bool = False) -> bytes:
    """What comes back for bytes that are sent one after the other, until the server closes or said this.

    `says_no_more`: the client closes its half of the connection behind them.
    """

    async def talking() -> bytes:
        listening, stop = listen(), asyncio.Event()
        port = listening.getsockname()[1]
        serving = asyncio.ensure_future(serve(app, listening, stop))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        for part in sent:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        if says_no_more:
            writer.write_eof()
        try:
            if until:
                return await asyncio.wait_for(reader.readuntil(until), 30)
            return await asyncio.wait_for(reader.read(), 30)
        finally:
            writer.close()
            await writer.wait_closed()
            stop.set()
            await serving

    return asyncio.run(talking())
