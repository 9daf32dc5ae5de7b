"""`wiretape fork`: change one thing in a recorded run, and go on from there live, on a tape of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiretape.adapters.output import say, typed
from wiretape.cli.damaged import note_incomplete, partial_option
from wiretape.cli.run.fork_changes import Wish, change_of
from wiretape.cli.with_program import WithProgram, program_of
from wiretape.errors import TapeUnwritable, UsageError

if TYPE_CHECKING:
    from wiretape.cli.tapes import Opened
    from wiretape.model.call import ToolCall, ToolResult
    from wiretape.rerun.fork.fork import Fork
    from wiretape.rerun.values import ToolHook


class _MayHaveProgram(WithProgram):
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD...]"]


@dataclass(frozen=True, slots=True)
class Onto:
    """Where the run goes on: the endpoint, and what answers its tools."""

    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    tools: str | None = None


@click.command("fork", cls=_MayHaveProgram)
@click.argument("tape", metavar="TAPE")
@click.argument("call", type=click.IntRange(min=1), metavar="CALL")
@click.option("-o", "--output", metavar="NEW.tape", help="The fork (default: beside TAPE, named for the call).")
@click.option("--force", is_flag=True, help="Replace NEW.tape if it exists.")
@click.option("--say", metavar="TEXT", help="The call's answer says this.")
@click.option(
    "--answer", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="The answer, as --edit has it."
)
@click.option("--body", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="The answer's whole body.")
@click.option("--result", metavar="TEXT", help="A tool that the call asks for gives this.")
@click.option("--tool", metavar="NAME", help="Which tool --result is of, by its name or place (1, 2, …).")
@click.option("--prompt", metavar="TEXT", help="The user's last words in the request are these.")
@click.option("--set", "values", metavar="PATH=VALUE", multiple=True, help="A value in the request: temperature=0.2.")
@click.option(
    "--edit",
    type=click.Choice(["answer", "body", "request"]),
    help="Open what the answer says, its body, or the request in $EDITOR.",
)
@click.option("--model", metavar="NAME", help="Ask this model from there on.")
@click.option("--base-url", metavar="URL", help="Ask this endpoint of the same wire format.")
@click.option("--key-env", metavar="NAME", help="The variable that holds the API key, if not the provider's usual one.")
@click.option(
    "--tools", "tool_file", metavar="FILE.py", help="Run this file's functions for what the tape cannot answer."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@partial_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    tape: str,
    call: int,
    output: str | None,
    force: bool,
    model: str | None,
    base_url: str | None,
    key_env: str | None,
    tool_file: str | None,
    as_json: bool,
    **wish: Any,
) -> None:
    """Go back to a CALL of TAPE, change one thing, and go on from there LIVE, as a new tape.

    What came before is shared; TAPE itself is never changed. --say, --answer and --edit answer change what the model
    said, --body and --edit body its answer as it crossed the wire, --result what a tool gave, --prompt, --set and
    --edit request what was asked. Without any of them the call is asked again. Tools are answered from the tape by
    their arguments.

    With CMD behind `--` the program itself goes on: its calls up to the changed answer are played from the tape, the
    rest is asked live, by way of the recorder. Exit code: CMD's own; else 1 where nobody could say what a tool gives.
    """
    from wiretape.cli.tapes import open_tape

    onto, argv = Onto(model, base_url, key_env, tool_file), program_of(ctx)
    _, code = make(open_tape(tape), call, Wish(**wish), onto, output, force, argv, as_json)
    ctx.exit(code)


def make(
    opened: Opened,
    call: int,
    wish: Wish,
    onto: Onto,
    output: str | None = None,
    force: bool = False,
    argv: Sequence[str] = (),
    as_json: bool = False,
) -> tuple[Path, int]:
    """Make a fork and tell how it went. Where it is, and the program's exit code."""
    out = place_for(opened, call, output, force)
    if argv:
        return out, _with_program(opened, call, wish, onto, out, argv)
    return out, _tell(go_on(opened, call, wish, onto, out), as_json)


def make_as_typed(opened: Opened, call: int, words: Sequence[str]) -> str:
    """A fork as the words behind `wiretape fork TAPE CALL` want it; where it is. Raises WiretapeError."""
    try:
        ctx = command.make_context("fork", [opened.name, str(call), *words])
    except click.exceptions.Exit:
        raise UsageError("fork: see above") from None
    except click.ClickException as error:
        raise UsageError(f"fork: {error.format_message()}") from None
    given = dict(ctx.params)
    onto = Onto(given.pop("model"), given.pop("base_url"), given.pop("key_env"), given.pop("tool_file"))
    output, force, as_json = given.pop("output"), given.pop("force"), given.pop("as_json")
    del given["tape"], given["call"]
    path, _ = make(opened, call, Wish(**given), onto, output, force, program_of(ctx), as_json)
    return str(path)


def place_for(opened: Opened, call: int, output: str | None, force: bool) -> Path:
    """Where the fork is written. Fails before anything is sent."""
    from wiretape.adapters.rerun.fork_tape import free_name

    if output is None:
        if opened.tape.path is None or opened.name == "-":
            raise UsageError("a tape from standard input has no place of its own: say where its fork goes, with -o")
        return free_name(Path(opened.name), f"fork-{call}")
    out = Path(output)
    if out.exists() and (same := opened.tape.path) is not None and same.exists() and out.samefile(same):
        raise TapeUnwritable(f"{out} is the tape itself: a fork needs a name of its own")
    if out.exists() and not force:
        raise TapeUnwritable(f"{out} exists already, and nothing was sent\n  --force replaces it")
    return out


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork that was made: where, and how it went."""

    tape: str
    path: Path
    what: str
    fork: Fork
    where: str


def go_on(opened: Opened, call: int, wish: Wish, onto: Onto, out: Path) -> Forked:
    """Make a fork with the rerun's scheduler, and say on stderr how it goes. Raises WiretapeError."""
    from wiretape.adapters.rerun.fork_tape import run_fork
    from wiretape.adapters.rerun.live_model import Target
    from wiretape.adapters.routing.routes import base_url_problem, without_user
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.run.rerun import tool_hook
    from wiretape.rerun.fork.fork import Fork
    from wiretape.rerun.report import rerun_call
    from wiretape.views.replay.fork import fork_line
    from wiretape.views.terminal import make_console

    if onto.base_url is not None and (problem := base_url_problem(onto.base_url)):
        raise UsageError(f"--base-url {without_user(onto.base_url)} {problem}")
    settings = load_settings(Path.cwd())
    change, what = change_of(opened, call, wish)
    fork = Fork(opened.tape.exchanges, change, tools=_asking(tool_hook(onto.tools)), mask=settings.mask)
    console = make_console(stderr=True)
    console.print(
        f"fork of {opened.name} at call {call}: {what}; from call {fork.first_live} on it is LIVE", soft_wrap=True
    )
    note = f"fork of {Path(opened.name).name} at call {call}: {what}"
    complete = run_fork(
        opened.tape,
        fork,
        Target(onto.model, onto.base_url, onto.key_env),
        out,
        note,
        redact=settings.redact,
        on_outcome=lambda row: console.print(fork_line(rerun_call(row), console.width), soft_wrap=True),
        on_trouble=say,
    )
    if not complete:
        note_incomplete(out)
    where = onto.base_url or "the recorded endpoint"
    return Forked(opened.name, out, what, fork, f"{where}, model {onto.model}" if onto.model else where)


def _asking(known: ToolHook | None) -> ToolHook | None:
    """At a terminal a person is asked for what nobody else can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return known

    def answer(call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        from wiretape.model.call import ToolResult
        from wiretape.views.printable import one_line

        given = known(call, found) if known is not None else found
        if given is not None:
            return given
        asked = f"{one_line(call.name)}({one_line(call.arguments)})"
        text = click.prompt(f"{asked}\n  gives (nothing ends the run here)", default="", show_default=False, err=True)
        return ToolResult(call.id, call.name, text, kind=call.kind) if text else None

    return answer


def _tell(forked: Forked, as_json: bool) -> int:
    """What became of it; the exit code is 1 where the run could not go on to its end."""
    from wiretape.cli.tapes import print_json
    from wiretape.rerun.report import build_rerun_report
    from wiretape.views.replay.fork import fork_view
    from wiretape.views.terminal import make_console

    rerun = forked.fork.rerun
    live = [row for row in rerun.outcomes if row.number is None or row.number >= forked.fork.first_live]
    report = build_rerun_report(forked.tape, forked.where, rerun.diverged, live, rerun.stopped, str(forked.path))
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        make_console().print(fork_view(report, forked.fork.kept, forked.fork.edited is not None))
    return 1 if rerun.stopped else 0


# -- with the agent's own program ------------------------------------------------------------------------------------


def _with_program(opened: Opened, call: int, wish: Wish, onto: Onto, out: Path, argv: Sequence[str]) -> int:
    """Play the program up to the fork, and record it from there on."""
    from wiretape.adapters.launch.child import find_command
    from wiretape.adapters.rerun.fork_tape import write_fork
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.run.record import Options, need_mitmproxy
    from wiretape.cli.run.record_update import update
    from wiretape.rerun.fork.fork import EditedAnswer, Fork, Unchanged

    if onto != Onto():
        raise UsageError(
            "--model, --base-url, --key-env and --tools are the program's own affair: leave them out with CMD"
        )
    find_command(argv, os.environ)
    change, what = change_of(opened, call, wish)
    if not isinstance(change, EditedAnswer | Unchanged):
        raise UsageError(
            "with a program only an answer can be another (--say, --answer, --body, --edit answer): "
            "its requests and its tools' results are its own"
        )
    need_mitmproxy()
    fork = Fork(opened.tape.exchanges, change)
    if fork.splits_socket:
        raise UsageError(
            f"call {call} is on a WebSocket: {argv[0]} would open it anew, and a tape cannot play a part of one; "
            "leave out CMD, and wiretape goes on over HTTP"
        )
    if not fork.entries:
        raise UsageError(f"a fork at call {call} shares nothing with its tape: wiretape record -- {typed(argv)}")
    note = f"fork of {Path(opened.name).name} at call {call}: {what}"
    write_fork(opened.tape, fork, out, note, load_settings(Path.cwd()).redact)
    options = Options(
        tape=out,
        hosts=(),
        everything=False,
        upstream=None,
        port=0,
        keep_unset=False,
        note=None,
        provenance=None,
        append=False,
        force=True,
        stats=False,
        verbose=False,
        update=out,
    )
    return update(options, argv)
