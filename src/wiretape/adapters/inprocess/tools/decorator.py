"""`@wiretape.tool`: records the calls of a tool, and replays them.

Inside `wiretape.record` the tool runs, and its arguments and result are recorded. Inside `wiretape.replay` it does not
run: the tape answers, by arguments. Outside of both the function is unchanged.
"""

from __future__ import annotations

import functools
import inspect
import os
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from wiretape.adapters.arguments import words
from wiretape.adapters.inprocess.tools import contexts
from wiretape.adapters.routing.tool_route import VARIABLE
from wiretape.errors import UsageError

# Values and answers are imported with the first call inside a context: a decorated program starts without them.
if TYPE_CHECKING:
    from wiretape.adapters.inprocess.tools.contexts import CallRecorder
    from wiretape.adapters.inprocess.tools.parent_process import ParentProcess
    from wiretape.model.jsonvalue import Json
    from wiretape.wire.mcp.tool_exchange import ToolAnswer

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, *, name: str | None = None, ignore: Sequence[str] = ()) -> F: ...


@overload
def tool(function: str | None = None, *, name: str | None = None, ignore: Sequence[str] = ()) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | str | None = None, *, name: str | None = None, ignore: Sequence[str] = ()
) -> Any:
    """Record the arguments and results of a tool, and replay them from tapes.

    `@wiretape.tool`, `@wiretape.tool("name")` if the model knows it by another name, or `wiretape.tool(function)`.
    Accepts functions, coroutine functions and methods. `ignore`: parameters that are not part of the call, such as a
    database session.
    """
    if isinstance(function, str):
        function, name = None, function
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise UsageError(f"wiretape.tool: the name is {name!r}: give the name by which the model knows the tool")
    ignore = words("ignore", ignore, "a parameter's name")
    if function is None:
        return functools.partial(tool, name=name, ignore=ignore)
    if isinstance(function, staticmethod | classmethod):
        made = tool(function.__func__, name=name, ignore=ignore)
        return type(function)(made)
    if not callable(function):
        raise UsageError(f"wiretape.tool decorates functions: {function!r} is not callable")
    return _wrapped(function, name, ignore)


def _wrapped(function: Callable[..., Any], name: str | None, ignore: Sequence[str]) -> Callable[..., Any]:
    signature = ToolSignature(function, name, ignore)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{signature.name} is a generator: wiretape.tool needs a function that returns its result")
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            call = _begin_call(signature, args, kwargs)
            if call is None:
                return await function(*args, **kwargs)
            if call.answer is not None:
                return call.replay()
            try:
                value = await function(*args, **kwargs)
            except BaseException as error:
                call.record_error(error)
                raise
            return call.record_result(value)

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        call = _begin_call(signature, args, kwargs)
        if call is None:
            return function(*args, **kwargs)
        if call.answer is not None:
            return call.replay()
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            call.record_error(error)
            raise
        return call.record_result(value)

    return called


class ToolSignature:
    """The name, parameters and return type of a tool."""

    def __init__(self, function: Callable[..., Any], name: str | None, ignore: Sequence[str]) -> None:
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        self._function = function
        self._ignored = tuple(ignore)
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # some builtins have no signature
            self._signature = None
        parameters = list(self._signature.parameters) if self._signature is not None else []
        own = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
        if parameters and parameters[0] in ("self", "cls") and "." in own:
            self._ignored += (parameters[0],)

    @functools.cached_property
    def returns(self) -> Any:
        """The return annotation of the function."""
        from wiretape.adapters.inprocess.tools.values import NOTHING

        try:
            return typing.get_type_hints(self._function).get("return", NOTHING)
        except Exception:  # names that only type checkers import
            return NOTHING

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Json]:
        """The arguments of a call by name, without defaults: what a model would have to send for this call."""
        from wiretape.adapters.inprocess.tools.values import arguments

        try:
            bound = self._signature.bind(*args, **kwargs).arguments if self._signature is not None else None
        except TypeError:  # the function will raise it
            bound = None
        if self._signature is None or bound is None:
            return arguments({**({"args": list(args)} if args else {}), **kwargs}, self._ignored)
        flat: dict[str, Any] = {}
        for key, value in bound.items():
            if self._signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
                flat.update(value)
            else:
                flat[key] = list(value) if isinstance(value, tuple) else value
        return arguments(flat, self._ignored)


def _begin_call(signature: ToolSignature, args: Sequence[Any], kwargs: dict[str, Any]) -> ToolInvocation | None:
    """Look up and announce a call. Return None if nothing records or replays here."""
    recording, replaying = contexts.find()
    if recording is None and replaying is None and _parent_process() is None:
        return None
    arguments = signature.arguments(args, kwargs)
    answer = replaying.tool_answer(signature.name, arguments) if replaying is not None else None
    if recording is replaying and answer is not None:
        return ToolInvocation(signature, answer, ())  # it is already on the tape that is updated
    recorders: list[CallRecorder] = []
    parent = _parent_process() if answer is None else None  # a context inside the program takes precedence
    if parent is not None:
        answer, reported = parent.call(signature.name, arguments)
        if reported is not None:
            recorders.append(reported)
    if recording is not None and (recorder := recording.begin_tool_call(signature.name, arguments)) is not None:
        recorders.append(recorder)
    return ToolInvocation(signature, answer, recorders)


def _parent_process() -> ParentProcess | None:
    if VARIABLE not in os.environ:
        return None
    from wiretape.adapters.inprocess.tools.parent_process import parent_process

    return parent_process()


class ToolInvocation:
    """One call of a tool inside a context: `answer` if the tape has its result; else it runs and is recorded."""

    def __init__(self, signature: ToolSignature, answer: ToolAnswer | None, recorders: Sequence[CallRecorder]) -> None:
        self.answer = answer
        self._signature = signature
        self._recorders = recorders

    def record_result(self, value: Any) -> Any:
        from wiretape.adapters.inprocess.tools.values import answer_of

        self._record(lambda: answer_of(value))
        return value

    def record_error(self, error: BaseException) -> None:
        """Record an exception. A call that is cancelled, or that a program exit ends, has no result."""
        from wiretape.adapters.inprocess.tools.values import answer_of_error

        if isinstance(error, Exception):
            self._record(lambda: answer_of_error(error))
            return
        for recorder in self._recorders:
            recorder.abandoned()

    def replay(self) -> Any:
        from wiretape.adapters.inprocess.tools.values import returned

        answer = self.answer
        assert answer is not None, "a tool without an answer runs"
        self._record(lambda: answer)
        return returned(answer, self._signature.returns)

    def _record(self, make: Callable[[], ToolAnswer]) -> None:
        """Record a result. If this fails, the program continues with the result."""
        import orjson

        from wiretape.wire.mcp.tool_exchange import ToolAnswer, answer_body

        if not self._recorders:
            return
        try:
            data = orjson.dumps(answer_body(make()))
        except Exception as error:
            data = orjson.dumps(answer_body(ToolAnswer(f"wiretape could not keep it: {error}", None, False, "lost:")))
        for recorder in self._recorders:
            recorder.answered(data)
