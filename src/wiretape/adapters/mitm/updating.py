"""The recording addon of an update: requests that a tape answers are answered from it, and the rest is recorded.

Each request to a recorded host is buffered and looked up on the tape. If the tape answers it, it is sent to a local
server that plays the recorded answer; else it is sent to its upstream and recorded. WebSockets are always recorded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

from mitmproxy import http, tls

from wiretape.adapters.http1.server import listen, serve
from wiretape.adapters.mitm.addon import RecordingAddon, live_request
from wiretape.adapters.replay_server.server import ReplayHandler
from wiretape.adapters.update.session import UpdateSession
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected, LiveRequest, Outcome, Stray

_TICKET = "x-wiretape-answer"  # names an answer that waits at the server
_TO_LOOK_UP = "wiretape.to_look_up"  # flow.metadata: to be looked up on the tape


class UpdatingAddon(RecordingAddon):
    """`on_kept` is called with each recorded answer that is kept."""

    def __init__(
        self,
        *values: Any,
        update_session: UpdateSession,
        answers: AnswerServer,
        on_kept: Callable[[Answer], None],
        **named: Any,
    ) -> None:
        super().__init__(*values, **named)
        self._update_session = update_session
        self.tools.from_tape, self.tools.on_call = update_session.tool, update_session.note_live_call
        self._answers = answers
        self._on_kept = on_kept

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Do not connect to the upstream: the tape may answer."""
        data.establish_server_tls_first = False

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.headers.get("upgrade", "").lower() == "websocket":
            super().requestheaders(flow)
            self._note(flow)
        elif self._is_recorded(flow):
            flow.metadata[_TO_LOOK_UP] = True

    async def request(self, flow: http.HTTPFlow) -> None:
        if flow.metadata.pop(_TO_LOOK_UP, False) and not flow.error:
            answer = self._safely(self._update_session.answer, live_request(flow.request))
            if answer is not None:
                self._answer_from_tape(flow, answer)
                return
            self._begin(flow)
            self._note(flow)
        await super().request(flow)

    def _note(self, flow: http.HTTPFlow) -> None:
        x = self.number_of(flow)
        if x is not None:
            self._update_session.note_live_call(x)

    def _answer_from_tape(self, flow: http.HTTPFlow, answer: Answer | Injected) -> None:
        """Send the request to the server that plays the answer."""
        request = flow.request
        request.headers[_TICKET] = self._answers.ticket(answer)
        request.headers.pop("content-encoding", None)
        request.content = b""
        request.path = request.url
        request.scheme = "http"
        request.host, request.port = "127.0.0.1", self._answers.port
        if self._via is not None:
            self._via.direct(flow)
        if isinstance(answer, Answer):
            self._on_kept(answer)


class AnswerServer:
    """`with AnswerServer() as answers:` plays each answer to the request that has its ticket."""

    def __init__(self) -> None:
        self._waiting: dict[str, Outcome] = {}
        self._tickets = 0
        self._listening = listen()
        self.port: int = self._listening.getsockname()[1]
        self._handler = ReplayHandler(cast(ReplaySession, self))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="wiretape-answers", daemon=True)

    def ticket(self, answer: Outcome) -> str:
        self._tickets += 1
        name = str(self._tickets)
        self._waiting[name] = answer
        return name

    def answer(self, request: LiveRequest) -> Outcome:
        """Return the answer for a request: the part of a session that the server uses here."""
        held = self._waiting.pop(request.headers.get(_TICKET, ""), None)
        return held if held is not None else Stray(0, request.url)

    def __enter__(self) -> AnswerServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await serve(self._handler, self._listening, self._stop)
