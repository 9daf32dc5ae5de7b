"""Record the child processes of a test with the recording proxy, with or without answers from the test's tape."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, cast

from wiretape.adapters.inprocess.context_children import ChildRoutes
from wiretape.adapters.inprocess.context_record import Record
from wiretape.adapters.output import say
from wiretape.adapters.update.session import UpdateSession
from wiretape.errors import UsageError


@contextmanager
def recording_children(record: Record, hosts: Sequence[str]) -> Iterator[ChildRoutes]:
    """The recording proxy, on the same tape as the doors in this process."""
    _need_mitmproxy()
    from wiretape.adapters.mitm.addon import RecordingAddon

    with _recording(record, hosts, RecordingAddon) as children:
        yield children


@contextmanager
def mixed_children(record: Record, renewing: UpdateSession, hosts: Sequence[str]) -> Iterator[ChildRoutes]:
    """The recording proxy with the tape in front of it: it records what that does not answer."""
    _need_mitmproxy()
    from wiretape.adapters.mitm.updating import AnswerServer, UpdatingAddon

    with AnswerServer() as answers:
        addon = functools.partial(UpdatingAddon, renewing=renewing, answers=answers, on_kept=lambda answer: None)
        with _recording(record, hosts, addon) as children:
            yield children


def _need_mitmproxy() -> None:
    if find_spec("mitmproxy") is None:
        raise UsageError(
            "recording a child process needs mitmproxy, which is not installed: pip install 'wiretape[proxy]'\n"
            "  (for Python 3.12 or later)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mitmproxy's dependencies warn of one another: no business of the test's
        import wiretape.app.recording_server  # noqa: F401


@contextmanager
def _recording(record: Record, hosts: Sequence[str], addon: Callable[..., Any]) -> Iterator[ChildRoutes]:
    from wiretape.app.recording_server import RecordingServer

    recorder = cast(Any, SharedRecorder(record))

    with RecordingServer(recorder, os.environ, say, hosts=hosts, addon=addon) as made:
        yield ChildRoutes(lambda: (made.port,), lambda environ: made.variables(environ))


class SharedRecorder:
    """The recorder of a recording, for other threads: events that fail are reported, and harm nobody."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __getattr__(self, event: str) -> Any:
        return lambda *values: self._record.tell(event, *values)
