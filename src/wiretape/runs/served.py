"""Where tools really ran: pairs the tool calls that models asked for with those that tool servers got.

There is no id in common. A pair has equal arguments (as JSON), a name that clients may have prefixed, and the server
got it after the model had asked, before the result went back. What does not fit in all three is not paired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wiretape.model.call import ModelCall, ServedToolCall
from wiretape.runs.keys import canonical, spelled
from wiretape.runs.tools import RequestedTool

_OTHER = re.compile(r"[^0-9A-Za-z]+")
_LONG = 60  # clients cut names at 64 characters
_CUT = 8  # so many characters of a name that was cut must be there


def pair_served(
    asked: Sequence[RequestedTool], served: Sequence[ServedToolCall], calls: Mapping[int, ModelCall]
) -> None:
    """Set `served` of every tool call whose server is on the tape; each served call is given once."""
    if not served:
        return
    waiting: dict[str, list[RequestedTool]] = {}
    for use in asked:
        if use.call.kind != "server":  # those the provider ran
            waiting.setdefault(canonical(use.call.arguments), []).append(use)
    for one in sorted(served, key=lambda one: (one.at, one.exchange)):
        fitting = [use for use in waiting.get(spelled(one.arguments), ()) if _fits(use, one, calls)]
        if fitting:
            fitting.sort(key=lambda use: use.call.name != one.name)  # stable: else the one asked for first
            fitting[0].served = one


def _fits(use: RequestedTool, one: ServedToolCall, calls: Mapping[int, ModelCall]) -> bool:
    if use.served is not None or not is_named(use.call.name, one.name):
        return False
    since = use.at if use.at is not None else calls[use.call_number].at
    until = calls[use.result_call].at if use.result_call is not None else None
    return since <= one.at and (until is None or one.at <= until)


def is_named(name: str, tool: str) -> bool:
    """Whether a model may know a server's tool by this name: `mcp__server__tool`, `server-tool`, cut, or as it is."""
    ours, theirs = _OTHER.sub("_", name), _OTHER.sub("_", tool)
    if not theirs:
        return False
    if ours == theirs or ours.endswith(f"_{theirs}"):
        return True
    if len(name) < _LONG:
        return False
    starts = (at + 1 for at, character in enumerate(ours) if character == "_")
    return any(len(ours) - start >= _CUT and theirs.startswith(ours[start:]) for start in (0, *starts))
