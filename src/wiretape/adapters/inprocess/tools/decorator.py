"""`@wiretape.tool`: a tool that is recorded where calls are recorded, and answered where they are answered.

Inside `wiretape.record` it runs, and what it got and gave goes to the tape; inside `wiretape.replay` it does not run:
the tape answers, by arguments. Outside of both it is the function that it was.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

import orjson

from wiretape.adapters.inprocess import arguments as arguments_
from wiretape.adapters.inprocess.active_context import ActiveContext, active_contexts
from wiretape.adapters.inprocess.tools.outside import outside
from wiretape.adapters.inprocess.tools.values import NOTHING, arguments, given, raised, returned
from wiretape.errors import MissError, UsageError
from wiretape.model.jsonvalue import Json
from wiretape.wire.mcp.tool_exchange import ToolAnswer, answer_body

if TYPE_CHECKING:
    from wiretape.tape.reading.reader import Tape

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, *, name: str | None = None, ignore: Sequence[str] = ()) -> F: ...


@overload
def tool(function: str | None = None, *, name: str | None = None, ignore: Sequence[str] = ()) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | str | None = None, *, name: str | None = None, ignore: Sequence[str] = ()
) -> Any:
    """Record what this tool gets and gives, and let tapes answer in its place.

    `@wiretape.tool`, `@wiretape.tool("name")` where the model knows it by another name, or `wiretape.tool(function)`.
    Functions, coroutine functions and methods; `ignore` names parameters that are no part of the call (a session, a
    context).
    """
    if isinstance(function, str):
        function, name = None, function
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise UsageError(f"wiretape.tool: the name is {name!r}: give the name by which the model knows the tool")
    ignore = arguments_.words("ignore", ignore, "a parameter's name")
    if function is None:
        return functools.partial(tool, name=name, ignore=ignore)
    if isinstance(function, staticmethod | classmethod):
        made = tool(function.__func__, name=name, ignore=ignore)
        return type(function)(made)
    if not callable(function):
        raise UsageError(f"wiretape.tool stands before a function, and {function!r} is none")
    return _wrapped(function, name, ignore)


def _wrapped(function: Callable[..., Any], name: str | None, ignore: Sequence[str]) -> Callable[..., Any]:
    shape = ToolSignature(function, name, ignore)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{shape.name} is a generator: a tool returns what it has to say at once")
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            call = ToolInvocation.begun(shape, args, kwargs)
            if call is None:
                return await function(*args, **kwargs)
            if call.answer is None:
                try:
                    value = await function(*args, **kwargs)
                except BaseException as error:
                    call.failed(error)
                    raise
                return call.gave(value)
            return call.replayed()

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        call = ToolInvocation.begun(shape, args, kwargs)
        if call is None:
            return function(*args, **kwargs)
        if call.answer is None:
            try:
                value = function(*args, **kwargs)
            except BaseException as error:
                call.failed(error)
                raise
            return call.gave(value)
        return call.replayed()

    return called


class ToolSignature:
    """What is known of a tool's function: its name, its parameters, what it returns."""

    def __init__(self, function: Callable[..., Any], name: str | None, ignore: Sequence[str]) -> None:
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        self._function = function
        self._ignored = tuple(ignore)
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # a builtin that does not say
            self._signature = None
        parameters = list(self._signature.parameters) if self._signature is not None else []
        own = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
        if parameters and parameters[0] in ("self", "cls") and "." in own:
            self._ignored += (parameters[0],)

    @functools.cached_property
    def returns(self) -> Any:
        """The function's return annotation."""
        try:
            return typing.get_type_hints(self._function).get("return", NOTHING)
        except Exception:  # names that are there for type checkers only
            return NOTHING

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Json]:
        """What a model would have to ask for to make this call: what was given, by name; defaults are not."""
        if self._signature is None:
            return arguments({**({"args": list(args)} if args else {}), **kwargs}, self._ignored)
        try:
            bound = self._signature.bind(*args, **kwargs).arguments
        except TypeError:  # the function says what is wrong with it
            return arguments({**({"args": list(args)} if args else {}), **kwargs}, self._ignored)
        flat: dict[str, Any] = {}
        for key, value in bound.items():
            if self._signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
                flat.update(value)
            else:
                flat[key] = list(value) if isinstance(value, tuple) else value
        return arguments(flat, self._ignored)


class CallRecorder(Protocol):
    """A call that is being recorded somewhere."""

    def answered(self, data: bytes) -> None:
        """What came of it, as the exchange's body."""
        ...

    def abandoned(self) -> None:
        """Nothing came of it: it was cancelled."""
        ...


class ToolInvocation:
    """One call of a tool inside a context: answered from the tape, or run and recorded."""

    def __init__(self, shape: ToolSignature, answer: ToolAnswer | None, taken: Sequence[CallRecorder]) -> None:
        self.answer = answer
        self._shape = shape
        self._taken = taken

    @classmethod
    def begun(cls, shape: ToolSignature, args: Sequence[Any], kwargs: dict[str, Any]) -> ToolInvocation | None:
        """None where no context is open."""
        recording, replaying = active_contexts()
        if recording is None and replaying is None and outside() is None:
            return None
        asked = shape.arguments(args, kwargs)
        answer = replaying.tool_answer(shape.name, asked) if replaying is not None else None
        if recording is replaying and answer is not None:
            return cls(shape, answer, ())  # it is on the tape that goes on
        taken: list[CallRecorder] = []
        around = outside() if answer is None else None  # a context inside the program goes first
        if around is not None:
            told = around.ask(shape.name, asked)
            if isinstance(told, ToolAnswer):
                answer = told
            elif told is not None:
                taken.append(told)
        here = recording.begin_tool_call(shape.name, asked) if recording is not None else None
        return cls(shape, answer, [*taken, *([here] if here is not None else [])])

    def gave(self, value: Any) -> Any:
        self._tell(given, value)
        return value

    def failed(self, error: BaseException) -> None:
        """A tool that was cancelled, or a program that is ending, has no answer."""
        if isinstance(error, Exception):
            self._tell(raised, error)
            return
        for taken in self._taken:
            taken.abandoned()

    def replayed(self) -> Any:
        answer = self.answer
        assert answer is not None, "it runs where the tape does not answer"
        self._tell(lambda made: made, answer)
        return returned(answer, self._shape.returns)

    def _tell(self, make: Callable[[Any], ToolAnswer], value: Any) -> None:
        """Record what came of it. Whatever fails in here, the tool's result goes on to the program."""
        if not self._taken:
            return
        try:
            data = orjson.dumps(answer_body(make(value)))
        except Exception as error:
            data = orjson.dumps(answer_body(ToolAnswer(f"wiretape could not keep it: {error}", None, False, "lost:")))
        for taken in self._taken:
            taken.answered(data)


class ToolStub:
    """Answers as a recorded tool did, by arguments. `returns`: the type of its results, as an annotation would say."""

    def __init__(self, name: str, ask: Callable[[str, Json], ToolAnswer], returns: Any = NOTHING) -> None:
        self.__name__ = self.__qualname__ = name
        self._ask = ask
        self._returns = returns

    def __call__(self, arguments_: Any = None, /, **named: Any) -> Any:
        """The arguments by name, or as one object, as a model gives them."""
        asked = {**(arguments_ or {}), **named} if arguments_ is None or isinstance(arguments_, dict) else arguments_
        return returned(self._ask(self.__name__, arguments(asked) if isinstance(asked, dict) else asked), self._returns)

    def __repr__(self) -> str:
        return f"<the recorded tool {self.__name__}>"


def stub(source: Tape | ActiveContext, name: str, returns: Any = NOTHING, is_async: bool = False) -> Callable[..., Any]:
    """What `tape.tool(name)` gives."""
    ask = functools.partial(_answered, source) if isinstance(source, ActiveContext) else _of_tape(source)
    made = ToolStub(name, ask, returns)
    if not is_async:
        return made

    async def awaited(arguments_: Any = None, /, **named: Any) -> Any:
        return made(arguments_, **named)

    awaited.__name__ = awaited.__qualname__ = name
    return awaited


def _answered(context: ActiveContext, name: str, asked: Json) -> ToolAnswer:
    return cast(ToolAnswer, context.tool_answer(name, asked))


def _of_tape(tape: Tape) -> Callable[[str, Json], ToolAnswer]:
    """A tape outside of any context: each stub counts for itself."""
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.values import Miss, MissReason, ReplayOptions

    name_of_tape = str(tape.path or "…")

    def miss_fix(reason: MissReason) -> str:
        if reason == "already played":
            return "  each recorded result is given once: another stub (tape.tool) begins anew"
        return f'  to record it: run this once in wiretape.record("{name_of_tape}", force=True)'

    session = ReplaySession([tape], ReplayOptions(miss_fix=miss_fix))

    def ask(name: str, asked: Json) -> ToolAnswer:
        outcome = session.call_tool(name, asked)
        if isinstance(outcome, Miss):
            raise MissError(outcome.message)
        return outcome

    return ask
