"""The context of `--wiretape-mode=new` and `update`: answers from the tape, calls misses live and records them.

A WebSocket that is not on the tape stays a miss: its messages cannot be called one by one. The patch of httpx sends a
miss with the program's own client. The other patches cannot: for them the request is called here, and the program gets
the answer when it is complete.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from wiretape.adapters.inprocess.context import ChildRoutes
from wiretape.adapters.inprocess.context_record import Record
from wiretape.adapters.inprocess.context_replay import Name, Replay, ReplayContextOptions
from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder, ToolCallRecorder, ended_by
from wiretape.adapters.update.session import UpdateSession
from wiretape.matching.playback import Chunk, Playback
from wiretape.matching.values import LiveRequest, Miss
from wiretape.model.jsonvalue import Json
from wiretape.tape.reading.reader import Tape
from wiretape.wire.mcp.tool_exchange import ToolAnswer

_CONNECTION_HEADERS: Final = frozenset(
    ("connection", "content-length", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer")
) | {"transfer-encoding", "upgrade"}
_NOT_PLAYED: Final = _CONNECTION_HEADERS | {"content-encoding"}  # httpx decodes the body
_TIMEOUT: Final = 600  # seconds without a byte


class UpdatingReplay(Replay):
    """A replay that records its misses to `recording`, which it opens and closes."""

    records_misses = True

    def __init__(self, tapes: Sequence[Name | Tape], options: ReplayContextOptions, recording: Record) -> None:
        super().__init__(tapes, options)
        self.recording = recording
        self.update_session: UpdateSession
        self._calling = threading.local()

    def begin(self) -> None:
        super().begin()
        self.update_session = UpdateSession(self.session, self.lock)
        self.recording.begin()

    def finish(self, error: BaseException | None) -> None:
        try:
            super().finish(error)
        finally:
            self.recording.finish(error)

    def serve_children(self) -> AbstractContextManager[ChildRoutes] | None:
        """Child processes are not updated here: the recording proxy belongs to a higher layer."""
        return None

    def after_fork(self) -> None:
        super().after_fork()
        self.recording.forks = self.forks
        self.recording.after_fork()
        if self.forks is not None:
            shared = ("answer", "note_live_call", "tool_answer")
            self.update_session = self.forks.remote("update_session", shared, self.update_session)

    @property
    def unplayed(self) -> list[Miss]:
        """Misses that could not be called live, such as messages of a WebSocket."""
        live = set(map(id, self.update_session.called_live))
        return [miss for miss in self.session.misses if id(miss) not in live]

    # what patches and tools call

    @property
    def replays(self) -> bool:
        """False for the live call that this thread makes: it goes to the network."""
        return not getattr(self._calling, "now", False)

    def begin_exchange(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> ExchangeRecorder | None:
        exchange = self.recording.begin_exchange(method, url, headers)
        if exchange is not None:
            self.update_session.note_live_call(exchange.number)
        return exchange

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        return self.update_session.tool_answer(name, arguments)

    def begin_tool_call(self, name: str, arguments: Json) -> ToolCallRecorder | None:
        call = self.recording.begin_tool_call(name, arguments)
        if call is not None:
            self.update_session.note_live_call(call.number)
        return call

    def answer(self, request: LiveRequest) -> Playback:
        return self.recorded_answer(request) or self.call_live(request)

    def recorded_answer(self, request: LiveRequest) -> Playback | None:
        outcome = self.update_session.answer(request)
        return self._playback(outcome) if outcome is not None else None

    def call_live(self, request: LiveRequest) -> Playback:
        self._calling.now = True
        try:
            return _call(request)
        finally:
            self._calling.now = False


def _call(request: LiveRequest) -> Playback:
    """The live answer. The patch of httpx records it."""
    import httpx

    headers = [(name, value) for name, value in request.headers.pairs() if name not in _CONNECTION_HEADERS]
    try:
        with (
            httpx.Client(timeout=_TIMEOUT) as client,
            client.stream(request.method, request.url, headers=headers, content=request.body) as response,
        ):
            kept = [pair for pair in response.headers.multi_items() if pair[0] not in _NOT_PLAYED]
            pieces = [Chunk(0, data) for data in response.iter_bytes()]
            return Playback(response.status_code, kept, pieces, streamed=True)
    except httpx.HTTPError as error:
        return Playback(None, (), (), cut=True, ended=ended_by(error))
