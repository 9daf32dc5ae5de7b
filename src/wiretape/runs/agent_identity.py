"""Decide whether one agent made two calls: compare their system prompts loosely, then their tools."""

from __future__ import annotations

from itertools import takewhile

from wiretape.model.call import CallRequest, Message, ModelCall, Text
from wiretape.model.common_prefix import common_prefix
from wiretape.model.volatile_text import without_numbers

_LONG = 400  # characters; a tenth of a longer prompt may differ
_WORD = 40  # characters of the longest volatile text


def system_of(request: CallRequest) -> tuple[Message, ...]:
    """The leading system messages of a request."""
    return tuple(takewhile(lambda message: message.role == "system", request.messages))


def system_text(request: CallRequest) -> str:
    return "\n".join(
        block.text for message in system_of(request) for block in message.blocks if isinstance(block, Text)
    ).strip()


def tool_names(request: CallRequest) -> frozenset[str]:
    return frozenset(tool.name for tool in request.tools)


def same_system(a: CallRequest, b: CallRequest) -> bool:
    """Whether two system prompts share at least half of their text: a clock inside may differ."""
    if system_of(a) == system_of(b):  # the same objects
        return True
    one, other = system_text(a), system_text(b)
    if one == other:
        return True
    longer = max(len(one), len(other))
    return 2 * shared(one, other) >= longer


def same_prompt(a: CallRequest, b: CallRequest) -> bool:
    """Stricter than `same_system`: only dates, numbers and ids differ, or less than a tenth of a long prompt.

    It tells agents apart whose conversations have nothing in common.
    """
    one, other = system_text(a), system_text(b)
    if one == other:
        return True
    longer = max(len(one), len(other))
    if longer > _LONG and 10 * shared(one, other) >= 9 * longer:
        return True
    start = max(0, common_prefix(one, other) - _WORD)
    return without_numbers(one[start:]) == without_numbers(other[start:])


def shared(a: str, b: str) -> int:
    """The number of characters in the common start and the common end of two texts."""
    start = common_prefix(a, b)
    rest_a, rest_b = a[start:], b[start:]
    return start + common_prefix(rest_a[::-1], rest_b[::-1])


def same_agent(a: ModelCall, b: ModelCall) -> bool:
    """Whether one agent may have made both calls: they have the same prompt, or at least the same tools."""
    if same_system(a.request, b.request):
        return True
    tools = tool_names(a.request)
    return bool(tools) and tools == tool_names(b.request)
