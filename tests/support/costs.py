"""What each command does to a large tape, as a callable, and the measurement of its cost."""

from __future__ import annotations

import contextlib
import cProfile
import gc
import io
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from wiretape.cli.main import main
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import LiveRequest
from wiretape.model.http import Headers, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.views.replay.summary import replay_view
from wiretape.views.terminal import make_console

Run: TypeAlias = Callable[[Path], object]
"""A code path: it gets the tape and may write files in its directory."""

# Arguments of each command; TAPE, DIR (its directory), OUT (a file to write) and OTHER (the tape it differs from).
COMMANDS: dict[str, tuple[str, ...]] = {
    "ls": ("DIR", "DIR --json"),
    "show": ("TAPE", "TAPE 1", "TAPE 1 --full", "TAPE 2 --full", "TAPE --json", "TAPE 1 --json", "TAPE x1 --raw"),
    "stats": ("TAPE", "TAPE --json", "TAPE TAPE"),
    "cache": ("TAPE", "TAPE --json", "TAPE --call 2"),
    "tools": ("TAPE", "TAPE --json"),
    "lint": ("TAPE", "TAPE --json"),
    "check": ("TAPE --max-calls 1 --no-lint-errors --junit OUT", "TAPE --baseline TAPE"),
    "diff": ("TAPE TAPE", "TAPE OTHER --all", "TAPE OTHER --json"),
    "verify": ("TAPE --against TAPE", "TAPE --against OTHER --verbose"),
    "rerun": ("TAPE", "TAPE --json"),
    "cut": ("TAPE --from 0s -o OUT --force",),
    "merge": ("TAPE OTHER -o OUT --force",),
    "redact": ("TAPE -o OUT --force",),
    "export": ("TAPE -o OUT --force",),
}
# Commands that have no path here.
EXEMPT = {
    "record": "reads traffic; the recorder has separate tests",
    "fork": "asks a live model",
    "demo": "records its own small program",
    "doctor": "looks at the machine",
    "schema": "reads no tape",
}
# Lines of the debugger that succeed on every tape; the last line of a batch may fail.
DEBUGGER = (
    "step; next; stepi; continue; goto end; reverse-step; reverse-next; reverse-stepi; reverse-continue; run; when",
    "goto 1; backtrace; frame 0; break input > 1000000; tbreak 1; watch usage.input; continue; disable; enable; delete",
    "goto 1; show; print request; print answer; print $..*; context; list; cache; print usage; note here",
    "goto 2; diff",
    "search nowhere",
    "goto end; reverse-search nowhere",
    "info; info agents; info findings; info tools; info tape; info turns; goto 1; info frame; reverse-finish",
    "checkpoint; goto end; restart 1; help; history; step; finish",
)


def arguments(command: str, template: str, tape: Path) -> list[str]:
    words = {
        "TAPE": str(tape),
        "DIR": str(tape.parent),
        "OUT": str(tape.with_name(f"{command}.out.tape")),
        "OTHER": str(tape.with_name(f"other-{tape.name}")),
    }
    return [command, *(words.get(word, word) for word in template.split())]


def _command(command: str, template: str) -> Run:
    return lambda tape: run_wiretape(arguments(command, template, tape))


def _debugger(lines: str) -> Run:
    return lambda tape: run_wiretape(["debug", str(tape), "--batch", lines])


def run_wiretape(argv: list[str]) -> None:
    """Run a command in this process, its output discarded. An internal error is an error of the test."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
    assert code != 70, f"wiretape {' '.join(argv)}: {err.getvalue()[-500:]}"


def imported(tape: Path) -> None:
    """Export the tape as HAR and make a tape of that."""
    archive, out = tape.with_name("large.har"), tape.with_name("imported.tape")
    run_wiretape(["export", str(tape), "-o", str(archive), "--force"])
    run_wiretape(["import", str(archive), "-o", str(out), "--force"])


def merged_by_git(tape: Path) -> None:
    """Merge a branch on which all answers have changed."""
    ours = tape.with_name("ours.tape")
    ours.write_bytes(tape.read_bytes())
    run_wiretape(["merge-driver", str(tape), str(ours), str(tape.with_name(f"other-{tape.name}")), tape.name])


def replayed(tape: Path) -> None:
    """Send every request of the tape to a replay session of it, and print the summary."""
    _replay(tape, lambda request: request)


def replayed_changed(tape: Path) -> None:
    """The same, each request changed so that it differs from all that were recorded."""
    _replay(tape, _changed)


def _changed(request: LiveRequest) -> LiveRequest:
    if not request.body:
        return replace(request, url=f"{request.url}&other=1")
    return replace(request, body=request.body.replace(b'"content":"', b'"content":"other '))


def _replay(tape: Path, change: Callable[[LiveRequest], LiveRequest]) -> None:
    read = read_tape(tape)
    session = ReplaySession([read])
    for exchange in read.exchanges:
        sent = exchange.request
        request = LiveRequest(sent.method, sent.url, Headers(sent.headers.pairs()), body_bytes(sent.body))
        session.answer(change(request))
    make_console(file=io.StringIO()).print(replay_view(session.report()), crop=False)


PATHS: dict[str, Run] = {
    **{f"{name} {template}": _command(name, template) for name, some in COMMANDS.items() for template in some},
    **{f"debug {lines}": _debugger(lines) for lines in DEBUGGER},
    "import": imported,
    "merge-driver": merged_by_git,
    "replay": replayed,
    "replay changed": replayed_changed,
}


# Shapes whose requests resend all that came before, so that what crosses the wire is proportional to n²; and the
# commands that read or write each request as it crossed the wire.
RESENDING = frozenset({"growing_calls", "turns", "reporting_subagents"})
WHOLE_REQUESTS = ("cut", "merge", "redact", "export", "import", "verify", "replay")


def growth_of_input(shape: str, path: str, factor: int) -> int:
    """How much more there is to read for `path` if n is multiplied by `factor`."""
    return factor**2 if shape in RESENDING and path.startswith(WHOLE_REQUESTS) else factor


# -- measuring ---------------------------------------------------------------------------------------------------------


def seconds(run: Callable[[], object]) -> float:
    """The CPU time of this thread, garbage collection left out."""
    gc.collect()
    gc.disable()
    try:
        started = time.thread_time()
        run()
        return time.thread_time() - started
    finally:
        gc.enable()


def calls(run: Callable[[], object]) -> int:
    """How many calls of functions, Python's and C's, something takes: the same on a busy machine."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        run()
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())
