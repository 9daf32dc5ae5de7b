"""aiohttp, requests and urllib3 in process: answers and streams, recorded and replayed across libraries."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.inprocess import answers, ask, frames
from tests.support.upstream import CHAT_ANSWER, CHAT_EVENTS, Upstream

import wiretape
from wiretape.adapters.replay_runner import ReplayServer
from wiretape.matching.session import ReplaySession
from wiretape.model.http import Ended
from wiretape.tape.reading.reader import read_tape

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


def by_http_client3(url: str) -> list[Any]:
    """Like boto3: no preloading, no retries, its own decoding."""
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


def by_http_client(url: str) -> list[Any]:
    """Without any library: `http.client`, one request on a connection that is kept, and the stream on it as well."""
    host = url.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=5)) as connection:
        made = []
        for body in (ask("hi"), ask("go", stream=True)):
            headers = {"content-type": "application/json"}
            connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
            made.append(connection.getresponse())
            if len(made) == 1:
                first = json.loads(made[0].read())
        return [first, list(iter(lambda: made[1].read1(65536), b""))]


DOORS: dict[str, Calls] = {
    "http.client": by_http_client,
    "httpx": by_httpx,
    "httpx2": by_httpx2_async,
    "aiohttp": by_aiohttp,
    "requests": by_requests,
    "urllib3": by_http_client3,
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
def test_every_library_replays_the_recording_of_every_other(
    recordings: dict[str, tuple[Path, str]], recorded: str, calls: Calls
) -> None:
    tape, url = recordings[recorded]
    with wiretape.replay(tape) as ctx:
        assert calls(url) == [CHAT_ANSWER, CHAT_EVENTS]  # event by event, none glued to another
    assert [played.tier for played in ctx.report.played] == ["exact", "exact"]


@pytest.mark.parametrize("recorded", DOORS)
def test_an_in_process_recording_replays_through_the_server(
    recordings: dict[str, tuple[Path, str]], recorded: str
) -> None:
    tape, url = recordings[recorded]
    with ReplayServer(ReplaySession([read_tape(tape)])) as replaying:
        first, chunks = by_requests(f"http://127.0.0.1:{replaying.port}/{url.removeprefix('http://')}")
    assert first == CHAT_ANSWER
    assert b"".join(chunks) == STREAM


def test_a_recording_holds_the_exchanges_by_every_library(
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


def requested(library: str, method: str, url: str, body: Any = None) -> tuple[int, bytes]:
    """One request, whole, through the library's plainest call. `body` may be a list: it is sent piece by piece."""

    async def by_aiohttp() -> tuple[int, bytes]:
        async def pieces() -> Any:
            for piece in body:
                yield piece

        sent = pieces() if isinstance(body, list) else body
        async with aiohttp.ClientSession() as session, session.request(method, url, data=sent) as response:
            return response.status, await response.read()

    async def by_httpx2() -> tuple[int, bytes]:
        async def pieces() -> Any:
            for piece in body:
                yield piece

        sent = pieces() if isinstance(body, list) else body
        async with httpx2.AsyncClient() as client:
            response = await client.request(method, url, content=sent)
            return response.status_code, response.content

    if library == "aiohttp":
        return asyncio.run(by_aiohttp())
    if library == "httpx2":
        return asyncio.run(by_httpx2())
    sent = iter(body) if isinstance(body, list) else body
    if library == "httpx":
        response = httpx.request(method, url, content=sent)
        return response.status_code, response.content
    if library == "urllib":
        return by_urllib(method, url, sent)
    done = requests.request(method, url, data=sent)
    return done.status_code, done.content


def by_urllib(method: str, url: str, body: Any) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method=method)) as response:
            data = response.read()
            return response.status, gzip.decompress(data) if response.headers["content-encoding"] == "gzip" else data
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.parametrize("library", ["httpx", "httpx2", "aiohttp", "requests", "urllib"])
def test_odd_answers_and_uploads_in_pieces_come_back_as_they_were(library: str, tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"

    def run(url: str) -> list[tuple[int, bytes]]:
        return [
            requested(library, "POST", f"{url}/gzip", b"{}"),
            requested(library, "POST", f"{url}/nothing", b"x"),
            requested(library, "HEAD", f"{url}/nothing"),
            requested(library, "POST", f"{url}/limited", b"{}"),
            requested(library, "POST", f"{url}/upload", [b"one ", b"two ", b"three"]),
            requested(library, "GET", f"{url}/query?a=1&b=%20x"),
        ]

    with Upstream() as upstream, wiretape.record(tape):
        live = run(upstream.url)
        assert [status for status, _ in live] == [200, 204, 204, 429, 200, 200]
        assert json.loads(live[0][1]) == CHAT_ANSWER
        assert [seen.body for seen in upstream.seen][4] == b"one two three"
    recorded = read_tape(tape).exchanges
    assert {x.ended for x in recorded} == {Ended.COMPLETE}
    assert [x.request.url.removeprefix(upstream.url) for x in recorded][-1] == "/query?a=1&b=%20x"
    with wiretape.replay(tape) as ctx:
        assert run(upstream.url) == live
    assert ctx.report.left_over == ()


def test_a_redirect_is_two_exchanges_and_is_followed_again(tmp_path: Path) -> None:
    from tests.support.upstream import raw_upstream

    moved = b"HTTP/1.1 307 Moved\r\nlocation: %s/v1/messages\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

    async def by_aiohttp(url: str) -> int:
        async with aiohttp.ClientSession() as session, session.post(url, data=b"{}") as response:
            return int(response.status)

    calls: dict[str, Callable[[str], int]] = {
        "httpx": lambda url: int(httpx.post(url, content=b"{}", follow_redirects=True).status_code),
        "requests": lambda url: int(requests.post(url, data=b"{}").status_code),
        "aiohttp": lambda url: asyncio.run(by_aiohttp(url)),
    }
    for name, call in calls.items():
        tape = tmp_path / f"{name}.tape"
        with Upstream() as upstream, raw_upstream(moved % upstream.url.encode()) as port, wiretape.record(tape):
            assert call(f"http://127.0.0.1:{port}/old") == 200
        assert [x.response.status for x in read_tape(tape).exchanges if x.response] == [307, 200], name
        with wiretape.replay(tape):
            assert call(f"http://127.0.0.1:{port}/old") == 200


def test_threads_of_to_thread_and_tasks_of_gather_are_inside(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"

    async def run(url: str) -> list[Any]:
        async with aiohttp.ClientSession() as session:

            async def one(text: str) -> Any:
                async with session.post(f"{url}/v1/chat/completions", json=ask(text)) as response:
                    return await response.json()

            def other(text: str) -> Any:
                return requests.post(f"{url}/v1/chat/completions", json=ask(text)).json()

            threads = [asyncio.to_thread(other, f"thread {n}") for n in range(4)]
            return await asyncio.gather(*(one(f"task {n}") for n in range(8)), *threads)

    with Upstream() as upstream, wiretape.record(tape):
        assert asyncio.run(run(upstream.url)) == [CHAT_ANSWER] * 12
    with wiretape.replay(tape) as ctx:
        assert asyncio.run(run(upstream.url)) == [CHAT_ANSWER] * 12
    assert (len(ctx.report.played), ctx.report.left_over) == (12, ())
