"""Records what a tape no longer answers: the recording addon, with the tape in front of it.

Every request to a recorded host is held until it is whole, and then compared with the tape. What the tape answers is
sent to a server on this machine, which plays the recorded answer; everything else goes on to its upstream, recorded.
WebSockets are always called live.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

from mitmproxy import http, tls

from wiretape.adapters.http1.server import listen, serve
from wiretape.adapters.mitm.addon import RecordingAddon, pairs_of
from wiretape.adapters.replay_server.server import ReplayHandler
from wiretape.adapters.update.session import UpdateSession
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, Injected, LiveRequest, Outcome, Stray
from wiretape.model.http import Headers

_TICKET = "x-wiretape-answer"  # which of the answers that wait at the server is meant
_ASKED = "wiretape.asked"  # flow.metadata: the tape has not been asked yet


class UpdatingAddon(RecordingAddon):
    """`on_kept` is told of each recorded answer that is given again."""

    def __init__(
        self,
        *values: Any,
        renewing: UpdateSession,
        answers: AnswerServer,
        on_kept: Callable[[Answer], None],
        **named: Any,
    ) -> None:
        super().__init__(*values, **named)
        self._renewing = renewing
        self.tools.from_tape, self.tools.on_call = renewing.tool, renewing.note_live_call
        self._answers = answers
        self._on_kept = on_kept

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """No upstream is spoken to before it is known that it has to be."""
        data.establish_server_tls_first = False

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.headers.get("upgrade", "").lower() == "websocket":
            super().requestheaders(flow)
            self._note(flow)
        elif self._is_recorded(flow):
            flow.metadata[_ASKED] = True

    async def request(self, flow: http.HTTPFlow) -> None:
        if flow.metadata.pop(_ASKED, False) and not flow.error:
            answer = self._safely(self._renewing.answer, _live(flow.request))
            if answer is not None:
                self._lead(flow, answer)
                return
            self._begin(flow)
            self._note(flow)
        await super().request(flow)

    def _note(self, flow: http.HTTPFlow) -> None:
        x = self.number_of(flow)
        if x is not None:
            self._renewing.note_live_call(x)

    def _lead(self, flow: http.HTTPFlow, answer: Answer | Injected) -> None:
        """To the server that plays the answer."""
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


def _live(request: http.Request) -> LiveRequest:
    headers = [(name, value) for name, value in pairs_of(request.headers) if not name.startswith(":")]
    return LiveRequest(request.method, request.url, Headers(headers), request.raw_content or b"")


class AnswerServer:
    """`with AnswerServer() as answers:` plays answers, each to whoever has its ticket."""

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
        """What the server asks for each request: the session's part."""
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
