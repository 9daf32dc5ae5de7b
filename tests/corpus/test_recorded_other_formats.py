"""Recorded traffic of Bedrock, Cohere, Vertex and side calls is recognized, decoded and counted correctly.

The archives are next to the repository; without them the tests are skipped.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from tests.support.corpora import files
from tests.support.wire import REGISTRY, check_paths, everything, exchange, stream

from wiretape.adapters.importers.importing import import_data
from wiretape.adapters.importers.source import ImportedExchange
from wiretape.model.call import ModelCall, Text, ToolCall, Unknown
from wiretape.model.http import Ended, Exchange, JsonBody, Response
from wiretape.wire.base import Memo
from wiretape.wire.lenient import body_json, raw_bytes

ARCHIVES = [
    "charmbracelet+fantasy",
    "elastic+elastic-otel-python-instrumentations",
    "open-telemetry+opentelemetry-python-contrib",
    "pydantic+logfire",
    "pydantic+pydantic-ai",
    "simonw+llm-gemini",
]
FORMATS = {
    r"/converse(-stream)?$": "bedrock.converse",
    r"/invoke(-with-response-stream)?$": "bedrock.invoke",
    r"/count-tokens$": "bedrock.",
    r":(rawPredict|streamRawPredict)$": "anthropic.messages",
    r"/v2/chat$": "cohere.chat",
    r"/v1/embeddings$|/v2/embed$": "embeddings",
    r":(embedContent|batchEmbedContents)$|embedding[^/]*:predict$": "gemini.embedContent",
    r"/v1/tokenize$": "tokenize",
    r"(?<!/chat)/completions$": "openai.completions",
}
WANTED = re.compile(rb"converse|/invoke|count-tokens|awPredict|/v2/chat|mbed|tokenize|v1/completions")
UNREADABLE_REQUEST = "test_bedrock_model_other_parameters"  # its recorder stored invalid JSON


@cache
def recorded(archive: str) -> list[tuple[str, str, Exchange]]:
    found = []
    for path, data in files(archive, ".yaml"):
        if not WANTED.search(data):
            continue
        for taken in import_data(path, data):
            if not isinstance(taken, ImportedExchange) or taken.exchange.request.method != "POST":
                continue
            url = taken.exchange.request.url.partition("?")[0]
            expected = next((name for tail, name in FORMATS.items() if re.search(tail, url)), None)
            if expected is not None:
                found.append((path, expected, taken.exchange))
    return found


def traffic(archive: str) -> Iterator[tuple[str, Exchange, ModelCall]]:
    exchanges = recorded(archive)
    assert exchanges, f"{archive} has no exchange of these formats"
    for path, expected, one in exchanges:
        form = REGISTRY.recognise(one)
        assert form is not None, f"{path}: {one.request.url} was not recognised"
        assert form.name.startswith(expected), f"{path}: taken for {form.name}"
        yield path, one, form.decode(one, Memo())


@pytest.mark.parametrize("archive", ARCHIVES)
def test_every_exchange_is_decoded_completely(archive: str) -> None:
    for where, one, call in traffic(archive):
        response = call.response
        assert response is not None
        unknown = {
            b.type for m in (*call.request.messages, *response.messages) for b in m.blocks if isinstance(b, Unknown)
        }
        expected = {"body"} if UNREADABLE_REQUEST in where else set()
        assert unknown == expected, where
        assert call.request.model, where
        if raw_bytes(one.request.body):
            assert call.request.messages, where
        if response.error is None:
            assert response.complete, where
            assert response.messages or response.finish, where
        if response.error is None and call.kind == "inference":
            assert response.finish, where


def told(raw: bytes) -> list[dict[str, Any]]:
    """Yield every JSON object of a body that reports usage, found without a format."""
    text = raw.decode("utf-8", "replace")
    inner = [base64.b64decode(data).decode() for data in re.findall(r'"bytes":"([A-Za-z0-9+/=]+)"', text)]
    found = []
    for piece in inner or [text]:
        for match in re.finditer(r'"(?:usage|amazon-bedrock-invocationMetrics|usageMetadata|tokens)":\s*(?=\{)', piece):
            value, _ = json.JSONDecoder().raw_decode(piece, match.end())
            found.append(value)
    return found


@pytest.mark.parametrize("archive", ARCHIVES)
def test_usage_equals_that_of_the_body(archive: str) -> None:
    checked = 0
    for where, one, call in traffic(archive):
        assert one.response is not None
        usages = told(raw_bytes(one.response.body))
        if one.response.status >= 400 or call.kind == "token_count":
            assert call.usage is None, where
            continue
        headers = one.response.headers
        if "x-amzn-bedrock-input-token-count" in headers and not usages:
            usages = [
                {"inputTokens": int(headers["x-amzn-bedrock-input-token-count"]),
                 "outputTokens": int(headers.get("x-amzn-bedrock-output-token-count", "0"))}
            ]  # fmt: skip
        if usages:
            check(where, call, usages)
            checked += 1
    assert checked


def check(where: str, call: ModelCall, usages: list[dict[str, Any]]) -> None:
    usage = call.usage
    assert usage is not None, where
    last = {k: v for told_here in usages for k, v in told_here.items() if v is not None}
    if "totalTokens" in last and "inputTokens" in last:  # Converse: the sum of four
        assert usage.input is not None, where
        assert usage.input + last["outputTokens"] == last["totalTokens"], where
        assert usage.output == last["outputTokens"], where
        assert (usage.cached or 0) == (last.get("cacheReadInputTokens") or 0), where
    elif "inputTokens" in last:
        assert (usage.input, usage.output or 0) == (last["inputTokens"], last["outputTokens"]), where
    elif "inputTokenCount" in last and "input_tokens" not in last:
        assert (usage.input, usage.output) == (last["inputTokenCount"], last["outputTokenCount"]), where
    elif "tokens" in last:
        assert (usage.input, usage.output) == (last["tokens"]["input_tokens"], last["tokens"]["output_tokens"]), where
    elif "promptTokenCount" in last:
        assert usage.input == last["promptTokenCount"], where
    elif call.kind == "embedding":
        assert usage.input == last.get("prompt_tokens", last.get("total_tokens")), where
    elif "prompt_tokens" in last:
        assert (usage.input, usage.output) == (last["prompt_tokens"], last["completion_tokens"]), where
    else:
        cached = sum(last.get(k) or 0 for k in ("cache_creation_input_tokens", "cache_read_input_tokens"))
        assert usage.input == last["input_tokens"] + cached, where
        assert usage.output == last["output_tokens"], where


@pytest.mark.parametrize("archive", ARCHIVES)
def test_paths_point_to_the_texts(archive: str) -> None:
    for where, one, call in traffic(archive):
        body = body_json(one.request.body)
        if isinstance(body, dict) and "invokeModel" not in (body.get("input") or {}):
            try:
                check_paths(call, body)
            except (AssertionError, KeyError, IndexError, TypeError) as wrong:
                raise AssertionError(f"{where}: {wrong!r}") from wrong


@pytest.mark.parametrize("archive", ["charmbracelet+fantasy", "open-telemetry+opentelemetry-python-contrib",
                                     "pydantic+pydantic-ai"])  # fmt: skip
def test_recorded_streams_do_not_depend_on_their_chunks(archive: str) -> None:
    streams = [(w, one) for w, one, call in traffic(archive) if call.response and call.response.streamed]
    assert streams
    for where, one in streams[:: max(1, len(streams) // 12)]:
        assert one.response is not None
        raw = raw_bytes(one.response.body)
        form = REGISTRY.recognise(one)
        assert form is not None
        whole = form.decode(one, Memo()).response
        assert whole is not None
        for size in (1, 997):
            body = stream([raw[i : i + size] for i in range(0, len(raw), size)])
            again = form.decode(
                Exchange(1, 0, one.request, Response(200, one.response.headers, 0, body), Ended.COMPLETE), Memo()
            ).response
            assert again is not None
            assert everything(again) == everything(whole), where


def test_streamed_and_unstreamed_twins_decode_to_the_same_blocks() -> None:
    """Each case was recorded both ways. The texts differ; the kinds of blocks and the called tools are equal."""
    shapes: dict[str, dict[bool, list[Any]]] = {}
    for where, _, call in traffic("charmbracelet+fantasy"):
        if call.format != "bedrock.invoke":
            continue
        name = where.replace("_streaming", "")
        assert call.response is not None
        blocks = [b for m in call.response.messages for b in m.blocks]
        shape = [b.name if isinstance(b, ToolCall) else "text" for b in blocks if isinstance(b, ToolCall | Text)]
        shapes.setdefault(name, {}).setdefault("_streaming" in where, []).append(
            (shape, call.response.finish, [type(b).__name__ for m in call.request.messages for b in m.blocks])
        )
    assert len(shapes) == 7
    for name, both in shapes.items():
        assert both[True] == both[False], name


PACKAGES = {
    "packages/amazon-bedrock/src/__fixtures__/": "https://bedrock.example.com/model/m/converse",
    "packages/cohere/src/__fixtures__/cohere-": "https://api.example.com/v2/chat",
    "packages/openai/src/completion/": "https://api.example.com/v1/completions",
}


def fixtures(suffix: str) -> Iterator[tuple[str, str, bytes]]:
    for path, data in files("vercel+ai", suffix):
        url = next((url for part, url in PACKAGES.items() if part in path and "embedding" not in path), None)
        if url is not None:
            yield path, url, data


def test_bodies_from_another_tools_fixtures() -> None:
    checked = 0
    for path, url, data in fixtures(".json"):
        value = json.loads(data)
        call = _called(url, JsonBody(value))
        assert call.response is not None
        assert call.response.finish, path
        assert call.response.messages, path
        assert not any(isinstance(b, Unknown) for m in call.response.messages for b in m.blocks), path
        check(path, call, told(data))
        checked += 1
    assert checked >= 15


def test_streams_from_another_tools_fixtures() -> None:
    checked = 0
    for path, url, data in fixtures(".chunks.txt"):
        lines = [line for line in data.splitlines() if line.strip()]
        frames = [b"data: " + line + b"\n\n" for line in lines]
        if "bedrock" in path:
            frames = [line + b"\n" for line in lines]
        call = _called(url, stream(frames))
        assert call.response is not None, path
        assert call.response.complete, path
        assert call.response.finish, path
        assert not any(isinstance(b, Unknown) for m in call.response.messages for b in m.blocks), path
        usages = told(b"\n".join(lines))
        if usages:
            check(path, call, usages)
        checked += 1
    assert checked >= 15


def _called(url: str, body: Any) -> ModelCall:
    asked = {"model": "m", "prompt": "x"} if url.endswith("completions") else {"messages": [], "model": "m"}
    one = exchange(url, body, request=asked)
    form = REGISTRY.recognise(one)
    assert form is not None
    return form.decode(one, Memo())
