"""Which test has started what runs: threads, tasks, the work of pools."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import orjson
import pytest
from tests.support.replaying import chat, live, user

from wiretape.adapters.pytest.late_threads import LateContext
from wiretape.adapters.pytest.thread_context import Origin, Origins

A, B = Origin("test_a"), Origin("test_b")


@pytest.fixture
def origins() -> Iterator[Origins]:
    made = Origins()
    A.is_over = B.is_over = False
    yield made
    made.unwatch()


def threaded(function: Callable[[], Origin | None]) -> Origin | None:
    found: list[Origin | None] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_belongs_to_the_test_that_started_it_and_so_do_its_own_threads(origins: Origins) -> None:
    origins.begin(A)
    goes_on, found = threading.Event(), []

    def late() -> None:
        goes_on.wait(30)
        found.append(threaded(origins.here))

    thread = threading.Thread(target=late)
    thread.start()
    assert origins.end(A)
    origins.begin(B)
    goes_on.set()
    thread.join()
    assert found == [A]
    assert A.is_over
    assert not origins.are_running(A)
    assert origins.here() is None
    assert threaded(origins.here) is B


def test_work_belongs_to_who_gave_it_to_a_pool(origins: Origins) -> None:
    origins.begin(A)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(origins.here).result() is A
        origins.end(A)
        assert pool.submit(origins.here).result() is None
        origins.begin(B)
        assert pool.submit(origins.here).result() is B


def test_a_task_belongs_to_the_test_that_started_it(origins: Origins) -> None:
    async def here() -> Origin | None:
        return origins.here()

    async def later(signal: asyncio.Event) -> list[Origin | None]:
        await signal.wait()
        return [origins.here(), *await asyncio.gather(here())]

    async def run() -> None:
        signal = asyncio.Event()
        stray = asyncio.create_task(later(signal))
        assert origins.end(A)
        origins.begin(B)
        signal.set()
        assert await stray == [A, A]

    async def whole() -> None:
        origins.begin(A)
        await run()
        assert await asyncio.create_task(here()) is B

    asyncio.run(whole())


def test_the_task_in_which_anyio_runs_all_tests_belongs_to_none_of_them(origins: Origins) -> None:
    async def here() -> Origin | None:
        return origins.here()

    class TestRunner:
        async def _run_tests_and_fixtures(self) -> list[Origin | None]:
            origins.end(A)
            origins.begin(B)
            return [origins.here(), await asyncio.create_task(here())]

    TestRunner._run_tests_and_fixtures.__qualname__ = "TestRunner._run_tests_and_fixtures"
    origins.begin(A)
    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(loop.create_task(TestRunner()._run_tests_and_fixtures())) == [None, B]
    finally:
        loop.close()


def test_a_thread_that_is_kept_for_whoever_comes_next_belongs_to_no_test(origins: Origins) -> None:
    origins.begin(A)
    with ThreadPool(1) as pool:
        assert pool.apply(origins.here) is None
    anyio = pytest.importorskip("anyio.to_thread")

    async def threaded_by_anyio() -> Origin | None:
        found: Origin | None = await anyio.run_sync(origins.here)
        return found

    assert asyncio.run(threaded_by_anyio()) is None


def test_a_coroutine_that_is_given_to_a_loop_belongs_to_who_gave_it(origins: Origins) -> None:
    async def here() -> Origin | None:
        return origins.here()

    origins.begin(A)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        origins.end(A)
        origins.begin(B)
        assert asyncio.run_coroutine_threadsafe(here(), loop).result(30) is B
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_an_awaitable_that_cannot_be_remembered_runs_all_the_same(origins: Origins) -> None:
    async def generator() -> AsyncIterator[Origin | None]:
        yield origins.here()

    async def run() -> None:
        origins.begin(A)
        assert await asyncio.create_task(generator().__anext__()) is A  # type: ignore[arg-type]

    asyncio.run(run())


class Wrapped:
    """As wrapt's, of which OpenTelemetry's instruments are: what a class gives for one is to be called."""

    def __init__(self, found: Callable[..., None]) -> None:
        self._found = found

    def __get__(self, thread: threading.Thread | None, owner: Any = None) -> Callable[..., None]:
        return functools.partial(self._found, thread) if thread is not None else self._found


def test_a_tool_that_wrapped_the_start_of_threads_before_goes_on(
    origins: Origins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading.Thread, "start", Wrapped(threading.Thread.start))
    origins.begin(A)
    assert threaded(origins.here) is A
    origins.unwatch()


def test_what_is_started_is_watched_until_the_end(origins: Origins) -> None:
    before = threading.Thread.start, ThreadPoolExecutor.submit, asyncio.BaseEventLoop.create_task
    origins.begin(A)
    assert threading.Thread.start is not before[0]
    ours = ThreadPoolExecutor.submit
    ThreadPoolExecutor.submit = lambda *args, **named: ours(*args, **named)  # type: ignore[method-assign]
    theirs = ThreadPoolExecutor.submit
    origins.unwatch()
    assert ThreadPoolExecutor.submit is theirs  # another tool's, made after ours
    ThreadPoolExecutor.submit = before[1]  # type: ignore[method-assign]
    assert (threading.Thread.start, ThreadPoolExecutor.submit, asyncio.BaseEventLoop.create_task) == before


def test_a_model_call_after_the_end_is_an_error_that_names_the_test_and_telemetry_is_none() -> None:
    told: dict[str, int] = {}
    outlived = LateContext(Origin("test_a.py::test_a", ("tools.corp",)), told)
    for _ in range(2):
        shown = outlived.answer(live(chat(user("hi"))))
        assert shown.status == 400
        assert ("x-should-retry", "false") in shown.headers
        message = orjson.loads(b"".join(piece.data for piece in shown.pieces))["error"]["message"]
        here = threading.current_thread().name
        assert message.split("\n") == [
            "POST /v1/chat/completions was sent after the end of test_a.py::test_a",
            f"  by the thread {here!r}, which that test started; its tape is closed, and nothing is called live",
            "  wait for it in the test; start code that serves several tests in a fixture of a wider scope",
        ]
        assert list(told) == [message]
    assert outlived.answer(live({"event": "ended"}, url="https://telemetry.example/v1/track")).status == 404
    assert list(told.values()) == [2]
    assert outlived.passes("tools.corp", 443, count=True)
    assert not outlived.passes("api.openai.com", 443, count=True)
