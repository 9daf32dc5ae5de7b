"""Propagate the active context to new threads and executor jobs, as asyncio does for tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from wiretape.adapters.inprocess.active_context import ActiveContext, enclosing_context, use_context
from wiretape.adapters.inprocess.patches import _compat
from wiretape.adapters.inprocess.patches.patching import Patch

if TYPE_CHECKING:  # at run time, its import triggers this patch
    from concurrent.futures import Future, ThreadPoolExecutor


def patches(module: ModuleType) -> list[Patch]:
    if module.__name__ == "threading":
        return [Patch(module.Thread, "start", _start)]
    return [Patch(module.ThreadPoolExecutor, "submit", _submit)]


def thread_target(thread: threading.Thread) -> Any:
    """The function that a thread runs; None for a thread that is subclassed, or has finished."""
    return _compat.thread_target(thread)


def _start(original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start(thread: threading.Thread) -> None:
        context = enclosing_context()
        if context is None:
            original(thread)
            return
        own = vars(thread).get("run")  # set on this thread only
        thread.run = _run_in(context, thread, own)  # type: ignore[method-assign]
        try:
            original(thread)
        except RuntimeError:  # the thread was started before, or the system has no more threads
            _restore(thread, own)
            raise

    return start


def _run_in(context: ActiveContext, thread: threading.Thread, own: Any) -> MethodType:
    """Return a bound method, as the original is one: tools that wrap it call its function with the thread."""

    def run(thread: threading.Thread) -> None:
        _restore(thread, own)  # our method holds a reference to the thread
        with use_context(context):
            thread.run()

    return MethodType(run, thread)


def _restore(thread: threading.Thread, own: Any) -> None:
    if own is None:
        vars(thread).pop("run", None)
    else:
        thread.run = own  # type: ignore[method-assign]


def _submit(original: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    """A job belongs to the code that submits it, not to the code that first needed its thread."""

    def submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return original(pool, _run_job, enclosing_context(), function, args, kwargs)

    return submit


def _run_job(context: ActiveContext | None, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with use_context(context):
        return function(*args, **kwargs)
