"""Where a call's request stops being what the call before it in its thread had sent: there a prompt cache ends.

Compared are the decoded requests: tools, then messages, in the order of the body. Cache markers do not count.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace

from wiretape.analyze.moved import Break, moved
from wiretape.analyze.tools_changed import spelled, tools_break
from wiretape.model.call import Block, CallRequest, Media, Message, ModelCall, Reasoning, Text, ToolCall, ToolResult
from wiretape.model.run import Run
from wiretape.model.wording import clip

_SHOWN = 60  # characters of a value


def consecutive(run: Run) -> Iterator[tuple[ModelCall, ModelCall]]:
    """Each call of a thread with the one before it."""
    calls = {step.call.number: step.call for step in run.steps}
    for thread in run.threads:
        for before, after in zip(thread.calls, thread.calls[1:], strict=False):
            yield calls[before], calls[after]


def breaks(before: CallRequest, after: CallRequest) -> list[Break]:
    """The first place in tools, and the first in messages, where `after` is not `before` continued."""
    if is_held(after):
        return []
    return [found for found in (tools_break(before, after), messages_break(before, after)) if found is not None]


def is_held(request: CallRequest) -> bool:
    """Whether the provider holds a history that is not on the tape."""
    chained = request.previous_response_id is not None and not request.held
    return chained or bool(request.settings.get("conversation") or request.settings.get("thread"))


def messages_break(before: CallRequest, after: CallRequest) -> Break | None:
    old, new = before.messages, after.messages
    common = min(len(old), len(new))
    if old[:common] != new[:common]:  # identity first: unchanged messages are the very same objects
        for index, same in enumerate(map(operator.is_, old, new)):
            if not same and not _equal(old[index], new[index]):
                return _message_break(before, after, index)
    if len(new) < len(old):
        return Break(before.path(common), "the history ends earlier", _shown(old[common]), None)
    return None


def _equal(a: Message, b: Message) -> bool:
    return a.role == b.role and a.blocks == b.blocks and a.extra == b.extra


def _message_break(before: CallRequest, after: CallRequest, index: int) -> Break:
    old, new, path = before.messages[index], after.messages[index], after.path(index)
    if old.role != new.role:
        return Break(path, "another message", f"{old.role}: {_shown(old)}", f"{new.role}: {_shown(new)}")
    for place, (one, other) in enumerate(zip(old.blocks, new.blocks, strict=False)):
        if one != other:
            return _block_break(path + _block_path(new, place), one, other)
    if len(old.blocks) != len(new.blocks):
        return _block_count_break(path, old, new)
    return Break(path, "other members changed", spelled(dict(old.extra)), spelled(dict(new.extra)))


def _block_count_break(path: str, old: Message, new: Message) -> Break:
    shorter = min(len(old.blocks), len(new.blocks))
    longer = old if len(old.blocks) > shorter else new
    extra = longer.blocks[shorter]
    place = path + _block_path(longer, shorter)
    kind = "reasoning" if isinstance(extra, Reasoning) else "a block"
    if longer is old:
        return Break(place, kind, clip(_content(extra), _SHOWN), None)
    return Break(place, kind, None, clip(_content(extra), _SHOWN))


def _block_path(message: Message, place: int) -> str:
    return message.block_paths[place] if place < len(message.block_paths) else ""


def _block_break(path: str, old: Block, new: Block) -> Break:
    if isinstance(old, Reasoning) and not isinstance(new, Reasoning):
        return Break(path, "reasoning", clip(old.text or "(opaque)", _SHOWN), None)
    if type(old) is not type(new):
        return Break(path, "another block", clip(_content(old), _SHOWN), clip(_content(new), _SHOWN))
    if isinstance(old, ToolCall | ToolResult) and isinstance(new, ToolCall | ToolResult) and old.id != new.id:
        same = replace(old, id=new.id) == new
        if same:
            return Break(path, "another id", str(old.id), str(new.id))
    return _text_break(path, _content(old), _content(new))


def _text_break(path: str, old: str, new: str) -> Break:
    if old == new:
        return Break(path, "other members changed", None, None)
    change = moved(old, new)
    return Break(path, change.kind, change.before, change.after, change.character, change.around, change.place)


def _content(block: Block) -> str:
    """What a block says, as one text."""
    match block:
        case Text() | Reasoning():
            return block.text
        case ToolCall():
            return f"{block.name}({block.arguments})"
        case ToolResult():
            return block.text
        case Media():
            return spelled(block.raw)
        case _:
            return spelled(block.raw)


def _shown(message: Message) -> str:
    return clip(" ".join(_content(block) for block in message.blocks), _SHOWN)
