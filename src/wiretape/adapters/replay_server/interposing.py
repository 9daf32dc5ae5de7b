"""The seam between what a session answers and what a door sends: someone may look at it, hold it, or change it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from wiretape.matching.values import LiveRequest, Outcome


class Interpose(Protocol):
    """Called by a replay door (the server, and the proxy in front of it) for each answer, before anything is sent.

    What it returns is sent: the outcome that it was given, or another one in its place. It may take as long as it
    likes, minutes too; other requests are answered meanwhile. While it holds an answer that is a stream of events, the
    client gets that answer's status and headers and then comments, so that it does not give up waiting. From then on
    only the stream can be changed: another status or content type in its place is sent as a connection that breaks
    off. When the client hangs up, the call is cancelled.

    It is called for each message of a WebSocket's client, too, with that message as the request's body and with what
    the connection plays as the outcome. There it can hold what follows, but not change it: what it returns is ignored.
    It runs on the door's event loop and must not block. What it raises ends the connection without an answer.
    """

    def __call__(self, request: LiveRequest, outcome: Outcome) -> Coroutine[Any, Any, Outcome]: ...
