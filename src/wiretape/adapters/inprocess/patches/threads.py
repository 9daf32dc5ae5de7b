"""No door for requests: it lets threads know which context they were started in, as tasks know it by themselves.

Work that is given to a pool belongs to who gave it, whoever needed its thread first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from wiretape.adapters.inprocess.active_context import ActiveContext, enclosing_context, use_context
from wiretape.adapters.inprocess.patches.patching import Patch

if TYPE_CHECKING:  # its import is what this door waits for
    from concurrent.futures import Future, ThreadPoolExecutor


def patches(module: ModuleType) -> list[Patch]:
    if module.__name__ == "threading":
        return [Patch(module.Thread, "start", _start)]
    return [Patch(module.ThreadPoolExecutor, "submit", _submit)]


def _start(original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start(thread: threading.Thread) -> None:
        context = enclosing_context()
        if context is None:
            original(thread)
            return
        own = vars(thread).get("run")  # a way to run of this one thread
        thread.run = _run_in(context, thread, own)  # type: ignore[method-assign]
        try:
            original(thread)
        except RuntimeError:  # it was started before, or there can be no more of them
            _put_back(thread, own)
            raise

    return start


def _run_in(context: ActiveContext, thread: threading.Thread, own: Any) -> MethodType:
    """A method, as what stood there: tools that wrap it in turn call its function, and give it the thread."""

    def run(thread: threading.Thread) -> None:
        _put_back(thread, own)  # ours holds the thread
        with use_context(context):
            thread.run()

    return MethodType(run, thread)


def _put_back(thread: threading.Thread, own: Any) -> None:
    if own is None:
        vars(thread).pop("run", None)
    else:
        thread.run = own  # type: ignore[method-assign]


def _submit(original: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    def submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return original(pool, _work, enclosing_context(), function, args, kwargs)

    return submit


def _work(context: ActiveContext | None, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with use_context(context):
        return function(*args, **kwargs)
