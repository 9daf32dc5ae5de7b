"""Token counts and finish reasons of Chat Completions, Responses and their dialects, normalized.

Input includes its cached part, output includes reasoning. Counts that the provider does not report are None.
"""

from __future__ import annotations

from wiretape.model.call import Finish, Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import with_tool_calls
from wiretape.wire.lenient import first, number, obj, string
from wiretape.wire.token_counts import Part, judged_usage

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
    return judged_usage(
        raw,
        prompt,
        completion,
        total,
        cached=_cached(raw, timings),
        written=_written(raw),
        reasoning=_reasoning(raw),
        more=_audio(raw),
        hidden_reasoning=True,  # Gemini's OpenAI-compatible endpoint
    )


def _audio(raw: JsonObject) -> tuple[Part, ...]:
    """Return the audio tokens, which Mistral counts beside the text tokens of the prompt."""
    spoken = number(_details(raw).get("audio_tokens"))
    answered = number(obj(raw.get("completion_tokens_details")).get("audio_tokens"))
    return (Part("input", spoken), Part("output", answered)) if spoken or answered else ()


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
