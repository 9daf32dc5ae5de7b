"""Where a request lists its tools, one element for each: formats that group them differently have no such list."""

from __future__ import annotations

from typing import Final

from wiretape.model.call import CallRequest
from wiretape.model.jsonvalue import Json

TOOLS: Final = "tools"  # the member, in every format that has the list


def tools_by_name(body: Json, call: CallRequest | None) -> dict[str, Json]:
    """The elements of that list by their tools' names, in their order; {} without it, or where a name comes twice."""
    tools = body.get(TOOLS) if isinstance(body, dict) else None
    if call is None or not isinstance(tools, list) or len(tools) != len(call.tools):
        return {}
    named = {spec.name: tool for spec, tool in zip(call.tools, tools, strict=True)}
    return named if len(named) == len(tools) else {}


def without_tools(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != TOOLS} if isinstance(body, dict) else body
