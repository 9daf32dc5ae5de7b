"""The body of an answer in a person's hands: what `answer_edit` cannot say, a tool call more, a text less, stands here.

A JSON answer is JSON, a streamed one the text of its events. What is written must decode to a whole answer, so that no
program is led astray by a slip of the pen.
"""

from __future__ import annotations

import json
from dataclasses import replace

from wiretape.errors import UsageError
from wiretape.model.call import Unknown
from wiretape.model.framing import framer_for, list_framer_for
from wiretape.model.http import Body, Exchange, JsonBody, StreamBody, body_bytes
from wiretape.wire.base import Memo
from wiretape.wire.registry import Registry, default_registry

_LOOK = 64  # bytes that show what kind of stream it is
_NEWLINES = "\r\n"  # at the end; without an empty line a client never hears the last event


def written(exchange: Exchange) -> str:
    """The body of an answer as a person edits it. Raises UsageError where it is no text."""
    body = exchange.response.body if exchange.response is not None else None
    if isinstance(body, JsonBody):
        return json.dumps(body.value, ensure_ascii=False, indent=2)
    if body is None or (isinstance(body, StreamBody) and body.binary):
        raise UsageError(f"the answer of x{exchange.number} has no body that could be written as text")
    try:
        return body_bytes(body).decode()
    except UnicodeDecodeError:
        raise UsageError(f"the answer of x{exchange.number} has no body that could be written as text") from None


def rewritten(exchange: Exchange, text: str, registry: Registry | None = None) -> Exchange:
    """The exchange with an answer of this body. A stream keeps its pace as far as it goes.

    Raises UsageError where the body is none of the answer's kind, or does not decode to one whole answer.
    """
    response = exchange.response
    if response is None:
        raise UsageError(f"x{exchange.number} has no answer whose body could be another")
    before = written(exchange)
    text = text.rstrip(_NEWLINES) + before[len(before.rstrip(_NEWLINES)) :]  # editors add and strip empty lines there
    if text == before:
        return exchange
    kind = response.headers.get("content-type")
    body = _streamed(response.body, text, kind) if isinstance(response.body, StreamBody) else _parsed(text)
    made = replace(exchange, response=replace(response, body=body))
    calls = (registry or default_registry()).calls_of(made, Memo())
    said = calls[0].response if len(calls) == 1 else None
    if said is None or all(isinstance(block, Unknown) for message in said.messages for block in message.blocks):
        raise UsageError("what was written says nothing that this wire format knows as an answer")
    if not said.complete:
        raise UsageError("what was written is an answer that is cut short: its end must be there, too")
    return made


def _parsed(text: str) -> Body:
    try:
        return JsonBody(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"what was written is no JSON: {error}") from None


def _streamed(before: StreamBody, text: str, content_type: str | None) -> Body:
    """The events of a text, at the times of those before; what is more comes with the last."""
    data = text.encode()
    framer = framer_for(content_type, data[:_LOOK]) or list_framer_for(content_type, data[:_LOOK])
    if framer is None:
        raise UsageError("this stream's events cannot be told apart: its body cannot be another")
    frames = [*framer.feed(data), *framer.close()]
    last = before.ms[-1] if before.ms else 0
    ms = [before.ms[place] if place < len(before.ms) else last for place in range(len(frames))]
    return StreamBody(frames, ms)
