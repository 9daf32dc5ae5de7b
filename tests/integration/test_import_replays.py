"""A cassette becomes a tape, and replays offline for the SDK that recorded the cassette.

To add an SDK, add a line to `CASES`: the archive, the cassette, and the client.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.corpora import files

from wiretape.adapters.importers.importing import ImportedExchange, import_data
from wiretape.adapters.importers.write_imported import write_imported
from wiretape.adapters.replay_runner import ReplayServer
from wiretape.matching.session import ReplaySession
from wiretape.model.http import Exchange, body_bytes
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.redaction import Redactor


def asked(exchange: Exchange) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(body_bytes(exchange.request.body))
    return body


def answered(exchange: Exchange) -> bytes:
    assert exchange.response is not None
    return body_bytes(exchange.response.body)


def openai_chat(variables: dict[str, str], exchange: Exchange) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    with openai.OpenAI(api_key="sk-x", base_url=variables["OPENAI_BASE_URL"]) as client:
        raw = client.chat.completions.with_raw_response.create(**asked(exchange))
    assert raw.content == answered(exchange)
    told = json.loads(answered(exchange))["choices"][0]["message"]
    assert raw.parse().choices[0].message.content == told["content"]


def openai_responses(variables: dict[str, str], exchange: Exchange) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    with openai.OpenAI(api_key="sk-x", base_url=variables["OPENAI_BASE_URL"]) as client:
        made = client.responses.create(**asked(exchange))
        told = answered(exchange)
        if not asked(exchange).get("stream"):
            assert made.id == json.loads(told)["id"]
            assert [item.type for item in made.output] == [item["type"] for item in json.loads(told)["output"]]
            return
        types = [event.type for event in made]
    assert types == [event["type"] for event in sent_events(told)]


def anthropic_messages(variables: dict[str, str], exchange: Exchange) -> None:
    anthropic = pytest.importorskip("anthropic", reason="the anthropic SDK is not installed")
    body, told = asked(exchange), answered(exchange)
    named = {name: body.pop(name) for name in ("model", "max_tokens", "messages", "stream") if name in body}
    with anthropic.Anthropic(api_key="sk-x", base_url=variables["ANTHROPIC_BASE_URL"]) as client:
        made = client.messages.create(**named, extra_body=body)  # what this version of it no longer names
        if not named.get("stream"):
            assert made.usage.output_tokens == json.loads(told)["usage"]["output_tokens"]
            return
        types = [event.type for event in made]
    assert types == [event["type"] for event in sent_events(told) if event["type"] != "ping"]


def google_genai(variables: dict[str, str], exchange: Exchange) -> None:
    genai = pytest.importorskip("google.genai", reason="the google-genai SDK is not installed")
    body, told = asked(exchange), answered(exchange)
    client = genai.Client(api_key="x", http_options={"base_url": variables["GOOGLE_GEMINI_BASE_URL"]})
    config = {**body.get("generationConfig", {}), "tools": body.get("tools")}
    config["system_instruction"] = body.get("systemInstruction")
    named = {"model": exchange.request.url.rpartition("/")[2].partition(":")[0], "contents": body["contents"]}
    named["config"] = {name: value for name, value in config.items() if value is not None}
    if ":stream" in exchange.request.url:
        made = list(client.models.generate_content_stream(**named))
        sent = sent_events(told)
    else:
        made, sent = [client.models.generate_content(**named)], [json.loads(told)]
    assert [one.response_id for one in made] == [one["responseId"] for one in sent]
    assert made[-1].usage_metadata.total_token_count == sent[-1]["usageMetadata"]["totalTokenCount"]


def sent_events(stream: bytes) -> list[Any]:
    lines = stream.decode().splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data: {")]


CASES: list[tuple[str, str, Callable[[dict[str, str], Exchange], None]]] = [
    ("elastic+elastic-otel-python-instrumentations", "test_chat.yaml", openai_chat),
    ("simonw+llm", "test_responses_basic_streaming.yaml", openai_responses),
    ("simonw+llm", "test_responses_tool_use.yaml", openai_responses),
    ("simonw+llm-anthropic", "test_stream_events_tool_calls.yaml", anthropic_messages),
    ("simonw+llm-anthropic", "test_opus_46_schema.yaml", anthropic_messages),
    ("pydantic+logfire", "test_instrument_google_genai.yaml", google_genai),
    ("pydantic+pydantic-ai", "test_google_model_stream.yaml", google_genai),
]


def imported(archive: str, name: str, out: Path) -> Tape:
    ((path, data),) = [(path, data) for path, data in files(archive, ".yaml") if path.endswith(f"/{name}")]
    taken = [one for one in import_data(path, data) if isinstance(one, ImportedExchange)]
    write_imported(out, taken, datetime.now(UTC), Redactor(), None)
    return read_tape(out)


@pytest.mark.parametrize(("archive", "cassette", "ask"), CASES, ids=[cassette for _, cassette, _ in CASES])
def test_the_sdk_that_made_a_cassette_is_answered_from_the_tape(
    archive: str, cassette: str, ask: Callable[[dict[str, str], Exchange], None], tmp_path: Path
) -> None:
    tape = imported(archive, cassette, tmp_path / "cassette.tape")
    session = ReplaySession([tape])
    with ReplayServer(session) as running:
        for exchange in tape.exchanges:
            ask(running.variables({}), exchange)
    assert session.misses == []
    assert [played.answer.exchange for played in session.report().played] == [x.number for x in tape.exchanges]
