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
_MOST_TYPED = 56  # characters of a command that fits into 80 columns after `wiretape doctor -- `
_LOOK_AT = 8  # first messages of a WebSocket that may show its wire format
_MEMO_CALLS = 200  # a memo keeps decoded values alive, so it is replaced after this many calls


class LiveReport:
    """Prints while the program runs, also from the recorder's threads, and once at the end."""

    def __init__(self, tape: Path, argv: Sequence[str], counted: bool = True, verbose: bool = False) -> None:
        self._tape = tape
        self._argv = argv  # empty: wiretape runs no program
        self._counted = counted  # print the table of `wiretape stats` at the end
        self._verbose = verbose  # print the settings of the program
        self._console = make_console(stderr=True)
        self._registry = default_registry()
        self._memo = Memo()
        self._lock = threading.Lock()
        self._troubles: dict[str, int] = {}
        self._fixed_width: int | None = None
        self._pace = _Pace()
        self._skipped = 0
        self._followers: dict[int, SocketFollower] = {}  # of open WebSockets with a known format
        self._missed: dict[int, int] = {}  # of other open WebSockets: messages without a known format
        self._hosts: set[str] = set()  # hosts of model calls
        self.on_socket_calls: Callable[[int], None] = lambda calls: None  # called for calls on an open WebSocket
        self.calls = 0  # model calls that were decoded here
        self._tools = 0  # calls of wrapped tools

    def exchange(self, exchange: Exchange) -> None:
        """Print a line for each model call of an exchange that has ended. Under load, some are only counted."""
        follower = self._followers.pop(exchange.number, None)
        if follower is not None:
            self._lines(follower.rest(exchange))
            return
        self._missed.pop(exchange.number, None)
        if is_tool_exchange(exchange):
            self._tools += 1
            return
        if self.calls and not self._pace.allows():
            self._skipped += 1
            return
        before = self.calls
        self._lines(decode([exchange], self._registry, self._memo))
        if self.calls // _MEMO_CALLS != before // _MEMO_CALLS:
            self._memo = Memo()

    def message(self, exchange: Exchange, message: WsMessage) -> None:
        """Print a line for each model call of an open WebSocket, as soon as its answer is complete."""
        follower = self._followers.get(exchange.number) or self._follow(exchange, message)
        calls = follower.feed(exchange, message) if follower is not None else []
        if not calls:
            return
        self.on_socket_calls(len(calls))
        if self.calls and not self._pace.allows():
            self._skipped += len(calls)
            return
        self._lines(calls)

    def _follow(self, exchange: Exchange, message: WsMessage) -> SocketFollower | None:
        """Return the follower of a WebSocket, once one of its first messages shows a wire format."""
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
        if self._skipped:
            self.say(f"… {self._skipped} more")
            self._skipped = 0
        for call in calls:
            self._hosts.add(urlsplit(call.url).hostname or "")
            self._line(call)
        self.calls += len(calls)

    def trouble(self, text: str) -> None:
        """Print a problem at once, the same one only once; the summary repeats it."""
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
        others = self._guarded_statistics() if self._counted and summary.exchanges else 0
        exchanges = plural(summary.exchanges, "exchange")
        if result.kept_old:
            self.say(f"nothing was recorded: {self._tape} was not replaced, and is unchanged", "bold yellow")
        elif summary.exchanges or (self._tape.exists() and not summary.incomplete):
            self.say(f"{exchanges} on {self._tape}" + (f", {others} of them not model calls" if others else ""))
        elif summary.incomplete:
            self.say(f"no recorded exchange is on {self._tape}", "bold red")
        else:
            self.say("nothing was recorded; no tape was written")
        self.troubles_again(summary)
        if summary.incomplete and not summary.exchanges:
            return
        bypassed = sorted(summary.bypassed)
        for request in result.unrouted[:_MOST_UNROUTED]:
            self.say(f"answered 404: {request} names no host; --upstream URL gives such requests one", "yellow")
        if more := len(result.unrouted[_MOST_UNROUTED:]):
            self.say(f"answered 404, too: {plural(more, 'other path')}", "yellow")
        if self.calls == 0:
            self._no_calls(bypassed, summary.exchanges - self._tools, result.code)
            return
        if by_proxy := sorted(self._hosts & set(result.through_tls)):
            self.say(
                f"{', '.join(by_proxy)} was reached in TLS, through HTTPS_PROXY: wiretape replay "
                "intercepts it, too, if mitmproxy is installed"
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
        """Repeat the problems that may have been lost among the lines of the program."""
        for text, count in self._troubles.items():
            self.say(f"warning: {one_line(text)}" + (f" ({count} times)" if count > 1 else ""), "yellow")
        if summary.incomplete:
            self.say(f"{self._tape} IS INCOMPLETE: see the warnings above", "bold red")
        if summary.bypassed:
            self.say(f"passed through unrecorded: {', '.join(sorted(summary.bypassed))}")

    def closing(self) -> None:
        """Print the table, and the next command."""
        if self._counted:
            self.calls = max(1, self.calls)  # the table is about the whole tape
            self._guarded_statistics()
        self.say(f"next: wiretape show {self._tape}", whole=True)

    def _guarded_statistics(self) -> int:
        """Print the table. An error in it changes neither the tape nor the exit code."""
        try:
            return self._statistics()
        except Exception as error:
            self.say(f"no table: {type(error).__name__}: {one_line(str(error))} (the tape is written)", "yellow")
            return 0

    def _statistics(self) -> int:
        """Print the table of `wiretape stats`. Return the number of exchanges that are not model calls."""
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
        # Call numbers follow the order of starts, which is final only at the end: the line shows the exchange instead.
        self.say_line(call_line(replace(call, number=0), self.width, beside=len(_PREFIX)))

    @property
    def width(self) -> int:
        return max(30, self._width())

    def say_line(self, line: Text) -> None:
        with self._lock:
            if self._console.color_system is None:  # a pipe needs no rendering, which would delay the proxy
                self._console.file.write(f"{_PREFIX}{line.plain}\n")
                self._console.file.flush()
            else:
                self._console.print(_PREFIX, line, sep="", soft_wrap=True)

    def _width(self) -> int:
        """Return the width, which can change only at a terminal."""
        if self._console.is_terminal:
            return self._console.width
        if self._fixed_width is None:
            self._fixed_width = self._console.width
        return self._fixed_width

    def say(self, text: str, style: str | None = None, *, whole: bool = False) -> None:
        """Print a sentence. At a terminal it is wrapped, unless it is `whole`: a command to copy."""
        line_text = f"{_PREFIX}{output().text(text)}"
        wraps = self._console.is_terminal and not whole
        with self._lock:
            for line in _wrapped(line_text, self._width(), "  ") if wraps else [line_text]:
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
    """Limits the lines to a burst, then a rate that a person can read. Skipped lines cost the proxy no time."""

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
    """Return hints about traffic that may contain model calls."""
    lines = []
    if bypassed:
        options = " ".join(f"--host {host}" for host in bypassed)
        lines += ["Does one of the hosts above serve the model? Record it, too:", f"    wiretape record {options} …"]
    if exchanges:
        lines += ["The recorded exchanges are in no known wire format; they are on the tape unchanged:"]
        lines += [f"    wiretape show {tape}"]
    return lines


def _checklist(argv: Sequence[str]) -> list[str]:
    """Return the reasons why a recording may have no model call, the most likely first."""
    lines = [] if argv else ["Were the lines above pasted into the shell that ran the agent?"]
    return [
        *lines,
        "If the program did call a model, its call did not reach wiretape. What to check:",
        "- What does wiretape know about the program?",
        f"    wiretape doctor -- {_typed(argv)}",
        "- Does it have a base URL in its code or its configuration file? Point that at the recorder:",
        "    http://127.0.0.1:PORT/HOST/PATH, with --port to choose the port",
        "- Does it ignore HTTPS_PROXY? Node's fetch reads it from Node 22.21 on (NODE_USE_ENV_PROXY=1 is set).",
        "- Is it PHP's fopen, Erlang, Elixir or Rust's ureq 2? These ignore HTTPS_PROXY.",
        "- Is it a JVM behind a script? Start it directly, or set JAVA_TOOL_OPTIONS (an empty value is enough).",
        "- Does it use aiohttp? That reads HTTPS_PROXY only with trust_env=True.",
        "- Does another process make the calls, which was started before, or in a container?",
        "- Did sudo, env -i or ssh drop the environment?",
        "- Does it continue in the background (tmux new -d, … &)? wiretape ends with the command that it runs.",
        "- Did it reject the recorder's certificate? Then a warning above names the host.",
    ]


def _typed(argv: Sequence[str]) -> str:
    """Return the program's command line if it is short, else CMD."""
    shown = typed(argv) if argv else ""
    return shown if 0 < len(shown) <= _MOST_TYPED and not shown.endswith(" …") else "CMD"


def _keys(environ: Mapping[str, str]) -> str:
    """Name the well-known keys that are not set: SDKs do not start without one."""
    unset = [name for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY") if not environ.get(name)]
    if not unset:
        return ""
    return f" ({' and '.join(unset)} {'is' if len(unset) == 1 else 'are'} not set)"


def _wrapped(line: str, width: int, hanging: str = "") -> list[str]:
    """Wrap a line between words, with a hanging indent. A command to copy stays whole."""
    if line.startswith("    "):
        return [line]
    hanging = "  " if line.startswith("- ") else hanging
    return wrap(line, max(20, width), subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
