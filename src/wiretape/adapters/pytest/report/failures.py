"""Texts about failed tests: headline, call site and fix of a miss; live calls without an answer."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

import wiretape
from wiretape.adapters.pytest.options import Mode
from wiretape.adapters.pytest.tape_paths import shown
from wiretape.adapters.pytest.tape_users import Users
from wiretape.matching.values import Miss, MissReason
from wiretape.model.http import Ended, Exchange

_WIRETAPE: Final = Path(wiretape.__file__).parent
_INSTALLED: Final = frozenset(("site-packages", "dist-packages"))
_RUNNERS: Final = ("_pytest.", "pluggy.")  # frames outside of these have called pytest, not the model
_MOST_UNANSWERED: Final = 3
_KEY_IS_WRONG: Final = (401, 403)


def headline(miss: Miss, tape: str) -> str:
    """The difference in a few words, for the short summary of pytest; empty if the message starts with it.

    `messages[0].content differs from call 1 of greet.tape`
    """
    if miss.nearest is None:
        return f"{miss.what} was never recorded on {tape}" if miss.reason == "never recorded" else ""
    named = f"{miss.nearest} of {tape}"
    match miss.reason:
        case "diverged" | "never recorded":
            return f"{_where(miss)} differs from {named}"
        case "already played":
            return f"{named} was already played"
        case "not playable":
            return f"{named} cannot be played"
        case _:
            return ""


def _where(miss: Miss) -> str:
    """A request that was never recorded has its place only in the text: `…, differs from its start at system[0]`."""
    if miss.differences:
        return miss.differences[0].where
    second_line = miss.message.split("\n")[1]
    return second_line.partition(" at ")[2] or miss.what


def call_site(root: Path) -> str | None:
    """Where the project's own code sent a request: its innermost frame in this thread, such as `tests/agent.py:31`.

    Own code is below the rootdir of pytest, and is neither installed nor part of wiretape.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith(_RUNNERS):
        if _is_own(frame.f_code.co_filename, root):
            return f"{shown(Path(frame.f_code.co_filename))}:{frame.f_lineno}"
        frame = frame.f_back
    return None


@lru_cache(4096)
def _is_own(name: str, root: Path) -> bool:
    path = Path(name)
    if not path.is_relative_to(root) or _INSTALLED & set(path.parts):
        return False
    excluded = [_WIRETAPE, Path(sysconfig.get_path("stdlib"))]
    if Path(sys.prefix).is_relative_to(root):  # a virtual environment inside the project
        excluded.append(Path(sys.prefix))
    return not any(path.is_relative_to(place) for place in excluded)


@dataclass(frozen=True, slots=True)
class Fixes:
    """The commands and markers that fix a failure of one test.

    `test`: the test as a person types it. `users`: the tests that use or may use the same tape; None: only this one.
    `other_worker`: another worker of xdist has recorded the tape in this run.
    """

    test: str
    has_tape: bool
    users: Users | None = None
    other_worker: bool = False

    def command(self, mode: str) -> str:
        return _command([self.test], mode)

    def rewriting(self) -> str:
        """The command that records a tape again, and drops everything else on it."""
        if self.users is None:
            return self.command(Mode.REWRITE)
        command = _command(self.users.arguments, Mode.REWRITE)
        if not self.users.partial:
            return command
        return (
            f"{command}\n  together with every other test that uses this tape ({self.users.partial}):\n"
            "  calls that none of them makes are dropped"
        )

    def updating(self) -> str:
        """The command that calls misses live, and drops calls that no test makes.

        It runs all tests that use the tape: a call that one test does not make may belong to another.
        """
        if self.users is None or self.users.partial:
            return self.command(Mode.UPDATE)
        return _command(self.users.arguments, Mode.UPDATE)

    def of_miss(self, reason: MissReason, left_over: bool) -> str:
        """The fix of a miss. `left_over`: recorded calls are left over, and the miss may be one of them, changed."""
        if not self.has_tape:
            return f"  to record it: {self.command(Mode.ONCE)}"
        if self.other_worker:
            return (
                "  another worker of xdist has just recorded this tape, with the calls of other tests\n"
                f"  run such tests in one worker: --dist loadfile; or record it now: {self.command(Mode.NEW)}"
            )
        if reason == "already played":
            return (
                "  to give recorded answers again: @pytest.mark.wiretape(repeat=True)\n"
                f"  to record it once more: {self.updating()}"
            )
        changed = reason == "diverged" or (reason == "never recorded" and left_over)
        return f"  {'if the change is intended' if changed else 'to record it'}: {self.updating()}"

    def of_refusal(self, refused: str) -> str:
        """The message for a refused connection to `host:port`."""
        host = refused.rpartition(":")[0] or refused
        return (
            f"{refused} is not on the tape: {self.test} runs from a tape, and its network access is blocked\n"
            f'  to allow this host: @pytest.mark.wiretape(allow_hosts=["{host}"]), or wiretape_allow_hosts in the\n'
            "  configuration of pytest; start child processes that call models with wiretape.environ()"
        )


def _command(arguments: Collection[str], mode: str) -> str:
    return f"pytest {shlex.join(arguments)} --wiretape-mode={mode}"


def unanswered(fresh: Sequence[Exchange], recorded: Sequence[Exchange]) -> list[str]:
    """Lines about live calls that failed: connection or API key. `recorded`: the exchanges of the tape."""
    found = Counter(failure for exchange in fresh if (failure := _failure(exchange)) is not None)
    lines = []
    for (what, base, why, advice), times in found.most_common(_MOST_UNANSWERED):
        lines.append(f"called live{f' {times} times' if times > 1 else ''}: {what}: {why}")
        lines += [advice] if advice else list(_other_base(base, recorded))
    return lines


def _failure(exchange: Exchange) -> tuple[str, str, str, str] | None:
    """The request, its base URL, why it failed, and what to do."""
    request, response = exchange.request, exchange.response
    parts = urlsplit(request.url)
    base = f"{parts.scheme}://{parts.netloc}"
    what = f"{request.method} {base}{parts.path}"
    if response is not None and response.status in _KEY_IS_WRONG:
        advice = "  to record it, set an API key that is valid there; without one, the test has a dummy key"
        return what, base, f"refused with {response.status}", advice
    if exchange.ended is Ended.UPSTREAM_UNREACHABLE:
        return what, base, "unreachable", ""
    return None


def _other_base(base: str, recorded: Sequence[Exchange]) -> Iterator[str]:
    """The base URL of the tape, if it differs: it was set during the recording, and is not set now."""
    parts = Counter(urlsplit(one.request.url)[:2] for one in recorded if one.request.url.startswith("http"))
    bases = [f"{scheme}://{place}" for (scheme, place), _ in parts.most_common()]
    if bases and base not in bases:
        yield f"  the tape was recorded from {bases[0]}: if models answer there, set the base URL that the code reads"
