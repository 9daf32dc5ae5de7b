"""Prints a recording on stderr: a line for each call, problems, a summary, and help if no call was seen."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wiretape.adapters.output import output, typed
from wiretape.app.signals import held_signals
from wiretape.cli.programs import print_exports, say_env_leaks, say_settings
from wiretape.errors import EXIT_INCOMPLETE
from wiretape.model.wording import plural
from wiretape.views.call_line import call_line
from wiretape.views.printable import one_line
from wiretape.views.replay.summary import tier_mark
from wiretape.views.replay.update import update_view
from wiretape.views.terminal import make_console
from wiretape.wire.base import Memo
from wiretape.wire.mcp.tool_exchange import is_tool_exchange
from wiretape.wire.registry import decode, default_registry

if TYPE_CHECKING:
    from rich.text import Text

    from wiretape.adapters.launch.preparing import PreparedProgram
    from wiretape.app.record import RecordResult
    from wiretape.app.update import UpdateResult
    from wiretape.matching.values import Answer
    from wiretape.model.call import ModelCall
    from wiretape.model.http import Exchange, WsMessage
    from wiretape.tape.recording.recorder import RecorderSummary
    from wiretape.wire.base import SocketFollower

_PREFIX = "wiretape "
_KEPT_OLD = 1  # exit code: --force, but nothing was recorded, so the old tape is still there
_MOST_TURNS = 5  # shown at the end
_MOST_UNROUTED = 5
_MOST_TYPED = 56  # characters of a command that stands within 80 columns, after the words that explain it
_LOOK_AT = 8  # messages of a connection that are looked at for signs of a format
_MEMO_CALLS = 200  # a memo keeps what it has seen alive: start a new one from time to time


class LiveReport:
    """Prints while the program runs, also from the recorder's threads, and once at the end."""

    def __init__(self, tape: Path, argv: Sequence[str], counted: bool = True, verbose: bool = False) -> None:
        self._tape = tape
        self._argv = argv  # empty: wiretape runs no program
        self._counted = counted  # print the table of `wiretape stats` at the end
        self._verbose = verbose  # print what is set for the program
        self._console = make_console(stderr=True)
        self._registry = default_registry()
        self._memo = Memo()
        self._lock = threading.Lock()
        self._troubles: dict[str, int] = {}
        self._fixed_width: int | None = None
        self._pace = _Pace()
        self._unsaid = 0
        self._followers: dict[int, SocketFollower] = {}  # of connections that are open
        self._missed: dict[int, int] = {}  # of others: messages that showed no format
        self._hosts: set[str] = set()  # that model calls went to
        self.on_socket_calls: Callable[[int], None] = lambda calls: (
            None
        )  # told of calls on a connection that stays open
        self.calls = 0  # model calls that were decoded here
        self._tools = 0  # calls of wrapped tools

    def exchange(self, exchange: Exchange) -> None:
        """A line for each model call of an exchange that has ended; in a flood of them, for as many as can be read."""
        follower = self._followers.pop(exchange.number, None)
        if follower is not None:
            self._lines(follower.rest(exchange))
            return
        self._missed.pop(exchange.number, None)
        if is_tool_exchange(exchange):
            self._tools += 1
            return
        if self.calls and not self._pace.allows():
            self._unsaid += 1
            return
        before = self.calls
        self._lines(decode([exchange], self._registry, self._memo))
        if self.calls // _MEMO_CALLS != before // _MEMO_CALLS:
            self._memo = Memo()

    def message(self, exchange: Exchange, message: WsMessage) -> None:
        """A line for each model call of a connection that stays open, as soon as its answer is complete."""
        follower = self._followers.get(exchange.number) or self._follow(exchange, message)
        calls = follower.feed(exchange, message) if follower is not None else []
        if not calls:
            return
        self.on_socket_calls(len(calls))
        if self.calls and not self._pace.allows():
            self._unsaid += len(calls)
            return
        self._lines(calls)

    def _follow(self, exchange: Exchange, message: WsMessage) -> SocketFollower | None:
        """What follows a connection, once one of its first messages shows a format."""
        missed = self._missed.get(exchange.number, 0)
        if missed >= _LOOK_AT:
            return None
        found = self._registry.socket_format(replace(exchange, messages=(message,)))
        if found is None:
            self._missed[exchange.number] = missed + 1
            return None
        follower = self._followers[exchange.number] = found.follow()
        return follower

    def _lines(self, calls: Sequence[ModelCall]) -> None:
        if self._unsaid:
            self.say(f"… {self._unsaid} more")
            self._unsaid = 0
        for call in calls:
            self._hosts.add(urlsplit(call.url).hostname or "")
            self._line(call)
        self.calls += len(calls)

    def trouble(self, text: str) -> None:
        """Something went wrong in recording: told at once, the same thing only once, and again at the end."""
        with self._lock:
            seen = self._troubles.get(text, 0)
            self._troubles[text] = seen + 1
        if not seen:
            self.say(f"warning: {one_line(text)}", "yellow")

    def prepared(self, program: PreparedProgram) -> None:
        """Print leaks and, if asked for, the program's settings."""
        say_env_leaks(self._argv, "unrecorded")
        if self._verbose:
            say_settings(program)

    def listening(self, port: int, variables: Mapping[str, str]) -> None:
        """Print the lines for another shell."""
        self.say(f"recording to {self._tape} on 127.0.0.1:{port} until Ctrl-C. In the shell of your agent:")
        print_exports(variables)

    def kept(self, answer: Answer, call: ModelCall) -> None:
        """Print a call that an update answered from the tape."""
        mark = f"{tier_mark(answer)}  kept"
        self.say_line(call_line(call, self.width, beside=len(mark) + len(_PREFIX)).append(mark, "dim"))

    def summary(self, result: RecordResult) -> None:
        """Print how the recording ended, and the next command."""
        summary = result.summary
        self._tape = summary.path
        others = self._harmless_statistics() if self._counted and summary.exchanges else 0
        exchanges = plural(summary.exchanges, "exchange")
        if result.kept_old:
            self.say(f"nothing was recorded: {self._tape} was not replaced, and is as it was", "bold yellow")
        elif summary.exchanges or (self._tape.exists() and not summary.incomplete):
            self.say(f"{exchanges} on {self._tape}" + (f", {others} of them no model calls" if others else ""))
        elif summary.incomplete:
            self.say(f"nothing that was recorded is on {self._tape}", "bold red")
        else:
            self.say("nothing was recorded; no tape was written")
        self.troubles_again(summary)
        if summary.incomplete and not summary.exchanges:
            return
        bypassed = sorted(summary.bypassed)
        for request in result.unrouted[:_MOST_UNROUTED]:
            self.say(f"answered 404: {request} names no host; --upstream URL says where such requests go", "yellow")
        if more := len(result.unrouted[_MOST_UNROUTED:]):
            self.say(f"answered 404, too: {plural(more, 'other path')}", "yellow")
        if self.calls == 0:
            self._no_calls(bypassed, summary.exchanges - self._tools, result.code)
            return
        if by_proxy := sorted(self._hosts & set(result.through_tls)):
            self.say(
                f"{', '.join(by_proxy)} was reached in TLS, through HTTPS_PROXY: wiretape replay opens it, too, "
                "wherever mitmproxy is installed"
            )
        self._name_written(summary.written)
        self.say(f"next: wiretape show {self._tape}", whole=True)

    def _name_written(self, names: Sequence[str]) -> None:
        """Name the credentials that were kept because the model wrote them, never their values."""
        if names:
            kept = ", ".join(
                f"{name} ({times} values)" if times > 1 else name for name, times in Counter(names).items()
            )
            self.say(
                f"kept in tool arguments, because the model wrote them: {kept}; "
                "--redact-tool-arguments replaces them, and a replay then passes placeholders to the tools"
            )

    def troubles_again(self, summary: RecorderSummary) -> None:
        """What was told while the program ran, and may have been lost among its own lines."""
        for text, count in self._troubles.items():
            self.say(f"warning: {one_line(text)}" + (f" ({count} times)" if count > 1 else ""), "yellow")
        if summary.incomplete:
            self.say(f"{self._tape} IS INCOMPLETE: see the warnings above", "bold red")
        if summary.bypassed:
            self.say(f"passed through unrecorded: {', '.join(sorted(summary.bypassed))}")

    def closing(self) -> None:
        """The table, and what to do next."""
        if self._counted:
            self.calls = max(1, self.calls)  # it is asked of the whole tape
            self._harmless_statistics()
        self.say(f"next: wiretape show {self._tape}", whole=True)

    def _harmless_statistics(self) -> int:
        """The tape is written and the program has its exit code: a table that fails must not change either."""
        try:
            return self._statistics()
        except Exception as error:
            self.say(f"no table: {type(error).__name__}: {one_line(str(error))} (the tape is written)", "yellow")
            return 0

    def _statistics(self) -> int:
        """The table that `wiretape stats` prints; how many exchanges are no model calls."""
        if not self.calls:
            return 0
        from wiretape.adapters.prices import price_list
        from wiretape.analyze.stats import stats
        from wiretape.cli.tapes import link, read
        from wiretape.views.stats.analysis import stats_view

        self._console.print()
        opened = link(str(self._tape), read(str(self._tape)))
        report = stats(opened.run, opened.tape.warnings, price_list(opened.tape.header.started))
        if len(report.turns) > _MOST_TURNS:
            self.say(f"{len(report.turns)} turns; the last {_MOST_TURNS} (all of them: wiretape stats {self._tape})")
            report = report.model_copy(update={"turns": report.turns[-_MOST_TURNS:]})
        self._console.print(stats_view(report))
        return len(opened.run.other_exchanges)

    def _no_calls(self, bypassed: Sequence[str], exchanges: int, code: int) -> None:
        lines = _clues(self._tape, bypassed, exchanges)
        if self._argv and code:
            before = "a model call was seen" if exchanges else "any call was made"
            self.say(f"{Path(self._argv[0]).name} exited with {code} before {before}{_keys(os.environ)}")
        else:
            self.say("NO MODEL CALL WAS SEEN", "bold red")
            lines += _checklist(self._argv)
        for line in lines:
            for part in _wrapped(line, self._width() - 2):
                self._console.print(f"  {part}", soft_wrap=True)

    def _line(self, call: ModelCall) -> None:
        # Calls are numbered by their start, which only a finished tape knows: until then the exchange names them.
        self.say_line(call_line(replace(call, number=0), self.width, beside=len(_PREFIX)))

    @property
    def width(self) -> int:
        return max(30, self._width())

    def say_line(self, line: Text) -> None:
        with self._lock:
            if self._console.color_system is None:  # in a pipe: no need to spend the proxy's time on rendering
                self._console.file.write(f"{_PREFIX}{line.plain}\n")
                self._console.file.flush()
            else:
                self._console.print(_PREFIX, line, sep="", soft_wrap=True)

    def _width(self) -> int:
        """Asked anew only where it can change."""
        if self._console.is_terminal:
            return self._console.width
        if self._fixed_width is None:
            self._fixed_width = self._console.width
        return self._fixed_width

    def say(self, text: str, style: str | None = None, *, whole: bool = False) -> None:
        """A sentence; a terminal gets it broken between words, unless it is `whole`: a command to copy."""
        said = f"{_PREFIX}{output().text(text)}"
        wraps = self._console.is_terminal and not whole
        with self._lock:
            for line in _wrapped(said, self._width(), "  ") if wraps else [said]:
                self._console.print(line, style=style, soft_wrap=True)


def print_recording(result: RecordResult, report: LiveReport) -> int:
    """Print how a recording ended. Return the exit code."""
    with held_signals():
        report.summary(result)
    return result.code or (EXIT_INCOMPLETE if result.summary.incomplete else _KEPT_OLD if result.kept_old else 0)


def print_update(result: UpdateResult, report: LiveReport) -> int:
    """Print how an update ended. Return the exit code."""
    with held_signals():
        report.troubles_again(result.summary)
        make_console(stderr=True).print(update_view(result.updated))
        if result.updated.written:
            report.closing()
    return result.exit_code


class _Pace:
    """Lines that a person can read: a burst, then so many a second. What is not said costs the proxy nothing."""

    def __init__(self, burst: float = 50, per_second: float = 15) -> None:
        self._burst, self._per_second = burst, per_second
        self._left, self._at = burst, time.monotonic()

    def allows(self) -> bool:
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _clues(tape: Path, bypassed: Sequence[str], exchanges: int) -> list[str]:
    """What passed by that may have been model calls."""
    lines = []
    if bypassed:
        options = " ".join(f"--host {host}" for host in bypassed)
        lines += ["Does one of the hosts above serve the model? Record it, too:", f"    wiretape record {options} …"]
    if exchanges:
        lines += ["What was recorded is in no wire format that wiretape knows; it is kept whole:"]
        lines += [f"    wiretape show {tape}"]
    return lines


def _checklist(argv: Sequence[str]) -> list[str]:
    """Why a recording may have no model call on it, the likeliest first. `argv`: of the program, if there is one."""
    lines = [] if argv else ["Were the lines above pasted into the shell that ran the agent?"]
    return [
        *lines,
        "If the program should have called a model, it did not come by. What to check:",
        "- What does wiretape know of the program?",
        f"    wiretape doctor -- {_typed(argv)}",
        "- Does it have a base URL in its code or its configuration file? Point that at the recorder:",
        "    http://127.0.0.1:PORT/HOST/PATH, with --port to choose the port",
        "- Does it ignore HTTPS_PROXY? Node's fetch reads it from Node 22.21 on (NODE_USE_ENV_PROXY=1 is set).",
        "- Is it PHP's fopen, Erlang, Elixir or Rust's ureq 2? These read no HTTPS_PROXY at all.",
        "- Is it a JVM behind a script? Start it by its own name, or set JAVA_TOOL_OPTIONS, be it to nothing.",
        "- Does it use aiohttp? That reads HTTPS_PROXY with trust_env=True only.",
        "- Is the work done by another process that was started before, or in a container?",
        "- Did sudo, env -i or ssh drop the environment on the way?",
        "- Does it go on in the background (tmux new -d, … &)? wiretape ends with the command that it runs.",
        "- Did it refuse the recorder's certificate? Then a warning above names the host.",
    ]


def _typed(argv: Sequence[str]) -> str:
    """The program as a person would type it, if that is short enough to be read."""
    shown = typed(argv) if argv else ""
    return shown if 0 < len(shown) <= _MOST_TYPED and not shown.endswith(" …") else "CMD"


def _keys(environ: Mapping[str, str]) -> str:
    """The well-known keys that are not set: SDKs do not start without theirs."""
    unset = [name for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY") if not environ.get(name)]
    if not unset:
        return ""
    return f" ({' and '.join(unset)} {'is' if len(unset) == 1 else 'are'} not set)"


def _wrapped(line: str, width: int, hanging: str = "") -> list[str]:
    """A line of prose broken between words, what goes on moved in; a command to copy stays whole."""
    if line.startswith("    "):
        return [line]
    hanging = "  " if line.startswith("- ") else hanging
    return wrap(line, max(20, width), subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
