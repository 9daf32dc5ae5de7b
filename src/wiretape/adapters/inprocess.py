"""`with wiretape.record(…)` and `with wiretape.replay(…)`: the contexts that stand behind the doors in this process."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast

import orjson

from wiretape.adapters.hosts import Hosts
from wiretape.adapters.inside import Inside, enter, leave
from wiretape.adapters.old_tape import OldTape
from wiretape.adapters.patching import close_doors, open_doors
from wiretape.adapters.replaying import dummy_keys
from wiretape.adapters.settings import Settings, load_settings
from wiretape.adapters.taking import Taken, Taker, TakenTool
from wiretape.adapters.tool_values import NOTHING
from wiretape.adapters.tooling import stub
from wiretape.errors import MissError, MissInterrupt, TapeUnwritable, UsageError
from wiretape.model.http import Exchange
from wiretape.model.jsonvalue import Json
from wiretape.replay.age import AgeAction, MaxAge, age_limit
from wiretape.replay.fault_specs import parse_fault
from wiretape.replay.playback import Playback, playback, timed_out
from wiretape.replay.report import ReplayReport
from wiretape.replay.session import ReplaySession
from wiretape.replay.sockets import SocketPlay
from wiretape.replay.values import Injected, LiveRequest, Miss, MissReason, Outcome, ReplayOptions, Tier, address
from wiretape.tape.reader import Tape, read_tape
from wiretape.tape.recorder import Recorder, RecorderSummary
from wiretape.tape.redact import Redactor
from wiretape.tape.storage import journal_path
from wiretape.wire.tool_exchange import HEADERS, ToolAnswer, call_body, tool_url

P = ParamSpec("P")
R = TypeVar("R")
Name: TypeAlias = str | os.PathLike[str]
TierName: TypeAlias = Literal["exact", "normalized", "masked", "position"]
OnMiss: TypeAlias = Literal["answer", "raise"]

_SHOWN = 3  # misses that are told in full; the rest are counted


class Context(Inside):
    """Can be entered with `with` and `async with`, as often as one likes, and stands as a decorator.

    What a run needs is made when it begins: nothing is shared between two runs of a decorated function.
    """

    def begin(self) -> None:
        raise NotImplementedError

    def finish(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self.is_open:
            raise UsageError(f"{self.name} is open already: make another context for a second run at the same time")
        self.begin()
        try:
            open_doors()
        except BaseException as error:
            self.finish(error)
            raise
        enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leave(self)
        close_doors()
        self.finish(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Each call of the function is a run of its own."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(f"{function.__qualname__} is a generator: open the context inside it, using `with`")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await function(*args, **kwargs)

            return cast(Callable[P, R], awaited)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._again():
                return function(*args, **kwargs)

        return called

    def _again(self) -> Self:
        made = copy.copy(self)
        made.lock = threading.RLock()
        return made


class Replay(Context):
    """What `wiretape.replay` returns."""

    def __init__(
        self,
        tapes: Sequence[Name | Tape],
        tier: TierName,
        pace: float,
        on_miss: OnMiss,
        pass_hosts: Sequence[str],
        repeat: bool,
        mask: Sequence[str],
        faults: Sequence[str] = (),
        max_age: MaxAge | None = None,
        max_age_action: AgeAction | None = None,
    ) -> None:
        super().__init__()
        if not tapes:
            raise UsageError("name a tape to replay: wiretape.replay('captures/agent.tape')")
        if tier.upper() not in Tier.__members__:
            raise UsageError(f"there is no tier {tier!r}: use one of {', '.join(one.word for one in Tier)}")
        if on_miss not in ("answer", "raise"):
            raise UsageError(f'on_miss is {on_miss!r}: use "answer" or "raise"')
        self.tapes = tuple(tapes)
        self._tier = Tier[tier.upper()]
        self.pace = pace
        self._raises = on_miss == "raise"
        self._globs = [glob.lower() for glob in pass_hosts]
        self._repeat = repeat
        self._mask = tuple(mask)
        self._faults = tuple(parse_fault(spec) for spec in faults)
        age_limit(max_age, max_age_action)  # what cannot be meant is said at once
        self._max_age, self._max_age_action = max_age, max_age_action
        self.on_warning: Callable[[str], None] = _say
        self.renewal: str | None = None  # how to record the tape anew, if not as one does in a program
        self._session: ReplaySession | None = None
        self._keys: Mapping[str, str] = {}

    @property
    def session(self) -> ReplaySession:
        if self._session is None:
            raise UsageError("this replay has not begun: use it in `with`")
        return self._session

    @property
    def report(self) -> ReplayReport:
        """What was played, drifted, missed and left over so far."""
        with self.lock:
            return self.session.report()

    def begin(self) -> None:
        tapes = [source if isinstance(source, Tape) else read_tape(Path(source)) for source in self.tapes]
        names = [str(tape.path or "the tape") for tape in tapes]
        settings = load_settings(Path.cwd())
        self._check_age(tapes, names, settings)
        mask = (*settings.mask, *self._mask)
        options = ReplayOptions(self._tier, self._repeat, mask, self._faults)
        self._session = ReplaySession(tapes, options, names=names)
        self._session.mend = functools.partial(_mended, names[0])
        self.name = f"the replay of {self._session.names}"
        self._keys = dummy_keys(os.environ, self._session)  # SDKs refuse to start without one
        os.environ.update(self._keys)

    def _check_age(self, tapes: Sequence[Tape], names: Sequence[str], settings: Settings) -> None:
        asked = self._max_age if self._max_age is not None else settings.max_age
        limit = age_limit(asked, self._max_age_action or settings.max_age_action)
        renewal = self.renewal or f'run this once in wiretape.record("{names[0]}", force=True)'
        for warning in limit.check(tapes, datetime.now(UTC), f"  to record it anew: {renewal}"):
            self.on_warning(warning)

    def finish(self, error: BaseException | None) -> None:
        for name, value in self._keys.items():
            if os.environ.get(name) == value:
                del os.environ[name]
        misses = [miss.message for miss in self.session.misses]
        if not misses:
            return
        if error is None:
            raise MissError(_told(misses))
        said = str(error)
        for message in misses[:_SHOWN]:
            if message not in said:
                error.add_note(message)

    def tool(self, name: str, *, returns: Any = NOTHING, is_async: bool = False) -> Callable[..., Any]:
        """A stub that answers as the recorded tool did, by arguments. `returns`: the type of its results."""
        return stub(self, name, returns, is_async)

    # what the doors ask

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        with self.lock:
            outcome = self.session.call_tool(name, arguments, keep_miss=not self.records_too)
        if not isinstance(outcome, Miss):
            return outcome
        if self.records_too:
            return None  # it runs, and what it gives is recorded
        raise MissInterrupt(outcome.message) if self._raises else MissError(outcome.message)

    @property
    def replays(self) -> bool:
        return True

    def passes(self, host: str, port: int, count: bool) -> bool:
        name = host.strip("[]").lower()
        if not any(fnmatchcase(one, glob) for glob in self._globs for one in (name, f"{name}:{port}")):
            return False
        if count:
            with self.lock:
                self.session.let_through(f"{name}:{port}")
        return True

    def answer(self, request: LiveRequest) -> Playback:
        with self.lock:
            outcome = self.session.answer(request)
        return self._played(outcome)

    def socket(self, request: LiveRequest) -> SocketPlay | Playback:
        with self.lock:
            opened = self.session.open_socket(replace(request, url=_as_http(request.url)))
        return opened if isinstance(opened, SocketPlay) else self._played(opened)

    def _played(self, outcome: Outcome) -> Playback:
        if self._raises and isinstance(outcome, Miss):
            raise MissInterrupt(outcome.message)
        shown = playback(outcome, self.pace)
        return timed_out(shown) if isinstance(outcome, Injected) and outcome.fault.stalls else shown


def _mended(tape: str, reason: MissReason) -> str:
    """What to do about a miss, in this process."""
    if reason == "already played":
        return "  to give recorded answers again: wiretape.replay(…, repeat=True)"
    intended = "if the change is intended" if reason == "diverged" else "to record it"
    return f'  {intended}: run this once in wiretape.record("{tape}", force=True)'


def _told(misses: Sequence[str]) -> str:
    if len(misses) == 1:
        return misses[0]
    more = [f"and {len(misses) - _SHOWN} more"] if len(misses) > _SHOWN else []
    return "\n".join([f"{len(misses)} requests had no recorded answer", *misses[:_SHOWN], *more])


class Record(Context):
    """What `wiretape.record` returns."""

    def __init__(
        self,
        path: Name,
        hosts: Sequence[str],
        everything: bool,
        append: bool,
        force: bool,
        note: str | None,
        provenance: str | None,
        on_exchange: Callable[[Exchange], None] | None,
    ) -> None:
        super().__init__()
        if append and force:
            raise UsageError("append goes on with a tape and force replaces it: give one of them")
        self.path = Path(path)
        self.name = f"the recording of {self.path}"
        self.summary: RecorderSummary | None = None
        self._extra = tuple(hosts)
        self._everything = everything
        self._append = append
        self._force = force
        self._note = note
        self._provenance = provenance
        self._on_exchange = on_exchange
        self._recorder: Recorder | None = None
        self._taker: Taker | None = None
        self._old: OldTape | None = None
        self._hosts = Hosts()

    def begin(self) -> None:
        settings = load_settings(Path.cwd())
        self._check_tape()
        self._hosts = Hosts([*self._extra, *settings.hosts], self._everything)
        self._old = OldTape(self.path) if self._force else None
        try:
            self._recorder = Recorder(
                self.path,
                clock=time.monotonic,
                started=datetime.now(UTC),
                redactor=Redactor(settings.redact),
                on_exchange=self._on_exchange,
                on_trouble=_say,
                append=self._append,
                note=self._note,
                provenance=self._provenance,
            )
        except BaseException:
            if self._old is not None:
                self._old.forget()
            raise
        self._taker = Taker(self._recorder, _say)

    def finish(self, error: BaseException | None) -> None:
        if self._recorder is None:
            return
        self.summary = self._recorder.close()
        if not self.summary.exchanges and error is None:
            past = f" ({', '.join(self.summary.bypassed)} went past it)" if self.summary.bypassed else ""
            _say(f"{self.path}: nothing was recorded{past}; name other hosts with hosts=[…], or use all=True")
        if self._old is None:
            return
        if self.summary.exchanges:
            self._old.forget()
        elif self._old.put_back():
            _say(f"{self.path}: was not replaced, and is as it was")

    def _check_tape(self) -> None:
        if self.path.is_dir():
            raise TapeUnwritable(f"{self.path} is a directory: name a tape in it, such as {self.path / 'agent.tape'}")
        there = any(path.exists() and path.stat().st_size for path in (self.path, journal_path(self.path)))
        if there and not (self._append or self._force):
            raise UsageError(
                f"{self.path} exists already, and nothing was recorded\n"
                "  append=True goes on with it, force=True replaces it"
            )

    def tell(self, event: str, *values: Any) -> Any:
        """An event of the recorder, from another door onto the same tape: any thread may tell it, nothing is raised."""
        return self._taker.tell(event, *values) if self._taker is not None else None

    # what the doors ask

    def tool_taken(self, name: str, arguments: Json) -> TakenTool | None:
        if self._taker is None:
            return None
        try:
            data = orjson.dumps(call_body(name, arguments))
        except TypeError as error:  # nested too deeply, say: the tool runs all the same
            _say(f"{self.path}: a call of {name} was not recorded: {error}")
            return None
        taken = self._taker.take("POST", tool_url(name), HEADERS)
        if taken is None:
            return None
        taken.sent(data)
        taken.sent_all()
        return TakenTool(taken)

    def taken(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> Taken | None:
        if self._taker is None:
            return None
        url = _as_http(url)
        host, port = _host_and_port(method, url)
        if not self._hosts.recorded(host, port):
            self._taker.tell("bypassed", host)
            return None
        return self._taker.take(method, url, headers)


def _host_and_port(method: str, url: str) -> tuple[str, int]:
    host, _, port = address(method, url).host.rpartition(":")
    if host and port.isdecimal():
        return host, int(port)
    return address(method, url).host, 443 if url.startswith(("https:", "wss:")) else 80


def _as_http(url: str) -> str:
    """A WebSocket's URL as its handshake's: so it stands on tapes, whichever door it came through."""
    return "http" + url[2:] if url.startswith(("ws:", "wss:")) else url


def _say(text: str) -> None:
    print(f"wiretape: {text}", file=sys.stderr)


def replay(
    *tapes: Name | Tape,
    tier: TierName = "masked",
    pace: float = 0,
    on_miss: OnMiss = "answer",
    pass_hosts: Sequence[str] = (),
    repeat: bool = False,
    mask: Sequence[str] = (),
    faults: Sequence[str] = (),
    max_age: MaxAge | None = None,
    max_age_action: AgeAction | None = None,
) -> Replay:
    """Answer this process's HTTP requests from tapes, and open no connection.

    `tier`: how alike a request must be at least. `pace`: 0 at once, 1 as recorded. `on_miss`: "answer" a miss with an
    error of the provider's shape (MissError follows when the context closes), or "raise" MissInterrupt at the call.
    `pass_hosts`: globs of hosts that are let through (an agent's own tools). `repeat`: give a recorded answer again
    when it was played before. `mask`: patterns for what changes between runs, besides those of the settings.
    `faults`: what goes wrong at which call, such as "429@3". `max_age`: how old a tape may be (days, or "30d"), over
    what the settings say; an older one is warned of, or fails where `max_age_action` is "fail".
    """
    return Replay(tapes, tier, pace, on_miss, pass_hosts, repeat, mask, faults, max_age, max_age_action)


def record(
    path: Name,
    *,
    hosts: Sequence[str] = (),
    all: bool = False,
    append: bool = False,
    force: bool = False,
    note: str | None = None,
    provenance: str | None = None,
    on_exchange: Callable[[Exchange], None] | None = None,
) -> Record:
    """Record this process's HTTP requests to a tape while they go on as ever.

    Known model providers and this machine are recorded, and what `hosts` (globs) adds; `all`: every host. A tape that
    exists is continued with `append` and replaced with `force`. `on_exchange` is told of each exchange that is on disk.
    """
    return Record(path, hosts, all, append, force, note, provenance, on_exchange)
