"""Token counts and finish reasons of Chat Completions, Responses and their dialects, normalized.

Input includes its cached part, output includes reasoning. Counts that the provider does not report are None.
"""

from __future__ import annotations

from wiretape.model.call import Finish, Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import known_usage, with_tool_calls
from wiretape.wire.lenient import first, number, obj, string

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


def openai_usage(raw: Json, timings: Json = None) -> Usage | None:
    """Read the usage of Chat Completions, Responses and their dialects. `timings` is llama.cpp's."""
    if not isinstance(raw, dict) or not raw:
        return None
    prompt = first(number(raw.get("prompt_tokens")), number(raw.get("input_tokens")))
    completion = first(number(raw.get("completion_tokens")), number(raw.get("output_tokens")))
    total = number(raw.get("total_tokens"))
    cached, written = _cached(raw, timings), _written(raw)
    reasoning = _reasoning(raw)
    if reasoning is None and completion is not None:
        reasoning = _hidden(prompt, completion, total, (cached or 0) + (written or 0))
    output = _with_reasoning(prompt, completion, reasoning, total)
    return known_usage(Usage(_with_cache(prompt, cached, written), cached, written, output, reasoning, raw))


def _details(raw: JsonObject) -> JsonObject:
    for key in ("prompt_tokens_details", "input_tokens_details", "prompt_token_details"):
        if raw.get(key):
            return obj(raw[key])
    return {}


def _cached(raw: JsonObject, timings: Json) -> int | None:
    spelled = (
        number(_details(raw).get("cached_tokens")),
        number(raw.get("prompt_cache_hit_tokens")),
        number(raw.get("cached_tokens")),
        number(raw.get("num_cached_tokens")),
        number(raw.get("cache_read_input_tokens")),
        number(obj(timings).get("cache_n")),
    )
    return max((v for v in spelled if v is not None), default=None)


def _written(raw: JsonObject) -> int | None:
    details = _details(raw)
    spelled = (
        number(details.get("cache_write_tokens")),
        number(details.get("cache_creation_input_tokens")),
        number(details.get("cache_creation_tokens")),
        number(raw.get("cache_creation_input_tokens")),
    )
    return max((v for v in spelled if v is not None), default=None)


def _reasoning(raw: JsonObject) -> int | None:
    for key in ("completion_tokens_details", "output_tokens_details"):
        found = number(obj(raw.get(key)).get("reasoning_tokens"))
        if found is not None:
            return found
    return number(raw.get("reasoning_tokens"))


def _hidden(prompt: int | None, completion: int, total: int | None, cache: int) -> int | None:
    """Return the reasoning that Gemini's OpenAI-compatible endpoint counts only in the total."""
    if prompt is None or total is None:
        return None
    rest = total - prompt - completion
    return rest if rest > 0 and rest != cache else None


def _with_cache(prompt: int | None, cached: int | None, written: int | None) -> int | None:
    """Return the input including cached tokens. If these exceed the prompt, the server counts them separately."""
    if prompt is None:
        return None
    beside = [part for part in (cached, written) if part is not None and part > prompt]
    if not beside:
        return prompt
    return prompt + (cached or 0) + (written or 0)


def _with_reasoning(prompt: int | None, completion: int | None, reasoning: int | None, total: int | None) -> int | None:
    """Return the output including reasoning, which some servers count separately, as size or total shows."""
    if completion is None or not reasoning:
        return completion
    if reasoning > completion or (prompt is not None and total == prompt + completion + reasoning):
        return completion + reasoning
    return completion


def chat_finish(raw: str | None, has_calls: bool) -> Finish | None:
    """Return the finish of a reason. `stop` or no reason with tool calls is `tool_calls`; unknown reasons stay None."""
    finish = _CHAT.get(raw.lower()) if raw else None
    return with_tool_calls(finish, has_calls)


def responses_finish(response: JsonObject, has_calls: bool) -> tuple[Finish | None, str | None]:
    """Return finish and raw finish of a Responses object: its status, or why it is incomplete."""
    status = string(response.get("status"))
    if status == "incomplete":
        reason = string(obj(response.get("incomplete_details")).get("reason"))
        return _INCOMPLETE.get(reason or "", "length" if reason is None else None), reason or status
    # Compactions and abridged objects have no status: their output is complete.
    if status in ("completed", "complete") or (status is None and response.get("output")):
        return ("tool_calls" if has_calls else "stop"), status
    return _STATUS.get(status or ""), status
