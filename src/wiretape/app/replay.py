"""Replays tapes to a program: checks the options, runs it against the replay server, and reports."""

from __future__ import annotations

import math
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from wiretape.adapters.launch.child import RunProgram, find_command, run_child
from wiretape.adapters.launch.config_discovery import discover_config
from wiretape.adapters.launch.preparing import PreparedProgram, prepare
from wiretape.adapters.mitm.tls_interception import Authority, authority
from wiretape.adapters.output import output, say, typed
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.adapters.replay_server.server import Interpose
from wiretape.adapters.routing.hosts import provider_within
from wiretape.adapters.settings import load_settings
from wiretape.app.call_tags import CallTags
from wiretape.app.signals import stop_signal
from wiretape.compare.difference import Tier
from wiretape.errors import MissError, UsageError
from wiretape.matching.faults.specs import parse_fault
from wiretape.matching.report import ReplayReport
from wiretape.matching.session import ReplaySession
from wiretape.matching.tape_age import age_limit
from wiretape.matching.values import Answer, Injected, LiveRequest, Outcome, ReplayOptions
from wiretape.tape.atomic import PRIVATE, rewrite
from wiretape.tape.reading.reader import Tape, read_tape


@dataclass(frozen=True, slots=True)
class ReplayRunOptions:
    """How to replay. The fields are named as the options of `wiretape replay`."""

    tapes: tuple[Path, ...]
    pace: float = 0
    let_through: tuple[str, ...] = ()
    tier: str = "masked"
    max_age: str | None = None
    max_age_action: str | None = None
    repeat: bool = False
    faults: tuple[str, ...] = ()
    port: int = 0
    proxy: bool | None = None  # None: TLS is intercepted where mitmproxy is installed
    report: Path | None = None
    verbose: bool = False
    tag: bool = False
    sealed: bool | None = None  # None: as the settings say
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    partial: bool = False  # accept damaged tapes


class ReplayObserver(Protocol):
    """Is notified while a replay runs."""

    @property
    def outcome(self) -> Callable[[Outcome], None]:
        """Called for each answer and miss, on the server's thread."""

    def prepared(self, program: PreparedProgram, sealed: bool, /) -> None:
        """The program is about to start."""

    def listening(self, server: ReplayServer, variables: Mapping[str, str], /) -> None:
        """The server waits for programs that wiretape does not start."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How a replay ended. `code`: the program's exit code."""

    report: ReplayReport
    code: int
    exit_code: int
    sealed: bool


def replay(
    options: ReplayRunOptions,
    session: ReplaySession,
    argv: Sequence[str],
    observer: ReplayObserver,
    *,
    interpose: Interpose | None = None,
    run: RunProgram | None = None,
) -> ReplayResult:
    """Replay to a program. Without `argv`, serve until SIGINT, SIGTERM or SIGHUP. See `open_session`."""
    opened, why_closed = tls_authority(options.proxy)
    sealed = is_sealed(options, argv)
    tags = CallTags() if options.tag else None
    server = ReplayServer(
        session,
        ReplayServerOptions(
            port=0 if options.proxy else options.port,
            proxy_port=options.port if options.proxy else 0,
            authority=opened,
            why_closed=why_closed,
            trouble=say,
            pace=options.pace,
            let_through=options.let_through,
            on_outcome=observer.outcome,
            interpose=_noting(tags) if tags is not None else interpose,
            sealed=sealed,
            allow_hosts=options.allow_hosts,
            allow_origins=options.allow_origins,
        ),
    )
    with server, prepared_program(server, argv, session) as program:
        observer.prepared(program, sealed)
        environ = {**os.environ, **program.variables}
        if run is not None:
            code = run(program.argv, environ)
        elif argv:
            start = server.sealed_network.start if server.sealed_network is not None else subprocess.Popen
            code = run_child(program.argv, environ, tag=tags, start=start)
        else:
            with stop_signal() as stop:
                observer.listening(server, program.variables)
                stop.wait()
            code = 0
    report = session.report().model_copy(update={"straight": server.intercepted})
    return ReplayResult(report, code, code or exit_code_of(report, argv), sealed)


def open_session(options: ReplayRunOptions, argv: Sequence[str]) -> ReplaySession:
    """Check the options, and read the tapes. Warnings go to stderr. Raises UsageError or TapeError."""
    if argv:
        find_command(argv, os.environ)
    _check(options)
    faults = tuple(parse_fault(spec) for spec in options.faults)
    settings = load_settings(Path.cwd())
    limit = age_limit(options.max_age or settings.max_age, options.max_age_action or settings.max_age_action)
    tapes = [read_tape(path, options.partial) for path in options.tapes]
    for tape in tapes:
        for warning in (*tape.warnings, *limit.check([tape], datetime.now(UTC), _how_to_renew(tape, argv))):
            say(warning)
    match = ReplayOptions(
        Tier[options.tier.upper()],
        options.repeat,
        tuple(settings.mask),
        faults,
        names=tuple(str(path) for path in options.tapes),
        program=typed(argv) if argv else "…",
        output=output(),
    )
    return ReplaySession(tapes, match)


def _check(options: ReplayRunOptions) -> None:
    for glob in options.let_through:
        provider = provider_within(glob)
        if provider is not None:
            raise UsageError(
                f"--pass {glob} would allow live calls to {provider}, a model provider, at your cost\n"
                "  --pass is for the hosts of the agent's own tools: use a narrower pattern"
            )
    if math.isnan(options.pace):
        raise UsageError("--pace needs a number: 0 at once, 1 as recorded, 2 twice as slowly")
    if options.report is not None:
        _check_report(options.report)


def _check_report(path: Path) -> None:
    problem = ""
    if path.is_dir():
        problem = "it is a directory"
    elif not path.parent.is_dir():
        problem = f"the directory {path.parent} does not exist"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "permission denied"
    if problem:
        raise UsageError(f"cannot write the report to {path}: {problem}; nothing was run")


def _how_to_renew(tape: Tape, argv: Sequence[str]) -> str:
    program = typed(argv) if argv else "…"
    return f"  to record it again: wiretape record -o {shlex.quote(str(tape.path))} --force -- {program}"


def is_sealed(options: ReplayRunOptions, argv: Sequence[str]) -> bool:
    """True if the program gets its own sealed network: the option, else the setting."""
    sealed = options.sealed if options.sealed is not None else load_settings(Path.cwd()).sealed
    if sealed and not argv:
        if options.sealed:
            raise UsageError("--sealed needs a program to seal: wiretape replay TAPE --sealed -- CMD")
        say("`sealed` in the settings applies to programs; without CMD nothing is sealed")
        return False
    return sealed


def tls_authority(proxy: bool | None) -> tuple[Authority | None, str]:
    """Return what TLS is intercepted with, or None and what a miss says about it. `proxy=True` makes it an error."""
    if proxy is False:
        return None, "  or let wiretape replay intercept TLS: omit --no-proxy"
    try:
        return authority(os.environ, everything=bool(proxy)), ""
    except UsageError as error:
        if proxy:
            raise
        return None, f"  or let wiretape replay intercept TLS (--proxy): {error}"


@contextmanager
def prepared_program(server: ReplayServer, argv: Sequence[str], session: ReplaySession) -> Iterator[PreparedProgram]:
    """Prepare a program for a running server. Copies of its configuration exist until the block ends."""
    config = discover_config(argv, os.environ, Path.cwd())
    with TemporaryDirectory(prefix="wiretape-") as scratch:
        yield prepare(
            argv,
            config,
            server.port,
            server.variables(config.environ),
            replaying=True,
            knows=session.knows_host,
            scratch=Path(scratch),
        )


def _noting(tags: CallTags) -> Interpose:
    """Note the number of a call before its answer is sent, so that output after it gets the right tag."""

    async def note(request: LiveRequest, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Answer | Injected) and outcome.reference.call is not None:
            tags.played(outcome.reference.call)
        return outcome

    return note


def exit_code_of(report: ReplayReport, argv: Sequence[str]) -> int:
    """Return 3 if a request was missed, or if a program played nothing."""
    return MissError.exit_code if report.missed or (argv and nothing_played(report)) else 0


def nothing_played(report: ReplayReport) -> bool:
    """True if the tape has exchanges but none was played. An injected fault counts as played."""
    return bool(report.left_over or report.sockets) and not (report.played or report.injected)


def write_report(path: Path, report: ReplayReport) -> None:
    try:
        rewrite(path, [f"{report.model_dump_json(indent=2)}\n".encode()], PRIVATE)
    except OSError as error:
        raise UsageError(f"cannot write the report to {path}: {error.strerror or error}") from None
