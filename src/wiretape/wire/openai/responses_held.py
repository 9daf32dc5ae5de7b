"""Histories that the provider holds: a request that names an earlier response sends only what is new.

What the model saw is the earlier request's messages (its instructions aside), the response's, and the new ones. The
messages are shared, not copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wiretape.model.call import CallRequest, Message, ModelCall, Unknown
from wiretape.wire.openai.responses import OpenAIResponses

_NO_ITEMS = frozenset({"event", "unreadable_event", "binary_message", "unreadable_message", "client_message"})


def with_histories(calls: Iterable[ModelCall]) -> list[ModelCall]:
    """The calls, in order of start, each with its whole history as far as the tape has it."""
    by_response: dict[str, ModelCall] = {}
    made: list[ModelCall] = []
    for call in calls:
        if call.format == OpenAIResponses.name:
            before = by_response.get(call.request.previous_response_id or "")
            if before is not None:
                call = replace(call, request=_continued(call.request, before))
            if call.response is not None and call.response.id is not None:
                by_response[call.response.id] = call
        made.append(call)
    return made


def _continued(request: CallRequest, before: ModelCall) -> CallRequest:
    own = _instructions(request)
    history = before.request.messages[_instructions(before.request) :] + _answer(before)
    held = own + len(history)
    segments = [(at, name) if at < own else (at + len(history), name) for at, name in request.segments]
    segments.append((own, "previous_response"))
    return replace(
        request,
        messages=request.messages[:own] + history + request.messages[own:],
        segments=tuple(sorted(segments)),
        held=held,
    )


def _instructions(request: CallRequest) -> int:
    """How many messages the instructions make, which are of one request only."""
    return 1 if request.segments[:1] == ((0, "instructions"),) else 0


def _answer(call: ModelCall) -> tuple[Message, ...]:
    """The items of a response: what was kept beside them is no part of a history."""
    return tuple(message for message in call.response.messages if not _is_beside(message)) if call.response else ()


def _is_beside(message: Message) -> bool:
    return message.role == "system" and all(isinstance(b, Unknown) and b.type in _NO_ITEMS for b in message.blocks)
