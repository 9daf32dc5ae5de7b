"""What leads a test's child processes to its tape: a replay server, or the recording proxy, on loopback ports."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, cast

from wiretape.adapters.context_record import Record
from wiretape.adapters.context_replay import Replay
from wiretape.adapters.renewing import Renewing
from wiretape.adapters.replaying import Replaying
from wiretape.errors import UsageError
from wiretape.replay.session import ReplaySession
from wiretape.replay.sockets import SocketPlay
from wiretape.replay.values import LiveRequest, Miss, Outcome


@dataclass(frozen=True, slots=True)
class Children:
    """The ports that children are led to, and the variables that lead them there, over the environment's own."""

    ports: frozenset[int]
    variables: Callable[[Mapping[str, str]], dict[str, str]]


@contextmanager
def replaying_children(replay: Replay, allow_hosts: Sequence[str]) -> Iterator[Children]:
    """A replay server that shares its session with the doors in this process."""
    shared = cast(ReplaySession, _Shared(replay))
    with Replaying(shared, let_through=allow_hosts, lock=replay.lock) as replaying:
        yield Children(frozenset((replaying.port, replaying.gate_port)), replaying.variables)


class _Shared:
    """The session of a replay, for a server in another thread."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def answer(self, request: LiveRequest) -> Outcome:
        with self._replay.lock:
            return self._replay.session.answer(request)

    def open_socket(self, request: LiveRequest) -> SocketPlay | Outcome:
        with self._replay.lock:
            return self._replay.session.open_socket(request)

    def refused(self, what: str, note: str) -> object:
        with self._replay.lock:
            return self._replay.session.refused(what, note)

    def not_opened(self, what: str, message: str) -> Miss:
        with self._replay.lock:
            return self._replay.session.not_opened(what, message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replay.session, name)


@contextmanager
def recording_children(record: Record, hosts: Sequence[str]) -> Iterator[Children]:
    """The recording proxy, on the same tape as the doors in this process."""
    _need_mitmproxy()
    from wiretape.adapters.mitm_addon import RecordingAddon

    with _recording(record, hosts, RecordingAddon) as children:
        yield children


@contextmanager
def mixed_children(record: Record, renewing: Renewing, hosts: Sequence[str]) -> Iterator[Children]:
    """The recording proxy with the tape in front of it: it records what that does not answer."""
    _need_mitmproxy()
    from wiretape.adapters.mitm_updating import AnswerServer, UpdatingAddon

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
        import wiretape.adapters.mitm_recording  # noqa: F401


@contextmanager
def _recording(record: Record, hosts: Sequence[str], addon: Callable[..., Any]) -> Iterator[Children]:
    from wiretape.adapters.mitm_recording import Recording

    recorder = cast(Any, _Taking(record))

    def say(text: str) -> None:
        print(f"wiretape: {text}", file=sys.stderr)

    with Recording(recorder, os.environ, say, hosts=hosts, addon=addon) as made:
        yield Children(frozenset((made.port,)), lambda environ: made.variables())


class _Taking:
    """The recorder of a recording, for a proxy in another thread."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __getattr__(self, event: str) -> Any:
        return lambda *values: self._record.tell(event, *values)
