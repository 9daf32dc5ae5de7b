"""The HTTP equivalents of a WebSocket's model call: its URL, its request body and its response."""

from __future__ import annotations

from typing import Final

from wiretape.model.call import ModelCall
from wiretape.model.http import Exchange, Headers, Response, StreamBody, WsMessage, body_bytes
from wiretape.model.jsonvalue import JsonObject
from wiretape.wire.lenient import body_json, obj

_EVENT_STREAM: Final = Headers([("content-type", "text/event-stream")])
_ENVELOPE: Final = frozenset({"type", "response", "stream_id"})  # members that only the message has


def http_url(url: str) -> str:
    """Return a WebSocket's URL with an HTTP scheme."""
    return "http" + url[2:] if url.startswith(("ws:", "wss:")) else url


def socket_body(exchange: Exchange, call: ModelCall) -> JsonObject:
    """Return the body of the equivalent HTTP request; some clients wrap it in `response`."""
    sent = _messages(exchange, call, "client")
    message = obj(body_json(sent[0].body)) if sent else {}
    wrapped = message.get("response")
    whole = {**message, **wrapped} if isinstance(wrapped, dict) else message
    return {name: item for name, item in whole.items() if name not in _ENVELOPE}


def socket_response(exchange: Exchange, call: ModelCall) -> Response | None:
    """Return the call's events as the stream of an HTTP response; None if the server sent none."""
    received = _messages(exchange, call, "server")
    if not received:
        return None
    start = received[0].at
    frames = [b"data: " + body_bytes(message.body) + b"\n\n" for message in received]
    return Response(200, _EVENT_STREAM, start, StreamBody(frames, [message.at - start for message in received]))


def _messages(exchange: Exchange, call: ModelCall, sender: str) -> list[WsMessage]:
    """Return the messages of a call from one side."""
    messages = [exchange.messages[frame - 1] for frame in call.frames if frame <= len(exchange.messages)]
    return [message for message in messages if message.sender == sender]
