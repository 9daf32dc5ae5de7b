"""httpx and httpx2 in process: recorded without a proxy, replayed without a server, streams event by event."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.inprocess import ask, frames, only
from tests.support.upstream import CHAT_ANSWER, CHAT_EVENTS, Upstream

import wiretape
from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reading.reader import read_tape


@pytest.fixture(params=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


def test_a_recording_replays_without_its_upstream(library: Any, tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"

    def run(url: str) -> list[Any]:
        with library.Client(timeout=5) as client:
            first = client.post(f"{url}/v1/chat/completions", json=ask("weather?")).json()
            with client.stream("POST", f"{url}/v1/chat/completions", json=ask("again", stream=True)) as response:
                return [first, list(response.iter_raw())]

    with Upstream() as upstream:
        with wiretape.record(tape):
            recorded = run(upstream.url)
        assert len(upstream.seen) == 2
    assert recorded[0] == CHAT_ANSWER
    assert b"".join(recorded[1]) == b"".join(CHAT_EVENTS)
    first, second = read_tape(tape).exchanges
    assert first.request.headers["host"] == f"127.0.0.1:{upstream.port}"
    assert body_bytes(second.response.body if second.response else None) == b"".join(CHAT_EVENTS)
    assert (first.ended, second.ended) == (Ended.COMPLETE, Ended.COMPLETE)
    with wiretape.replay(tape) as ctx:
        assert run(upstream.url) == [CHAT_ANSWER, CHAT_EVENTS]
    assert [played.tier for played in ctx.report.played] == ["exact", "exact"]
    assert ctx.report.left_over == ()


def test_async_calls_record_and_replay(library: Any, tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"

    async def run(url: str) -> list[Any]:
        async with library.AsyncClient(timeout=5) as client:
            first = (await client.post(f"{url}/v1/chat/completions", json=ask("weather?"))).json()
            request = client.stream("POST", f"{url}/v1/chat/completions", json=ask("again", stream=True))
            async with request as response:
                return [first, b"".join([chunk async for chunk in response.aiter_raw()])]

    async def twice(url: str) -> list[Any]:
        async with wiretape.replay(tape):
            return await run(url)

    with Upstream() as upstream, wiretape.record(tape):
        recorded = asyncio.run(run(upstream.url))
    assert recorded == [CHAT_ANSWER, b"".join(CHAT_EVENTS)]
    assert asyncio.run(twice(upstream.url)) == recorded


def test_each_event_passes_on_at_once_while_recording(library: Any, upstream: Upstream, tmp_path: Path) -> None:
    with (
        wiretape.record(tmp_path / "x.tape"),
        library.Client(timeout=5) as client,
        client.stream("POST", f"{upstream.url}/held", json=ask("x", stream=True)) as response,
    ):
        chunks = response.iter_raw()
        assert next(chunks) == CHAT_EVENTS[0]  # the next one is not sent before the gate opens
        for _ in CHAT_EVENTS:
            upstream.open_gate()
        assert b"".join(chunks) == b"".join(CHAT_EVENTS[1:])
    assert frames(only(tmp_path / "x.tape")) == CHAT_EVENTS
