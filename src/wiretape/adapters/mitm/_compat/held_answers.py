"""Send the client of a held answer its head and then comments, so that it does not time out.

mitmproxy has no hook between the parts of a response in which an addon can wait. This patch adds one to
`HttpStream.send_response`: `held_answer(flow)` is called before a response that an addon has marked with `HELD`, and
again while the addon marks it with `WAITS`. In between, the head and comments are sent. Only event streams may be
marked, after the upstream has sent their head: nothing that the client has received is wrong later. Seen with mitmproxy
12.3.1.
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

from wiretape.adapters.http1.send_playback import COMMENT

# flow.metadata
HELD = "wiretape.held_answer"  # the answer may be held
WAITS = "wiretape.waits"  # it is held: send a comment
HEAD_SENT = "wiretape.head_sent"  # the client has the answer's head
_INSTALLED = "wiretape_held_answers"


@dataclass
class HeldAnswerHook(StartHook):  # type: ignore[misc, unused-ignore]
    """The addon waits for a decision, no longer than a client may wait for a comment."""

    name = "held_answer"
    flow: http.HTTPFlow


def install() -> None:
    """Patch mitmproxy, once in a process."""
    if not getattr(HttpStream, _INSTALLED, False):
        setattr(HttpStream, _INSTALLED, True)
        HttpStream.send_response = _with_comments(HttpStream.send_response)


def _with_comments(send_response: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
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
    """Return whether a client has disconnected. mitmproxy calls no hook for it while an answer is held."""
    return not flow.client_conn.state & ConnectionState.CAN_READ


def _is_gone(stream: Any) -> bool:
    """Return whether the client has disconnected: the events that wait for the hook show it."""
    return any(isinstance(event, RequestProtocolError) for event in stream._paused_event_queue)


def _head(flow: http.HTTPFlow) -> http.Response:
    """Return the upstream's head for a body of unknown length without a content-encoding."""
    assert flow.response is not None
    head = flow.response.copy()
    for name in ("content-length", "content-encoding", "transfer-encoding"):
        head.headers.pop(name, None)
    if not flow.request.is_http2 and flow.request.http_version != "HTTP/1.0":
        head.headers["transfer-encoding"] = "chunked"
    return head
