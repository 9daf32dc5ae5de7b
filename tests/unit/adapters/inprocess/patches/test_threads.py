"""Threads know which context they were started in, and pools for whom they work."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import wiretape
from wiretape.adapters.inprocess.active_context import ActiveContext, innermost
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

HEADER = Header(wiretape=1, started=datetime(2026, 1, 1, tzinfo=UTC), recorder="wiretape test")
Run = Callable[..., Any]


@contextmanager
def side_by_side() -> Iterator[list[tuple[ActiveContext, Run]]]:
    """Two replays at once, each with a way to run something inside of it."""
    contexts = [wiretape.replay(Tape(Path(name), HEADER, (), (), False)) for name in ("one.tape", "other.tape")]
    runs = [contextvars.copy_context().run for _ in contexts]
    for run, context in zip(runs, contexts, strict=True):
        run(context.__enter__)
    try:
        yield list(zip(contexts, runs, strict=True))
    finally:
        for run, context in zip(runs, contexts, strict=True):
            run(context.__exit__, None, None, None)


class Asking(threading.Thread):
    """A thread by its class."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[ActiveContext] = []

    def run(self) -> None:
        self.found = innermost()


def started() -> list[ActiveContext]:
    thread = Asking()
    thread.start()
    thread.join()
    assert "run" not in vars(thread)
    with pytest.raises(RuntimeError, match="only be started once"):
        thread.start()
    return thread.found


def started_within() -> list[ActiveContext]:
    """A thread that a thread starts."""
    found: list[list[ActiveContext]] = []
    thread = threading.Thread(target=lambda: found.append(started()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("ask", [started, started_within])
def test_a_thread_belongs_to_the_context_that_it_was_started_in(ask: Callable[[], list[ActiveContext]]) -> None:
    with side_by_side() as both:
        assert [run(ask) for _, run in both] == [[context] for context, _ in both]
        assert ask() == [context for context, _ in both]  # started in neither


def test_work_belongs_to_who_gave_it_whoever_needed_the_thread_first() -> None:
    with side_by_side() as both, ThreadPoolExecutor(1) as pool:
        (first, run_first), (second, run_second) = both
        given = [run_first(pool.submit, innermost), run_second(pool.submit, innermost), pool.submit(innermost)]
        assert [future.result() for future in given] == [[first], [second], [first, second]]
        assert list(run_second(pool.map, lambda _: innermost(), range(2))) == [[second], [second]]


def test_a_thread_that_brings_its_own_way_to_run_keeps_it() -> None:
    found: list[list[ActiveContext]] = []
    mine = lambda: found.append(innermost())  # noqa: E731
    with side_by_side() as both:
        for _, run in both:
            thread = threading.Thread()
            thread.run = mine  # type: ignore[method-assign]
            run(thread.start)
            thread.join()
            assert vars(thread)["run"] is mine
    assert found == [[context] for context, _ in both]


def test_a_tool_that_wraps_what_a_thread_runs_finds_what_it_finds_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentry's SDK takes the function of `run`, and calls that with the thread."""
    start = threading.Thread.start

    def wrapping(thread: threading.Thread) -> None:
        run = getattr(thread.run, "__func__", thread.run)
        thread.run = lambda: run(threading.current_thread())  # type: ignore[method-assign]
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", wrapping)
    with side_by_side() as both:
        assert [run(started) for _, run in both] == [[context] for context, _ in both]


def test_afterwards_threads_start_as_ever() -> None:
    start, submit = vars(threading.Thread)["start"], vars(ThreadPoolExecutor)["submit"]
    with side_by_side():
        assert vars(threading.Thread)["start"] is not start
    assert (vars(threading.Thread)["start"], vars(ThreadPoolExecutor)["submit"]) == (start, submit)
