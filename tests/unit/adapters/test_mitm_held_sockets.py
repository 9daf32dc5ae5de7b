"""Calls of a WebSocket that is recorded under the debugger: which of them it knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.sockets import Said, create, events, message, socket, text

from wiretape.adapters.live_desk import Desk
from wiretape.adapters.live_exchanges import LiveExchanges
from wiretape.adapters.live_means import EditMeans
from wiretape.debug.live import Live
from wiretape.debug.session import Debugger
from wiretape.loop.run import build_run
from wiretape.model.http import Ended

pytest.importorskip("mitmproxy")

from mitmproxy.test import tflow
from mitmproxy.websocket import WebSocketMessage
from wsproto.frame_protocol import Opcode

from wiretape.adapters.mitm_held_sockets import HeldSockets


def heard_by(desk: Desk, said: list[Said]) -> HeldSockets:
    """What is said on connection 3."""
    flow: Any = tflow.twebsocketflow(messages=False)
    sockets = HeldSockets(desk, LiveExchanges())

    async def hear() -> None:
        for sender, value in said:
            flow.websocket.messages.append(WebSocketMessage(Opcode.TEXT, sender == "client", text(value).encode()))
            await sockets.heard(flow, 3)

    asyncio.run(hear())
    return sockets


def recording() -> Debugger:
    debugger = Debugger(build_run([]))
    debugger.live = Live(debugger, "record", lambda: 0.0, EditMeans(recording=True))
    return debugger


def ends(debugger: Debugger) -> list[str | None]:
    assert debugger.live is not None
    debugger.live.refresh()
    return [step.call.ended and step.call.ended.value for step in debugger.line.run.steps]


def test_a_call_that_the_server_began_by_itself_is_known_when_it_ends() -> None:
    steer = (
        "client",
        {"type": "response.steer", "previous_response_id": "r1", "input": [{"role": "user", "content": "x"}]},
    )
    said = [create("a"), *events("r1", message("one"))]
    said[2:2] = [steer]
    said += events("r2", message("two"))
    debugger = recording()
    with Desk(debugger) as desk:
        heard_by(desk, said)
    assert ends(debugger) == ["complete", "complete"]


def test_a_call_whose_connection_ends_without_an_answer_is_no_longer_open() -> None:
    debugger = recording()
    said = [create("a"), *events("r1", message("one")), create("b"), *events("r2", message("two"))[:2]]
    with Desk(debugger) as desk:
        sockets = heard_by(desk, said)
        assert ends(debugger) == ["complete", None]
        assert sockets.tells_of(3)
        sockets.over(socket(said, number=3, ended=Ended.CLIENT_CLOSED))
        assert not sockets.tells_of(3)
    assert ends(debugger) == ["complete", "client_closed"]
