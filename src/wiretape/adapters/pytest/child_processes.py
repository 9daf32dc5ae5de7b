"""Contexts that also record the child processes of a test, with the recording proxy."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any, cast

from wiretape.adapters.inprocess.context import ChildRoutes
from wiretape.adapters.inprocess.context_record import Record
from wiretape.adapters.output import say
from wiretape.adapters.update.updating_replay import UpdatingReplay
from wiretape.errors import UsageError


class RecordWithChildren(Record):
    """A recording whose child processes write to the same tape."""

    def serve_children(self) -> AbstractContextManager[ChildRoutes]:
        return recording_children(self)


class UpdateWithChildren(UpdatingReplay):
    """An update whose child processes are answered from the same tape, and write their misses to it."""

    def serve_children(self) -> AbstractContextManager[ChildRoutes]:
        return self._updating_children()

    @contextmanager
    def _updating_children(self) -> Iterator[ChildRoutes]:
        need_mitmproxy()
        from wiretape.adapters.mitm.updating import AnswerServer, UpdatingAddon

        with AnswerServer() as answers:
            session = self.update_session
            addon = functools.partial(
                UpdatingAddon, update_session=session, answers=answers, on_kept=lambda answer: None
            )
            with recording_children(self.recording, addon) as children:
                yield children


@contextmanager
def recording_children(record: Record, addon: Callable[..., Any] | None = None) -> Iterator[ChildRoutes]:
    """Run the recording proxy. `addon`: the mitmproxy addon that records, by default RecordingAddon."""
    need_mitmproxy()
    from wiretape.adapters.mitm.addon import RecordingAddon
    from wiretape.app.recording_server import RecordingServer

    recorder = cast(Any, SharedRecorder(record))
    hosts = record.options.hosts
    with RecordingServer(recorder, os.environ, say, hosts=hosts, addon=addon or RecordingAddon) as server:
        yield ChildRoutes(lambda: (server.port,), lambda environ: server.variables(environ))


def need_mitmproxy() -> None:
    """Import mitmproxy. Raises UsageError if it is not installed."""
    if find_spec("mitmproxy") is None:
        raise UsageError(
            "recording a child process needs mitmproxy, which is not installed: pip install 'wiretape[proxy]'\n"
            "  (for Python 3.12 or later)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mitmproxy's dependencies warn of one another, which tests must not see
        import wiretape.app.recording_server  # noqa: F401


class SharedRecorder:
    """The recorder of a recording, for other threads: failures are reported, not raised."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __getattr__(self, event: str) -> Any:
        return lambda *values: self._record.record_event(event, *values)
