"""Token counts as providers spell them, normalised: input with its cached part inside, output with its reasoning.

What the wire does not give stays None. Counts are never added up over events: the last one that says something wins,
member by member (`merge`). The one sum is that of Anthropic's `iterations`, which are passes of one request.
"""

from __future__ import annotations

from collections.abc import Iterable

from wiretape.model.call import Usage
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import first, items, number, obj


def merge(old: JsonObject | None, new: Json, depth: int = 3) -> JsonObject | None:
    """`old` overwritten by every member of `new` that is not null, and so inside its details."""
    if not isinstance(new, dict):
        return old
    if not old:
        return new
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            continue
        before = merged.get(key)
        inside = depth > 0 and isinstance(before, dict) and isinstance(value, dict)
        merged[key] = merge(before, value, depth - 1) if inside else value
    return merged


def openai_usage(raw: Json, timings: Json = None) -> Usage | None:
    """Usage of Chat Completions, Responses and their dialects. `timings` is llama.cpp's."""
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
    usage = Usage(_with_cache(prompt, cached, written), cached, written, output, reasoning, raw)
    return usage if usage != Usage() else None


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
    """Gemini's compatible endpoint counts reasoning in the total only."""
    if prompt is None or total is None:
        return None
    rest = total - prompt - completion
    return rest if rest > 0 and rest != cache else None


def _with_cache(prompt: int | None, cached: int | None, written: int | None) -> int | None:
    """Cached tokens are inside the prompt's, unless they are more: then the server counts them beside it."""
    if prompt is None:
        return None
    beside = [part for part in (cached, written) if part is not None and part > prompt]
    if not beside:
        return prompt
    return prompt + (cached or 0) + (written or 0)


def _with_reasoning(prompt: int | None, completion: int | None, reasoning: int | None, total: int | None) -> int | None:
    """Reasoning is inside the output, unless it is more than it, or the total shows that it stands beside."""
    if completion is None or not reasoning:
        return completion
    if reasoning > completion or (prompt is not None and total == prompt + completion + reasoning):
        return completion + reasoning
    return completion


def anthropic_usage(raw: Json) -> Usage | None:
    """Anthropic counts cache reads and writes beside `input_tokens`."""
    if not isinstance(raw, dict) or not raw:
        return None
    passes = [obj(p) for p in items(raw.get("iterations"))]
    # The top level leaves out passes that are not messages (compaction, advisor): they are tokens of this call too.
    counted = passes if any(p.get("type") != "message" for p in passes) else [raw]
    usage = Usage(
        _sum(_input(p) for p in counted),
        _sum(number(p.get("cache_read_input_tokens")) for p in counted),
        _sum(_creation(p) for p in counted),
        _sum(number(p.get("output_tokens")) for p in counted),
        number(obj(raw.get("output_tokens_details")).get("thinking_tokens")),
        raw,
    )
    return usage if usage != Usage() else None


def _creation(raw: JsonObject) -> int | None:
    direct = number(raw.get("cache_creation_input_tokens"))
    return direct if direct is not None else _sum(number(v) for v in obj(raw.get("cache_creation")).values())


def _input(raw: JsonObject) -> int | None:
    plain = number(raw.get("input_tokens"))
    if plain is None:
        return None
    return plain + (number(raw.get("cache_read_input_tokens")) or 0) + (_creation(raw) or 0)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None
