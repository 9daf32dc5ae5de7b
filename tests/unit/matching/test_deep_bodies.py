"""Bodies with more levels than Python recurses, orjson writes (254), or a parser reads (1,024)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.replaying import session
from tests.support.taping import Taping

from wiretape.compare.difference import Tier
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest, Miss
from wiretape.model.http import (
    Body,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    StreamBody,
    TextBody,
    body_bytes,
)
from wiretape.tape.format.incremental_parser import BodyParser
from wiretape.tape.format.json_layout import NotCarried
from wiretape.tape.reading.reader import read_tape

URL = "https://api.example.com/v1/chat/completions"
JSON = Headers([("content-type", "application/json")])
LEVELS = (300, 1000, 5000)
WHERE = ("part", "extra", "setting", "tool", "arguments", "result", "alone")


def nested(levels: int, leaf: str) -> str:
    return '{"in":[' * (levels // 2) + json.dumps(leaf) + "]}" * (levels // 2)


def body(where: str, levels: int, leaf: str) -> bytes:
    """A request with a deep value at one of the places where a wire format may have one."""
    deep, mark = nested(levels, leaf), '"<deep>"'
    message: dict[str, object] = {"role": "user", "content": "hi"}
    made: dict[str, object] = {"model": "m", "messages": [message]}
    match where:
        case "part":
            message["content"] = [{"type": "odd", "value": "<deep>"}]
        case "extra":
            message["value"] = "<deep>"
        case "setting":
            made["odd"] = "<deep>"
        case "tool":
            made["tools"] = [{"type": "function", "function": {"name": "f", "parameters": "<deep>"}}]
        case "arguments":
            function = {"name": "f", "arguments": deep}
            asks = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
            made["messages"] = [message, asks]
        case "result":
            made["messages"] = [message, {"role": "tool", "tool_call_id": "c1", "content": deep}]
        case _:
            return deep.encode()
    return json.dumps(made).replace(mark, deep).encode()


def kept(data: bytes) -> Body:
    """As a tape has it."""
    try:
        return JsonBody(BodyParser().parse(data).value)
    except NotCarried:
        return TextBody(data.decode())


def recorded(data: bytes) -> ReplaySession:
    answered = Headers([("content-type", "text/plain")])
    response = Response(200, answered, 1, TextBody("ok"))
    return session(Exchange(1, 0, Request("POST", URL, JSON, kept(data)), response, Ended.COMPLETE, 2))


def live(data: bytes) -> LiveRequest:
    return LiveRequest("POST", URL, JSON, data)


@pytest.mark.parametrize("levels", LEVELS[1:])
@pytest.mark.parametrize("where", WHERE)
def test_a_deep_body_is_matched_as_any_other(where: str, levels: int) -> None:
    said = body(where, levels, "on 2026-01-01")
    equal = recorded(said).answer(live(said))
    assert isinstance(equal, Answer)
    assert equal.tier is Tier.EXACT

    dated = recorded(said).answer(live(body(where, levels, "on 2026-05-05")))
    assert isinstance(dated, Answer)
    assert dated.tier is Tier.MASKED
    assert "2026-05-05" in str(dated.differences)

    other = recorded(said).answer(live(body(where, levels, "something else")))
    assert isinstance(other, Miss)
    assert other.reason in ("diverged", "never recorded"), other.message
    assert "on 2026-01-01" in other.message
    assert "something else" in other.message


@pytest.mark.parametrize("levels", LEVELS)
def test_a_value_on_one_side_only_is_shown(levels: int) -> None:
    without = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    missed = recorded(body("setting", levels, "x")).answer(live(without))
    assert isinstance(missed, Miss)
    assert missed.reason == "diverged"
    assert '{"in":[{"in":[' in missed.message


@pytest.mark.parametrize("levels", LEVELS)
def test_a_deep_body_goes_onto_a_tape_and_comes_off_it_byte_for_byte(levels: int, tmp_path: Path) -> None:
    asked, answer = body("part", levels, "x"), nested(levels, "an answer").encode()
    with_stream = b'data: {"choices":[{"delta":{"content":"hi","odd":' + answer + b"}}]}\n\n"
    taping = Taping(tmp_path / "deep.tape")
    taping.call(asked, [answer], url=URL)
    taping.call(asked.replace(b'"m"', b'"m2"'), [with_stream], [("content-type", "text/event-stream")], url=URL)
    taping.recorder.close()
    tape = read_tape(tmp_path / "deep.tape")
    assert not taping.troubles
    assert not tape.warnings

    replay = ReplaySession([tape])
    first = replay.answer(live(asked))
    assert isinstance(first, Answer)
    assert first.tier is Tier.EXACT
    assert first.exchange.response is not None
    assert body_bytes(first.exchange.response.body) == answer
    second = replay.answer(live(asked.replace(b'"m"', b'"m2"')))
    assert isinstance(second, Answer)
    assert second.exchange.response is not None
    assert isinstance(second.exchange.response.body, StreamBody)
    assert body_bytes(second.exchange.response.body) == with_stream
