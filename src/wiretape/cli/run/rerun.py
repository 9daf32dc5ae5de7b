"""`wiretape rerun`: play a tape's scheduler without the agent's program, against the tape or a live model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.cli.damaged import note_incomplete, partial_option
from wiretape.errors import TapeUnwritable, UsageError

if TYPE_CHECKING:
    from wiretape.adapters.rerun.live_model import Target
    from wiretape.model.call import ToolCall, ToolResult
    from wiretape.rerun.scheduler import Rerun
    from wiretape.rerun.values import CallOutcome, ToolHook


@click.command("rerun")
@click.argument("tape", metavar="TAPE")
@click.option("--model", metavar="NAME", help="Send the requests live, for this model.")
@click.option("--base-url", metavar="URL", help="Send the requests live, to this endpoint of the same wire format.")
@click.option("--live", is_flag=True, help="Send the requests live, to the recorded endpoint and model.")
@click.option("--key-env", metavar="NAME", help="The variable that holds the API key, if not the provider's usual one.")
@click.option(
    "--tools", "tool_file", metavar="FILE.py", help="Live: run this file's functions for what the tape cannot answer."
)
@click.option("-o", "--output", metavar="NEW.tape", help="Live: record what crosses the wire as a new tape.")
@click.option("--force", is_flag=True, help="Replace NEW.tape if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@partial_option
@click.pass_context
def command(
    ctx: click.Context,
    tape: str,
    model: str | None,
    base_url: str | None,
    live: bool,
    key_env: str | None,
    tool_file: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Build each request of TAPE from the call before it, without the agent's program, and compare.

    From each answer and the tools' recorded results the next request is made, as its wire format implies, and checked
    against the recorded one. What no format implies (the user's words, a reminder) is taken from the tape and said so.

    With --model, --base-url or --live the requests go to a live endpoint, and the tools are answered from the tape by
    their arguments: the table shows where the runs part.

    The exit code is 0 where all is equal, and 1 where it is not, or where the tape lacks something that it once held.
    """
    from wiretape.adapters.rerun.live_model import Target, play_tape
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.tapes import open_tape, print_json
    from wiretape.rerun.report import build_rerun_report
    from wiretape.rerun.scheduler import Rerun
    from wiretape.views.replay.rerun import RerunView
    from wiretape.views.terminal import make_console

    goes_live = live or model is not None or base_url is not None
    _check(tape, goes_live, base_url, key_env, tool_file, output, force)
    settings = load_settings(Path.cwd())
    opened = open_tape(tape)
    if not opened.run.steps:
        raise UsageError(f"{opened.name} has no model calls to run again; what it has: wiretape show {opened.name}")
    hook = tool_hook(tool_file) if goes_live else None
    rerun = Rerun(opened.tape.exchanges, live=goes_live, mask=settings.mask, tools=hook)
    target = Target(model, base_url, key_env)
    if goes_live:
        _go_live(rerun, target, opened.name, output, tuple(settings.redact))
    else:
        play_tape(rerun)
    where = _where(target) if goes_live else None
    report = build_rerun_report(
        opened.name, where, rerun.diverged, rerun.outcomes, rerun.stopped, output, opened.tape.gaps
    )
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        make_console().print(RerunView(report))
    ctx.exit(0 if report.equal and not report.gaps else 1)


def _check(
    tape: str,
    live: bool,
    base_url: str | None,
    key_env: str | None,
    tools: str | None,
    output: str | None,
    force: bool,
) -> None:
    from wiretape.adapters.routing.routes import base_url_problem, without_user

    for option, value in (("--tools", tools), ("-o", output), ("--key-env", key_env)):
        if value and not live:
            raise UsageError(f"{option} is for live reruns: give --model, --base-url or --live, too")
    if base_url is not None and (problem := base_url_problem(base_url)):
        raise UsageError(f"--base-url {without_user(base_url)} {problem}")
    if output is not None and tape != "-" and Path(output).resolve() == Path(tape).resolve():
        raise UsageError(f"-o {output} is the tape that is run again: give the new one another name")
    if output is not None and Path(output).exists() and not force:
        raise TapeUnwritable(f"{output} exists already, and nothing was sent\n  --force replaces it")


def tool_hook(path: str | None) -> ToolHook | None:
    """What the tape has goes first; the file's functions answer the rest."""
    if path is None:
        return None
    from wiretape.adapters.rerun.tool_files import ToolFile

    functions = ToolFile(path)

    def answer(call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        return found if found is not None else functions(call)

    return answer


def _go_live(rerun: Rerun, target: Target, tape: str, output: str | None, redact: tuple[str, ...]) -> None:
    """Send every request, and say so on stderr while it goes on."""
    from wiretape.adapters.output import say
    from wiretape.adapters.rerun.live_model import LiveModel, parent_of, play_live
    from wiretape.rerun.report import rerun_call
    from wiretape.views.replay.rerun import rerun_line
    from wiretape.views.terminal import make_console

    console = make_console(stderr=True)

    def show(row: CallOutcome) -> None:
        came.append(row)
        console.print(rerun_line(rerun_call(row), console.width), soft_wrap=True)

    path = Path(output) if output is not None else None
    parent = parent_of(Path(tape), path) if path is not None and tape != "-" else None
    with _replacing(path) as came, LiveModel(target, os.environ, path, parent, redact, say) as model:
        play_live(rerun, model, show)
    if path is not None and model.incomplete:
        note_incomplete(path)


@contextmanager
def _replacing(path: Path | None) -> Iterator[list[CallOutcome]]:
    """A tape takes the place of an old one, or a place of its own, only once an answer has come for it."""
    from wiretape.adapters.old_tape import OldTape

    came: list[CallOutcome] = []
    old = OldTape(path) if path is not None else None
    if path is not None:
        path.unlink(missing_ok=True)
    try:
        yield came
    finally:
        if path is not None and old is not None:
            if came:
                old.forget()
            elif not old.put_back():
                path.unlink(missing_ok=True)


def _where(target: Target) -> str:
    place = target.base_url or "the recorded endpoint"
    return f"{place}, model {target.model}" if target.model is not None else place
