"""`wiretape debug … -- CMD`: debug a running program, replayed or recorded."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from wiretape.adapters.output import say
from wiretape.cli.programs import say_env_leaks
from wiretape.cli.tapes import note_incomplete
from wiretape.views.printable import one_line

if TYPE_CHECKING:
    from rich.text import Text

    from wiretape.adapters.launch.caught_program import CaughtProgram
    from wiretape.adapters.launch.preparing import PreparedProgram
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.replay_runner import ReplayServer
    from wiretape.debug.live.pending_calls import Mode
    from wiretape.debug.live.program import LiveProgram
    from wiretape.debug.session import Debugger
    from wiretape.matching.values import Outcome
    from wiretape.model.http import Exchange
    from wiretape.model.run import Run


_POLL_S = 0.5  # seconds between two checks for held calls


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of `wiretape debug` with a program. Commands come from `script`, else `screen`, else a prompt."""

    argv: tuple[str, ...]
    script: str | None
    screen: Callable[[Debugger, DecisionQueue | None], None] | None
    output: Path | None
    force: bool
    hosts: tuple[str, ...]
    upstream: str | None
    tier: str
    let_through: tuple[str, ...]


def debug_replayed(tape: str, live_options: LiveOptions) -> int:
    """Debug a program that is replayed from a tape. The exit code is as in `wiretape replay`."""
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.live.holding import ReplayHolding
    from wiretape.adapters.live.model_calls import LiveTape
    from wiretape.adapters.settings import load_settings
    from wiretape.app.replay import ReplayRunOptions, open_session, replay
    from wiretape.cli.debug.open_debugger import from_here
    from wiretape.cli.replay_report import print_summary
    from wiretape.cli.tapes import link
    from wiretape.model.wording import plural

    options = ReplayRunOptions(
        (Path(tape),), tier=live_options.tier, let_through=live_options.let_through, sealed=False
    )
    session = open_session(options, live_options.argv)
    debugger = _debugger(
        f"{Path(live_options.argv[0]).name} against {from_here(tape)}", "replay", link(tape, session.tapes[0]).run
    )
    live_tape = LiveTape(Path(tape), load_settings(Path.cwd()), say)
    with DecisionQueue(debugger) as queue, closing(live_tape):
        queue.live.live_tape = str(live_tape.path)
        result = replay(
            options,
            session,
            live_options.argv,
            _Quiet(live_options.argv),
            interpose=ReplayHolding(queue, session, live_tape),
            run=lambda argv, environ: _run_program(queue, live_options, argv, environ),
        )
    print_summary(result, live_options.argv)
    if live_tape.kept:
        what = plural(live_tape.kept, "call was", "calls were")
        say(f"{what} sent live: wiretape show {shlex.quote(str(live_tape.path))}")
    if live_tape.incomplete:
        note_incomplete(live_tape.path)
    return result.exit_code


class _Quiet:
    """Prints leaks only: the debugger shows the calls."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv

    def outcome(self, outcome: Outcome) -> None:
        """Print nothing."""

    def prepared(self, program: PreparedProgram, sealed: bool) -> None:
        say_env_leaks(self._argv, "at your cost")

    def listening(self, server: ReplayServer, variables: Mapping[str, str]) -> None:
        """Is never called: the debugger has a program."""


def debug_recorded(live_options: LiveOptions) -> int:
    """Debug a program that is recorded. The exit code is as in `wiretape record`."""
    from wiretape.app.record import RecordOptions, need_mitmproxy, record

    need_mitmproxy()
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.mitm.live.holding import HoldingAddon
    from wiretape.adapters.output import output
    from wiretape.cli.debug.open_debugger import from_here
    from wiretape.cli.record_report import LiveReport, print_recording

    assert live_options.output is not None
    options = RecordOptions(
        live_options.output, hosts=live_options.hosts, upstream=live_options.upstream, force=live_options.force
    )
    debugger = _debugger(
        f"{Path(live_options.argv[0]).name} onto {from_here(str(live_options.output))}", "record", None
    )
    addons: list[HoldingAddon] = []

    class Watched(LiveReport):
        """Notifies the debugger of recorded exchanges, and prints no line for each call."""

        def exchange(self, exchange: Exchange) -> None:
            addons[0].recorded(exchange)
            super().exchange(exchange)

        def say_line(self, line: Text) -> None:
            """Print nothing: the debugger shows the calls."""

    def make_addon(*values: Any, **named: Any) -> HoldingAddon:
        addons.append(HoldingAddon(*values, queue=queue, output=output(), **named))
        return addons[0]

    report = Watched(options.tape, live_options.argv, counted=False)
    with DecisionQueue(debugger) as queue:
        result = record(
            options,
            live_options.argv,
            report,
            run=lambda argv, environ: _run_program(queue, live_options, argv, environ),
            addon=make_addon,
        )
        return print_recording(result, report)


def _debugger(name: str, mode: Mode, expected: Run | None) -> Debugger:
    """A debugger for a program that has not started yet."""
    from wiretape.adapters.live.edit_operations import EditOperations
    from wiretape.cli.debug.open_debugger import live_annotations
    from wiretape.debug.live.program import LiveProgram
    from wiretape.debug.session import Debugger
    from wiretape.runs.run import build_run

    debugger = Debugger(build_run([]))
    live = LiveProgram(debugger, mode, time.monotonic, EditOperations(recording=mode == "record"), expected=expected)
    debugger.live = live
    debugger.annotate(live_annotations(name, debugger, live))
    return debugger


def _run_program(
    queue: DecisionQueue, live_options: LiveOptions, argv: Sequence[str], environ: Mapping[str, str]
) -> int:
    """Run the program until the user quits and it ends. Returns its exit code."""
    from wiretape.adapters.launch.caught_program import CaughtProgram
    from wiretape.cli.debug.line_mode import LineConsole, converse, run_script

    live = queue.live
    program = CaughtProgram(argv, environ, queue.add_output, lambda code: _ended(queue, live, code))
    live.start, live.stop = program.start, program.stop
    with _stopped_by_signals(program), _warnings_printed(queue, live_options):
        try:
            left = True
            if live_options.script is not None:
                left = run_script(queue.debugger, live_options.script, queue)
            elif live_options.screen is not None:
                live_options.screen(queue.debugger, queue)
            else:
                converse(queue.debugger, queue)
            if left:
                _stop_program(queue, program)
            else:
                queue.release_all()
        except BaseException:
            _stop_program(queue, program)
            raise
        console = LineConsole(queue.debugger, queue)
        code = queue.wait_for_end(console.show_output) if live.running or live.exit_code is not None else 0
        program.join()
        console.show_output()
        return code


def _ended(queue: DecisionQueue, live: LiveProgram, code: int) -> None:
    queue.run_now(lambda: live.ended(code))


def _stop_program(queue: DecisionQueue, program: CaughtProgram) -> None:
    """Stop the program, and release its held calls."""
    program.stop()
    if queue.live.running:
        queue.release_all()


@contextmanager
def _warnings_printed(queue: DecisionQueue, live_options: LiveOptions) -> Iterator[None]:
    """At a prompt, print a line when a call is held, and warn before its client times out."""
    if live_options.script is None and live_options.screen is not None:  # the screen polls itself
        yield
        return
    over, reported = threading.Event(), set[tuple[int, str]]()

    def report_held() -> None:
        while not over.wait(_POLL_S):
            with queue.lock:
                lines = queue.live.warnings()
                for one in queue.live.pending:
                    key = (one.exchange.number, one.stop.phase)
                    if key not in reported and not queue.waiting and live_options.script is None:
                        lines.append(f"call {one.number} ({one.agent}) is held now")
                    reported.add(key)
            for line in lines:
                say(one_line(line))

    reporter = threading.Thread(target=report_held, name="wiretape-warnings", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


@contextmanager
def _stopped_by_signals(program: CaughtProgram) -> Iterator[None]:
    """Stop the program if a signal ends the debugger."""

    def end(number: int, frame: FrameType | None) -> None:
        program.stop()
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
