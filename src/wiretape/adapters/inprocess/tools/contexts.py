"""The contexts that record and answer the calls of wrapped tools. They register here: tools do not import them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from wiretape.model.jsonvalue import Json
    from wiretape.wire.mcp.tool_exchange import ToolAnswer


class CallRecorder(Protocol):
    """A tool call that is being recorded, by a context or by the process that started this program."""

    def answered(self, data: bytes) -> None:
        """Record the result, as the body of an exchange."""
        ...

    def abandoned(self) -> None:
        """Record that the call was cancelled."""
        ...


class ToolContext(Protocol):
    """A recording or replaying context, as far as tools use it."""

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None: ...

    def begin_tool_call(self, name: str, arguments: Json) -> CallRecorder | None: ...


def _no_contexts() -> tuple[ToolContext | None, ToolContext | None]:
    return None, None


# The context that records a call made here, and the context whose tape answers it.
find: Callable[[], tuple[ToolContext | None, ToolContext | None]] = _no_contexts
