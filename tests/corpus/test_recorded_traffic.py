"""Recorded traffic of other projects is recognized, decoded and counted correctly.

The archives are next to the repository; without them the tests are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.corpora import cassettes, files
from tests.support.wire import REGISTRY, check_paths, everything, stream

from wiretape.model.call import CallResponse, ModelCall, Text, ToolCall, Unknown, Usage
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.wire.base import Memo
from wiretape.wire.lenient import body_json, raw_bytes

ARCHIVES = [
    "charmbracelet+fantasy",
    "simonw+llm-anthropic",
    "simonw+llm-openai-plugin",
    "simonw+llm-openrouter",
    "simonw+llm",
    "pydantic+logfire",
    "elastic+elastic-otel-python-instrumentations",
    "open-telemetry+opentelemetry-python-contrib",
    "pydantic+pydantic-ai",
    "simonw+llm-gemini",
]
FORMATS = {
    r"/chat/completions$": "openai.chat",
    r"/responses(/compact|/input_tokens)?$": "openai.responses",
    r"/messages(/count_tokens)?$": "anthropic.messages",
    r":(generateContent|streamGenerateContent|countTokens)$": "gemini.generate",
}
# Events of these servers that are not blocks, and are kept whole.
KNOWN_UNKNOWN = {
    "additional_tools",
    "compaction",
    "fallback",
    "mcp_approval_request",
    "mcp_list_tools",
    "item_reference",
    "tool_addition",
    "tool_removal",
}
ECHO = "pathname="  # one recording uses an echo service as its model


def expected_format(exchange: Exchange) -> str | None:
    if exchange.request.method.upper() != "POST":
        return None
    path = exchange.request.url.partition("?")[0]
    return next((name for tail, name in FORMATS.items() if re.search(tail, path)), None)


def traffic(archive: str) -> Iterator[tuple[str, Exchange, ModelCall]]:
    found = 0
    for path, exchanges in cassettes(archive):
        for exchange in exchanges:
            expected = expected_format(exchange)
            if expected is None:
                continue
            form = REGISTRY.recognise(exchange)
            assert form is not None, f"{path}: {exchange.request.url} was not recognised"
            assert form.name == expected, f"{path}: taken for {form.name}"
            found += 1
            yield f"{path} x{exchange.number}", exchange, form.decode(exchange, Memo())
    assert found, f"{archive} has no exchange of these formats"


@pytest.mark.parametrize("archive", ARCHIVES)
def test_every_exchange_is_decoded_completely(archive: str) -> None:
    for where, exchange, call in traffic(archive):
        response = call.response
        assert response is not None
        messages = (*call.request.messages, *response.messages)
        unknown = {b.type for m in messages for b in m.blocks if isinstance(b, Unknown)} - KNOWN_UNKNOWN
        echoed = ECHO in str(raw_bytes(exchange.response.body if exchange.response else None)) or unknown == {
            "response"
        }
        assert not unknown or echoed, f"{where}: {unknown}"
        if exchange.request.body is not None:  # some recordings omit it
            assert call.request.messages or call.request.previous_response_id, where
            assert call.request.model or "/deployments/" in call.url, where
        if response.error is None and call.kind == "inference" and not echoed:
            assert response.complete, where
            assert response.finish or call.dialect == "snowflake", where  # it sends an empty reason
            assert response.messages or response.finish in ("content_filter", "pause", "length"), where


def told_usage(raw: bytes) -> list[dict[str, Any]]:
    """Yield every usage object of a body, found without a format."""
    found: list[dict[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            used = value.get("usage")
            if isinstance(used, dict) and used.keys() & {"prompt_tokens", "input_tokens", "output_tokens"}:
                found.append(used)
            if "totalTokenCount" in value.get("usageMetadata", {}):
                found.append(value["usageMetadata"])
            for inner in (v for k, v in value.items() if k != "usage_breakdown"):
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    text = raw.decode("utf-8", "replace").strip()
    if text.startswith(("{", "[")):
        walk(json.loads(text))
    else:
        for line in re.findall(r"^data: ?(\{.*)$", text, re.MULTILINE):
            walk(json.loads(line))
    return found


def check_usage(where: str, call: ModelCall, raw: bytes) -> bool:
    told = told_usage(raw)
    usage = call.usage
    if call.kind != "inference":
        assert usage is None, where
        return False
    if not told:
        assert usage is None, where
        return False
    assert usage is not None, where
    last = {k: v for used in told for k, v in used.items() if v is not None}
    if call.format == "anthropic.messages":
        check_anthropic(where, usage, last)
    elif call.format == "gemini.generate":
        check_gemini(where, usage, told[-1])
    else:
        check_openai(where, usage, last)
    return True


def check_anthropic(where: str, usage: Usage, told: dict[str, Any]) -> None:
    passes = told.get("iterations") or [told]
    members = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    assert usage.input == sum(p.get(member) or 0 for p in passes for member in members), where
    assert usage.output == sum(p["output_tokens"] for p in passes), where
    assert (usage.cached or 0) == sum(p.get("cache_read_input_tokens") or 0 for p in passes), where


def check_gemini(where: str, usage: Usage, told: dict[str, Any]) -> None:
    assert usage.input == told["promptTokenCount"] + told.get("toolUsePromptTokenCount", 0), where
    assert usage.output is not None, where
    assert usage.input + usage.output == told["totalTokenCount"], where
    assert usage.output == told.get("candidatesTokenCount", 0) + told.get("thoughtsTokenCount", 0), where
    assert usage.reasoning == told.get("thoughtsTokenCount"), where
    assert usage.cached == told.get("cachedContentTokenCount"), where


def check_openai(where: str, usage: Usage, told: dict[str, Any]) -> None:
    prompt = told.get("prompt_tokens", told.get("input_tokens"))
    completion = told.get("completion_tokens", told.get("output_tokens"))
    total = told.get("total_tokens")
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    assert usage.input == (prompt if cached <= prompt else prompt + cached), where
    if cached:
        assert usage.cached == cached, where
    assert usage.output is not None, where
    assert usage.output >= completion, where
    if total is not None and total > prompt + completion:
        assert usage.input + usage.output == total, where
    elif (usage.reasoning or 0) <= completion:
        assert usage.output == completion, where


@pytest.mark.parametrize("archive", ARCHIVES)
def test_usage_equals_that_of_the_body(archive: str) -> None:
    checked = 0
    for where, exchange, call in traffic(archive):
        assert exchange.response is not None
        raw = raw_bytes(exchange.response.body)
        if exchange.response.status < 400 and raw.strip()[:1] in (b"{", b"[", b"d", b"e", b":"):
            checked += check_usage(where, call, raw)
    assert checked


@pytest.mark.parametrize("archive", ARCHIVES)
def test_paths_point_to_the_texts(archive: str) -> None:
    checked = 0
    for where, exchange, call in traffic(archive):
        try:
            checked += check_paths(call, body_json(exchange.request.body))
        except (AssertionError, KeyError, IndexError, TypeError) as wrong:
            raise AssertionError(f"{where}: {wrong!r}") from wrong
    assert checked


@pytest.mark.parametrize("archive", ARCHIVES)
def test_recorded_streams_do_not_depend_on_their_chunks(archive: str) -> None:
    """A sample: the first streams of the archive, in pieces of 1 and of 997 bytes."""
    streams = [(w, x) for w, x, call in traffic(archive) if call.response and call.response.streamed]
    for where, exchange in streams[:: max(1, len(streams) // 12)]:
        assert exchange.response is not None
        raw = raw_bytes(exchange.response.body)
        form = REGISTRY.recognise(exchange)
        assert form is not None
        whole = form.decode(exchange, Memo()).response
        assert whole is not None
        for size in (1, 997):
            body = stream([raw[i : i + size] for i in range(0, len(raw), size)])
            answer = Response(exchange.response.status, exchange.response.headers, 0, body)
            again = form.decode(Exchange(1, 0, exchange.request, answer, Ended.COMPLETE), Memo()).response
            assert again is not None
            assert everything(again) == everything(whole), where


def kinds(response: CallResponse) -> list[str]:
    """Return the kinds of blocks; the numbers of thoughts and texts may vary."""
    found: list[str] = []
    for message in response.messages:
        for block in message.blocks:
            name = type(block).__name__
            if not found or found[-1] != name or isinstance(block, ToolCall):
                found.append(name)
    return [name for name in found if name != "Reasoning"]


def test_streamed_and_unstreamed_twins_decode_to_the_same_blocks() -> None:
    """Each case was recorded both ways. Answers vary, so the kinds and names of blocks are compared."""
    by_file: dict[str, list[ModelCall]] = {}
    for where, _, call in traffic("charmbracelet+fantasy"):
        by_file.setdefault(where.rpartition(" x")[0], []).append(call)
    pairs = 0
    differing: list[str] = []
    compared = 0
    for path, streamed in by_file.items():
        twin = by_file.get(re.sub(r"[-_]streaming\.yaml$", ".yaml", path))
        if twin is None or twin is streamed:
            continue
        pairs += 1
        for one, other in zip(streamed, twin, strict=False):
            assert one.response is not None
            assert other.response is not None
            assert one.response.streamed or "bedrock" in path
            assert not other.response.streamed
            if one.response.messages and not isinstance(one.response.messages[0].blocks[0], Unknown):
                compared += 1
                if not shapes_agree(one, other):
                    differing.append(f"{path} {kinds(one.response)} {kinds(other.response)}")
    assert pairs > 80
    assert compared > 120
    assert not differing


def shapes_agree(one: ModelCall, other: ModelCall) -> bool:
    assert one.response is not None
    assert other.response is not None
    assert one.model == other.model
    mine, theirs = kinds(one.response), kinds(other.response)
    if one.request.messages and len(one.request.messages) == len(other.request.messages):
        assert [t.name for t in one.request.tools] == [t.name for t in other.request.tools]
    return [k for k in mine if k != "Text"] == [k for k in theirs if k != "Text"]


def fixtures(part: str) -> list[tuple[str, CallResponse]]:
    """The streams of the archive of rare shapes: one event's JSON per line."""
    found = []
    for path, data in files("vercel+ai", ".chunks.txt"):
        if part not in path:
            continue
        frames = [b"data: " + line + b"\n\n" for line in data.splitlines() if line.strip()]
        request = Request("POST", "https://x.example.com/x", Headers(), JsonBody({}))
        exchange = Exchange(1, 0, request, Response(200, Headers(), 0, stream(frames)), Ended.COMPLETE, 1)
        form = REGISTRY.recognise(exchange)
        if form is not None:
            answer = form.decode(exchange, Memo()).response
            assert answer is not None
            found.append((path, answer))
    return found


def test_rare_shapes_are_recognized_by_their_events() -> None:
    found = fixtures("")
    torn = [path for path, response in found if not response.complete]
    assert len(found) > 80
    assert [t.rpartition("/")[2] for t in torn] == ["parallel-tool-call-wrapper.1.chunks.txt"]  # arrived as broken JSON
    for path, response in found:
        assert response.messages or response.error or response.finish == "content_filter", path


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("duplicate-message-start", "Text"),
        ("github-copilot-id-rotation", "Text"),
        ("mistral-incremental-tool-call", "ToolCall"),
        ("mistral-reasoning", "Text"),
        ("anthropic-tool-no-args", "Text ToolCall"),
        ("spliced-message-start", "ToolCall"),
        ("anthropic-mcp.1", "ToolCall ToolResult Text"),
        ("openai-mcp-tool.1", "Control ToolCall ToolResult ToolCall ToolResult Text"),
        ("deepseek-tool-call", "ToolCall"),
        ("alibaba-tool-call", "ToolCall"),
        ("google-stream-tool-call-arguments.chunks", "ToolCall ToolCall"),
        ("google-stream-tool-call-array-arguments", "ToolCall"),
        ("google-vertex-stream-tool-call-arguments-nested", "ToolCall"),
        ("google-stream-no-args-tool-call", "ToolCall ToolCall ToolCall ToolCall"),
        ("interactions/__fixtures__/tool-call-step1", "ToolCall"),
        ("interactions/__fixtures__/google-search", "Text ToolCall ToolResult"),
    ],
)
def test_rare_streams(part: str, expected: str) -> None:
    ((_, response),) = fixtures(f"/{part}")
    assert " ".join(kinds(response)) == expected
    for message in response.messages:
        for block in message.blocks:
            if isinstance(block, ToolCall):
                json.loads(block.arguments)
            elif isinstance(block, Text):
                assert block.text


def test_streamed_and_unstreamed_interactions_have_the_same_shape() -> None:
    streamed = {path.rpartition("/")[2].partition(".")[0]: answer for path, answer in fixtures("/interactions/")}
    compared = 0
    for path, data in files("vercel+ai", ".json"):
        if "/interactions/" not in path:
            continue
        request = Request("POST", "https://x.example.com/x", Headers(), JsonBody({}))
        exchange = Exchange(1, 0, request, Response(200, Headers(), 0, JsonBody(json.loads(data))), Ended.COMPLETE, 1)
        form = REGISTRY.recognise(exchange)
        assert form is not None
        assert form.name == "gemini.interactions"
        plain = form.decode(exchange, Memo()).response
        assert plain is not None
        twin = streamed.get(path.rpartition("/")[2].partition(".")[0])
        for answer in (plain, twin) if twin is not None else (plain,):
            assert answer.usage is not None
            assert answer.usage.input is not None
            assert answer.usage.output is not None
            assert answer.usage.input + answer.usage.output == answer.usage.raw["total_tokens"], path
            assert kinds(answer) == kinds(plain), path
            assert (answer.complete, answer.finish) == (True, plain.finish)
        compared += twin is not None
    assert compared > 5
