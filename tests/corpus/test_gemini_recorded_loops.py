"""Recorded loops in Gemini's format: nearly all are one thread, and results find their tool calls."""

from __future__ import annotations

import pytest
from tests.support.corpora import cassettes
from tests.support.replaying import HandMade
from tests.support.wire import REGISTRY

from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest
from wiretape.model.call import ToolResult
from wiretape.model.http import Exchange, Headers, body_bytes
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

ARCHIVES = ["charmbracelet+fantasy", "pydantic+pydantic-ai", "simonw+llm-gemini"]
OWN_CALL = "test_cross_provider_capability_replay"  # here the client adds a call to the history


def loops(archive: str) -> list[tuple[str, list[Exchange]]]:
    found = []
    for path, exchanges in cassettes(archive):
        spoken = [x for x in exchanges if (form := REGISTRY.recognise(x)) and form.name == "gemini.generate"]
        if len(spoken) > 1 and all(x.request.body is not None for x in spoken):
            found.append((path, spoken))
    return found


def lost_results(run: Run) -> int:
    """Return added results without a tool call. (A first call may have a history from other providers.)"""
    given = sum(use.result is not None for use in run.tool_uses if use.call.kind != "server")
    carried = 0
    for step in run.steps:
        for message in step.call.request.messages[step.new_from :] if step.new_from else ():
            carried += sum(isinstance(b, ToolResult) and b.kind != "server" for b in message.blocks)
    return carried - given


@pytest.mark.parametrize("archive", ARCHIVES)
def test_recorded_loops_are_single_threads(archive: str) -> None:
    torn, lost = [], []
    found = loops(archive)
    for path, exchanges in found:
        run = build_run(decode(exchanges, REGISTRY))
        opening = {id(step.call) for step in run.steps if step.cause.kind == "turn_start"}
        if len(run.threads) > len(opening):
            torn.append(path)
        if lost_results(run) and OWN_CALL not in path:
            lost.append(path)
    assert found
    assert not torn
    assert not lost


@pytest.mark.parametrize("archive", ARCHIVES)
def test_recorded_loops_replay_to_the_same_requests(archive: str) -> None:
    for path, exchanges in loops(archive):
        replay = ReplaySession([HandMade(tuple(exchanges))])  # type: ignore[list-item]
        for one in exchanges:
            asked = LiveRequest("POST", one.request.url, Headers(), body_bytes(one.request.body))
            outcome = replay.answer(asked)
            assert isinstance(outcome, Answer), path
            assert outcome.exchange.response is one.response, path
