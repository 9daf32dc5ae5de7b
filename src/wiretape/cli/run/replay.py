"""`wiretape replay`: run a program against tapes, offline, and report what matched, drifted and was missed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiretape.adapters.output import say, typed
from wiretape.cli.programs import WithProgram, print_exports, program_of, say_env_leaks, say_settings
from wiretape.cli.shared_options import (
    admission_options,
    pass_option,
    port_option,
    tag_option,
    tier_option,
    verbose_option,
)
from wiretape.cli.tapes import partial_option, partial_wanted
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.adapters.launch.preparing import PreparedProgram
    from wiretape.adapters.replay_runner import ReplayServer
    from wiretape.cli.replay_report import LiveLines

_USE_SEALED = "\n  --sealed intercepts them" if sys.platform == "linux" else ""
_TAPES = (".tape", ".tape.zst")
_FLAGS = ("--repeat", "--proxy", "--no-proxy", "-v", "--verbose", "--tag", "--sealed", "--no-sealed")


class _TapesAndProgram(WithProgram):
    """Suggests a forgotten `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            return super().parse_args(ctx, args)
        given = list(args)
        try:
            left = super().parse_args(ctx, args)
        except click.NoSuchOption:  # perhaps an option of the program
            self._check_for_program(given, [word for word in given if word not in _FLAGS])
            raise
        self._check_for_program(given, [str(tape) for tape in ctx.params["tapes"]])
        return left

    @staticmethod
    def _check_for_program(given: Sequence[str], words: Sequence[str]) -> None:
        """Raise UsageError if an argument after an existing tape is not a file: it is probably the program."""
        for before, word in pairwise(words):
            if os.path.isfile(before) and not (os.path.exists(word) or word.startswith("-") or word.endswith(_TAPES)):
                at = list(given).index(word)
                meant = f"wiretape replay {typed(given[:at])} -- {typed(given[at:])}"
                raise UsageError(f"`{word}` is not a tape; did you mean: {meant}")


def _check_age(ctx: click.Context, option: click.Parameter, given: str | None) -> str | None:
    from wiretape.matching.tape_age import parse_max_age

    try:
        if given is not None:
            parse_max_age(given)
        return given
    except ValueError as error:
        raise UsageError(f"--max-age: {error}") from None


@click.command(cls=_TapesAndProgram)
@click.argument("tapes", nargs=-1, required=True, metavar="TAPE... [-- CMD...]", type=click.Path(path_type=Path))
@click.option(
    "--pace",
    type=click.FloatRange(min=0),
    default=0,
    help="Multiply the recorded times: 0 at once (default), 1 as recorded.",
)
@click.option(
    "--fault", "faults", metavar="SPEC", multiple=True, help="Inject a fault: 429@3, cut@2:event=5, slow@*:x10."
)
@pass_option()
@tier_option(position=True)
@click.option(
    "--max-age", metavar="AGE", callback=_check_age, help="Warn about tapes older than this: days, or 30d, 12h, 2w."
)
@click.option(
    "--max-age-action", type=click.Choice(["warn", "fail"]), help="Warn about an old tape (default), or fail."
)
@click.option("--repeat", is_flag=True, help="Answer again from an exchange that was played before.")
@port_option
@click.option(
    "--proxy/--no-proxy",
    default=None,
    help="Intercept TLS to every host (needs mitmproxy), or to none (default: to model hosts).",
)
@admission_options
@click.option(
    "--sealed/--no-sealed",
    default=None,
    help="Give CMD a network with wiretape as its only exit (Linux; default: the setting `sealed`).",
)
@click.option("--report", metavar="FILE", type=click.Path(path_type=Path), help="Write a report to this file, as JSON.")
@tag_option
@verbose_option
@partial_option
@click.pass_context
def command(ctx: click.Context, /, port: int | None, **given: Any) -> None:
    """Run CMD against recorded answers, offline.

    CMD's base URLs point at the replay server, and its proxy variables at a port that blocks all hosts except those of
    --pass. If mitmproxy is installed, requests to a provider's own address are intercepted in TLS. Requests that match
    a recorded one only in part are listed as drift. With --sealed (Linux), programs that ignore these variables are
    intercepted as well, and all other network access is blocked.

    Exit code: CMD's own, if it is not 0; else 3 if a request had no recorded answer, or if nothing of the tape was
    played; else 0. Without CMD the server runs until Ctrl-C, and prints the variables for another shell.
    """
    from wiretape.app.replay import ReplayRunOptions, open_session, replay, write_report
    from wiretape.cli.replay_report import LiveLines, print_summary

    argv = program_of(ctx)
    options = ReplayRunOptions(port=port or 0, partial=partial_wanted(), **given)
    session = open_session(options, argv)
    with LiveLines(session, options.verbose) as lines:
        result = replay(options, session, argv, _Progress(argv, lines, options.verbose, bool(options.proxy)))
    print_summary(result, argv)
    if options.report is not None:
        write_report(options.report, result.report)
    ctx.exit(result.exit_code)


class _Progress:
    """Prints a replay while it runs."""

    def __init__(self, argv: Sequence[str], lines: LiveLines, verbose: bool, proxy: bool) -> None:
        self._argv = argv
        self.outcome = lines.show
        self._verbose = verbose
        self._proxy = proxy

    def prepared(self, program: PreparedProgram, sealed: bool) -> None:
        if sealed and self._verbose:
            say("sealed: the program can reach only this replay")
        if not sealed:
            say_env_leaks(self._argv, f"at your cost{_USE_SEALED}")
        if self._verbose:
            say_settings(program)

    def listening(self, server: ReplayServer, variables: Mapping[str, str]) -> None:
        print_exports(variables)
        proxy = f", as a proxy on http://127.0.0.1:{server.proxy_port}," if self._proxy else ""
        say(f"replaying on http://127.0.0.1:{server.port}{proxy} until Ctrl-C")
