"""`with wiretape.replay(…)`: answers this process's requests from tapes."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wiretape.adapters.inprocess.arguments import shown
from wiretape.adapters.inprocess.context import Context, as_http, several
from wiretape.adapters.inprocess.dummy_api_keys import DUMMY_KEYS
from wiretape.adapters.inprocess.network_guard import matches, proxies
from wiretape.adapters.inprocess.tools.decorator import stub
from wiretape.adapters.inprocess.tools.values import NOTHING
from wiretape.adapters.output import say
from wiretape.adapters.routing.hosts import is_address, is_known_provider
from wiretape.adapters.settings import Settings, load_settings
from wiretape.compare.difference import Tier
from wiretape.errors import MissError, MissInterrupt, TapeError, UsageError
from wiretape.matching.faults.apply import IN_PYTHON
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.playback import Playback, playback, timed_out
from wiretape.matching.report import ReplayReport
from wiretape.matching.session import ReplaySession
from wiretape.matching.sockets.playing import SocketPlay
from wiretape.matching.tape_age import AgeAction, MaxAge, age_limit
from wiretape.matching.values import Injected, LiveRequest, Miss, MissReason, Outcome, ReplayOptions
from wiretape.model.jsonvalue import Json
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.wire.mcp.tool_exchange import ToolAnswer

if TYPE_CHECKING:
    from wiretape.adapters.inprocess.context_children import ChildRoutes

Name: TypeAlias = str | os.PathLike[str]
TierName: TypeAlias = Literal["exact", "normalized", "masked", "position"]
OnMiss: TypeAlias = Literal["answer", "raise"]

_ASKED = ("answer", "call_tool", "let_through", "not_opened", "refused")  # of a session, by forked copies of a test
_SHOWN = 3  # misses that are told in full; the rest are counted


class Replay(Context):
    """What `wiretape.replay` returns."""

    def __init__(
        self,
        tapes: Sequence[Name | Tape],
        tier: TierName,
        pace: float,
        on_miss: OnMiss,
        pass_hosts: str | Sequence[str],
        repeat: bool,
        mask: str | Sequence[str],
        faults: str | Sequence[str] = (),
        max_age: MaxAge | None = None,
        max_age_action: AgeAction | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(tier, str) or tier.upper() not in Tier.__members__:
            raise UsageError(f"there is no tier {tier!r}: use one of {', '.join(one.word for one in Tier)}")
        if on_miss not in ("answer", "raise"):
            raise UsageError(f'on_miss is {on_miss!r}: use "answer" or "raise"')
        self.tapes = tuple(tapes)
        self._tier = Tier[tier.upper()]
        self.pace = pace
        self._raises = on_miss == "raise"
        self._globs = [glob.strip().lower() for glob in several(pass_hosts)]
        self._repeat = repeat
        self._mask = tuple(_expression(pattern) for pattern in several(mask))
        self._faults = tuple(parse_fault(spec, IN_PYTHON) for spec in several(faults))
        age_limit(max_age, max_age_action)  # what cannot be meant is said at once
        self._max_age, self._max_age_action = max_age, max_age_action
        self.on_warning: Callable[[str], None] = say
        self.renewal: str | None = None  # how to record the tape anew, if not as one does in a program
        self.miss_fix: Callable[[MissReason], str] | None = None  # the last lines of a miss, if not the usual ones
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
        """What was played, drifted, missed and left over so far."""
        with self.lock:
            return self.session.report()

    def begin(self) -> None:
        tapes = [source if isinstance(source, Tape) else _read(Path(source)) for source in self.tapes]
        names = [str(tape.path or "the tape") for tape in tapes]
        settings = load_settings(Path.cwd())
        self._check_age(tapes, names, settings)
        self._refused = set()
        mask = (*settings.mask, *self._mask)
        fix = self.miss_fix or functools.partial(_miss_fix, names[0])
        output = OutputRedactor(settings.redact, os.environ)
        options = ReplayOptions(
            self._tier, self._repeat, mask, self._faults, names=tuple(names), miss_fix=fix, output=output
        )
        self._session = ReplaySession(tapes, options)
        self.name = f"the replay of {self._session.names}"
        self._keys = DUMMY_KEYS.lend(self._session)
        self.serve_children = self._serve_children

    def _check_age(self, tapes: Sequence[Tape], names: Sequence[str], settings: Settings) -> None:
        asked = self._max_age if self._max_age is not None else settings.max_age
        limit = age_limit(asked, self._max_age_action or settings.max_age_action)
        renewal = self.renewal or f'run this once in wiretape.record("{names[0]}", force=True)'
        for warning in limit.check(tapes, datetime.now(UTC), f"  to record it anew: {renewal}"):
            self.on_warning(warning)

    def finish(self, error: BaseException | None) -> None:
        DUMMY_KEYS.take_back(self._keys)
        misses = [miss.message for miss in self.session.misses]
        if not misses:
            return
        if error is None or _ends_well(error):
            raise MissError(_told(misses))
        if not isinstance(error, Exception | KeyboardInterrupt | MissInterrupt):
            self.on_warning(_told(misses))  # nobody prints the notes of what only ends a program or a task
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
            outcome = self.session.call_tool(name, arguments, not self.records_too)
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
        if not matches(self._globs, name, port):
            return False
        if count:
            with self.lock:
                self.session.let_through(f"{name}:{port}")
        return True

    def refusal(self, host: str, names: frozenset[str], port: int | None) -> str | None:
        """A model that is reached past every door is a miss: a program that hides the error hides nothing."""
        if self.records_too or any(matches(self._globs, name, port) for name in names):
            return None
        if self._globs and names & proxies():
            return None  # of what is let through
        asked = min(names, key=lambda name: (is_address(name), name)) if is_address(host) else host
        where = asked if port is None else f"{asked}:{port}"
        said = _past_doors(where, asked, self.session.names)
        with self.lock:
            is_model = is_known_provider(asked) or self.session.knows_host(asked)
            if asked not in self._refused:
                self._refused.add(asked)
                if is_model:
                    self.session.not_opened(where, said)
                else:
                    self.session.refused(where, "past wiretape's doors")
        if self._raises and is_model:
            raise MissInterrupt(said)
        return said

    def answer(self, request: LiveRequest) -> Playback:
        with self.lock:
            outcome = self.session.answer(request)
        return self._played(outcome)

    def open_socket(self, request: LiveRequest) -> SocketPlay | Playback:
        with self.lock:
            opened = self.session.open_socket(replace(request, url=as_http(request.url)))
            if self.is_copy and isinstance(opened, Miss):
                self.session.not_opened(opened.what, opened.message)  # where somebody learns of it
        return opened if isinstance(opened, SocketPlay) else self._played(opened)

    def _serve_children(self) -> AbstractContextManager[ChildRoutes]:
        from wiretape.adapters.inprocess.context_children import replaying_children

        return replaying_children(self, self._globs)

    def forking(self) -> None:
        super().forking()
        if self.forks is None:
            self.children()  # a copy may start programs, and has no thread to serve them

    def forked(self) -> None:
        super().forked()
        if self.forks is not None:
            self._session = self.forks.remote("session", _ASKED, self.session)

    def _played(self, outcome: Outcome) -> Playback:
        if self.is_copy and self.forks is None and isinstance(outcome, Miss):
            self.on_warning(f"in a forked process: {outcome.message}")  # whose context nobody closes
        if self._raises and isinstance(outcome, Miss):
            raise MissInterrupt(outcome.message)
        shown = playback(outcome, self.pace)
        return timed_out(shown) if isinstance(outcome, Injected) and outcome.fault.stalls else shown


def _ends_well(error: BaseException) -> bool:
    """Whether this is how a program says that it is content, or a generator that nobody asks any more."""
    return isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code)


def _past_doors(where: str, host: str, names: str) -> str:
    return (
        f"{where} was to be reached past wiretape's doors, and the replay of {names} opens no connection\n"
        "  answered from the tape are httpx, aiohttp, requests, urllib3, urllib.request, http.client and websockets;\n"
        "  what opens its connections itself can be run by wiretape replay TAPE -- CMD\n"
        f'  to let it through: wiretape.replay(…, pass_hosts=["{host}"])'
    )


def _read(path: Path) -> Tape:
    try:
        there = path.exists()
    except OSError as error:  # such as a name that is too long for the file system
        raise TapeError(f"{shown(str(path))}: cannot be read: {error.strerror or error}") from None
    try:
        return read_tape(path)
    except TapeError as error:
        if there:
            raise
        raise TapeError(f'{error}\n  to record it: run this once in wiretape.record("{path}")') from None


def _expression(pattern: str) -> str:
    """Says of a pattern that cannot be meant that it is this one: others come from the settings."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"mask = {pattern!r} is no regular expression: {error}") from None
    return pattern


def _miss_fix(tape: str, reason: MissReason) -> str:
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
