"""The operations of the debugger's commands that need replay: edits of answers, and faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wiretape.errors import UsageError
from wiretape.matching.faults.specs import parse_fault
from wiretape.model.faults import Effect, ErrorStatus, Reset
from wiretape.model.http import Exchange
from wiretape.rerun.fork.answer_edit import answer_values, body_text, edit_answer, with_body_text
from wiretape.wire.base import Memo
from wiretape.wire.registry import default_registry


class EditOperations:
    """The operations for one debugger. `recording`: the calls pass the recording proxy, which supports fewer faults."""

    def __init__(self, *, recording: bool = False) -> None:
        self._recording = recording

    def said(self, exchange: Exchange) -> list[dict[str, Any]]:
        calls = default_registry().calls_of(exchange, Memo())
        response = calls[0].response if calls else None
        return answer_values(response.messages) if response is not None else []

    def edited(self, exchange: Exchange, wanted: Sequence[Any]) -> Exchange:
        return edit_answer(exchange, wanted)

    def written(self, exchange: Exchange) -> str:
        return body_text(exchange)

    def rewritten(self, exchange: Exchange, text: str) -> Exchange:
        return with_body_text(exchange, text)

    def fault(self, what: str) -> Effect:
        """Parse a fault for a held call: it has no target. Raises UsageError."""
        kind, colon, options = what.partition(":")
        effect = parse_fault(f"{kind}@*{colon}{options}").effect
        if self._recording and not isinstance(effect, ErrorStatus | Reset):
            raise UsageError("a recorded run supports only these faults: a status from 400 to 599, and reset")
        return effect
