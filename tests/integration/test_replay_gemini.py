"""Google's own SDK against a replay: plain answers, streams, a loop of two calls, and a miss."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.replaying import exchange, response, session, stream
from tests.support.taping import Taping

from wiretape.adapters.replay_runner import ReplayServer
from wiretape.matching.session import ReplaySession
from wiretape.model.http import Exchange, StreamBody
from wiretape.tape.reading.reader import read_tape

genai = pytest.importorskip("google.genai", reason="the google-genai SDK is not installed")

HOST = "https://generativelanguage.googleapis.com"
MODEL = f"{HOST}/v1beta/models/gemini-9"
PLAIN = f"{MODEL}:generateContent"
STREAM = f"{MODEL}:streamGenerateContent?alt=sse"
WEATHER = {"name": "weather", "description": "Tells it.", "parameters": {"type": "OBJECT", "properties": {}}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def asks(*contents: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {"contents": list(contents), **settings}


def said(*parts: dict[str, Any], finish: str | None = "STOP") -> dict[str, Any]:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 14, "thoughtsTokenCount": 3}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, "finishReason": finish}
    return {
        "candidates": [{k: v for k, v in candidate.items() if v is not None}],
        "usageMetadata": usage,
        "modelVersion": "gemini-9-001",
        "responseId": "r1",
    }


def events(*answers: dict[str, Any]) -> Any:
    return stream(*(f"data: {json.dumps(answer)}\r\n\r\n" for answer in answers))


@contextmanager
def replaying(*recorded: Exchange) -> Iterator[tuple[ReplaySession, Any]]:
    replay = session(*recorded)
    with ReplayServer(replay) as running:
        options = {"base_url": running.variables({})["GOOGLE_GEMINI_BASE_URL"]}
        yield replay, genai.Client(api_key="x", http_options=options)


def test_the_sdk_gets_a_plain_and_a_streamed_answer() -> None:
    hello = asks(user("hi"))
    chunks = [
        said({"text": "one "}, finish=None),
        said({"text": "two"}),
        said({"text": "", "thoughtSignature": "c2ln"}),
    ]
    with replaying(
        exchange(1, hello, response(said({"text": "plain"})), url=PLAIN),
        exchange(2, hello, events(*chunks), url=STREAM),
    ) as (replay, client):
        streamed = list(client.models.generate_content_stream(model="gemini-9", contents="hi"))
        plain = client.models.generate_content(model="gemini-9", contents="hi")
    assert [chunk.text for chunk in streamed] == ["one ", "two", ""]
    assert (plain.text, plain.usage_metadata.thoughts_token_count) == ("plain", 3)
    assert not replay.misses


def test_a_loop_of_two_calls_with_a_signature() -> None:
    call = {"functionCall": {"name": "weather", "args": {"city": "成都"}}, "thoughtSignature": "c2ln"}
    result = {"functionResponse": {"name": "weather", "response": {"result": "rain"}}}
    tools = [{"functionDeclarations": [WEATHER]}]
    first = asks(user("rain?"), tools=tools)
    second = asks(user("rain?"), {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}, tools=tools)
    with replaying(
        exchange(1, first, events(said(call)), url=STREAM),
        exchange(2, second, events(said({"text": "Take an umbrella."})), url=STREAM),
    ) as (replay, client):
        chat = client.chats.create(model="gemini-9", config={"tools": [{"function_declarations": [WEATHER]}]})
        (asked,) = list(chat.send_message_stream("rain?"))
        assert asked.function_calls[0].args == {"city": "成都"}
        part = genai.types.Part.from_function_response(name="weather", response={"result": "rain"})
        (answer,) = list(chat.send_message_stream(part))
    assert answer.text == "Take an umbrella."
    assert not replay.misses


def test_the_sdk_raises_a_miss_as_its_own_error() -> None:
    with replaying(exchange(1, asks(user("hi")), response(said({"text": "one"})), url=PLAIN)) as (replay, client):
        with pytest.raises(genai.errors.ClientError) as raised:
            client.models.generate_content(model="gemini-9", contents="something else")
        with pytest.raises(genai.errors.ClientError):
            list(client.models.generate_content_stream(model="gemini-9", contents="something else"))
    assert raised.value.code == 400
    assert "something else" in str(raised.value)
    assert len(replay.misses) == 2  # asked once each: not tried again


def test_interactions_streamed_and_not() -> None:
    url = f"{HOST}/v1beta/interactions"
    body = {"model": "gemini-9", "input": "hi"}
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "hello"}]}]
    whole = {"id": "v1_a", "object": "interaction", "status": "completed", "model": "gemini-9", "steps": steps}
    started = {"event_type": "interaction.created", "interaction": {"id": "v1_b", "status": "in_progress"}}
    parts: list[dict[str, Any]] = [
        started,
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "hello"}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {"id": "v1_b", "status": "completed"}},
    ]
    frames = [f"event: {part['event_type']}\ndata: {json.dumps(part)}\n\n" for part in parts]
    with replaying(
        exchange(1, body, response(whole), url=url),
        exchange(2, {**body, "stream": True}, stream(*frames, "event: done\ndata: [DONE]\n\n"), url=url),
    ) as (replay, client):
        made = client.interactions.create(model="gemini-9", input="hi")
        seen = [event.event_type for event in client.interactions.create(model="gemini-9", input="hi", stream=True)]
    assert (made.id, made.status) == ("v1_a", "completed")
    assert seen == [part["event_type"] for part in parts]
    assert not replay.misses


def test_a_list_that_grows_is_recorded_and_replayed_element_by_element(tmp_path: Path) -> None:
    answers = [said({"text": "one"}, finish=None), said({"text": "two"})]
    pieces = [b"[" + json.dumps(answers[0], indent=2).encode(), b"\n,\r\n" + json.dumps(answers[1]).encode(), b"\n]\n"]
    taping = Taping(tmp_path / "a.tape")
    request = json.dumps(asks(user("hi"))).encode()
    taping.call(request, pieces, url=f"{MODEL}:streamGenerateContent")
    taping.recorder.close()
    tape = read_tape(tmp_path / "a.tape")
    assert tape.exchanges[0].response is not None
    body = tape.exchanges[0].response.body
    assert isinstance(body, StreamBody)
    assert (list(body.frames), list(body.ms)) == (pieces, [1, 2, 3])
    with ReplayServer(ReplaySession([tape])) as running:
        base = running.variables({})["GOOGLE_GEMINI_BASE_URL"]
        url = f"{base}/v1beta/models/gemini-9:streamGenerateContent"
        sent = urllib.request.Request(url, request, {"content-type": "application/json"})
        with urllib.request.urlopen(sent, timeout=10) as answered:
            assert answered.read() == b"".join(pieces)
