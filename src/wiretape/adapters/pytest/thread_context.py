"""Finds the test that started the running code: its threads, its tasks, and work that it submitted to thread pools.

Threads and tasks may outlive their test. Those that start before or between tests with a tape belong to no test.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from wiretape.adapters.inprocess.patches.threads import thread_target

# The pytest plugin of anyio runs all tests of an event loop in one task.
_OF_ANYIO: Final = "TestRunner._run_tests_and_fixtures"
# Their threads serve one caller after another, and take work from private queues.
_SHARED: Final = ("anyio.", "multiprocessing.", "trio.")


class Origin:
    """A test whose tape was opened. `is_over`: its tape is closed."""

    def __init__(self, test: str, allow_hosts: tuple[str, ...] = ()) -> None:
        self.test = test
        self.allow_hosts = allow_hosts
        self.is_over = False


class Origins:
    """Remembers which test started each thread and task, from the first test to the end of the process."""

    def __init__(self) -> None:
        self._test: Origin | None = None
        self._threads: WeakKeyDictionary[threading.Thread, Origin] = WeakKeyDictionary()
        self._tasks: WeakKeyDictionary[asyncio.Task[Any], Origin] = WeakKeyDictionary()
        self._given: WeakKeyDictionary[Any, Origin] = WeakKeyDictionary()  # coroutines for another thread's loop
        self._work = threading.local()
        self._lock = threading.RLock()  # threads of a test start others while the test ends
        self._patched: list[tuple[Any, str, Any, Any]] = []  # owner, name, original, replacement

    def begin(self, origin: Origin) -> None:
        self._patch()
        self._test = origin

    def end(self, origin: Origin) -> bool:
        """True if threads or tasks of the test are still running."""
        origin.is_over = True
        if self._test is origin:
            self._test = None
        return self.are_running(origin)

    def are_running(self, origin: Origin) -> bool:
        with self._lock:
            threads = [one for one, of in self._threads.items() if of is origin]
            tasks = [one for one, of in self._tasks.items() if of is origin]
        return any(one.is_alive() for one in threads) or not all(one.done() for one in tasks)

    def here(self) -> Origin | None:
        """The test that started the calling code; None if it is unknown."""
        if getattr(self._work, "given", False):
            origin: Origin | None = self._work.origin
            return origin
        try:
            task = asyncio.current_task()
        except RuntimeError:  # this thread has no event loop
            task = None
        if task is not None:
            with suppress(KeyError, TypeError):
                return self._tasks[task]
        return self._threads.get(threading.current_thread())

    def _starting(self) -> Origin | None:
        return self.here() or self._test

    def _patch(self) -> None:
        if self._patched:
            return
        for owner, name, make in (
            (threading.Thread, "start", self._thread),
            (ThreadPoolExecutor, "submit", self._submitting),
            (asyncio.BaseEventLoop, "create_task", self._tasking),
            (asyncio, "run_coroutine_threadsafe", self._giving),
            (asyncio.tasks, "run_coroutine_threadsafe", self._giving),
        ):
            original = owner.__dict__[name]
            replacement = make(getattr(owner, name))  # through the owner: wrappers of wrapt bind there
            setattr(owner, name, replacement)
            self._patched.append((owner, name, original, replacement))

    def unwatch(self) -> None:
        for owner, name, original, replacement in reversed(self._patched):
            if owner.__dict__.get(name) is replacement:  # else another tool patched it later: ours does nothing now
                setattr(owner, name, original)
        self._patched.clear()

    def _thread(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def started(thread: threading.Thread) -> None:
            origin = self._starting()
            if origin is not None and not _is_shared(thread):
                with self._lock:
                    self._threads[thread] = origin
            start(thread)

        return started

    def _submitting(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        def submitted(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            origin = self._starting()
            return submit(pool, self._run_for, origin, function, args, kwargs)

        return submitted

    def _run_for(self, origin: Origin | None, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Submitted work belongs to the test that submitted it, not to the test that started the thread."""
        self._work.given, self._work.origin = True, origin
        try:
            return function(*args, **kwargs)
        finally:
            self._work.given = False

    def _giving(self, give: Callable[..., Any]) -> Callable[..., Any]:
        def given(coro: Any, loop: Any) -> Any:
            origin = self._starting()
            if origin is not None:
                with self._lock, suppress(TypeError):  # some awaitables allow no weak reference
                    self._given[coro] = origin
            return give(coro, loop)

        return given

    def _tasking(self, create: Callable[..., Any]) -> Callable[..., Any]:
        def created(loop: Any, coro: Any, **named: Any) -> Any:
            given = None
            with self._lock, suppress(TypeError):
                given = self._given.pop(coro, None)
            task, origin = create(loop, coro, **named), given or self._starting()
            if origin is not None and getattr(coro, "__qualname__", "") != _OF_ANYIO:
                with self._lock, suppress(TypeError):  # a task class without weak references
                    self._tasks[task] = origin
            return task

        return created


def _is_shared(thread: threading.Thread) -> bool:
    modules = (type(thread).__module__, getattr(thread_target(thread), "__module__", ""))
    return any(str(module).startswith(_SHARED) for module in modules)


ORIGINS: Final = Origins()
