"""A recorded answer event by event."""

from __future__ import annotations

from itertools import pairwise

from tests.support.sockets import create, events, message, socket
from tests.support.upstream import CHAT_EVENTS

from wiretape.debug.answer_stream import AnswerStream, answer_stream
from wiretape.model.call import Message, ModelCall, Text
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody
from wiretape.wire.registry import decode

BODY = JsonBody({"model": "m", "stream": True, "messages": [{"role": "user", "content": "How is it?"}]})
SSE = Headers([("content-type", "text/event-stream")])


def said(messages: tuple[Message, ...]) -> str:
    return "".join(block.text for message in messages for block in message.blocks if isinstance(block, Text))


def chat(*, at: int = 100) -> Exchange:
    body = StreamBody(CHAT_EVENTS, [0, 20, 50, 51, 51])
    request = Request("POST", "https://api.openai.com/v1/chat/completions", Headers(), BODY)
    return Exchange(1, at, request, Response(200, SSE, at + 30, body), Ended.COMPLETE, at + 82)


def stream_of(call: ModelCall, exchange: Exchange) -> AnswerStream:
    stream = answer_stream(call, exchange)
    assert stream is not None
    assert call.response is not None
    whole = [message.blocks for message in call.response.messages]
    assert [message.blocks for message in stream.after(len(stream))] == whole
    return stream


def test_an_answer_grows_with_each_event() -> None:
    (call,) = decode([chat()])
    stream = stream_of(call, chat())
    assert stream.times == (30, 50, 80, 81, 81)
    assert [said(stream.after(events)) for events in range(6)] == ["", "It ", "It is ", *["It is sunny."] * 3]


def test_how_much_had_come_at_a_time() -> None:
    (call,) = decode([chat()])
    stream = stream_of(call, chat())
    assert [stream.events_by(ms) for ms in (-1, 29, 30, 60, 81, 10_000)] == [0, 0, 1, 2, 5, 5]
    assert stream.lasts_ms == 81


def test_each_call_of_a_socket_has_its_own_stream() -> None:
    exchange = socket(
        [create("one"), *events("r1", message("First answer.")), create("two"), *events("r2", message("Second one."))]
    )
    calls = decode([exchange])
    assert len(calls) == 2
    for call, text in zip(calls, ("First answer.", "Second one."), strict=True):
        stream = stream_of(call, exchange)
        texts = [said(stream.after(count)) for count in range(len(stream) + 1)]
        assert texts[0] == ""
        assert texts[-1] == text
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))


def test_an_unstreamed_answer_is_not_a_stream() -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}
    request = Request("POST", "https://api.openai.com/v1/chat/completions", Headers(), BODY)
    exchange = Exchange(1, 0, request, Response(200, Headers(), 1, JsonBody(answer)), Ended.COMPLETE, 2)
    (call,) = decode([exchange])
    assert answer_stream(call, exchange) is None
    assert answer_stream(call, None) is None
