"""Token counts and finish reasons of the Messages API, normalized."""

from __future__ import annotations

from wiretape.model.call import Finish, Usage, sum_known
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.decoding import known_usage, with_tool_calls
from wiretape.wire.lenient import first, items, number, obj
from wiretape.wire.token_counts import judged_usage

_FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "pause",
    "compaction": "pause",
}


def anthropic_usage(raw: Json, cache_inside: bool = False) -> Usage | None:
    """Read the usage.

    Anthropic counts cache reads and writes beside `input_tokens`. `cache_inside`: the stream has shown that the input
    includes them.
    """
    if not isinstance(raw, dict) or not raw:
        return None
    thinking = number(obj(raw.get("output_tokens_details")).get("thinking_tokens"))
    passes = [obj(p) for p in items(raw.get("iterations"))]
    # The top level omits passes that are not messages (compaction, advisor), which belong to this call as well.
    if any(p.get("type") != "message" for p in passes):
        reads = sum_known(number(p.get("cache_read_input_tokens")) for p in passes)
        writes = sum_known(_creation(p) for p in passes)
        output = sum_known(number(p.get("output_tokens")) for p in passes)
        return known_usage(Usage(sum_known(_input(p) for p in passes), reads, writes, output, thinking, raw))
    cached, written = number(raw.get("cache_read_input_tokens")), _creation(raw)
    if cached is None and not written:  # compatible servers with OpenAI's member, which the input includes
        details = obj(raw.get("prompt_tokens_details"))
        cached = first(number(details.get("cached_tokens")), number(raw.get("cached_tokens")))
        cache_inside = cache_inside or cached is not None
    return judged_usage(
        raw,
        number(raw.get("input_tokens")),
        number(raw.get("output_tokens")),
        number(raw.get("total_tokens")),
        cached=cached,
        written=written,
        reasoning=thinking,
        cache_beside=not cache_inside,
    )


def cache_tokens(raw: JsonObject) -> int:
    """Return the tokens that were read from the cache or written to it."""
    return (number(raw.get("cache_read_input_tokens")) or 0) + (_creation(raw) or 0)


def _creation(raw: JsonObject) -> int | None:
    direct = number(raw.get("cache_creation_input_tokens"))
    return direct if direct is not None else sum_known(number(v) for v in obj(raw.get("cache_creation")).values())


def _input(raw: JsonObject) -> int | None:
    plain = number(raw.get("input_tokens"))
    if plain is None:
        return None
    return plain + (number(raw.get("cache_read_input_tokens")) or 0) + (_creation(raw) or 0)


def anthropic_finish(raw: str | None, ends_with_call: bool) -> Finish | None:
    """Return the finish of a reason. Compatible servers may end with a tool call and report `end_turn`."""
    finish = _FINISH.get(raw) if raw else None
    return with_tool_calls(finish, ends_with_call)
