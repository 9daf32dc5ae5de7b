"""Both directions of one WebSocket on their way past: its messages and its close, told to the tape. Never raises."""

from __future__ import annotations

import threading

from wiretape.adapters.http1.ws_frames import FrameReader
from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder
from wiretape.model.http import Ended, Sender


class SocketTap:
    """`extensions`: what the server agreed on, as its header says."""

    def __init__(self, taken: ExchangeRecorder, extensions: str) -> None:
        deflated = "permessage-deflate" in extensions
        self._taken = taken
        self._readers: dict[Sender, FrameReader] = {"client": FrameReader(deflated), "server": FrameReader(deflated)}
        self._closed: set[Sender] = set()
        self._lost = False
        self._lock = threading.RLock()  # a library may send on one thread and receive on another

    def sent(self, data: bytes) -> None:
        with self._lock:
            self._told("client", data)

    def received(self, data: bytes) -> None:
        with self._lock:
            self._told("server", data)

    def eof(self, error: BaseException | None = None) -> None:
        """The other side's end."""
        with self._lock:
            self._taken.end(Ended.COMPLETE if self._closed else Ended.UPSTREAM_CLOSED)

    def hung_up(self) -> None:
        """The program's end."""
        with self._lock:
            self._taken.end(Ended.COMPLETE if self._closed else Ended.CLIENT_CLOSED)

    def _told(self, sender: Sender, data: bytes) -> None:
        if self._lost:
            return
        try:
            for event in self._readers[sender].feed(bytes(data)):
                if event.kind == "message":
                    self._taken.message(sender, event.data)
                elif event.kind == "close":
                    self._close(sender, event.code, str(event.data))
        except Exception:  # frames that no reader understands: what came until now is kept
            self._lost = True
            self._taken.end(Ended.RECORDER_STOPPED)

    def _close(self, sender: Sender, code: int, reason: str) -> None:
        if not self._closed:
            self._taken.closed_ws(code, reason, sender)
        self._closed.add(sender)
        if len(self._closed) == 2:
            self._taken.end(Ended.COMPLETE)
