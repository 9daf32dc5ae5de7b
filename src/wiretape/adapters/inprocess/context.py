"""A context around a part of a program: `with`, `async with` or a decorator. Subclasses record or replay."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from wiretape.adapters.inprocess.active_context import ActiveContext, enter, leave
from wiretape.adapters.inprocess.patches.patching import apply_patches, remove_patches
from wiretape.adapters.routing.base_urls import without_default_routes
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.inprocess.context_children import ChildRoutes
    from wiretape.adapters.inprocess.fork_channel import ForkChannel

P = ParamSpec("P")
R = TypeVar("R")


class Context(ActiveContext):
    """Can be entered with `with` and `async with`, as often as one likes, and stands as a decorator.

    What a run needs is made when it begins: nothing is shared between two runs of a decorated function.
    """

    serve_children: Callable[[], AbstractContextManager[ChildRoutes]] | None = None
    on_unserved_children: Callable[[str], object] | None = None  # gets the reason; without it, a child does not start
    forks: ForkChannel | None = None  # how forked copies call this process; without it each copy is on its own
    is_copy = False  # this process was forked inside the context

    def __init__(self) -> None:
        super().__init__()
        self._children: ChildRoutes | None = None
        self._starts_children = False
        self._serving_children = ExitStack()
        self._children_lock = threading.RLock()

    def begin(self) -> None:
        raise NotImplementedError

    def finish(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self.is_open:
            raise UsageError(f"{self.name} is open already: make another context for a second run at the same time")
        self.is_copy = False
        self.begin()
        try:
            apply_patches()
        except BaseException as error:
            self.finish(error)
            raise
        enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_open:
            return  # it was left before
        leave(self)
        remove_patches()
        try:
            self._stop_children()
        finally:
            self.finish(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Each call of the function is a run of its own."""
        name = getattr(function, "__qualname__", None) or repr(function)
        ways: tuple[Any, ...] = (function, type(function).__call__)  # an object may have a method that is called
        if any(inspect.isgeneratorfunction(way) or inspect.isasyncgenfunction(way) for way in ways):
            raise UsageError(f"{name} is a generator: open the context inside it, using `with`")
        if any(inspect.iscoroutinefunction(way) for way in ways):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await cast(Any, function)(*args, **kwargs)

            return cast(Callable[P, R], awaited)

        @functools.wraps(function)
        def whole(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._again():
                result = function(*args, **kwargs)
                if inspect.iscoroutine(result):
                    result.close()
                    raise UsageError(f"{name} gives a coroutine, which would run outside: make it an `async def`")
                return result

        return whole

    def _again(self) -> Self:
        made = copy.copy(self)
        made.lock = threading.RLock()
        made._children = None
        made._serving_children = ExitStack()
        made._children_lock = threading.RLock()
        return made

    # child processes

    def children(self) -> ChildRoutes | None:
        """The server for child processes, started for the first of them; None: they use the network directly.

        Programs that the server itself starts on its way up are not sent to it.
        """
        with self._children_lock:
            begins = self._children is None and self.is_open and not self._starts_children
            if begins and self.serve_children is not None:
                self._starts_children = True
                try:
                    self._children = self._serving_children.enter_context(self.serve_children())
                finally:
                    self._starts_children = False
            return self._children

    def child_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        try:
            if self.is_copy and self._children is None and self.forks is not None:
                asked: dict[str, str] = self.forks.call("context", "child_variables", dict(environ))
                return asked
            children = self.children()
        except Exception as error:
            if self.on_unserved_children is None:
                raise
            self.on_unserved_children(f"child processes are not recorded: {error}")
            return {}
        if children is None:
            return {}
        variables = children.variables(environ)
        # A recording keeps base URLs unset: a program may have one in its code, and the proxy records it all the same.
        return variables if self.replays and not self.records_too else without_default_routes(variables, environ)

    def child_ports(self) -> Collection[int]:
        """The ports of this process that child processes are sent to."""
        return self._children.ports() if self._children is not None else ()

    def forking(self) -> None:
        if self.forks is not None and not self.is_copy:
            self.forks.open()

    def forked(self) -> None:
        super().forked()
        self.is_copy = True
        self._children_lock = threading.RLock()

    def _stop_children(self) -> None:
        if self.is_copy:
            return  # they are served in another process
        if self.forks is not None:
            self.forks.close()
        with self._children_lock:
            self._children = None
        self._serving_children.close()


def as_http(url: str) -> str:
    """A WebSocket's URL as its handshake's: so it stands on tapes, whichever door it came through."""
    return "http" + url[2:] if url.startswith(("ws:", "wss:")) else url


def several(strings: str | Iterable[str]) -> tuple[str, ...]:
    """The strings of an argument that takes several. A single string counts as one, not as its letters."""
    return (strings,) if isinstance(strings, str) else tuple(strings)
