"""Where a live run parts from the recorded one: by what it does, not by its words."""

from __future__ import annotations

from collections.abc import Container, Sequence

from wiretape.compare.mask import Masker
from wiretape.compare.normalize import loose
from wiretape.compare.tool_results import parsed_arguments
from wiretape.model.call import ToolCall
from wiretape.rerun.plan import Take, client_calls


class Parting:
    def __init__(self, masker: Masker) -> None:
        self._mask = masker.value

    def __call__(self, take: Take, live: Sequence[ToolCall], tasked: Container[int]) -> str:
        """How an answer that asks for these tools parts from the recorded one; empty where it does not.

        `tasked`: agents that get their task in our run's words.
        """
        recorded = client_calls(take.call)
        if bool(recorded) != bool(live):
            return "it answers instead of asking for tools" if recorded else "it asks for tools instead of answering"
        if [tool.name for tool in recorded] != [tool.name for tool in live]:
            return "it asks for other tools"
        starts = {use.call.id for use in take.uses if use.agent is not None and use.agent in tasked}
        pairs = [(one, other) for one, other in zip(recorded, live, strict=True) if one.id not in starts]
        alike = all(self._same_arguments(one, other) for one, other in pairs)
        return "" if alike else "it asks with other arguments"

    def _same_arguments(self, one: ToolCall, other: ToolCall) -> bool:
        a, b = loose(parsed_arguments(one.arguments)), loose(parsed_arguments(other.arguments))
        return bool(a == b or self._mask(a) == self._mask(b))
