"""What a provider itself says of its cache: Anthropic's `diagnostics`, OpenAI's `prompt_cache_diagnostics`."""

from __future__ import annotations

from dataclasses import dataclass

from wiretape.analyze.cache.breaks import BreakKind
from wiretape.model.call import ModelCall
from wiretape.model.jsonvalue import Json

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
class Miss:
    """A provider's own reason for a miss, and how many tokens it says were missed."""

    reason: str
    kind: BreakKind
    tokens: int | None


def provider_says(call: ModelCall) -> Miss | None:
    """The reason that the answer gives; None where it gives none, or none that says what changed."""
    told = call.response.diagnostics if call.response is not None else None
    for value in _objects(told):
        name = next((value[key] for key in ("reason", "type") if isinstance(value.get(key), str)), None)
        if name in REASONS:
            return Miss(name, REASONS[name], _tokens(value))
        plain = value.get("cache_miss_reason")
        if isinstance(plain, str) and plain in REASONS:
            return Miss(plain, REASONS[plain], _tokens(value))
    return None


def _objects(value: Json, depth: int = 3) -> list[dict[str, Json]]:
    """A JSON object and those inside it."""
    if not isinstance(value, dict) or not depth:
        return []
    return [value, *(inner for member in value.values() for inner in _objects(member, depth - 1))]


def _tokens(value: dict[str, Json]) -> int | None:
    for key in ("cache_missed_input_tokens", "cache_missed_tokens"):
        if isinstance(value.get(key), int):
            return int(value[key])
    return None
