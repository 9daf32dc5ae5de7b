"""`wiretape record`: run a program with the recording proxy in front of its models, and say what was recorded."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from wiretape.adapters.output import typed
from wiretape.cli.damaged import INCOMPLETE, partial_option
from wiretape.cli.run.record_tape import TapeInPlace, check_tape, new_tape
from wiretape.cli.streams import ignore_stdout
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.launch.config_discovery import DiscoveredConfig
    from wiretape.adapters.launch.tagging import CallTags
    from wiretape.adapters.mitm.addon import RecordingAddon, RecordingDoor
    from wiretape.adapters.mitm.recording import Recording
    from wiretape.cli.run.record_report import LiveReport
    from wiretape.tape.recording.recorder import Recorder
    from wiretape.tape.redaction import Redactor

NOTHING_REPLACED = 1  # --force, and nothing was recorded: the old tape is still there
_STDERR = 2
_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

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
    stats: bool = True
    verbose: bool = False
    update: Path | None = None
    tier: str = "masked"
    tag: bool = False
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    redact_tool_arguments: bool = False


class _BeforeProgram(click.Command):
    """Says when an output stands behind the program: it is the program's then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        cmd = ctx.params.get("cmd") or ()
        if cmd and ctx.params.get("tape") is None and "--" not in given[: len(given) - len(cmd)]:
            _say_misplaced(cmd)
        return rest


def _say_misplaced(cmd: Sequence[str]) -> None:
    at = next((i for i, word in enumerate(cmd) if word.partition("=")[0] in ("-o", "--output")), None)
    if at is None:
        return
    width = 1 if "=" in cmd[at] else 2
    right = typed(["wiretape", "record", *cmd[at : at + width], "--", *cmd[:at], *cmd[at + width :]])
    click.echo(
        f"wiretape: notice: {cmd[at]} stands after the command, and is {Path(cmd[0]).name}'s own; "
        f"options of wiretape go before the command:\n  {right}",
        err=True,
    )


@click.command(cls=_BeforeProgram, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    "tape",
    type=click.Path(path_type=Path),
    help="The tape to write (default: a new one in captures/, named for CMD).",
)
@click.option("--host", "hosts", metavar="GLOB", multiple=True, help="Record this host, too (api.example.com, *.corp).")
@click.option("--all", "everything", is_flag=True, help="Record every host.")
@click.option("--upstream", metavar="URL", help="Where requests to the base URL go that name no host.")
@click.option("--port", type=click.IntRange(1, 65535), help="Listen on this port (default: any free one).")
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
@click.option("--keep-unset", is_flag=True, help="Set no base-URL variable that is not set: the proxy is the only way.")
@click.option("--note", metavar="TEXT", help="A note in the tape's header.")
@click.option("--provenance", metavar="TEXT", help="Where the recorded content comes from, in the tape's header.")
@click.option("--append", is_flag=True, help="Go on with a tape that exists.")
@click.option("--force", is_flag=True, help="Replace a tape that exists.")
@click.option(
    "--update",
    metavar="TAPE",
    type=click.Path(path_type=Path),
    help="Replay what this tape still answers, ask the rest live, and replace what drifted.",
)
@click.option(
    "--tier",
    type=click.Choice(["exact", "normalized", "masked"]),
    default="masked",
    help="With --update: how alike a request must be to be answered from the tape (default: masked).",
)
@click.option("--stats/--no-stats", default=True, help="Print what `wiretape stats` says at the end (the default).")
@click.option(
    "--redact-tool-arguments",
    is_flag=True,
    help="Replace credentials in tool arguments, too: a replay passes placeholders to the tools.",
)
@click.option("--tag", is_flag=True, help="Mark each line that CMD prints with the call answered last: [3] text.")
@click.option("-v", "--verbose", is_flag=True, help="Show what is set for CMD, and what the proxy does.")
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
@partial_option
@click.pass_context
def command(ctx: click.Context, /, cmd: tuple[str, ...], tape: Path | None, port: int | None, **asked: object) -> None:
    """Run CMD and record what it sends to models.

    CMD finds the recorder through its environment: base-URL variables, proxy variables, and the certificates that
    go with them. Known model providers and this machine are recorded; other hosts pass untouched.

    Without CMD the recorder runs until Ctrl-C, and prints the lines that lead another shell to it.

    Exit code: CMD's own, if it is not 0; else 4 if the tape is incomplete (the disk was full, the tape was removed).
    """
    update: Path | None = asked["update"]  # type: ignore[assignment]
    options = Options(tape=tape or update or new_tape(cmd), port=port or 0, **asked)  # type: ignore[arg-type]
    ctx.exit(_record(options, list(cmd)) if update is None else _update(options, list(cmd)))


def _update(options: Options, argv: Sequence[str]) -> int:
    need_mitmproxy()
    check_run(options, argv)
    from wiretape.cli.run.record_update import update

    return update(options, argv)


def _record(options: Options, argv: Sequence[str]) -> int:
    report, tags = _report(options, argv), tags_of(options)
    if tags is not None:
        report.on_socket_calls = tags.answered_more

    def run(recording: Recording, around: DiscoveredConfig) -> int:
        return run_recorded(recording, argv, report, around, options, tags=tags)

    return record(options, argv, report, run, tags=tags)


def tags_of(options: Options) -> CallTags | None:
    from wiretape.adapters.launch.tagging import CallTags

    return CallTags() if options.tag else None


def tagging(recorder: RecordingDoor, tags: CallTags | None) -> RecordingDoor:
    """The recorder, with what notes the calls in front of it where their numbers are wanted."""
    from wiretape.adapters.launch.tagging import TaggingDoor

    return recorder if tags is None else cast("RecordingDoor", TaggingDoor(recorder, tags))


def _report(options: Options, argv: Sequence[str]) -> LiveReport:
    from wiretape.cli.run.record_report import LiveReport

    return LiveReport(options.tape, argv, counted=options.stats)


def record(
    options: Options,
    argv: Sequence[str],
    report: LiveReport,
    run: Callable[[Recording, DiscoveredConfig], int],
    addon: Callable[..., RecordingAddon] | None = None,
    tags: CallTags | None = None,
) -> int:
    """Make a tape of what `run` does, which gives the program's exit code."""
    need_mitmproxy()
    check_run(options, argv)
    check_tape(options)
    from wiretape.adapters.launch.config_discovery import discover_config
    from wiretape.adapters.settings import load_settings, redactor_of

    around = discover_config(argv, os.environ, Path.cwd())
    settings = load_settings(Path.cwd())
    tape = TapeInPlace(options)
    redactor = redactor_of(settings, tool_arguments=options.redact_tool_arguments)
    recorder = tape.begin(lambda: recorder_of(options, redactor, report))
    try:
        hosts = [*options.hosts, *settings.hosts, *around.hosts]
        recording = recording_of(options, tagging(recorder, tags), report, hosts, addon)
        code = run(recording, around)
    finally:
        with held_signals():
            summary = recorder.close()
            tape.settle(summary)
    with held_signals():
        report.summary(summary, recording.addon.unrouted, recording.addon.through_tls, code, kept=tape.put_back)
    return code or (INCOMPLETE if summary.incomplete else NOTHING_REPLACED if tape.put_back else 0)


def recording_of(
    options: Options,
    recorder: RecordingDoor,
    report: LiveReport,
    hosts: Sequence[str],
    addon: Callable[..., RecordingAddon] | None,
) -> Recording:
    """The proxy that hands what it sees to the recorder; it does not listen yet."""
    from wiretape.adapters.mitm.recording import Recording

    return Recording(
        recorder,
        os.environ,
        report.trouble,
        hosts=hosts,
        everything=options.everything,
        upstream=options.upstream,
        port=options.port,
        verbose=options.verbose,
        keep_unset=options.keep_unset,
        allow_hosts=options.allow_hosts,
        allow_origins=options.allow_origins,
        **({} if addon is None else {"addon": addon}),
    )


def run_recorded(
    recording: Recording,
    argv: Sequence[str],
    report: LiveReport,
    around: DiscoveredConfig,
    options: Options,
    *,
    apart: bool = False,
    tags: CallTags | None = None,
) -> int:
    """Until the program ends, or until Ctrl-C where there is none. `apart`: what it prints goes to stderr."""
    from wiretape.adapters.launch.child import run_child

    with nullcontext() if argv else _stop_signal() as stop, recording:
        prepared, variables = led_here(recording, argv, around, options)
        if stop is None:
            return run_child(prepared, {**os.environ, **variables}, _STDERR if apart else None, tags)
        report.listening(recording.port)
        _print_exports(variables)
        stop.wait()
    return 0


def led_here(
    recording: Recording, argv: Sequence[str], around: DiscoveredConfig, options: Options
) -> tuple[Sequence[str], dict[str, str]]:
    """The program as it is to be run, and the variables that lead it to the recorder, which listens by now."""
    from wiretape.adapters.launch.preparing import prepare
    from wiretape.adapters.routing.unset_routes import only_set
    from wiretape.cli.run.settings_lines import say_env_leaks, say_settings

    say_env_leaks(argv, "unrecorded")
    variables = around.without_those_of_files(recording.variables())
    prepared = prepare(argv, around, recording.port, led=variables)
    if options.verbose:
        say_settings(variables, around, prepared)
    variables |= only_set(prepared.variables, os.environ) if options.keep_unset else prepared.variables
    return prepared.argv, variables


def need_mitmproxy() -> None:
    version = tuple(sys.version_info[:2])
    if version < (3, 12):
        here = ".".join(map(str, version))
        raise UsageError(
            f"recording needs Python 3.12 or later, and this is {here} (everything else works here)\n"
            "  install it for a newer Python, in wiretape's own folder: uv tool install --python 3.13 '.[proxy]'"
        )
    from importlib.util import find_spec

    if find_spec("mitmproxy") is None:
        raise UsageError(
            "recording needs mitmproxy, which is not installed\n  in wiretape's own folder: pip install '.[proxy]'"
        )


def check_run(options: Options, argv: Sequence[str]) -> None:
    """Everything that can be known to fail fails here, before a tape is touched."""
    from wiretape.adapters.launch.child import find_command
    from wiretape.adapters.launch.trust import state_directory
    from wiretape.adapters.mitm.proxy import free_port
    from wiretape.adapters.routing.routes import base_url_problem, without_user

    if options.upstream is not None and (problem := base_url_problem(options.upstream)):
        raise UsageError(f"--upstream {without_user(options.upstream)} {problem}")
    if options.append and options.force:
        raise UsageError("--append goes on with a tape and --force replaces it: give one of them")
    if argv:
        find_command(argv, os.environ)
    free_port(options.port)
    state_directory(os.environ)


def recorder_of(options: Options, redactor: Redactor, report: LiveReport) -> Recorder:
    from wiretape.tape.recording.recorder import Recorder

    return Recorder(
        options.tape,
        clock=time.monotonic,
        started=datetime.now(UTC),
        redactor=redactor,
        note=options.note,
        provenance=options.provenance,
        on_exchange=report.exchange,
        on_trouble=report.trouble,
        on_message=report.message,
        append=options.append,
        replace=options.force or options.update is not None,
    )


def _print_exports(variables: Mapping[str, str]) -> None:
    ignore_stdout()
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    sys.stdout.flush()


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """An event that the first SIGINT, SIGTERM or SIGHUP sets."""
    stop = threading.Event()
    with _handling(lambda number, frame: stop.set()):
        yield stop


@contextmanager
def held_signals() -> Iterator[None]:
    """While the tape is finished no signal cuts in: it takes a moment only."""
    with _handling(lambda number, frame: None):
        yield


@contextmanager
def _handling(handler: object) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    previous = {number: signal.signal(number, handler) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
