"""Which test has started the code that runs here: its threads, its tasks, and what it gave to pools of threads.

What a test has started may outlive it. What has been started while no test had its tape open belongs to none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

# anyio's plugin runs all tests of an event loop in one task, whichever of them it was started for.
_OF_ANYIO: Final = "TestRunner._run_tests_and_fixtures"


# These keep a thread for whoever comes next, and take their work from queues of their own.
_SHARED: Final = ("anyio.", "multiprocessing.", "trio.")


class Origin:
    """A test whose tape was opened. `is_over`: it has been closed since."""

    def __init__(self, test: str, allow_hosts: tuple[str, ...] = ()) -> None:
        self.test = test
        self.allow_hosts = allow_hosts
        self.is_over = False


class Origins:
    """Watches what is started, from the first test to the end of the process."""

    def __init__(self) -> None:
        self._test: Origin | None = None
        self._threads: WeakKeyDictionary[threading.Thread, Origin] = WeakKeyDictionary()
        self._tasks: WeakKeyDictionary[asyncio.Task[Any], Origin] = WeakKeyDictionary()
        self._given: WeakKeyDictionary[Any, Origin] = WeakKeyDictionary()  # coroutines that another thread is to run
        self._work = threading.local()
        self._lock = threading.RLock()  # tests end while threads of theirs start others
        self._watched: list[tuple[Any, str, Any, Any]] = []  # owner, name, what stood there, what stands there now

    def begin(self, origin: Origin) -> None:
        self._watch()
        self._test = origin

    def end(self, origin: Origin) -> bool:
        """Whether something that the test has started is still there."""
        origin.is_over = True
        if self._test is origin:
            self._test = None
        return self.are_at_work(origin)

    def are_at_work(self, origin: Origin) -> bool:
        with self._lock:
            threads = [one for one, of in self._threads.items() if of is origin]
            tasks = [one for one, of in self._tasks.items() if of is origin]
        return any(one.is_alive() for one in threads) or not all(one.done() for one in tasks)

    def here(self) -> Origin | None:
        """The test that this code is known to come from."""
        if getattr(self._work, "given", False):
            origin: Origin | None = self._work.origin
            return origin
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no event loop runs in this thread
            task = None
        if task is not None:
            with suppress(KeyError, TypeError):
                return self._tasks[task]
        return self._threads.get(threading.current_thread())

    def _starting(self) -> Origin | None:
        return self.here() or self._test

    # -- what is watched ---------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._watched:
            return
        for owner, name, make in (
            (threading.Thread, "start", self._thread),
            (ThreadPoolExecutor, "submit", self._submitting),
            (asyncio.BaseEventLoop, "create_task", self._tasking),
            (asyncio, "run_coroutine_threadsafe", self._giving),
            (asyncio.tasks, "run_coroutine_threadsafe", self._giving),
        ):
            stood = owner.__dict__[name]
            ours = make(getattr(owner, name))  # as its owner gives it: a wrapper of wrapt's is called so
            setattr(owner, name, ours)
            self._watched.append((owner, name, stood, ours))

    def unwatch(self) -> None:
        for owner, name, stood, ours in reversed(self._watched):
            if owner.__dict__.get(name) is ours:  # else another tool patched after us: ours lets everything pass
                setattr(owner, name, stood)
        self._watched.clear()

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
        """Work belongs to who gave it, not to who was the first to need the thread."""
        self._work.given, self._work.origin = True, origin
        try:
            return function(*args, **kwargs)
        finally:
            self._work.given = False

    def _giving(self, give: Callable[..., Any]) -> Callable[..., Any]:
        def given(coro: Any, loop: Any) -> Any:
            origin = self._starting()
            if origin is not None:
                with self._lock, suppress(TypeError):  # not every awaitable can be remembered
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
                with self._lock, suppress(TypeError):  # a task of another make
                    self._tasks[task] = origin
            return task

        return created


def _is_shared(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    return str(type(thread).__module__).startswith(_SHARED) or str(getattr(target, "__module__", "")).startswith(
        _SHARED
    )


ORIGINS: Final = Origins()
