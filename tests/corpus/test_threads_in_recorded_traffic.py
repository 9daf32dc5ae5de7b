"""Threads in recorded traffic: every loop is found, and every call belongs to one thread and counts once.

The expected threads come from the raw requests alone: a request continues a call if it starts with the call's messages
and adds its answer, or if it names the call's response by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import orjson
import pytest
from tests.support import corpora

from wiretape.analyze.stats import stats
from wiretape.model.call import ModelCall, Text
from wiretape.model.http import Exchange, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.model.run import Run
from wiretape.runs.run import build_run
from wiretape.wire.registry import decode

ARCHIVES = (
    "charmbracelet+fantasy",
    "elastic+elastic-otel-python-instrumentations",
    "open-telemetry+opentelemetry-python-contrib",
    "pydantic+logfire",
    "pydantic+pydantic-ai",
    "simonw+llm",
    "simonw+llm-anthropic",
    "simonw+llm-openai-plugin",
)


def history(exchange: Exchange) -> list[Json]:
    """Return the raw messages of a request, without cache markers."""
    if exchange.request.body is None:
        return []
    try:
        value = orjson.loads(body_bytes(exchange.request.body))
    except orjson.JSONDecodeError:
        return []
    found = (value.get(member) for member in ("messages", "contents", "input")) if isinstance(value, dict) else ()
    return next((without_markers(one) for one in found if isinstance(one, list)), [])


def without_markers(value: Json) -> Json:
    if isinstance(value, list):
        return [without_markers(element) for element in value]
    if isinstance(value, dict):
        return {name: without_markers(member) for name, member in value.items() if name != "cache_control"}
    return value


def is_resent(call: ModelCall, rest: list[Json]) -> bool:
    """Return whether a later request adds a call's whole answer: its tool calls' ids, or its text."""
    raw = orjson.dumps(rest).decode()
    if call.response is None or call.response.status >= 400:
        return False
    ids = [tool.id for tool in call.tool_calls if tool.id and tool.kind != "server"]
    if ids:
        return all(id in raw for id in ids)
    blocks = [block for message in call.response.messages for block in message.blocks]
    texts = [block.text for block in blocks if isinstance(block, Text) and len(block.text) > 20]
    return bool(texts) and all(orjson.dumps(text).decode()[1:-1] in raw for text in texts)


def loops(calls: list[ModelCall], exchanges: list[Exchange]) -> Iterator[tuple[int, list[int]]]:
    """Yield each call with the calls that it may continue: those with most of its history."""
    by_number = {exchange.number: exchange for exchange in exchanges}
    histories = {c.number: history(by_number[c.exchange]) for c in calls if c.kind == "inference"}
    ids = {call.response.id: call.number for call in calls if call.response is not None and call.response.id}
    for call in calls:
        named = ids.get(call.request.previous_response_id or "")
        if named is not None and named < call.number:
            yield call.number, [named]
            continue
        own = histories.get(call.number, [])
        earlier = [
            other.number
            for other in calls
            if other.number < call.number
            and 0 < len(histories.get(other.number, [])) < len(own)
            and own[: len(histories[other.number])] == histories[other.number]
            and is_resent(other, own[len(histories[other.number]) :])
        ]
        if earlier:
            longest = max(len(histories[number]) for number in earlier)
            yield call.number, [number for number in earlier if len(histories[number]) == longest]


def belong_together(run: Run, number: int, before: int) -> bool:
    """Return whether calls are one thread, or linked threads: a fork, a summary, another agent."""
    thread, other = run.steps[number - 1].thread, run.steps[before - 1].thread
    return thread == other or run.threads[thread].from_call is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_every_loop_is_found_and_every_call_counts_once(name: str) -> None:
    apart: list[str] = []
    found = 0
    for path, exchanges in corpora.cassettes(name):
        calls = decode(exchanges)
        if len(calls) < 2:
            continue
        run = build_run(calls)
        in_threads = Counter(number for thread in run.threads for number in thread.calls)
        beside = {step.call.number for step in run.side_calls}
        assert set(in_threads.values()) <= {1}, path
        assert sorted((*in_threads, *beside)) == [call.number for call in calls], path
        report = stats(run)
        assert sum(turn.calls for turn in report.turns) + len(report.side_calls) == len(calls) == report.calls, path
        for number, before in loops(calls, exchanges):
            found += 1
            if number in beside or not any(belong_together(run, number, one) for one in before):
                apart.append(f"{path}: call {number} goes on from call {before}")
    assert not apart, "\n".join(apart)
    assert found >= _LOOPS.get(name, 0)


_LOOPS = {"pydantic+pydantic-ai": 390, "charmbracelet+fantasy": 1}
