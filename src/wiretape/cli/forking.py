"""Makes forks for the command `fork` and for the debugger's command of that name: options, progress, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wiretape.cli.programs import WithProgram, program_of
from wiretape.cli.shared_options import force_option, json_option, live_model_options
from wiretape.cli.tapes import note_incomplete, partial_option, partial_wanted
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.app.fork import ForkOptions, ForkResult
    from wiretape.cli.tapes import OpenedTape
    from wiretape.model.call import ToolCall, ToolResult
    from wiretape.rerun.fork.fork import Fork
    from wiretape.rerun.values import CallOutcome, ToolHook

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False)
_CHANGES = ("answer", "body", "say", "result", "tool", "prompt", "values", "edit")
_OPTIONS = (
    click.option(
        "-o",
        "--output",
        metavar="NEW.tape",
        type=click.Path(path_type=Path),
        help="Write the fork to this file (default: beside TAPE, named after the call).",
    ),
    force_option(),
    click.option("--say", metavar="TEXT", help="Replace the text of the answer."),
    click.option("--answer", metavar="FILE", type=_FILE, help="Replace the answer: JSON, as --edit answer shows it."),
    click.option("--body", metavar="FILE", type=_FILE, help="Replace the body of the answer."),
    click.option("--result", metavar="TEXT", help="Replace the result of a tool call in the answer."),
    click.option("--tool", metavar="NAME", help="Choose the tool call of --result, by name or position (1, 2, …)."),
    click.option("--prompt", metavar="TEXT", help="Replace the last user message in the request."),
    click.option(
        "--set", "values", metavar="PATH=VALUE", multiple=True, help="Set a value in the request: temperature=0.2."
    ),
    click.option(
        "--edit",
        type=click.Choice(["answer", "body", "request"]),
        help="Edit the answer, its body, or the request in $EDITOR.",
    ),
    live_model_options,
    json_option,
    partial_option,
)


class ForkCommand(WithProgram):
    """A command that may have a program behind `--`."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD...]"]


def fork_options(command: F) -> F:
    """Add all options of a fork."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def fork_from_words(opened: OpenedTape, call: int, words: Sequence[str]) -> str:
    """Make a fork from the words behind `wiretape fork TAPE CALL`. Return its path. Raises WiretapeError."""
    parser = click.command("fork", cls=ForkCommand)(fork_options(lambda **given: None))
    try:
        ctx = parser.make_context("fork", list(words))
    except click.exceptions.Exit:
        raise UsageError("fork: see above") from None
    except click.ClickException as error:
        raise UsageError(f"fork: {error.format_message()}") from None
    path, _ = make_fork(opened, call, program_of(ctx), **ctx.params)
    return str(path)


def make_fork(opened: OpenedTape, call: int, argv: Sequence[str], *, as_json: bool, **given: Any) -> tuple[Path, int]:
    """Make a fork, and print how it went. Return its path and the exit code."""
    from wiretape.app.fork import ForkOptions, fork_path
    from wiretape.app.fork_changes import ChangeOptions

    change = ChangeOptions(**{name: given.pop(name) for name in _CHANGES})
    options = ForkOptions(change, **given)
    out = fork_path(opened, call, options)
    if argv:
        return out, _fork_with_program(opened, call, options, out, argv)
    return out, _fork_live(opened, call, options, out, as_json)


def _fork_live(opened: OpenedTape, call: int, options: ForkOptions, out: Path, as_json: bool) -> int:
    from wiretape.app.fork import fork_live
    from wiretape.rerun.report import rerun_call
    from wiretape.views.replay.fork import fork_line
    from wiretape.views.terminal import make_console

    console = make_console(stderr=True)

    def start(what: str, fork: Fork) -> None:
        text = f"fork of {opened.name} at call {call}: {what}; from call {fork.first_live} on it is LIVE"
        console.print(text, soft_wrap=True)

    def show(row: CallOutcome) -> None:
        console.print(fork_line(rerun_call(row), console.width), soft_wrap=True)

    made = fork_live(opened, call, options, out, on_start=start, on_outcome=show, with_person=_with_person)
    if not made.complete:
        note_incomplete(out)
    return _print_result(opened.name, made, as_json)


def _with_person(hook: ToolHook | None) -> ToolHook | None:
    """At a terminal, ask the person for tool results that nothing else provides."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return hook

    def answer(call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        from wiretape.model.call import ToolResult
        from wiretape.views.printable import one_line

        given = hook(call, found) if hook is not None else found
        if given is not None:
            return given
        shown = f"{one_line(call.name)}({one_line(call.arguments)})"
        text = click.prompt(
            f"{shown}\n  result (an empty one ends the run here)", default="", show_default=False, err=True
        )
        return ToolResult(call.id, call.name, text, kind=call.kind) if text else None

    return answer


def _print_result(tape: str, made: ForkResult, as_json: bool) -> int:
    """Print the live calls. The exit code is 1 if the run could not continue to its end."""
    from wiretape.cli.tapes import print_json
    from wiretape.rerun.report import build_rerun_report
    from wiretape.views.replay.fork import fork_view
    from wiretape.views.terminal import make_console

    fork, rerun = made.fork, made.fork.rerun
    live = [row for row in rerun.outcomes if row.number is None or row.number >= fork.first_live]
    report = build_rerun_report(tape, made.target, rerun.diverged, live, rerun.stopped, str(made.path))
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        make_console().print(fork_view(report, fork.kept, fork.edited is not None))
    return 1 if rerun.stopped else 0


def _fork_with_program(opened: OpenedTape, call: int, options: ForkOptions, out: Path, argv: Sequence[str]) -> int:
    from wiretape.app.fork import fork_with_program
    from wiretape.cli.record_report import LiveReport, print_update

    report = LiveReport(out, argv, counted=False)
    made = fork_with_program(opened, call, options, out, argv, report, report.kept, partial_wanted())
    return print_update(made, report)
