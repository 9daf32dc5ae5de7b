"""Tier `position` on recorded runs of real agents with every word changed: each call gets its own answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from wiretape.compare.difference import Tier
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest, ReplayOptions
from wiretape.model.http import Exchange, JsonBody
from wiretape.tape.reading.reader import read_tape

CAPTURES = sorted((Path(__file__).parent.parent.parent / "captures").glob("*.tape"))


def reworded(value: Any, name: str = "") -> Any:
    """The same request in other words: instructions, questions, results and thoughts; names, ids and arguments stay."""
    if isinstance(value, dict):
        return {key: reworded(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [reworded(inner, name) for inner in value]
    if isinstance(value, str) and name in ("content", "text", "output", "instructions", "system", "description"):
        return f"{value} (in other words)"
    return value


def changed(exchange: Exchange) -> LiveRequest:
    assert isinstance(exchange.request.body, JsonBody)
    data = orjson.dumps(reworded(exchange.request.body.value))
    return LiveRequest(exchange.request.method, exchange.request.url, exchange.request.headers, data)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_every_call_gets_its_own_answer_although_every_word_is_new(path: Path) -> None:
    tape = read_tape(path)
    replay = ReplaySession([tape], ReplayOptions(Tier.POSITION))
    calls = [one for one in tape.exchanges if isinstance(one.request.body, JsonBody)]
    outcomes = [replay.answer(changed(one)) for one in calls]
    got = [outcome.reference.exchange if isinstance(outcome, Answer) else None for outcome in outcomes]
    assert got == [one.number for one in calls]
    assert {outcome.tier for outcome in outcomes if isinstance(outcome, Answer)} == {Tier.POSITION}
