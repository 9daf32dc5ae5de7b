"""aiohttp, requests and urllib3 in process: whole answers and streams, recorded and replayed, across all doors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.inprocess import answers, ask, frames
from tests.support.upstream import CHAT_ANSWER, CHAT_EVENTS, Upstream

import wiretape
from wiretape.adapters.replaying import Replaying
from wiretape.model.http import Ended
from wiretape.replay.session import ReplaySession
from wiretape.tape.reader import read_tape

httpx = pytest.importorskip("httpx")
httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")
aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")
requests = pytest.importorskip("requests", reason="requests is not installed")
urllib3 = pytest.importorskip("urllib3", reason="urllib3 is not installed")

STREAM = b"".join(CHAT_EVENTS)
Calls = Callable[[str], list[Any]]  # a whole answer, and a stream's chunks


def by_httpx(url: str) -> list[Any]:
    with httpx.Client(timeout=5) as client:
        first = client.post(f"{url}/v1/chat/completions", json=ask("hi")).json()
        with client.stream("POST", f"{url}/v1/chat/completions", json=ask("go", stream=True)) as response:
            return [first, list(response.iter_raw())]


def by_httpx2_async(url: str) -> list[Any]:
    async def run() -> list[Any]:
        async with httpx2.AsyncClient(timeout=5) as client:
            first = (await client.post(f"{url}/v1/chat/completions", json=ask("hi"))).json()
            request = client.stream("POST", f"{url}/v1/chat/completions", json=ask("go", stream=True))
            async with request as response:
                return [first, [chunk async for chunk in response.aiter_raw()]]

    return asyncio.run(run())


def by_aiohttp(url: str) -> list[Any]:
    async def run() -> list[Any]:
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{url}/v1/chat/completions", json=ask("hi")) as response:
                first = await response.json()
            async with session.post(f"{url}/v1/chat/completions", json=ask("go", stream=True)) as response:
                return [first, [chunk async for chunk in response.content.iter_any()]]

    return asyncio.run(run())


def by_requests(url: str) -> list[Any]:
    with requests.Session() as session:
        first = session.post(f"{url}/v1/chat/completions", json=ask("hi")).json()
        with session.post(f"{url}/v1/chat/completions", json=ask("go", stream=True), stream=True) as response:
            return [first, list(response.iter_content(None))]


def by_urllib3(url: str) -> list[Any]:
    """As boto3 does it: no preloading, no retries, its own decoding."""
    with urllib3.PoolManager() as pool:
        target = f"{url}/v1/chat/completions"
        first = pool.request("POST", target, json=ask("hi"))
        streamed = pool.urlopen(
            "POST",
            target,
            body=json.dumps(ask("go", stream=True)).encode(),
            headers={"content-type": "application/json"},
            preload_content=False,
            decode_content=False,
            retries=False,
            assert_same_host=False,
        )
        chunks = list(streamed.stream())
        streamed.release_conn()
        return [first.json(), chunks]


DOORS: dict[str, Calls] = {
    "httpx": by_httpx,
    "httpx2": by_httpx2_async,
    "aiohttp": by_aiohttp,
    "requests": by_requests,
    "urllib3": by_urllib3,
}


@pytest.fixture(params=DOORS.values(), ids=DOORS.keys())
def calls(request: pytest.FixtureRequest) -> Calls:
    made: Calls = request.param
    return made


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """A tape recorded through each door, and where its upstream was; it is dead by now."""
    made = {}
    for name, call in DOORS.items():
        path = tmp_path_factory.mktemp("tapes") / f"{name}.tape"
        with Upstream() as upstream, wiretape.record(path):
            first, chunks = call(upstream.url)
        assert first == CHAT_ANSWER
        assert b"".join(chunks) == STREAM
        assert len(upstream.seen) == 2
        made[name] = (path, upstream.url)
    return made


@pytest.mark.parametrize("recorded", DOORS)
def test_what_one_door_recorded_every_door_replays(
    recordings: dict[str, tuple[Path, str]], recorded: str, calls: Calls
) -> None:
    tape, url = recordings[recorded]
    with wiretape.replay(tape) as ctx:
        assert calls(url) == [CHAT_ANSWER, CHAT_EVENTS]  # event by event, none glued to another
    assert [played.tier for played in ctx.report.played] == ["exact", "exact"]


@pytest.mark.parametrize("recorded", DOORS)
def test_what_was_recorded_in_process_replays_through_the_server(
    recordings: dict[str, tuple[Path, str]], recorded: str
) -> None:
    tape, url = recordings[recorded]
    with Replaying(ReplaySession([read_tape(tape)])) as replaying:
        first, chunks = by_requests(f"http://127.0.0.1:{replaying.port}/{url.removeprefix('http://')}")
    assert first == CHAT_ANSWER
    assert b"".join(chunks) == STREAM


def test_a_recording_holds_the_exchanges_whichever_door_it_came_through(
    recordings: dict[str, tuple[Path, str]],
) -> None:
    for name, (tape, url) in recordings.items():
        first, second = read_tape(tape).exchanges
        assert (first.ended, second.ended) == (Ended.COMPLETE, Ended.COMPLETE), name
        assert first.request.url == f"{url}/v1/chat/completions", name
        assert first.request.headers["host"] == url.removeprefix("http://"), name
        assert frames(second) == CHAT_EVENTS, name


def test_recording_a_replay_gives_the_recording_again(
    recordings: dict[str, tuple[Path, str]], calls: Calls, tmp_path: Path
) -> None:
    tape, url = recordings["httpx"]
    again = tmp_path / "again.tape"
    with wiretape.replay(tape), wiretape.record(again):
        assert calls(url) == [CHAT_ANSWER, CHAT_EVENTS]
    assert answers(again) == answers(tape)
