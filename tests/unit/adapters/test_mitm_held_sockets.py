"""Calls of a WebSocket that is recorded under the debugger: which of them it knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.sockets import create, events, message, text

from wiretape.adapters.live_desk import Desk
from wiretape.adapters.live_exchanges import LiveExchanges
from wiretape.adapters.live_means import EditMeans
from wiretape.debug.live import Live
from wiretape.debug.session import Debugger
from wiretape.loop.run import build_run

pytest.importorskip("mitmproxy")

from mitmproxy.test import tflow
from mitmproxy.websocket import WebSocketMessage
from wsproto.frame_protocol import Opcode

from wiretape.adapters.mitm_held_sockets import HeldSockets


def test_a_call_that_the_server_began_by_itself_is_known_when_it_ends() -> None:
    steer = (
        "client",
        {"type": "response.steer", "previous_response_id": "r1", "input": [{"role": "user", "content": "x"}]},
    )
    said = [create("a"), *events("r1", message("one"))]
    said[2:2] = [steer]
    said += events("r2", message("two"))
    debugger = Debugger(build_run([]))
    debugger.live = Live(debugger, "record", lambda: 0.0, EditMeans(recording=True))
    flow: Any = tflow.twebsocketflow(messages=False)

    async def heard(sockets: HeldSockets) -> None:
        for sender, value in said:
            flow.websocket.messages.append(WebSocketMessage(Opcode.TEXT, sender == "client", text(value).encode()))
            await sockets.heard(flow, 3)

    with Desk(debugger) as desk:
        asyncio.run(heard(HeldSockets(desk, LiveExchanges())))
        calls = [step.call for step in debugger.line.run.steps] if desk.live.refresh() else []
    assert [call.ended and call.ended.value for call in calls] == ["complete", "complete"]
