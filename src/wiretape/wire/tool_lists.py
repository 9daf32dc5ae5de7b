"""The list of tools in a request body, where it has one element for each tool."""

from __future__ import annotations

from typing import Final

from wiretape.model.call import CallRequest
from wiretape.model.jsonvalue import Json

TOOLS: Final = "tools"  # the same member in every format with such a list


def tools_by_name(body: Json, call: CallRequest | None) -> dict[str, Json]:
    """Map tool names to the elements of the body's list, in order; {} without such a list, or if a name repeats."""
    tools = body.get(TOOLS) if isinstance(body, dict) else None
    if call is None or not isinstance(tools, list) or len(tools) != len(call.tools):
        return {}
    named = {spec.name: tool for spec, tool in zip(call.tools, tools, strict=True)}
    return named if len(named) == len(tools) else {}


def without_tools(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != TOOLS} if isinstance(body, dict) else body
