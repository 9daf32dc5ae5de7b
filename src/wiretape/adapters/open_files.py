"""The limit of open files: raised for proxies and servers, kept for the programs that they start, reported once.

A recorded connection takes two files, a sealed one five, and the usual limit is 1024 (macOS: 256).
"""

from __future__ import annotations

import errno
import functools
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

_MOST: Final = 65536
_TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)


@functools.cache
def raise_limit() -> int:
    """Let this process open as many files as the system permits. Return the limit before: what a program gets."""
    if sys.platform == "win32":
        return 0
    import resource

    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    more = _MOST if most == resource.RLIM_INFINITY else min(_MOST, most)
    if more > usual != resource.RLIM_INFINITY:
        with suppress(ValueError, OSError):  # the system has another limit, which it does not report
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, most))
    return usual


@contextmanager
def usual_limit() -> Iterator[None]:
    """A program that is started in this block gets the limit that was in force before it was raised."""
    if sys.platform == "win32" or not raise_limit.cache_info().currsize:
        yield
        return
    import resource

    raised, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raise_limit(), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, most))


class _Once(logging.Filter):
    """Reports the first error of too many open files, and drops all of them: each comes with a traceback."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__()
        self._warn = warn
        self._reported = False

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if self._reported and "_start_serving()" in record.getMessage():
            return False  # asyncio accepts again after a second, even if the server was closed in between
        if not isinstance(error, OSError) or error.errno not in _TOO_MANY:
            return True
        if not self._reported:
            self._reported = True
            self._warn(
                "too many open files: new connections wait or fail until others end\n"
                "  raise the limit (ulimit -n), or let the program open fewer connections at a time"
            )
        return False


@contextmanager
def reported_once(warn: Callable[[str], None]) -> Iterator[logging.Filter]:
    """Report once that there are too many open files: an event loop logs it at each connection that it cannot accept.

    Gives the filter, for other logs.
    """
    once, log = _Once(warn), logging.getLogger("asyncio")
    log.addFilter(once)
    try:
        yield once
    finally:
        log.removeFilter(once)
