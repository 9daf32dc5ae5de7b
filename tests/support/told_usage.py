"""Token counts read from a response's raw bytes without a wire format, to compare decoded usage with.

Nothing here may import `wiretape.wire`: two readings that share code would share its mistakes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

PLACES = ("usage", "usageMetadata", "usage_metadata", "amazon-bedrock-invocationMetrics", "billed_units")
COUNTS = re.compile(r"(?i)token|^(?:prompt_)?eval_count$")
# Parts of a usage, another server's, or what only has such members.
NO_PLACES = ("usage_breakdown", "step_usage", "provider_metadata", "providerMetadata", "tools", "text")
OLLAMA = ("prompt_eval_count", "eval_count", "prompt_eval_cached_count")
_CHUNK = re.compile(r'"bytes":\s*"([A-Za-z0-9+/=]+)"')
_DATA = re.compile(r"^data: ?([\[{].*?)\r?$", re.MULTILINE)
Counts = dict[str, Any]


class Told(NamedTuple):
    """Tokens as a body reports them, else None."""

    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None


def told_usage(raw: bytes, headers: Mapping[str, str]) -> Told | None:
    """What the body says in the end, or its headers where it says nothing; None where neither does."""
    found = list(usages(raw))
    if found:
        return read(found)
    said = headers.get("x-amzn-bedrock-input-token-count")
    if said is None:
        return None
    output = headers.get("x-amzn-bedrock-output-token-count")
    return Told(int(said), None, None, int(output) if output else None, None)


def usages(raw: bytes) -> Iterator[Counts]:
    """Every object of counts in the body, in order."""
    for value in values(raw.decode("utf-8", "replace")):
        yield from _walk(value)


def values(text: str) -> Iterator[Any]:
    """The JSON values of a body: one, one an event, one a line, or those between the bytes of a binary stream."""
    text = text.strip("\ufeff \t\r\n")
    if text.startswith(("{", "[")):
        lines = [text] if _parsed(text) is not None else text.splitlines()
    elif chunks := _CHUNK.findall(text):
        lines = [_decoded(chunk) for chunk in chunks]
    elif lines := _DATA.findall(text):
        pass
    else:  # a binary stream of plain events
        lines = re.findall(r"\{.*?\}(?=[^,\]}\s])|\{.*\}", text, re.DOTALL)
        lines = [piece for line in lines for piece in _pieces(line)]
    for line in lines:
        value = _parsed(line)
        if value is not None:
            yield value


def _pieces(text: str) -> Iterator[str]:
    """The JSON objects in a text, in order, with any text between them."""
    at = text.find("{")
    while at >= 0:
        try:
            _, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            yield text[at:end]
        at = text.find("{", end)


def _decoded(chunk: str) -> str:
    try:
        return base64.b64decode(chunk).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _walk(value: Any) -> Iterator[Counts]:
    if isinstance(value, list):
        for inner in value:
            yield from _walk(inner)
    elif isinstance(value, dict):
        if any(isinstance(value.get(name), int) for name in OLLAMA):
            yield {name: value[name] for name in OLLAMA if name in value}
        if isinstance(value.get("timings"), dict) and "cache_n" in value["timings"]:  # llama.cpp
            yield {"num_cached_tokens": value["timings"]["cache_n"]}
        if isinstance(value.get("predictions"), list):  # vectors, each with its own count
            told = [one.get("embeddings", {}).get("statistics", {}) for one in value["predictions"]]
            yield {"inputTokenCount": sum(one.get("token_count", 0) for one in told)}
        for name, inner in value.items():
            if name in PLACES and isinstance(inner, dict):
                if any(COUNTS.search(member) and count is not None for member, count in inner.items()):
                    yield inner
            elif name not in NO_PLACES:
                yield from _walk(inner)


def merged(found: Iterable[Counts]) -> Counts:
    """The last count of each name that is not null. A report of zeros after another one tells nothing."""
    last: Counts = {}
    for one in found:
        if last and not any(one.values()):
            continue
        last.update({name: count for name, count in one.items() if count is not None})
    return last


def read(found: list[Counts]) -> Told:
    """Tell the family of counts by its own names, and read the last ones."""
    last = merged(found)
    if "promptTokenCount" in last or "totalTokenCount" in last:
        return _gemini(found[-1])
    if "total_input_tokens" in last:
        return _interactions(found[-1])
    if "inputTokens" in last:
        return _converse(last)
    if any(name in last for name in OLLAMA):
        return Told(last.get("prompt_eval_count"), last.get(OLLAMA[2]), None, last.get("eval_count"), None)
    if "tokens" in last:
        tokens = last["tokens"]
        return Told(tokens.get("input_tokens"), last.get("cached_tokens"), None, tokens.get("output_tokens"), None)
    if "input_tokens" in last and "total_tokens" not in last:
        return _anthropic(last)
    if "prompt_tokens" in last or "input_tokens" in last or "total_tokens" in last:
        return _openai(last)
    return Told(last.get("inputTokenCount"), None, None, last.get("outputTokenCount"), None)


def _gemini(last: Counts) -> Told:
    thought = last.get("thoughtsTokenCount")
    output = _sum(last.get("candidatesTokenCount"), thought)
    if output is None and last.get("totalTokenCount") is not None and "promptTokenCount" in last:
        output = last["totalTokenCount"] - last["promptTokenCount"]
    prompt = _sum(last.get("promptTokenCount"), last.get("toolUsePromptTokenCount"))
    return Told(prompt, last.get("cachedContentTokenCount"), None, output, thought)


def _interactions(last: Counts) -> Told:
    thought = last.get("total_thought_tokens")
    prompt = _sum(last["total_input_tokens"], last.get("total_tool_use_tokens"))
    return Told(prompt, last.get("total_cached_tokens"), None, _sum(last.get("total_output_tokens"), thought), thought)


def _converse(last: Counts) -> Told:
    cached = last.get("cacheReadInputTokens", last.get("cacheReadInputTokenCount"))
    written = last.get("cacheWriteInputTokens", last.get("cacheWriteInputTokenCount"))
    return Told(_sum(last["inputTokens"], cached, written), cached, written, last.get("outputTokens"), None)


def _anthropic(last: Counts) -> Told:
    """Cache reads and writes are counted apart from the input; passes other than messages are only in `iterations`."""
    passes = last.get("iterations") or []
    if not any(one.get("type") != "message" for one in passes):
        passes = [last]
    cached = _sum(*(one.get("cache_read_input_tokens") for one in passes))
    written = _sum(*(one.get("cache_creation_input_tokens") for one in passes))
    prompt = _sum(*(one.get("input_tokens") for one in passes), cached, written)
    output = _sum(*(one.get("output_tokens") for one in passes))
    return Told(prompt, cached, written, output, (last.get("output_tokens_details") or {}).get("thinking_tokens"))


def _openai(last: Counts) -> Told:
    """Chat Completions, Responses and compatible formats: the server's total decides which counts include others."""
    prompt = last.get("prompt_tokens", last.get("input_tokens"))
    output = last.get("completion_tokens", last.get("output_tokens"))
    total = last.get("total_tokens")
    details = last.get("prompt_tokens_details") or last.get("input_tokens_details") or {}
    more = last.get("completion_tokens_details") or last.get("output_tokens_details") or {}
    cached = _most(
        details.get("cached_tokens"), *(last.get(name) for name in ("cached_tokens", "num_cached_tokens",
        "prompt_cache_hit_tokens", "cache_read_input_tokens"))
    )  # fmt: skip
    written = _most(*(details.get(name) for name in ("cache_write_tokens", "cache_creation_input_tokens",
        "cache_creation_tokens")), last.get("cache_creation_input_tokens"))  # fmt: skip
    reasoning = more.get("reasoning_tokens", last.get("reasoning_tokens"))
    if prompt is None:
        return Told(total, cached, written, output, reasoning)
    spoken = {"in": details.get("audio_tokens") or 0, "out": more.get("audio_tokens") or 0}
    if output is None or not total:  # a part that is larger than its count is no part of it
        outside = (cached or 0) + (written or 0) > prompt
        whole = prompt + (cached or 0) + (written or 0) if outside else prompt
        return Told(
            whole, cached, written, _sum(output, reasoning if (reasoning or 0) > (output or 0) else None), reasoning
        )
    readings = set()
    for c, w, r, a, b in sorted(product((0, 1), repeat=5), key=sum):
        whole = prompt + c * (cached or 0) + w * (written or 0) + a * spoken["in"]
        answer = output + r * (reasoning or 0) + b * spoken["out"]
        inside = (1 - c) * (cached or 0) + (1 - w) * (written or 0)
        possible = inside <= prompt and (r or (reasoning or 0) <= output)
        if whole + answer == total and possible:
            readings.add((whole, answer))
            if (whole, answer) == (prompt, output):
                break
    if len(readings) == 1:
        whole, output = readings.pop()
        return Told(whole, cached, written, output, reasoning)
    if reasoning is None and total > prompt + output and not readings:  # what only the total has
        reasoning = total - prompt - output
        output += reasoning
    return Told(prompt, cached, written, output, reasoning)


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _most(*counts: int | None) -> int | None:
    return max((count for count in counts if count is not None), default=None)
