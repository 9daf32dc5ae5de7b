"""Kinds of prefix breaks, and the change that fixes each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wiretape.analyze.prefix_breaks import ANOTHER_TOOL, REORDERED, PrefixBreak
from wiretape.model.call import CallRequest, Control, Message, ModelCall
from wiretape.model.jsonvalue import Json
from wiretape.model.volatile_text import BILLING_HEADER

BreakKind: TypeAlias = Literal[
    "clock",
    "date",
    "uuid",
    "nonce",
    "number",
    "temporary_path",
    "tools_reordered",
    "tools_changed",
    "schema_changed",
    "prompt_changed",
    "history_edited",
    "history_cut",
    "compaction",
    "reasoning_dropped",
    "ids_changed",
    "shape_changed",
    "marker_moved",
    "model_switch",
    "key_changed",
    "setting_changed",
]
_KINDS: dict[str, BreakKind] = {
    "a clock": "clock",
    "a unix time": "clock",
    "a date": "date",
    "a weekday": "date",
    "a uuid": "uuid",
    "a nonce": "nonce",
    "a number": "number",
    "a temporary path": "temporary_path",
    "another id": "ids_changed",
    REORDERED: "tools_reordered",
    ANOTHER_TOOL: "tools_changed",
}
FIXES: dict[BreakKind, str] = {
    "clock": "say the time in the last user message, or not at all",
    "date": "say the date in the last user message",
    "uuid": "keep ids that change out of the prompt, or put them into the last message",
    "nonce": "keep what is made anew for each request out of the prompt",
    "number": "keep what counts up out of the prompt, or put it into the last message",
    "temporary_path": "use a path that stays the same, or put it into the last message",
    "tools_reordered": "send the tools in one fixed order, such as by name",
    "tools_changed": "send the same tools in every call, and steer with tool_choice which may be used",
    "schema_changed": "keep the tool's definition fixed for the run, and put what changes into a message",
    "prompt_changed": "keep the prompt fixed for the run, and append what changes as a message",
    "history_edited": "append, and leave what was sent as it is",
    "history_cut": "cut histories rarely and by much, or not at all",
    "compaction": "none is needed: a compaction costs one miss; compact rarely",
    "reasoning_dropped": "send the reasoning back as the model gave it",
    "ids_changed": "keep the ids of messages and tool calls as they were first sent",
    "shape_changed": "send the text in one shape, always a string or always a list",
    "marker_moved": "leave a cache marker where the last one stood, or within the blocks that are looked back over",
    "model_switch": "stay with one model in a conversation",
    "key_changed": "send one prompt_cache_key for the whole conversation",
    "setting_changed": "keep the setting for the whole conversation",
}


def kind_of(found: PrefixBreak, before: CallRequest, after: CallRequest) -> BreakKind:
    """Return the kind of a difference between two requests."""
    if found.path.startswith("tools["):
        return _KINDS.get(found.what, "schema_changed")
    if found.what == "reasoning" and found.after is None:
        return "reasoning_dropped"
    if _is_billing(found):
        return "nonce"
    in_prompt = _is_system(found, after) or _is_system(found, before)
    kind = _KINDS.get(found.what)
    if kind is not None and (in_prompt or kind != "number"):
        return kind
    if in_prompt:
        return "shape_changed" if _same_prompt(before, after) else "prompt_changed"
    if compacted(before, after):
        return "compaction"
    return "history_cut" if found.what == "the history ends earlier" else "history_edited"


def fix_for(kind: BreakKind, found: PrefixBreak) -> str:
    """Return the change that fixes a break."""
    if kind == "nonce" and _is_billing(found):
        return "set CLAUDE_CODE_ATTRIBUTION_HEADER=0: the client writes a new value into each prompt"
    return FIXES[kind]


def _is_billing(found: PrefixBreak) -> bool:
    """True for the line with a new value in each request that Claude Code writes at the top of its system prompt."""
    return found.around is not None and any(BILLING_HEADER in text for text in found.around)


def compacted(before: CallRequest, after: CallRequest) -> bool:
    """True if a much shorter history replaces a long one."""
    if any(_is_compaction(message) and message not in before.messages for message in after.messages):
        return True
    return len(after.messages) < len(before.messages) and 2 * _length(after) < _length(before)


def _is_compaction(message: Message) -> bool:
    return any(isinstance(block, Control) and block.kind == "compaction" for block in message.blocks)


def _length(request: CallRequest) -> int:
    """Characters of the messages after the system prompt."""
    return sum(_size(message) for message in request.messages if message.role != "system")


def _size(message: Message) -> int:
    return sum(len(getattr(block, "text", "") or getattr(block, "arguments", "")) for block in message.blocks)


def _is_system(found: PrefixBreak, request: CallRequest) -> bool:
    """True if a difference is in the system messages at the start of a request."""
    for index, message in enumerate(request.messages):
        if message.role != "system":
            return False
        path = request.path(index)
        if found.path == path or found.path.startswith((f"{path}.", f"{path}[")):
            return True
    return False


def _same_prompt(before: CallRequest, after: CallRequest) -> bool:
    """True if both system prompts have the same text in different blocks."""
    return _prompt(before) == _prompt(after)


def _prompt(request: CallRequest) -> str:
    opening = []
    for message in request.messages:
        if message.role != "system":
            break
        opening += [getattr(block, "text", "") for block in message.blocks]
    return "".join("".join(opening).split())


def shape_break(before: CallRequest, after: CallRequest) -> PrefixBreak | None:
    """Return the first message whose content changed between a string and a list of blocks."""
    placed_alike = (before.segments, before.scalars) == (after.segments, after.scalars)
    for index, (old, new) in enumerate(zip(before.messages, after.messages, strict=False)):
        if old is new and placed_alike:
            continue  # most messages of a long history
        one, other = _shape(before, index, old), _shape(after, index, new)
        if old is not new and one != other:
            return PrefixBreak(after.path(index), "another shape", one, other)
        if (before.path(index) in before.scalars) != (after.path(index) in after.scalars):
            return PrefixBreak(after.path(index), "another shape", one, other)
    return None


def _shape(request: CallRequest, index: int, message: Message) -> str:
    """Return `a string` or `a list of blocks`, derived from the paths of the blocks."""
    alone = request.path(index) in request.scalars and message.block_paths in (("",), ())
    inside = any("[" in path for path in message.block_paths)
    if alone:
        return "a string"
    in_list = request.path(index).startswith("system[")
    return "a list of blocks" if inside or in_list else "a string"


REASONS: dict[str, BreakKind] = {
    "model_changed": "model_switch",
    "system_changed": "prompt_changed",
    "tools_changed": "tools_changed",
    "messages_changed": "history_edited",
    "input_changed": "history_edited",
    "context_compacted": "compaction",
    "prompt_cache_key_changed": "key_changed",
    "text_format_changed": "setting_changed",
    "reasoning_effort_changed": "setting_changed",
    "verbosity_changed": "setting_changed",
    "service_tier_changed": "setting_changed",
}


@dataclass(frozen=True, slots=True)
class ProviderReason:
    """The provider's reason for a cache miss, and the number of tokens that it reports as missed."""

    reason: str
    kind: BreakKind
    tokens: int | None


def provider_reason(call: ModelCall) -> ProviderReason | None:
    """Return the reason in an answer's diagnostics (Anthropic, OpenAI); None if no known reason is there."""
    diagnostics = call.response.diagnostics if call.response is not None else None
    for value in _objects(diagnostics):
        name = next((value[key] for key in ("reason", "type") if isinstance(value.get(key), str)), None)
        if name in REASONS:
            return ProviderReason(name, REASONS[name], _tokens(value))
        plain = value.get("cache_miss_reason")
        if isinstance(plain, str) and plain in REASONS:
            return ProviderReason(plain, REASONS[plain], _tokens(value))
    return None


def _objects(value: Json, depth: int = 3) -> list[dict[str, Json]]:
    """Return a JSON object and the objects inside it."""
    if not isinstance(value, dict) or not depth:
        return []
    return [value, *(inner for member in value.values() for inner in _objects(member, depth - 1))]


def _tokens(value: dict[str, Json]) -> int | None:
    for key in ("cache_missed_input_tokens", "cache_missed_tokens"):
        if isinstance(value.get(key), int):
            return int(value[key])
    return None
