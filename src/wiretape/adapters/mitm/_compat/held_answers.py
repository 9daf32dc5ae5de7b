"""Lets the client of an answer that is held back see life: its head, then comments, for as long as the answer waits.

mitmproxy has no hook that is waited for between the parts of an answer. Here `HttpStream.send_response` gets one:
`held_answer(flow)` is asked before an answer goes out that an addon marked with `HELD`, again and again while it marks
it with `WAITS`. In between the head and a comment are sent. Only a stream of events whose head the upstream has sent
can wait so: what was said to the client never has to be taken back. The answer itself is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mitmproxy import http
from mitmproxy.connection import ConnectionState
from mitmproxy.proxy.commands import StartHook
from mitmproxy.proxy.layers.http import (
    HttpStream,
    RequestProtocolError,
    ResponseData,
    ResponseHeaders,
    SendHttp,
)

from wiretape.adapters.http1.sending import COMMENT

# flow.metadata
HELD = "wiretape.held_answer"  # it may have to wait
WAITS = "wiretape.waits"  # it does, and the client is to be told so
HEAD_SENT = "wiretape.head_sent"  # the client has the answer's head
_INSTALLED = "wiretape_keeps_alive"


@dataclass
class HeldAnswerHook(StartHook):  # type: ignore[misc, unused-ignore]
    """The addon waits for a decision, no longer than a client is left without a sign."""

    name = "held_answer"
    flow: http.HTTPFlow


def install() -> None:
    """Once per process; again does nothing."""
    if not getattr(HttpStream, _INSTALLED, False):
        setattr(HttpStream, _INSTALLED, True)
        HttpStream.send_response = _kept_alive(HttpStream.send_response)


def _kept_alive(send_response: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def send(self: Any, already_streamed: bool = False) -> Iterator[Any]:
        flow: http.HTTPFlow = self.flow
        if already_streamed or not flow.metadata.get(HELD):
            yield from send_response(self, already_streamed)
            return
        yield HeldAnswerHook(flow)
        while flow.metadata.pop(WAITS, False) and not _is_gone(self):
            if not flow.metadata.get(HEAD_SENT):
                yield SendHttp(ResponseHeaders(self.stream_id, _head(flow), False), self.context.client)
                flow.metadata[HEAD_SENT] = True
            yield SendHttp(ResponseData(self.stream_id, COMMENT), self.context.client)
            yield HeldAnswerHook(flow)
        content = flow.response.get_content(strict=False) if flow.response is not None else None
        begun = bool(flow.metadata.get(HEAD_SENT))
        if begun and content and flow.killable and not _is_gone(self):
            yield SendHttp(ResponseData(self.stream_id, content), self.context.client)
        yield from send_response(self, already_streamed=begun)

    return send


def has_left(flow: http.HTTPFlow) -> bool:
    """Whether a client hung up. mitmproxy tells of it only once what is held is let go; its connection knows."""
    return not flow.client_conn.state & ConnectionState.CAN_READ


def _is_gone(stream: Any) -> bool:
    """Whether the client hung up meanwhile: that is found in what came in while a hook was waited for."""
    return any(isinstance(event, RequestProtocolError) for event in stream._paused_event_queue)


def _head(flow: http.HTTPFlow) -> http.Response:
    """The upstream's head for a body of another length, in no coding."""
    assert flow.response is not None
    head = flow.response.copy()
    for name in ("content-length", "content-encoding", "transfer-encoding"):
        head.headers.pop(name, None)
    if not flow.request.is_http2 and flow.request.http_version != "HTTP/1.0":
        head.headers["transfer-encoding"] = "chunked"
    return head
