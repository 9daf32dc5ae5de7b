"""Records a program: prepares it, runs it behind the recording proxy, and completes the tape."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from wiretape.adapters.launch.child import RunProgram, find_command, run_child
from wiretape.adapters.launch.config_discovery import discover_config
from wiretape.adapters.launch.preparing import PreparedProgram, prepare
from wiretape.adapters.launch.programs import tape_name
from wiretape.adapters.launch.trust import state_directory
from wiretape.adapters.old_tape import OldTape
from wiretape.adapters.routing.base_urls import without_default_routes
from wiretape.adapters.routing.routes import base_url_problem, without_user
from wiretape.adapters.settings import load_settings, redactor_of
from wiretape.app.call_tags import CallTags, TaggingRecorder
from wiretape.app.signals import held_signals, stop_signal
from wiretape.errors import TapeError, TapeUnwritable, UsageError
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder, RecorderSummary
from wiretape.tape.storage import free_name, journal_path

if TYPE_CHECKING:
    from wiretape.adapters.mitm.addon import RecorderInterface, RecordingAddon
    from wiretape.model.http import Exchange, WsMessage
    from wiretape.tape.redaction import Redactor


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """How to record. The fields are named as the options of `wiretape record`."""

    tape: Path
    hosts: tuple[str, ...] = ()
    everything: bool = False
    upstream: str | None = None
    port: int = 0
    keep_unset: bool = False
    note: str | None = None
    provenance: str | None = None
    append: bool = False
    force: bool = False
    verbose: bool = False
    update: Path | None = None
    tier: str = "masked"
    tag: bool = False
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    redact_tool_arguments: bool = False


class RecordObserver(Protocol):
    """Is notified while a recording runs, also on the recorder's and the proxy's threads."""

    def exchange(self, exchange: Exchange, /) -> None:
        """An exchange has ended."""

    def message(self, exchange: Exchange, message: WsMessage, /) -> None:
        """A message of an open WebSocket was recorded."""

    def trouble(self, text: str, /) -> None:
        """Something could not be recorded."""

    def prepared(self, program: PreparedProgram, /) -> None:
        """The program is about to start."""

    def listening(self, port: int, variables: Mapping[str, str], /) -> None:
        """The proxy waits for programs that wiretape does not start."""


@dataclass(frozen=True, slots=True)
class RecordResult:
    """How a recording ended. `code`: the program's exit code."""

    code: int
    summary: RecorderSummary
    unrouted: Sequence[str]  # requests that were answered 404, because they named no host
    through_tls: Sequence[str]  # hosts that were reached through HTTPS_PROXY
    kept_old: bool = False  # nothing was recorded, so the tape that `force` replaces is back in its place


def record(
    options: RecordOptions,
    argv: Sequence[str],
    observer: RecordObserver,
    *,
    run: RunProgram | None = None,
    addon: Callable[..., RecordingAddon] | None = None,
    tags: CallTags | None = None,
) -> RecordResult:
    """Record a program on a new tape. Without `argv`, record until SIGINT, SIGTERM or SIGHUP.

    Raises UsageError or TapeError before anything runs. A tape without exchanges is removed.
    """
    check_recording(options, argv)
    check_new_tape(options)
    continues = options.append and options.tape.exists()
    old = OldTape(options.tape) if options.force else None
    try:
        redactor = redactor_of(load_settings(Path.cwd()), tool_arguments=options.redact_tool_arguments)
        recorder = make_recorder(options, redactor, observer)
    except BaseException:
        if old is not None:
            old.forget()
        raise
    kept_old = False

    def settle(summary: RecorderSummary) -> None:
        nonlocal kept_old
        if not summary.exchanges and not summary.incomplete and not continues:
            options.tape.unlink(missing_ok=True)
        if old is not None and summary.exchanges:
            old.forget()
        elif old is not None:
            kept_old = old.put_back()

    result = run_recorder(recorder, options, argv, observer, run=run, addon=addon, tags=tags, settle=settle)
    return replace(result, kept_old=kept_old)


def run_recorder(
    recorder: Recorder,
    options: RecordOptions,
    argv: Sequence[str],
    observer: RecordObserver,
    *,
    run: RunProgram | None = None,
    addon: Callable[..., RecordingAddon] | None = None,
    tags: CallTags | None = None,
    settle: Callable[[RecorderSummary], None] = lambda summary: None,
) -> RecordResult:
    """Run a program behind the recording proxy, and close the recorder. `settle` is called even if the run fails."""
    from wiretape.app.recording_server import RecordingServer  # the optional extra: mitmproxy

    try:
        config = discover_config(argv, os.environ, Path.cwd())
        server = RecordingServer(
            recorder if tags is None else cast("RecorderInterface", TaggingRecorder(recorder, tags)),
            os.environ,
            observer.trouble,
            hosts=[*options.hosts, *load_settings(Path.cwd()).hosts, *config.hosts],
            everything=options.everything,
            upstream=options.upstream,
            port=options.port,
            verbose=options.verbose,
            keep_unset=options.keep_unset,
            allow_hosts=options.allow_hosts,
            allow_origins=options.allow_origins,
            **({} if addon is None else {"addon": addon}),
        )
        with nullcontext() if argv else stop_signal() as stop, server:
            variables = config.without_file_variables(server.variables())
            program = prepare(argv, config, server.port, variables)
            if options.keep_unset:
                program = replace(program, variables=without_default_routes(program.variables, os.environ))
            observer.prepared(program)
            code = 0
            if stop is None:
                environ = {**os.environ, **program.variables}
                code = run(program.argv, environ) if run is not None else run_child(program.argv, environ, tag=tags)
            else:
                observer.listening(server.port, program.variables)
                stop.wait()
    finally:
        with held_signals():
            summary = recorder.close()
            settle(summary)
    return RecordResult(code, summary, sorted(server.addon.unrouted), sorted(server.addon.through_tls))


def make_recorder(options: RecordOptions, redactor: Redactor, observer: RecordObserver) -> Recorder:
    return Recorder(
        options.tape,
        clock=time.monotonic,
        started=datetime.now(UTC),
        redactor=redactor,
        note=options.note,
        provenance=options.provenance,
        on_exchange=observer.exchange,
        on_trouble=observer.trouble,
        on_message=observer.message,
        append=options.append,
        replace=options.force or options.update is not None,
    )


# -- checks before anything runs ---------------------------------------------------------------------------------------


def need_mitmproxy() -> None:
    """Raise UsageError if this Python cannot record."""
    version = tuple(sys.version_info[:2])
    if version < (3, 12):
        here = ".".join(map(str, version))
        raise UsageError(
            f"recording needs Python 3.12 or later, and this is {here} (everything else works here)\n"
            "  install it for a newer Python, in wiretape's own folder: uv tool install --python 3.13 '.[proxy]'"
        )
    if importlib.util.find_spec("mitmproxy") is None:
        raise UsageError(
            "recording needs mitmproxy, which is not installed\n  in wiretape's own folder: pip install '.[proxy]'"
        )


def check_recording(options: RecordOptions, argv: Sequence[str]) -> None:
    """Raise UsageError for everything that can be known to fail."""
    need_mitmproxy()
    from wiretape.adapters.mitm.proxy import free_port  # the optional extra

    if options.upstream is not None and (problem := base_url_problem(options.upstream)):
        raise UsageError(f"--upstream {without_user(options.upstream)} {problem}")
    if options.append and options.force:
        raise UsageError("--append continues a tape and --force replaces it: use one of them")
    if argv:
        find_command(argv, os.environ)
    free_port(options.port)
    state_directory(os.environ)


def check_new_tape(options: RecordOptions) -> None:
    """Raise an error if the tape cannot be written, or would replace another one. Makes `captures/`."""
    tape = options.tape
    if tape.is_dir():
        raise TapeUnwritable(f"{tape} is a directory: name a tape in it, such as {tape / 'agent.tape'}")
    exists = any(path.exists() and path.stat().st_size for path in (tape, journal_path(tape)))
    if exists and not (options.append or options.force or _is_empty(tape)):
        raise UsageError(
            f"{tape} exists already, and nothing was recorded\n"
            "  --append continues it, --force replaces it, --update keeps its answers that still match"
        )
    if tape.parent == Path("captures"):
        tape.parent.mkdir(exist_ok=True)


def _is_empty(tape: Path) -> bool:
    """True if a tape and its journal have no exchange."""
    try:
        return not read_tape(tape).exchanges
    except TapeError:
        return False


def new_tape_path(argv: Sequence[str]) -> Path:
    """Return an unused path in captures/, named after the program."""
    return free_name(Path("captures", f"{tape_name(argv)}.tape"))
