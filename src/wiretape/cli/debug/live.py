"""`wiretape debug … -- CMD`: a program at work, played or recorded, with a person between it and its model."""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import say
from wiretape.cli.damaged import note_incomplete
from wiretape.errors import MissError
from wiretape.views.printable import one_line

if TYPE_CHECKING:
    from rich.text import Text

    from wiretape.adapters.launch.caught_program import CaughtProgram
    from wiretape.adapters.launch.config_discovery import DiscoveredConfig
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.mitm.recording import Recording
    from wiretape.debug.live.pending_calls import Mode
    from wiretape.debug.live.program import LiveProgram
    from wiretape.debug.session import Debugger
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
    """The program is played from a tape. Exit code: as `wiretape replay` has it."""
    from wiretape.adapters.launch.child import find_command
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.live.holding import ReplayHolding
    from wiretape.adapters.live.tape import LiveTape
    from wiretape.adapters.replay_runner import ReplayServer
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.debug.open_debugger import from_here
    from wiretape.cli.run import replay
    from wiretape.cli.tapes import link
    from wiretape.model.wording import plural

    find_command(asked.argv, os.environ)
    options = replay.Options((Path(tape),), tier=asked.tier, let_through=asked.let_through)
    replay.check(options)
    session = replay.session_of(options, asked.argv)
    debugger = _debugger(
        f"{Path(asked.argv[0]).name} against {from_here(tape)}", "replay", link(tape, session.tapes[0]).run
    )
    opened, why_closed = replay.authority_of(None)
    live_tape = LiveTape(Path(tape), load_settings(Path.cwd()).redact, say)
    with DecisionQueue(debugger) as queue, closing(live_tape):
        queue.live.live_tape = str(live_tape.path)
        replaying = ReplayServer(
            session,
            authority=opened,
            why_closed=why_closed,
            trouble=say,
            let_through=asked.let_through,
            interpose=ReplayHolding(queue, session, live_tape),
        )
        with replaying, replay.led_here(replaying, asked.argv, session, verbose=False) as (argv, variables):
            code = _at_work(queue, asked, argv, variables)
    report = session.report()
    replay.summary(report, asked.argv, code)
    if live_tape.kept:
        what = plural(live_tape.kept, "call was", "calls were")
        click.echo(f"wiretape: {what} asked live: wiretape show {shlex.quote(str(live_tape.path))}", err=True)
    if live_tape.incomplete:
        note_incomplete(live_tape.path)
    return code or (MissError.exit_code if report.missed or replay.unplayed(report) else 0)


def debug_recorded(asked: LiveOptions) -> int:
    """The program is recorded. Exit code: as `wiretape record` has it."""
    from functools import partial

    from wiretape.cli.run import record

    record.need_mitmproxy()
    from wiretape.adapters.live.decision_queue import DecisionQueue
    from wiretape.adapters.mitm.live.holding import HoldingAddon
    from wiretape.adapters.output import output
    from wiretape.cli.debug.open_debugger import from_here
    from wiretape.cli.run.record_report import LiveReport

    assert asked.output is not None
    options = record.Options(asked.output, hosts=asked.hosts, upstream=asked.upstream, force=asked.force)
    debugger = _debugger(f"{Path(asked.argv[0]).name} onto {from_here(str(asked.output))}", "record", None)
    addons: list[HoldingAddon] = []

    class Watched(LiveReport):
        """Tells the debugger what is on the tape; a line for each call would stand in its way."""

        def exchange(self, exchange: Exchange) -> None:
            addons[0].told(exchange)
            super().exchange(exchange)

        def say_line(self, line: Text) -> None:
            """The debugger shows the calls."""

    report = Watched(options.tape, asked.argv, counted=False)

    def run(recording: Recording, around: DiscoveredConfig) -> int:
        assert isinstance(recording.addon, HoldingAddon)
        addons.append(recording.addon)
        with recording:
            argv, variables = record.led_here(recording, asked.argv, around, options)
            return _at_work(queue, asked, argv, variables)

    with DecisionQueue(debugger) as queue:
        return record.record(options, asked.argv, report, run, partial(HoldingAddon, queue=queue, output=output()))


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


def _at_work(queue: DecisionQueue, asked: LiveOptions, argv: Sequence[str], variables: Mapping[str, str]) -> int:
    """Until the person leaves, and the program has ended. Its exit code."""
    from wiretape.adapters.launch.caught_program import CaughtProgram
    from wiretape.cli.debug.line_mode import LineConsole, converse, run_script

    live = queue.live
    program = CaughtProgram(argv, {**os.environ, **variables}, queue.add_output, lambda code: _ended(queue, live, code))
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
