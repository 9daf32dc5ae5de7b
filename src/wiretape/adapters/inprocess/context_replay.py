"""`with wiretape.replay(…)`: answers the requests of this process from tapes."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wiretape.adapters.arguments import shown
from wiretape.adapters.inprocess.context import ChildRoutes, PatchingContext, as_http
from wiretape.adapters.inprocess.network_guard import matches, proxies
from wiretape.adapters.output import say
from wiretape.adapters.routing.hosts import is_address, is_known_provider
from wiretape.compare.difference import Tier
from wiretape.errors import MissError, MissInterrupt, TapeError, UsageError
from wiretape.matching.faults.apply import IN_PYTHON
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.tape_age import AgeAction, MaxAge, age_limit
from wiretape.matching.values import Injected, LiveRequest, Miss, MissReason, Outcome, ReplayOptions

# Sessions, tapes and settings are imported when a context is entered: together they take half a second.
if TYPE_CHECKING:
    from wiretape.adapters.settings import Settings
    from wiretape.matching.playback import Playback
    from wiretape.matching.report import ReplayReport
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.sockets.playing import SocketPlay
    from wiretape.model.jsonvalue import Json
    from wiretape.tape.reading.reader import Tape
    from wiretape.wire.mcp.tool_exchange import ToolAnswer

Name: TypeAlias = str | os.PathLike[str]
TierName: TypeAlias = Literal["exact", "normalized", "masked", "position"]
OnMiss: TypeAlias = Literal["answer", "raise"]

_SHARED = ("answer", "call_tool", "let_through", "not_opened", "refused")  # methods of a session that forks call here
_MOST_MISSES = 3  # misses whose text is printed; the others are counted


@dataclass(frozen=True, slots=True)
class ReplayContextOptions:
    """The arguments of `wiretape.replay`, and three of the pytest plugin."""

    tier: str = "masked"
    pace: float = 0
    on_miss: str = "answer"
    pass_hosts: tuple[str, ...] = ()
    repeat: bool = False
    mask: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    max_age: MaxAge | None = None
    max_age_action: AgeAction | None = None
    on_warning: Callable[[str], object] = say
    how_to_record: str | None = None  # how to record the tape again; None: with `wiretape.record`
    on_unserved_children: Callable[[str], object] | None = None
    miss_fix: Callable[[ReplaySession, MissReason], str] | None = None  # the last lines of a miss


class Replay(PatchingContext):
    """The context that `wiretape.replay` returns."""

    def __init__(self, tapes: Sequence[Name | Tape], options: ReplayContextOptions) -> None:
        super().__init__()
        tier = options.tier
        if not isinstance(tier, str) or tier.upper() not in Tier.__members__:
            raise UsageError(f"there is no tier {tier!r}: use one of {', '.join(one.word for one in Tier)}")
        if options.on_miss not in ("answer", "raise"):
            raise UsageError(f'on_miss is {options.on_miss!r}: use "answer" or "raise"')
        age_limit(options.max_age, options.max_age_action)  # raises UsageError before anything is opened
        self.tapes = tuple(tapes)
        self.pace = options.pace
        self.on_unserved_children = options.on_unserved_children
        self._options = options
        self._raises = options.on_miss == "raise"
        self._globs = [glob.strip().lower() for glob in options.pass_hosts]
        self._mask = tuple(_expression(pattern) for pattern in options.mask)
        self._faults = tuple(parse_fault(spec, IN_PYTHON) for spec in options.faults)
        self._session: ReplaySession | None = None
        self._refused: set[str] = set()
        self._keys: Sequence[str] = ()

    @property
    def session(self) -> ReplaySession:
        if self._session is None:
            raise UsageError("this replay has not begun: use it in `with`")
        return self._session

    @property
    def report(self) -> ReplayReport:
        """The calls that were played, drifted, missed and left over so far."""
        with self.lock:
            return self.session.report()

    def begin(self) -> None:
        from wiretape.adapters.inprocess.dummy_api_keys import DUMMY_KEYS
        from wiretape.adapters.settings import load_settings
        from wiretape.matching.session import ReplaySession
        from wiretape.tape.output_redactor import OutputRedactor
        from wiretape.tape.reading.reader import Tape

        tapes = [source if isinstance(source, Tape) else _read(Path(source)) for source in self.tapes]
        names = [str(tape.path or "the tape") for tape in tapes]
        settings = load_settings(Path.cwd())
        self._check_age(tapes, names, settings)
        self._refused = set()
        mask = (*settings.mask, *self._mask)
        options = ReplayOptions(
            Tier[self._options.tier.upper()],
            self._options.repeat,
            mask,
            self._faults,
            names=tuple(names),
            miss_fix=functools.partial(self._miss_fix, names[0]),
            output=OutputRedactor(settings.redact, os.environ),
        )
        self._session = ReplaySession(tapes, options)
        self.name = f"the replay of {self._session.names}"
        self._keys = DUMMY_KEYS.add(self._session)

    def _miss_fix(self, tape: str, reason: MissReason) -> str:
        fix = self._options.miss_fix
        return fix(self.session, reason) if fix is not None else _miss_fix(tape, reason)

    def _check_age(self, tapes: Sequence[Tape], names: Sequence[str], settings: Settings) -> None:
        options = self._options
        max_age = options.max_age if options.max_age is not None else settings.max_age
        limit = age_limit(max_age, options.max_age_action or settings.max_age_action)
        how = options.how_to_record or f'run this once in wiretape.record("{names[0]}", force=True)'
        for warning in limit.check(tapes, datetime.now(UTC), f"  to record it again: {how}"):
            options.on_warning(warning)

    def finish(self, error: BaseException | None) -> None:
        from wiretape.adapters.inprocess.dummy_api_keys import DUMMY_KEYS

        DUMMY_KEYS.remove(self._keys)
        misses = [miss.message for miss in self.session.misses]
        if not misses:
            return
        if error is None or _is_normal_end(error):
            raise MissError(_summary(misses))
        if not isinstance(error, Exception | KeyboardInterrupt | MissInterrupt):
            self._options.on_warning(_summary(misses))  # Python does not print notes of SystemExit or CancelledError
        text = str(error)
        for message in misses[:_MOST_MISSES]:
            if message not in text:
                error.add_note(message)

    def tool(self, name: str, **options: Any) -> Callable[..., Any]:
        """A stub that returns the recorded results of a tool, by arguments. Options: see docs/tools.md."""
        from wiretape.adapters.inprocess.tools.stub import stub_of_context

        return stub_of_context(self, name, **options)

    # what patches and tools call

    @property
    def replays(self) -> bool:
        return True

    def tool_answer(self, name: str, arguments: Json) -> ToolAnswer | None:
        with self.lock:
            outcome = self.session.call_tool(name, arguments, not self.records_misses)
        if not isinstance(outcome, Miss):
            return outcome
        if self.records_misses:
            return None  # the tool runs, and its result is recorded
        raise MissInterrupt(outcome.message) if self._raises else MissError(outcome.message)

    def passes(self, host: str, port: int, count: bool) -> bool:
        name = host.strip("[]").lower()
        if not matches(self._globs, name, port):
            return False
        if count:
            with self.lock:
                self.session.let_through(f"{name}:{port}")
        return True

    def refusal(self, host: str, names: frozenset[str], port: int | None) -> str | None:
        """A model that an unpatched library connects to is a miss, even if the program hides the error."""
        if self.records_misses or any(matches(self._globs, name, port) for name in names):
            return None
        if self._globs and names & proxies():
            return None  # the proxy connects to a host that is allowed
        name = min(names, key=lambda one: (is_address(one), one)) if is_address(host) else host
        where = name if port is None else f"{name}:{port}"
        message = _unpatched(where, name, self.session.names)
        with self.lock:
            is_model = is_known_provider(name) or self.session.knows_host(name)
            if name not in self._refused:
                self._refused.add(name)
                if is_model:
                    self.session.not_opened(where, message)
                else:
                    self.session.refused(where, "by a library that wiretape does not patch")
        if self._raises and is_model:
            raise MissInterrupt(message)
        return message

    def answer(self, request: LiveRequest) -> Playback:
        with self.lock:
            outcome = self.session.answer(request)
        return self._playback(outcome)

    def open_socket(self, request: LiveRequest) -> SocketPlay | Playback:
        with self.lock:
            opened = self.session.open_socket(replace(request, url=as_http(request.url)))
            if self.is_copy and isinstance(opened, Miss):
                self.session.not_opened(opened.what, opened.message)  # in the session of the parent process
        # A SocketPlay, or what the handshake is answered instead.
        return self._playback(opened) if isinstance(opened, Outcome) else opened

    def serve_children(self) -> AbstractContextManager[ChildRoutes] | None:
        from wiretape.adapters.inprocess.child_server import replaying_children

        return replaying_children(self, self._globs)

    def before_fork(self) -> None:
        super().before_fork()
        if self.forks is None:
            self.children()  # the copy may start programs, and has no thread that could serve them

    def after_fork(self) -> None:
        super().after_fork()
        if self.forks is not None:
            self._session = self.forks.remote("session", _SHARED, self.session)

    def _playback(self, outcome: Outcome) -> Playback:
        from wiretape.matching.playback import playback, timed_out

        if self.is_copy and self.forks is None and isinstance(outcome, Miss):
            self._options.on_warning(f"in a forked process: {outcome.message}")  # nothing closes its context
        if self._raises and isinstance(outcome, Miss):
            raise MissInterrupt(outcome.message)
        played = playback(outcome, self.pace)
        return timed_out(played) if isinstance(outcome, Injected) and outcome.fault.stalls else played


def _is_normal_end(error: BaseException) -> bool:
    """True for a successful exit, and for a generator that is closed."""
    return isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code)


def _unpatched(where: str, host: str, names: str) -> str:
    return (
        f"a library that wiretape does not patch tried to reach {where}; the replay of {names} opens no connection\n"
        "  patched: httpx, aiohttp, requests, urllib3, urllib.request, http.client, websockets; "
        "others: wiretape replay TAPE -- CMD\n"
        f'  to allow this host: wiretape.replay(…, pass_hosts=["{host}"])'
    )


def _read(path: Path) -> Tape:
    from wiretape.tape.reading.reader import read_tape

    try:
        exists = path.exists()
    except OSError as error:  # such as a name that is too long for the file system
        raise TapeError(f"{shown(str(path))}: cannot be read: {error.strerror or error}") from None
    try:
        return read_tape(path)
    except TapeError as error:
        if exists:
            raise
        raise TapeError(f'{error}\n  to record it: run this once in wiretape.record("{path}")') from None


def _expression(pattern: str) -> str:
    """Check a pattern here, so that the error names this argument and not the settings."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"mask = {pattern!r} is not a regular expression: {error}") from None
    return pattern


def _miss_fix(tape: str, reason: MissReason) -> str:
    """The last lines of a miss in this process."""
    if reason == "already played":
        return "  to give recorded answers again: wiretape.replay(…, repeat=True)"
    intended = "if the change is intended" if reason == "diverged" else "to record it"
    return f'  {intended}: run this once in wiretape.record("{tape}", force=True)'


def _summary(misses: Sequence[str]) -> str:
    if len(misses) == 1:
        return misses[0]
    more = [f"and {len(misses) - _MOST_MISSES} more"] if len(misses) > _MOST_MISSES else []
    return "\n".join([f"{len(misses)} requests had no recorded answer", *misses[:_MOST_MISSES], *more])
