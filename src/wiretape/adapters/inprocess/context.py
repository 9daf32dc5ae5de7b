"""A context around a part of a program: `with`, `async with` or a decorator. Subclasses record or replay."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from wiretape.adapters.inprocess.active_context import ActiveContext, active_contexts, enter, leave
from wiretape.adapters.inprocess.patches.patching import apply_patches, remove_patches
from wiretape.adapters.inprocess.tools import contexts as tool_contexts
from wiretape.adapters.routing.base_urls import without_default_routes
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.inprocess.fork_channel import ForkChannel

P = ParamSpec("P")
R = TypeVar("R")

tool_contexts.find = active_contexts


@dataclass(frozen=True, slots=True)
class ChildRoutes:
    """How child processes reach this process. `variables` extends an environment; `ports` are the ports it names."""

    ports: Callable[[], Collection[int]]
    variables: Callable[[Mapping[str, str]], dict[str, str]]


class PatchingContext(ActiveContext):
    """Can be entered any number of times, and decorates functions and coroutine functions.

    Each entry creates the objects that it needs: two calls of a decorated function share nothing.
    """

    forks: ForkChannel | None = None  # how forked copies call this process; None: each copy works alone
    is_copy = False  # this process was forked inside the context
    on_unserved_children: Callable[[str], object] | None = None  # gets the reason; None: the child does not start

    def __init__(self) -> None:
        super().__init__()
        self._children: ChildRoutes | None = None
        self._starting_children = False
        self._child_server = ExitStack()
        self._children_lock = threading.RLock()

    def begin(self) -> None:
        raise NotImplementedError

    def finish(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def serve_children(self) -> AbstractContextManager[ChildRoutes] | None:
        """A server for child processes; None: they use the network directly."""
        return None

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
            return  # it was closed before
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
        """Run each call of the function in its own context."""
        name = getattr(function, "__qualname__", None) or repr(function)
        callables: tuple[Any, ...] = (function, type(function).__call__)  # an object may have a `__call__` method
        if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in callables):
            raise UsageError(f"{name} is a generator: open the context inside it, using `with`")
        if any(inspect.iscoroutinefunction(one) for one in callables):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._fresh_copy():
                    return await cast(Any, function)(*args, **kwargs)

            return cast(Callable[P, R], awaited)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._fresh_copy():
                result = function(*args, **kwargs)
                if inspect.iscoroutine(result):
                    result.close()
                    raise UsageError(f"{name} returns a coroutine, which would run outside: make it an `async def`")
                return result

        return called

    def _fresh_copy(self) -> Self:
        made = copy.copy(self)
        made.lock = threading.RLock()
        made._children = None
        made._child_server = ExitStack()
        made._children_lock = threading.RLock()
        return made

    # child processes

    def children(self) -> ChildRoutes | None:
        """The routes for child processes, whose server starts with the first of them.

        None while that server starts: the programs that it runs itself use the network directly.
        """
        with self._children_lock:
            if self._children is None and self.is_open and not self._starting_children:
                self._starting_children = True
                try:
                    server = self.serve_children()
                    if server is not None:
                        self._children = self._child_server.enter_context(server)
                finally:
                    self._starting_children = False
            return self._children

    def child_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        try:
            if self.is_copy and self._children is None and self.forks is not None:
                of_parent: dict[str, str] = self.forks.call("context", "child_variables", dict(environ))
                return of_parent
            children = self.children()
        except Exception as error:
            if self.on_unserved_children is None:
                raise
            self.on_unserved_children(f"child processes are not recorded: {error}")
            return {}
        if children is None:
            return {}
        variables = children.variables(environ)
        # A recording keeps base URLs unset: a program may have one in its code, and the proxy records it anyway.
        return variables if self.replays and not self.records_misses else without_default_routes(variables, environ)

    def child_ports(self) -> Collection[int]:
        """The ports of this process that the variables of child processes name."""
        return self._children.ports() if self._children is not None else ()

    def before_fork(self) -> None:
        if self.forks is not None and not self.is_copy:
            self.forks.open()

    def after_fork(self) -> None:
        super().after_fork()
        self.is_copy = True
        self._children_lock = threading.RLock()

    def _stop_children(self) -> None:
        if self.is_copy:
            return  # the parent process serves them
        if self.forks is not None:
            self.forks.close()
        with self._children_lock:
            self._children = None
        self._child_server.close()


def as_http(url: str) -> str:
    """The URL of a WebSocket as the URL of its handshake: tapes have this form."""
    return "http" + url[2:] if url.startswith(("ws:", "wss:")) else url
