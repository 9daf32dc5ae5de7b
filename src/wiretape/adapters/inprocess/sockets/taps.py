"""Taps: record both directions of a connection while its bytes pass. A tap never raises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from wiretape.adapters.http1.messages import Pairs, RequestReader, ResponseReader
from wiretape.adapters.http1.websocket_frames import FrameReader
from wiretape.adapters.inprocess.exchange_recorder import ExchangeRecorder
from wiretape.model.http import Ended, Sender


class ExchangeTap:
    """Records one exchange from the bytes that a program sends and receives.

    `begin` makes its recorder from the headers that were really sent; None: the host is not recorded.
    """

    def __init__(self, method: str, begin: Callable[[Pairs], ExchangeRecorder | None]) -> None:
        self._begin = begin
        self.recorder: ExchangeRecorder | None = None
        self._begun = False
        self._over = False
        self._socket: WebSocketTap | None = None  # after the connection has switched protocols
        self._request = RequestReader(self._record_sent, self._start)
        self._response = ResponseReader(method.upper() == "HEAD", self._record_head, self._record_received)

    @property
    def over(self) -> bool:
        """Whether nothing more is recorded."""
        return self._over

    def sent(self, data: bytes) -> None:
        if self._socket is not None:
            self._socket.sent(data)
            return
        self._read(self._request.feed, data)
        if self._request.complete and self.recorder is not None:
            self.recorder.sent_all()

    def received(self, data: bytes) -> None:
        left = data if self._socket is not None else self._read(self._response.feed, data)
        if self._socket is not None:
            self._socket.received(left)
        elif self._response.complete:
            self._end(Ended.COMPLETE)

    def eof(self, error: BaseException | None = None) -> None:
        """The upstream has ended the connection."""
        if self._socket is not None:
            self._socket.eof(error)
            self._over = True
            return
        self._response.eof()
        self._end(Ended.COMPLETE if self._response.complete and error is None else Ended.UPSTREAM_CLOSED)

    def hung_up(self) -> None:
        """The program has closed the connection."""
        if self._socket is not None:
            self._socket.hung_up()
        elif not self._over and self.recorder is not None:
            self.recorder.hung_up()
        self._over = True

    def failed(self, error: BaseException, headers: Sequence[tuple[str, str]], body: object) -> None:
        """An error came before the response. The request is recorded even if it was not sent yet."""
        if self._over:
            return
        if not self._begun:
            self._start(list(headers))
            self._record_sent(body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else b"")
        self._over = True
        if self.recorder is not None:
            self.recorder.failed(error)

    def _read(self, feed: Callable[[bytes], bytes], data: bytes) -> bytes:
        if self._over:
            return b""
        try:
            return feed(bytes(data))
        except Exception:  # bytes that httptools refuses, and the library may accept
            self._end(Ended.RECORDER_STOPPED)
            return b""

    def _end(self, ended: Ended) -> None:
        if not self._over and self.recorder is not None:
            self.recorder.end(ended)
        self._over = True

    def _start(self, headers: Pairs) -> None:
        self._begun = True
        self.recorder = self._begin(headers)
        self._over = self.recorder is None

    def _record_sent(self, data: bytes) -> None:
        if self.recorder is not None:
            self.recorder.sent(data)

    def _record_head(self, status: int, headers: Pairs) -> None:
        if self.recorder is not None:
            self.recorder.response(status, headers)
            if status == 101:
                agreed = [value for name, value in headers if name.lower() == "sec-websocket-extensions"]
                self._socket = WebSocketTap(self.recorder, ",".join(agreed))

    def _record_received(self, data: bytes) -> None:
        if self.recorder is not None:
            self.recorder.received(data)


class WebSocketTap:
    """Records the messages and the close of a WebSocket. `extensions`: the header in which the server accepts them."""

    def __init__(self, recorder: ExchangeRecorder, extensions: str) -> None:
        deflated = "permessage-deflate" in extensions
        self._recorder = recorder
        self._readers: dict[Sender, FrameReader] = {"client": FrameReader(deflated), "server": FrameReader(deflated)}
        self._closed: set[Sender] = set()
        self._lost = False
        self._lock = threading.RLock()  # a library may send on one thread and receive on another

    def sent(self, data: bytes) -> None:
        with self._lock:
            self._read("client", data)

    def received(self, data: bytes) -> None:
        with self._lock:
            self._read("server", data)

    def eof(self, error: BaseException | None = None) -> None:
        """The upstream has ended the connection."""
        with self._lock:
            self._recorder.end(Ended.COMPLETE if self._closed else Ended.UPSTREAM_CLOSED)

    def hung_up(self) -> None:
        """The program has closed the connection."""
        with self._lock:
            self._recorder.end(Ended.COMPLETE if self._closed else Ended.CLIENT_CLOSED)

    def _read(self, sender: Sender, data: bytes) -> None:
        if self._lost:
            return
        try:
            for event in self._readers[sender].feed(bytes(data)):
                if event.kind == "message":
                    self._recorder.message(sender, event.data)
                elif event.kind == "close":
                    self._close(sender, event.code, str(event.data))
        except Exception:  # frames that break the protocol: messages before them are kept
            self._lost = True
            self._recorder.end(Ended.RECORDER_STOPPED)

    def _close(self, sender: Sender, code: int, reason: str) -> None:
        if not self._closed:
            self._recorder.closed_ws(code, reason, sender)
        self._closed.add(sender)
        if len(self._closed) == 2:
            self._recorder.end(Ended.COMPLETE)
