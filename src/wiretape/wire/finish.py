"""Why a model stopped, in one vocabulary. Some servers say `stop` when they mean tool calls, or nothing at all."""

from __future__ import annotations

from wiretape.model.call import Finish
from wiretape.model.jsonvalue import JsonObject
from wiretape.wire.lenient import obj, string

_CHAT: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "normal": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "error": "error",
    "insufficient_system_resource": "error",
    "network_error": "error",
}
_ANTHROPIC: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "pause",
    "compaction": "pause",
}
_STATUS: dict[str, Finish] = {
    "queued": "pause",
    "in_progress": "pause",
    "failed": "error",
    "cancelled": "error",
}
_INCOMPLETE: dict[str, Finish] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "steered": "pause",
}


def chat_finish(raw: str | None, has_calls: bool) -> Finish | None:
    """An unknown reason stays unknown; `stop` or silence with tool calls means tool calls."""
    finish = _CHAT.get(raw.lower()) if raw else None
    return "tool_calls" if has_calls and finish in (None, "stop") else finish


def anthropic_finish(raw: str | None, ends_with_call: bool) -> Finish | None:
    """Clones may say `end_turn` and end with a tool call; calls made from code stand before the text that ends it."""
    finish = _ANTHROPIC.get(raw) if raw else None
    return "tool_calls" if ends_with_call and finish in (None, "stop") else finish


def responses_finish(response: JsonObject, has_calls: bool) -> tuple[Finish | None, str | None]:
    """(finish, raw finish) of a Responses object: its status, or why it is incomplete."""
    status = string(response.get("status"))
    if status == "incomplete":
        reason = string(obj(response.get("incomplete_details")).get("reason"))
        return _INCOMPLETE.get(reason or "", "length" if reason is None else None), reason or status
    # A compaction has no status, and neither have abridged objects: what they hold is their whole output.
    if status in ("completed", "complete") or (status is None and response.get("output")):
        return ("tool_calls" if has_calls else "stop"), status
    return _STATUS.get(status or ""), status
