"""Stubs of recorded tools: they return the recorded results, by arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from wiretape.adapters.inprocess.tools.contexts import ToolContext
from wiretape.adapters.inprocess.tools.values import NOTHING, arguments, returned
from wiretape.errors import MissError
from wiretape.model.jsonvalue import Json
from wiretape.tape.reading.reader import Tape
from wiretape.wire.mcp.tool_exchange import ToolAnswer

Look = Callable[[str, Json], ToolAnswer]  # finds the recorded result, by name and arguments


def stub_of_tape(tape: Tape, name: str, **options: Any) -> Callable[..., Any]:
    """A stub whose results come from a tape. Each stub plays the tape on its own."""
    return _stub(_look_on_tape(tape), name, **options)


def stub_of_context(context: ToolContext, name: str, **options: Any) -> Callable[..., Any]:
    """A stub whose results are played by an open replay."""
    return _stub(cast(Look, context.tool_answer), name, **options)


def _stub(look: Look, name: str, returns: Any = NOTHING, is_async: bool = False) -> Callable[..., Any]:
    made = ToolStub(name, look, returns)
    if not is_async:
        return made

    async def awaited(arguments_: Any = None, /, **named: Any) -> Any:
        return made(arguments_, **named)

    awaited.__name__ = awaited.__qualname__ = name
    return awaited


class ToolStub:
    """Returns recorded results. `returns`: the type of the results, as in a return annotation."""

    def __init__(self, name: str, look: Look, returns: Any = NOTHING) -> None:
        self.__name__ = self.__qualname__ = name
        self._look = look
        self._returns = returns

    def __call__(self, arguments_: Any = None, /, **named: Any) -> Any:
        """Takes the arguments by name, or as one object, as in a tool call."""
        given = {**(arguments_ or {}), **named} if arguments_ is None or isinstance(arguments_, dict) else arguments_
        as_json = arguments(given) if isinstance(given, dict) else given
        return returned(self._look(self.__name__, as_json), self._returns)

    def __repr__(self) -> str:
        return f"<the recorded tool {self.__name__}>"


def _look_on_tape(tape: Tape) -> Look:
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.values import Miss, MissReason, ReplayOptions

    def miss_fix(reason: MissReason) -> str:
        if reason == "already played":
            return "  each recorded result is played once: another stub (tape.tool) starts again"
        return f'  to record it: run this once in wiretape.record("{tape.path or "…"}", force=True)'

    session = ReplaySession([tape], ReplayOptions(miss_fix=miss_fix))

    def look(name: str, given: Json) -> ToolAnswer:
        outcome = session.call_tool(name, given)
        if isinstance(outcome, Miss):
            raise MissError(outcome.message)
        return outcome

    return look
