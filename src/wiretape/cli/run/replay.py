"""`wiretape replay`: run a program against a tape, offline, and say what was played, drifted and missed."""

from __future__ import annotations

import math
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import output, say, typed
from wiretape.cli.damaged import partial_option, read_whole
from wiretape.cli.streams import ignore_stdout
from wiretape.cli.with_program import WithProgram, program_of
from wiretape.errors import MissError, UsageError

if TYPE_CHECKING:
    from wiretape.adapters.launch.tagging import CallTags
    from wiretape.adapters.mitm.tls_interception import Authority
    from wiretape.adapters.replay_runner import ReplayServer
    from wiretape.adapters.replay_server.server import Interpose
    from wiretape.matching.report import ReplayReport
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.values import LiveRequest, Outcome
    from wiretape.tape.reading.reader import Tape

_SEAL_IT = "\n  --sealed intercepts them" if sys.platform == "linux" else ""
_TAPES = (".tape", ".tape.zst")
_FLAGS = ("--repeat", "--proxy", "--no-proxy", "-v", "--verbose", "--tag", "--sealed", "--no-sealed")


class _OfTapes(WithProgram):
    """Names a `--` that was forgotten."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            return super().parse_args(ctx, args)
        given = list(args)
        try:
            left = super().parse_args(ctx, args)
        except click.NoSuchOption:  # of the program's, perhaps
            self._check_for_program(given, [word for word in given if word not in _FLAGS])
            raise
        self._check_for_program(given, [str(tape) for tape in ctx.params["tapes"]])
        return left

    @staticmethod
    def _check_for_program(given: Sequence[str], words: Sequence[str]) -> None:
        """Nobody names a tape that is none after one that is there: it is a program, and its `--` was forgotten."""
        for before, word in pairwise(words):
            if os.path.isfile(before) and not (os.path.exists(word) or word.startswith("-") or word.endswith(_TAPES)):
                at = list(given).index(word)
                meant = f"wiretape replay {typed(given[:at])} -- {typed(given[at:])}"
                raise UsageError(f"`{word}` is no tape; did you mean: {meant}")


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    tapes: tuple[Path, ...]
    pace: float = 0
    let_through: tuple[str, ...] = ()
    tier: str = "masked"
    max_age: str | None = None
    max_age_action: str | None = None
    repeat: bool = False
    faults: tuple[str, ...] = ()
    port: int = 0
    proxy: bool | None = None  # None: where it can be had
    report: Path | None = None
    verbose: bool = False
    tag: bool = False
    sealed: bool | None = None  # None: as the settings say
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()


def _age(ctx: click.Context, option: click.Parameter, given: str | None) -> str | None:
    from wiretape.matching.tape_age import parse_max_age

    try:
        if given is not None:
            parse_max_age(given)
        return given
    except ValueError as error:
        raise UsageError(f"--max-age: {error}") from None


@click.command(cls=_OfTapes)
@click.argument("tapes", nargs=-1, required=True, metavar="TAPE... [-- CMD...]", type=click.Path(path_type=Path))
@click.option("--pace", type=click.FloatRange(min=0), default=0, help="0: at once (default), 1: as recorded.")
@click.option(
    "--fault", "faults", metavar="SPEC", multiple=True, help="Inject a fault: 429@3, cut@2:event=5, slow@*:x10."
)
@click.option(
    "--pass",
    "let_through",
    metavar="GLOB",
    multiple=True,
    help="Let this host, or host:port, through (the agent's tools).",
)
@click.option(
    "--tier",
    type=click.Choice(["exact", "normalized", "masked", "position"]),
    default="masked",
    help="How alike a request must be at least (default: masked).",
)
@click.option("--max-age", metavar="AGE", callback=_age, help="Warn of a tape that is older: days, or 30d, 12h, 2w.")
@click.option("--max-age-action", type=click.Choice(["warn", "fail"]), help="What an older one does (default: warn).")
@click.option("--repeat", is_flag=True, help="Give a recorded answer again when it was played before.")
@click.option("--port", type=click.IntRange(1, 65535), help="Serve on this port (default: any free one).")
@click.option(
    "--proxy/--no-proxy",
    default=None,
    help="Open TLS to every host (needs mitmproxy), or to none (default: where a model is asked for).",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="GLOB",
    multiple=True,
    help="Also serve requests with this Host header, as behind a reverse proxy.",
)
@click.option(
    "--allow-origin",
    "allow_origins",
    metavar="GLOB",
    multiple=True,
    help="Also serve pages of this origin, such as https://app.example.",
)
@click.option(
    "--sealed/--no-sealed",
    default=None,
    help="Give CMD a network in which there is wiretape alone, or not (default: as `sealed` in the settings). Linux.",
)
@click.option("--report", type=click.Path(path_type=Path), help="Write what happened to this file, as JSON.")
@click.option("--tag", is_flag=True, help="Mark each line that CMD prints with the call answered last: [3] text.")
@click.option("-v", "--verbose", is_flag=True, help="Show what is set for CMD; strays and other answers, too.")
@partial_option
@click.pass_context
def command(ctx: click.Context, /, port: int | None, **asked: object) -> None:
    """Run CMD against recorded answers, offline.

    CMD's base-URL variables point at the replay server, its proxy variables at a port that lets no connection out:
    what obeys them reaches no model, and no host that no --pass names. A program that insists on its provider's own
    address is answered there, in TLS, if mitmproxy is installed. What matched, but not exactly, is listed as drift.
    With --sealed (Linux) a program that obeys neither is led there, too, and has no network beside.

    Exit code: CMD's own, if it is not 0; else 3 if a request had no recorded answer, or if nothing of the tape was
    played; else 0. Without CMD the server runs until Ctrl-C, and prints the lines that lead another shell to it.
    """
    options = Options(port=port or 0, **asked)  # type: ignore[arg-type]
    ctx.exit(_replay(options, program_of(ctx)))


def _replay(options: Options, argv: Sequence[str]) -> int:
    from wiretape.adapters.launch.child import find_command
    from wiretape.adapters.launch.tagging import CallTags
    from wiretape.adapters.replay_runner import ReplayServer
    from wiretape.cli.run.live_lines import LiveLines

    if argv:
        find_command(argv, os.environ)
    check(options)
    session = session_of(options, argv)
    opened, why_closed = authority_of(options.proxy)
    sealed = _is_sealed(options, argv)
    tags = CallTags() if options.tag else None
    with LiveLines(session, options.verbose) as lines:
        replaying = ReplayServer(
            session,
            port=0 if options.proxy else options.port,
            proxy_port=options.port if options.proxy else 0,
            authority=opened,
            why_closed=why_closed,
            trouble=say,
            pace=options.pace,
            let_through=options.let_through,
            on_outcome=lines.show,
            interpose=_noting(tags) if tags is not None else None,
            sealed=sealed,
            allow_hosts=options.allow_hosts,
            allow_origins=options.allow_origins,
        )
        with replaying:
            code = _run(replaying, argv, session, options, tags)
    report = session.report().model_copy(update={"straight": replaying.intercepted})
    summary(report, argv, code, sealed)
    if options.report is not None:
        _write(options.report, report)
    return code or (MissError.exit_code if report.missed or (argv and unplayed(report)) else 0)


def _is_sealed(options: Options, argv: Sequence[str]) -> bool:
    """Whether the program gets a network of its own; where there is none, that nothing is sealed is said."""
    from wiretape.adapters.settings import load_settings

    wanted = options.sealed if options.sealed is not None else load_settings(Path.cwd()).sealed
    if wanted and not argv:
        if options.sealed:
            raise UsageError("--sealed needs a program to seal: wiretape replay TAPE --sealed -- CMD")
        click.echo(
            "wiretape: `sealed` in the settings holds for programs, and here is none: nothing is sealed", err=True
        )
        return False
    return wanted


def _noting(tags: CallTags) -> Interpose:
    """Notes which call is about to be answered, before the program can print anything about it."""
    from wiretape.matching.values import Answer, Injected

    async def note(request: LiveRequest, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Answer | Injected) and outcome.reference.call is not None:
            tags.played(outcome.reference.call)
        return outcome

    return note


def authority_of(proxy: bool | None) -> tuple[Authority | None, str]:
    """What TLS is opened with; without it, what a miss says of that. An error where it was asked for by name."""
    from wiretape.adapters.mitm.tls_interception import authority

    if proxy is False:
        return None, "  or let wiretape replay open TLS: leave out --no-proxy"
    try:
        return authority(os.environ, everything=bool(proxy)), ""
    except UsageError as error:
        if proxy:
            raise
        return None, f"  or let wiretape replay open TLS (--proxy): {error}"


def check(options: Options) -> None:
    """What can be known to fail fails here, before the program runs."""
    from wiretape.adapters.routing.hosts import provider_within

    for glob in options.let_through:
        provider = provider_within(glob)
        if provider is not None:
            raise UsageError(
                f"--pass {glob} would let calls through to {provider}, which serves models: live ones, at your cost\n"
                "  --pass is for the hosts of the agent's own tools: name them more narrowly"
            )
    if math.isnan(options.pace):
        raise UsageError("--pace needs a number: 0 at once, 1 as recorded, 2 twice as slowly")
    if options.report is not None:
        _check_report(options.report)


def _check_report(path: Path) -> None:
    wrong = ""
    if path.is_dir():
        wrong = "it is a directory"
    elif not path.parent.is_dir():
        wrong = f"there is no directory {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        wrong = "no permission"
    if wrong:
        raise UsageError(f"cannot write the report to {path}: {wrong}; nothing was run")


def unplayed(report: ReplayReport) -> bool:
    """Whether a tape with something on it came to nothing at all. A fault in an answer's place is something."""
    return bool(report.left_over or report.sockets) and not (report.played or report.injected)


def _renewal(tape: Tape, argv: Sequence[str]) -> str:
    """How to record a tape anew, or to find out whether it must be."""
    program = typed(argv) if argv else "…"
    return f"  to record it anew: wiretape record -o {shlex.quote(str(tape.path))} --force -- {program}"


def session_of(options: Options, argv: Sequence[str]) -> ReplaySession:
    from wiretape.adapters.settings import load_settings
    from wiretape.compare.difference import Tier
    from wiretape.matching.faults.specs import parse_fault
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.tape_age import age_limit
    from wiretape.matching.values import ReplayOptions

    faults = tuple(parse_fault(spec) for spec in options.faults)
    settings = load_settings(Path.cwd())
    limit = age_limit(options.max_age or settings.max_age, options.max_age_action or settings.max_age_action)
    tapes = [read_whole(path) for path in options.tapes]
    for tape in tapes:
        for warning in (*tape.warnings, *limit.check([tape], datetime.now(UTC), _renewal(tape, argv))):
            click.echo(f"wiretape: {warning}", err=True)
    made = ReplayOptions(
        Tier[options.tier.upper()],
        options.repeat,
        tuple(settings.mask),
        faults,
        names=tuple(str(path) for path in options.tapes),
        program=typed(argv) if argv else "…",
        output=output(),
    )
    return ReplaySession(tapes, made)


def _run(
    replaying: ReplayServer, argv: Sequence[str], session: ReplaySession, options: Options, tags: CallTags | None
) -> int:
    """Until the program ends, or until Ctrl-C where there is none."""
    import subprocess

    from wiretape.adapters.launch.child import run_child

    start = replaying.sealed_network.start if replaying.sealed_network is not None else subprocess.Popen
    if replaying.sealed_network is not None and options.verbose:
        click.echo("wiretape: sealed: the program has no network but this replay", err=True)
    with led_here(replaying, argv, session, options.verbose, mend=_SEAL_IT) as (prepared, variables):
        if argv:
            return run_child(prepared, {**os.environ, **variables}, tag=tags, start=start)
    _print_exports(variables)
    proxy = f", as a proxy on http://127.0.0.1:{replaying.proxy_port}," if options.proxy else ""
    click.echo(f"wiretape: replaying on http://127.0.0.1:{replaying.port}{proxy} until Ctrl-C", err=True)
    _wait_for_stop()
    return 0


@contextmanager
def led_here(
    replaying: ReplayServer, argv: Sequence[str], session: ReplaySession, verbose: bool, mend: str = ""
) -> Iterator[tuple[Sequence[str], dict[str, str]]]:
    """The program as it is to be run, and the variables that lead it here. What it needs is there meanwhile.

    `mend`: what can be done about a program that is known to obey them not.
    """
    from tempfile import TemporaryDirectory

    from wiretape.adapters.launch.config_discovery import discover_config
    from wiretape.adapters.launch.preparing import prepare
    from wiretape.cli.run.settings_lines import say_env_leaks, say_settings

    if replaying.sealed_network is None:
        say_env_leaks(argv, f"at your cost{mend}")
    around = discover_config(argv, os.environ, Path.cwd())
    variables = replaying.variables(around.environ)
    with TemporaryDirectory(prefix="wiretape-") as scratch:
        prepared = prepare(
            argv,
            around,
            replaying.port,
            replaying=True,
            knows=session.knows_host,
            scratch=Path(scratch),
            led=variables,
        )
        if verbose:
            say_settings(variables, around, prepared)
        yield prepared.argv, {**variables, **prepared.variables}


def _print_exports(variables: Mapping[str, str]) -> None:
    ignore_stdout()
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    sys.stdout.flush()


def _wait_for_stop() -> None:
    stop = threading.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: stop.set())
    stop.wait()


def summary(report: ReplayReport, argv: Sequence[str], code: int, sealed: bool = False) -> None:
    from wiretape.views.replay.summary import Unreached, replay_view
    from wiretape.views.terminal import make_console

    console = make_console(stderr=True)
    console.print(replay_view(report), crop=False)
    if report.played or report.missed or report.injected:
        return
    if code:
        said = f"{Path(argv[0]).name} exited with {code} before any call reached wiretape"
        console.print(said, style="bold yellow", soft_wrap=True)
    else:
        failed = bool(argv) and unplayed(report)
        console.print(Unreached(report, typed(argv), failed, sealed), crop=False)


def _write(path: Path, report: ReplayReport) -> None:
    from wiretape.tape.atomic import PRIVATE, rewrite

    try:
        rewrite(path, [f"{report.model_dump_json(indent=2)}\n".encode()], PRIVATE)
    except OSError as error:
        raise UsageError(f"cannot write the report to {path}: {error.strerror or error}") from None
