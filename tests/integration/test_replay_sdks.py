"""Real SDKs against a replay: they get recorded answers, see misses, and do not retry them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from tests.support.replaying import chat, exchange, reply, response, session, stream, system, user

from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.matching.session import ReplaySession
from wiretape.model.http import Ended, Exchange

openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
anthropic = pytest.importorskip("anthropic", reason="the anthropic SDK is not installed")

OPENAI = "https://api.openai.com/v1/chat/completions"
ANTHROPIC = "https://api.anthropic.com/v1/messages"


@contextmanager
def replaying(*recorded: Exchange, pace: float = 0, **options: Any) -> Iterator[tuple[ReplaySession, dict[str, str]]]:
    replay = session(*recorded, **options)
    with ReplayServer(replay, ReplayServerOptions(pace=pace)) as running:
        yield replay, running.variables({})


def openai_client(variables: dict[str, str], **options: Any) -> Any:
    return openai.OpenAI(api_key="sk-x", base_url=variables["OPENAI_BASE_URL"], **options)


def anthropic_client(variables: dict[str, str], **options: Any) -> Any:
    return anthropic.Anthropic(api_key="sk-x", base_url=variables["ANTHROPIC_BASE_URL"], **options)


def delta(text: str | None = None, finish: str | None = None, **more: Any) -> str:
    choice = {
        "index": 0,
        "delta": {"content": text, **more} if text is not None or more else {},
        "finish_reason": finish,
    }
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


def message(text: str, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 250}
    content = [{"type": "text", "text": text}]
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
    return {**base, "content": content, "stop_sequence": None, "usage": usage, **more}


def test_openai_shows_a_miss_at_once_and_does_not_retry() -> None:
    with replaying(exchange(1, chat(user("hi")), "one", url=OPENAI)) as (replay, variables):
        start = time.monotonic()
        with openai_client(variables, max_retries=3) as client, pytest.raises(openai.BadRequestError) as seen:
            client.chat.completions.create(model="m-1", messages=[user("other")])
        assert time.monotonic() - start < 5
    assert "no call on hand.tape answers POST /v1/chat/completions" in str(seen.value)
    assert "recorded  hi" in str(seen.value)
    assert "live      other" in str(seen.value)
    assert len(replay.misses) == 1


def test_anthropic_shows_a_miss_at_once_and_does_not_retry() -> None:
    asked = {"model": "claude", "max_tokens": 9, "messages": [user("hi")]}
    with (
        replaying(exchange(1, asked, message("one"), url=ANTHROPIC)) as (replay, variables),
        anthropic_client(variables, max_retries=3) as client,
        pytest.raises(anthropic.BadRequestError) as seen,
    ):
        client.messages.create(model="claude", max_tokens=9, messages=[user("other")])
    assert "live      other" in str(seen.value)
    assert len(replay.misses) == 1


def test_an_agent_that_swallows_the_miss_cannot_hide_it() -> None:
    with (
        replaying(exchange(1, chat(user("hi")), "one", url=OPENAI)) as (replay, variables),
        openai_client(variables) as client,
        suppress(Exception),
    ):
        client.chat.completions.create(model="m-1", messages=[user("other")])
    assert [missed.what for missed in replay.report().missed] == ["POST /v1/chat/completions"]


def test_a_stream_is_replayed_event_by_event() -> None:
    asked = chat(user("hi"), stream=True)
    frames = [delta("Hel"), delta("lo"), delta(finish="stop"), "data: [DONE]\n\n"]
    with (
        replaying(exchange(1, asked, stream(*frames), url=OPENAI)) as (_, variables),
        openai_client(variables) as client,
    ):
        got = [
            chunk.choices[0].delta.content
            for chunk in client.chat.completions.create(model="m-1", messages=[user("hi")], stream=True)
        ]
    assert got == ["Hel", "lo", None]


def test_a_streamed_function_call_is_decoded_whole() -> None:
    def call(arguments: str, **more: Any) -> dict[str, Any]:
        return {
            "tool_calls": [{"index": 0, "function": {"arguments": arguments, **more}, "type": "function", "id": "c1"}]
        }

    frames = [
        delta(**call("", name="weather")),
        delta(**call('{"city"')),
        delta(**call(': "北京"}')),
        "data: [DONE]\n\n",
    ]
    with (
        replaying(exchange(1, chat(user("hi"), stream=True), stream(*frames), url=OPENAI)) as (_, variables),
        openai_client(variables) as client,
    ):
        chunks = list(client.chat.completions.create(model="m-1", messages=[user("hi")], stream=True))
    parts = [chunk.choices[0].delta.tool_calls[0].function for chunk in chunks]
    assert parts[0].name == "weather"
    assert "".join(part.arguments for part in parts) == '{"city": "北京"}'


def test_events_are_sent_at_their_recorded_pace_on_request() -> None:
    asked = chat(user("hi"), stream=True)
    recorded = exchange(1, asked, stream(delta("a"), delta("b"), "data: [DONE]\n\n", ms=[0, 300, 300]), url=OPENAI)
    with replaying(recorded, pace=1) as (_, variables), openai_client(variables) as client:
        times = []
        for _ in client.chat.completions.create(model="m-1", messages=[user("hi")], stream=True):
            times.append(time.monotonic())
    assert times[1] - times[0] > 0.15


def test_cached_tokens_are_replayed() -> None:
    usage = {
        "prompt_tokens": 462,
        "completion_tokens": 31,
        "total_tokens": 493,
        "prompt_tokens_details": {"cached_tokens": 256},
    }
    with (
        replaying(exchange(1, chat(user("hi")), {**reply("one"), "usage": usage}, url=OPENAI)) as (_, variables),
        openai_client(variables) as client,
    ):
        found = client.chat.completions.create(model="m-1", messages=[user("hi")])
    assert found.usage.prompt_tokens_details.cached_tokens == 256
    asked = {"model": "claude", "max_tokens": 9, "messages": [user("hi")]}
    with (
        replaying(exchange(1, asked, message("one"), url=ANTHROPIC)) as (_, variables),
        anthropic_client(variables) as client_,
    ):
        answer = client_.messages.create(model="claude", max_tokens=9, messages=[user("hi")])
    assert answer.usage.cache_read_input_tokens == 250


def test_an_sdk_retries_a_recorded_429_as_it_did_when_recorded() -> None:
    limited = response({"error": {"message": "slow down", "type": "rate_limit_error"}}, status=429, retry_after_ms="1")
    recorded = [exchange(1, chat(user("hi")), limited, url=OPENAI), exchange(2, chat(user("hi")), "ok", url=OPENAI)]
    with replaying(*recorded) as (replay, variables), openai_client(variables) as client:
        assert client.chat.completions.create(model="m-1", messages=[user("hi")]).choices[0].message.content == "ok"
    assert [played.answer.call for played in replay.report().played] == [1, 2]


def test_an_sdk_retries_a_recorded_broken_connection() -> None:
    gone = exchange(1, chat(user("hi")), None, url=OPENAI, ended=Ended.UPSTREAM_UNREACHABLE)
    with (
        replaying(gone, exchange(2, chat(user("hi")), "ok", url=OPENAI)) as (replay, variables),
        openai_client(variables) as client,
    ):
        assert client.chat.completions.create(model="m-1", messages=[user("hi")]).choices[0].message.content == "ok"
    assert [played.answer.call for played in replay.report().played] == [1, 2]


def test_a_recorded_cut_stream_breaks_off_at_the_client() -> None:
    import httpx

    cut = exchange(1, chat(user("hi"), stream=True), stream(delta("a")), url=OPENAI, ended=Ended.UPSTREAM_CLOSED)
    with replaying(cut) as (_, variables), httpx.Client(trust_env=False) as client:
        got = []
        with client.stream(
            "POST", variables["OPENAI_BASE_URL"] + "/chat/completions", json=chat(user("hi"), stream=True)
        ) as answer:
            with pytest.raises(httpx.RemoteProtocolError):
                got += list(answer.iter_text())
            assert answer.status_code == 200


def test_concurrent_calls_of_async_clients_get_their_own_answers() -> None:
    names = [f"agent {n}" for n in range(12)]
    recorded = [
        exchange(n, chat(system(name), user("go")), f"for {name}", url=OPENAI) for n, name in enumerate(names, 1)
    ]

    async def ask(variables: dict[str, str]) -> list[str]:
        async with openai.AsyncOpenAI(api_key="x", base_url=variables["OPENAI_BASE_URL"]) as client:
            made = [
                client.chat.completions.create(model="m-1", messages=[system(n), user("go")]) for n in reversed(names)
            ]
            return [answer.choices[0].message.content for answer in await asyncio.gather(*made)]

    with replaying(*recorded) as (replay, variables):
        assert asyncio.run(ask(variables)) == [f"for {name}" for name in reversed(names)]
    assert replay.misses == []


def test_calls_made_in_threads_are_replayed() -> None:
    names = [f"agent {n}" for n in range(8)]
    recorded = [exchange(n, chat(user(name)), f"for {name}", url=OPENAI) for n, name in enumerate(names, 1)]
    with replaying(*recorded) as (replay, variables), openai_client(variables) as client, ThreadPoolExecutor(8) as pool:

        def ask(name: str) -> str:
            text: str = client.chat.completions.create(model="m-1", messages=[user(name)]).choices[0].message.content
            return text

        assert list(pool.map(ask, names)) == [f"for {name}" for name in names]
    assert len(replay.report().played) == 8
