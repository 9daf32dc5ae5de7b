"""Calls of a WebSocket that is recorded under the debugger: which of them it knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.sockets import Said, create, events, message, socket, text

from wiretape.adapters.live.decision_queue import DecisionQueue
from wiretape.adapters.live.edit_operations import EditOperations
from wiretape.adapters.live.exchanges import LiveExchanges
from wiretape.debug.live.pending_calls import AT_NEXT_CALL
from wiretape.debug.live.program import LiveProgram
from wiretape.debug.session import Debugger
from wiretape.model.http import Ended
from wiretape.runs.run import build_run
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.wire.registry import decode

pytest.importorskip("mitmproxy")

from mitmproxy.connection import ConnectionState
from mitmproxy.test import tflow
from mitmproxy.websocket import WebSocketMessage
from wsproto.frame_protocol import Opcode

from wiretape.adapters.live import decision_queue
from wiretape.adapters.mitm.live.pending_sockets import PendingSockets


def heard_by(queue: DecisionQueue, said: list[Said], flow: Any = None) -> PendingSockets:
    """What is said on connection 3."""
    flow = flow or tflow.twebsocketflow(messages=False)
    sockets = PendingSockets(queue, LiveExchanges(OutputRedactor()))

    async def hear() -> None:
        for sender, value in said:
            flow.websocket.messages.append(WebSocketMessage(Opcode.TEXT, sender == "client", text(value).encode()))
            await sockets.message(flow, 3)

    asyncio.run(hear())
    return sockets


def recording() -> Debugger:
    debugger = Debugger(build_run([]))
    debugger.live = LiveProgram(debugger, "record", lambda: 0.0, EditOperations(recording=True))
    return debugger


def ends(debugger: Debugger) -> list[str | None]:
    assert debugger.live is not None
    debugger.live.refresh()
    return [step.call.ended and step.call.ended.value for step in debugger.timeline.run.steps]


def test_a_call_that_the_server_began_by_itself_is_known_when_it_ends() -> None:
    steer = (
        "client",
        {"type": "response.steer", "previous_response_id": "r1", "input": [{"role": "user", "content": "x"}]},
    )
    said = [create("a"), *events("r1", message("one"))]
    said[2:2] = [steer]
    said += events("r2", message("two"))
    debugger = recording()
    with DecisionQueue(debugger) as queue:
        heard_by(queue, said)
    assert ends(debugger) == ["complete", "complete"]


def test_a_call_whose_connection_ends_without_an_answer_is_no_longer_open() -> None:
    debugger = recording()
    said = [create("a"), *events("r1", message("one")), create("b"), *events("r2", message("two"))[:2]]
    with DecisionQueue(debugger) as queue:
        sockets = heard_by(queue, said)
        assert ends(debugger) == ["complete", None]
        assert sockets.knows(3)
        sockets.ended(socket(said, number=3, ended=Ended.CLIENT_CLOSED))
        assert not sockets.knows(3)
    assert ends(debugger) == ["complete", "client_closed"]


def test_all_calls_of_a_connection_are_of_its_exchange_and_have_their_messages() -> None:
    debugger = recording()
    first = ("client", {"type": "session.update", "session": {}})
    said = [first, create("a"), *events("r1", message("one")), create("b"), *events("r2", message("two"))]
    with DecisionQueue(debugger) as queue:
        sockets = heard_by(queue, said)
        assert ends(debugger) == ["complete", "complete"]
        calls = [step.call for step in debugger.timeline.run.steps]
        assert [(call.exchange, call.part) for call in calls] == [(3, 1), (3, 2)]
        assert [queue.live.number_of(300_000 + part) for part in (1, 2)] == [1, 2]
        on_tape = decode([socket(said, number=3)])
        assert [call.frames for call in calls] == [call.frames for call in on_tape]
        connection = queue.live.exchanges[3]
        assert [one.sender for one in connection.messages] == [sender for sender, _ in said]
        sockets.ended(socket(said, number=3, ended=Ended.CLIENT_CLOSED))
    assert queue.live.exchanges[3].ended is Ended.CLIENT_CLOSED
    assert debugger.timeline.run.other_exchanges == ()


def test_a_client_that_leaves_is_held_no_longer_and_its_model_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_queue, "LOOK_S", 0.01)
    debugger = recording()
    flow = tflow.twebsocketflow(messages=False)
    with DecisionQueue(debugger) as queue:
        queue.live.stepping = AT_NEXT_CALL

        def leave() -> None:
            if queue.live.pending:
                flow.client_conn.state = ConnectionState.CAN_WRITE

        queue.on_change = leave
        heard_by(queue, [create("a")], flow)
        assert queue.live.pending == []
    assert flow.websocket.messages[-1].dropped


def test_a_connection_that_ends_lets_go_of_what_it_held() -> None:
    debugger = recording()
    said = [create("a"), *events("r1", message("one"))]
    with DecisionQueue(debugger) as queue:
        sockets = heard_by(queue, said)
        queue.live.refresh()
        queue.live.hold(300_001, lambda decision: None)
        assert [one.number for one in queue.live.pending] == [1]
        sockets.ended(socket(said, number=3, ended=Ended.CLIENT_CLOSED))
    assert queue.live.pending == []
