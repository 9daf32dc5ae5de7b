"""Whether two calls are made by the same speaker: system prompts compared loosely, then the tools on offer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from wiretape.model.call import CallRequest, Message, ModelCall, Text
from wiretape.model.volatile_text import without_numbers

_LONG = 400  # characters of a prompt in which a tenth may differ
_WORD = 40  # no word that moves is longer


def system_of(request: CallRequest) -> tuple[Message, ...]:
    """The system messages that open a request."""
    return tuple(takewhile(lambda message: message.role == "system", request.messages))


def system_text(request: CallRequest) -> str:
    return "\n".join(
        block.text for message in system_of(request) for block in message.blocks if isinstance(block, Text)
    ).strip()


def tool_names(request: CallRequest) -> frozenset[str]:
    return frozenset(tool.name for tool in request.tools)


def same_system(a: CallRequest, b: CallRequest) -> bool:
    """Whether two system prompts are one prompt: equal but for something that moved inside, such as a clock."""
    if system_of(a) == system_of(b):  # the very same messages
        return True
    one, other = system_text(a), system_text(b)
    if one == other:
        return True
    longer = max(len(one), len(other))
    return 2 * shared(one, other) >= longer


def same_prompt(a: CallRequest, b: CallRequest) -> bool:
    """Stricter than `same_system`: nothing but dates, numbers and ids moved, or very little of a long prompt.

    Histories do not help here: this tells agents apart whose conversations have nothing in common.
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
    """How many characters two texts share at their start and end."""
    start = common_prefix(a, b)
    rest_a, rest_b = a[start:], b[start:]
    return start + common_prefix(rest_a[::-1], rest_b[::-1])


def common_prefix(a: Sequence[object], b: Sequence[object]) -> int:
    """Length of the common start of two texts or tuples, found by halving: slices compare faster than single items."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def same_speaker(a: ModelCall, b: ModelCall) -> bool:
    """Whether one agent may have made both calls: same prompt, or at least the same tools."""
    if same_system(a.request, b.request):
        return True
    tools = tool_names(a.request)
    return bool(tools) and tools == tool_names(b.request)
