"""`wiretape debug … -- CMD`: a program at work, played or recorded, with a person between it and its model."""

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


_LOOK_S = 0.5  # between two looks at who waits


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """What was asked for. `script`: the commands, if they are given; else `screen`, or a prompt where there is none."""

    argv: tuple[str, ...]
    script: str | None
    screen: Callable[[Debugger, DecisionQueue | None], None] | None
    output: Path | None
    force: bool
    hosts: tuple[str, ...]
    upstream: str | None
    tier: str
    let_through: tuple[str, ...]


def debug_replayed(tape: str, asked: LiveOptions) -> int:
    """Debug a program that is replayed from a tape. The exit code is as in `wiretape replay`."""
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.live.holding import ReplayHolding
    from wiretape.adapters.live.tape import LiveTape
    from wiretape.adapters.settings import load_settings
    from wiretape.app.replay import ReplayRunOptions, open_session, replay
    from wiretape.cli.debug.open_debugger import from_here
    from wiretape.cli.replay_report import print_summary
    from wiretape.cli.tapes import link
    from wiretape.model.wording import plural

    options = ReplayRunOptions((Path(tape),), tier=asked.tier, let_through=asked.let_through, sealed=False)
    session = open_session(options, asked.argv)
    debugger = _debugger(
        f"{Path(asked.argv[0]).name} against {from_here(tape)}", "replay", link(tape, session.tapes[0]).run
    )
    live_tape = LiveTape(Path(tape), load_settings(Path.cwd()), say)
    with DecisionQueue(debugger) as queue, closing(live_tape):
        queue.live.live_tape = str(live_tape.path)
        result = replay(
            options,
            session,
            asked.argv,
            _Quiet(asked.argv),
            interpose=ReplayHolding(queue, session, live_tape),
            run=lambda argv, environ: _at_work(queue, asked, argv, environ),
        )
    print_summary(result, asked.argv)
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


def debug_recorded(asked: LiveOptions) -> int:
    """Debug a program that is recorded. The exit code is as in `wiretape record`."""
    from wiretape.app.record import RecordOptions, need_mitmproxy, record

    need_mitmproxy()
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.mitm.live.holding import HoldingAddon
    from wiretape.adapters.output import output
    from wiretape.cli.debug.open_debugger import from_here
    from wiretape.cli.record_report import LiveReport, print_recording

    assert asked.output is not None
    options = RecordOptions(asked.output, hosts=asked.hosts, upstream=asked.upstream, force=asked.force)
    debugger = _debugger(f"{Path(asked.argv[0]).name} onto {from_here(str(asked.output))}", "record", None)
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

    report = Watched(options.tape, asked.argv, counted=False)
    with DecisionQueue(debugger) as queue:
        result = record(
            options,
            asked.argv,
            report,
            run=lambda argv, environ: _at_work(queue, asked, argv, environ),
            addon=make_addon,
        )
        return print_recording(result, report)


def _debugger(name: str, mode: Mode, expected: Run | None) -> Debugger:
    """A debugger on a run that has not begun."""
    from wiretape.adapters.live.edit_operations import EditOperations
    from wiretape.cli.debug.open_debugger import live_annotations
    from wiretape.debug.live.program import LiveProgram
    from wiretape.debug.session import Debugger
    from wiretape.runs.run import build_run

    debugger = Debugger(build_run([]))
    live = LiveProgram(debugger, mode, time.monotonic, EditOperations(recording=mode == "record"), expected=expected)
    debugger.live = live
    debugger.know(live_annotations(name, debugger, live))
    return debugger


def _at_work(queue: DecisionQueue, asked: LiveOptions, argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Until the person leaves, and the program has ended. Its exit code."""
    from wiretape.adapters.launch.caught_program import CaughtProgram
    from wiretape.cli.debug.line_mode import LineConsole, converse, run_script

    live = queue.live
    program = CaughtProgram(argv, environ, queue.add_output, lambda code: _ended(queue, live, code))
    live.start, live.stop = program.start, program.stop
    with _ended_with_us(program), _telling(queue, asked):
        try:
            left = True
            if asked.script is not None:
                left = run_script(queue.debugger, asked.script, queue)
            elif asked.screen is not None:
                asked.screen(queue.debugger, queue)
            else:
                converse(queue.debugger, queue)
            if left:
                _leave(queue, program)
            else:
                queue.release_all()
        except BaseException:
            _leave(queue, program)
            raise
        front = LineConsole(queue.debugger, queue)
        code = queue.wait_for_end(front.show_output) if live.running or live.exit_code is not None else 0
        program.join()
        front.show_output()
        return code


def _ended(queue: DecisionQueue, live: LiveProgram, code: int) -> None:
    queue.run_now(lambda: live.ended(code))


def _leave(queue: DecisionQueue, program: CaughtProgram) -> None:
    """A program does not outlive its debugger."""
    program.stop()
    if queue.live.running:
        queue.release_all()


@contextmanager
def _telling(queue: DecisionQueue, asked: LiveOptions) -> Iterator[None]:
    """At a prompt a person is told of what has come to wait meanwhile, and of clients that will not wait for ever."""
    if asked.script is None and asked.screen is not None:  # a screen looks by itself
        yield
        return
    over, told = threading.Event(), set[tuple[int, str]]()

    def tell() -> None:
        while not over.wait(_LOOK_S):
            with queue.lock:
                lines = queue.live.warnings()
                for one in queue.live.pending:
                    key = (one.exchange.number, one.stop.phase)
                    if key not in told and not queue.waiting and asked.script is None:
                        lines.append(f"call {one.number} ({one.agent}) is held now")
                    told.add(key)
            for line in lines:
                say(one_line(line))

    teller = threading.Thread(target=tell, name="wiretape-teller", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@contextmanager
def _ended_with_us(program: CaughtProgram) -> Iterator[None]:
    """What ends the debugger ends the program."""

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
