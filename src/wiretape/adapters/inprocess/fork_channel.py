"""Lets a forked process call objects of its parent, over a UNIX socket.

So a test has one session and one recorder, whichever process sends a request. A copied session would play answers again
that the parent has played, and its misses would be lost.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

_STOP = None
_WAITING = 64  # the backlog of the listener


class ForkChannel:
    """Serves `targets`, objects by name, from `open` to `close`. Opened only before a fork: it needs a thread."""

    def __init__(self, targets: Mapping[str, object]) -> None:
        self._targets = targets
        self._key = os.urandom(32)
        self._listener: Listener | None = None
        self._address: Any = None
        self._opening = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="wiretape-forks", daemon=True)

    def open(self) -> None:
        if self._address is not None:
            return
        with self._opening:
            if self._address is None:
                from multiprocessing.connection import Listener

                # On Linux: an abstract socket, as the path of a file could exceed the limit of 108 bytes.
                name = f"\0wiretape-{os.getpid()}-{os.urandom(8).hex()}" if sys.platform == "linux" else None
                self._listener = Listener(name, "AF_UNIX", _WAITING, self._key)
                self._thread.start()
                self._address = self._listener.address

    def close(self) -> None:
        if self._listener is not None and self._thread.is_alive():
            self._ask(_STOP)
            self._thread.join()
            self._listener.close()

    def call(self, target: str, method: str, *args: Any) -> Any:
        """Call a method in the parent, from a forked process. Raises OSError or EOFError if the parent has closed."""
        is_error, value = self._ask((target, method, args))
        if is_error:
            raise value
        return value

    def remote(self, target: str, methods: Collection[str] = (), copy: Any = None) -> Any:
        """An object for a forked process whose methods call the target in the parent.

        With a `copy`, only `methods` do. Other attributes are those of the copy, and all are after the parent closed.
        """
        return _Remote(self, target, methods, copy)

    def _ask(self, request: Any) -> Any:
        if self._address is None:
            raise ConnectionRefusedError("the parent process does not serve its forks")
        from multiprocessing.connection import Client

        with Client(self._address, "AF_UNIX", self._key) as connection:
            connection.send(request)
            return connection.recv() if request is not _STOP else None

    def _serve(self) -> None:
        assert self._listener is not None
        serves = True
        while serves:
            # Fails for a killed process, and for other programs. The next request must still be answered.
            with suppress(Exception), self._listener.accept() as connection:
                request = connection.recv()
                serves = request is not _STOP
                if serves:
                    self._answer(connection, *request)

    def _answer(self, connection: Connection, target: str, method: str, args: tuple[Any, ...]) -> None:
        try:
            answer = False, getattr(self._targets[target], method)(*args)
        except BaseException as error:
            answer = True, error
        try:
            connection.send(answer)
        except Exception as error:  # the result cannot be pickled
            connection.send((True, RuntimeError(f"{target}.{method}: {error}")))


class _Remote:
    def __init__(self, channel: ForkChannel, target: str, methods: Collection[str], copy: Any) -> None:
        self._channel = channel
        self._target = target
        self._copy = copy
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        if self._copy is not None and name not in self._methods:
            return getattr(self._copy, name)
        return functools.partial(self._call, name)

    def _call(self, method: str, *args: Any) -> Any:
        try:
            return self._channel.call(self._target, method, *args)
        except (OSError, EOFError):
            if self._copy is None:
                raise
            return getattr(self._copy, method)(*args)
