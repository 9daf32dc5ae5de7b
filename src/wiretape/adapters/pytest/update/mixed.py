"""The door of `--wiretape-mode=new` and `update`: answers from the tape; what is not on it, from the network, recorded.

A WebSocket that is not on the tape stays a miss: its messages cannot be asked for one by one.

The door for httpx sends on what is not on the tape, with the program's own client. The others have no connection to go
back to when they have heard the request: for them it is called here, whole, before its answer goes on to the program.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from wiretape.adapters.inprocess.context_children import ChildRoutes
from wiretape.adapters.inprocess.context_record import Record
from wiretape.adapters.inprocess.context_replay import Replay
from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, ToolCallRecorder, ended_by
from wiretape.adapters.pytest.child_processes import mixed_children
from wiretape.adapters.update.session import UpdateSession
from wiretape.matching.playback import Chunk, Playback
from wiretape.matching.values import LiveRequest, Miss
from wiretape.model.http import Ended
from wiretape.model.jsonvalue import Json
from wiretape.wire.mcp.tool_exchange import ToolAnswer

_OF_THE_CONNECTION: Final = frozenset(
    ("connection", "content-length", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer")
) | {"transfer-encoding", "upgrade"}
_OF_THE_SENDING: Final = _OF_THE_CONNECTION | {"content-encoding"}  # undone here
_LONGEST: Final = 600  # seconds without a byte


class UpdatingReplay(Replay):
    """Replays, and gives `recording` what the tape does not answer. The recording belongs to this context."""

    recording: Record
    renewing: UpdateSession
    hosts: Sequence[str] = ()  # that child processes have recorded, too
    records_too = True

    def begin(self) -> None:
        super().begin()
        self.renewing = UpdateSession(self.session, self.lock)
        self._calling = threading.local()
        self.recording.begin()

    def finish(self, error: BaseException | None) -> None:
        try:
            super().finish(error)
        finally:
            self.recording.finish(error)

    def _serve_children(self) -> AbstractContextManager[ChildRoutes]:
        return mixed_children(self.recording, self.renewing, self.hosts)

    def forked(self) -> None:
        super().forked()
        self.recording.forks = self.forks
        self.recording.forked()
        if self.forks is not None:
            self.renewing = self.forks.remote("renewing", ("answer", "called", "tool_answer"), self.renewing)

    @property
    def unplayed(self) -> list[Miss]:
        """What could not be asked live: a WebSocket's message, say, whose answer depends on those before it."""
        live = set(map(id, self.renewing.called_live))
        return [miss for miss in self.session.misses if id(miss) not in live]

    # what the doors ask

    @property
    def replays(self) -> bool:
        """Not this thread's own call, on its way to the network."""
        return not getattr(self._calling, "now", False)

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        taken = self.recording.begin_exchange(method, url, headers)
        if taken is not None:
            self.renewing.note_live_call(taken.number)
        return taken

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        return self.renewing.tool_answer(name, arguments)

    def begin_tool_call(self, name: str, arguments: Json) -> ToolCallRecorder | None:
        taken = self.recording.begin_tool_call(name, arguments)
        if taken is not None:
            self.renewing.note_live_call(taken.number)
        return taken

    def answer(self, request: LiveRequest) -> Playback:
        return self.recorded_answer(request) or self.call_live(request)

    def recorded_answer(self, request: LiveRequest) -> Playback | None:
        outcome = self.renewing.answer(request)
        return self._played(outcome) if outcome is not None else None

    def call_live(self, request: LiveRequest) -> Playback:
        self._calling.now = True
        try:
            return _call(request)
        finally:
            self._calling.now = False


def _call(request: LiveRequest) -> Playback:
    """The real answer, past the door for httpx, which records it."""
    import httpx

    headers = [(name, value) for name, value in request.headers.pairs() if name not in _OF_THE_CONNECTION]
    try:
        with (
            httpx.Client(timeout=_LONGEST) as client,
            client.stream(request.method, request.url, headers=headers, content=request.body) as response,
        ):
            kept = [pair for pair in response.headers.multi_items() if pair[0] not in _OF_THE_SENDING]
            pieces = [Chunk(0, data) for data in response.iter_bytes()]
            return Playback(response.status_code, kept, pieces, streamed=True)
    except httpx.HTTPError as error:
        return Playback(None, (), (), cut=True, ended=ended_by(error) or Ended.UPSTREAM_CLOSED)
