"""`wiretape fork`: change one thing in a recorded run, and go on from there live, on a tape of its own."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wiretape.adapters.editor import in_editor
from wiretape.errors import TapeUnwritable, UsageError

if TYPE_CHECKING:
    from wiretape.cli.tapes import Opened
    from wiretape.model.call import ModelCall, ToolCall, ToolResult
    from wiretape.replay.forking import Change, Fork
    from wiretape.replay.rerun_values import ToolHook

_CMD = "wiretape.cmd"


class _WithProgram(click.Command):
    """Keeps apart what stands behind `--`: the program, whose options are its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_CMD] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD...]"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be changed, as it was asked for: one of these at most."""

    answer: str | None = None  # the JSON of what the answer says
    say: str | None = None
    result: str | None = None
    tool: str | None = None
    prompt: str | None = None
    values: tuple[str, ...] = ()
    edit: str | None = None  # "answer", "request"


@dataclass(frozen=True, slots=True)
class Onto:
    """Where the run goes on: the endpoint, and what answers its tools."""

    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    tools: str | None = None


@click.command("fork", cls=_WithProgram)
@click.argument("tape", metavar="TAPE")
@click.argument("call", type=click.IntRange(min=1), metavar="CALL")
@click.option("-o", "--output", metavar="NEW.tape", help="The fork (default: beside TAPE, named for the call).")
@click.option("--force", is_flag=True, help="Replace NEW.tape if it exists.")
@click.option("--say", metavar="TEXT", help="The call's answer says this.")
@click.option(
    "--answer", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="The answer, as --edit has it."
)
@click.option("--result", metavar="TEXT", help="A tool that the call asks for gives this.")
@click.option("--tool", metavar="NAME", help="Which tool --result is of, by its name or place (1, 2, …).")
@click.option("--prompt", metavar="TEXT", help="The user's last words in the request are these.")
@click.option("--set", "values", metavar="PATH=VALUE", multiple=True, help="A value in the request: temperature=0.2.")
@click.option("--edit", type=click.Choice(["answer", "request"]), help="Open the answer or the request in $EDITOR.")
@click.option("--model", metavar="NAME", help="Ask this model from there on.")
@click.option("--base-url", metavar="URL", help="Ask this endpoint of the same wire format.")
@click.option("--key-env", metavar="NAME", help="The variable that holds the API key, if not the provider's usual one.")
@click.option(
    "--tools", "tool_file", metavar="FILE.py", help="Run this file's functions for what the tape cannot answer."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    said, --result what a tool gave, --prompt, --set and --edit request what was asked. Without any of them the call is
    asked again. Tools are answered from the tape by their arguments.

    With CMD behind `--` the program itself goes on: its calls up to the changed answer are played from the tape, the
    rest is asked live, by way of the recorder. Exit code: CMD's own; else 1 where nobody could say what a tool gives.
    """
    from wiretape.cli.tapes import open_tape

    onto, argv = Onto(model, base_url, key_env, tool_file), ctx.meta.get(_CMD, [])
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
    path, _ = make(opened, call, Wish(**given), onto, output, force, ctx.meta.get(_CMD, []), as_json)
    return str(path)


def place_for(opened: Opened, call: int, output: str | None, force: bool) -> Path:
    """Where the fork is written. Fails before anything is sent."""
    from wiretape.adapters.forking import free_name

    if output is None:
        if opened.tape.path is None or opened.name == "-":
            raise UsageError("a tape from standard input has no place of its own: say where its fork goes, with -o")
        return free_name(Path(opened.name), call)
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
    from wiretape.adapters.forking import run_fork
    from wiretape.adapters.rerunning import Target
    from wiretape.adapters.routes import base_url_problem
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.rerun import tool_hook
    from wiretape.replay.forking import Fork
    from wiretape.replay.rerun_report import rerun_call
    from wiretape.views.fork_view import fork_line
    from wiretape.views.terminal import make_console

    if onto.base_url is not None and (problem := base_url_problem(onto.base_url)):
        raise UsageError(f"--base-url {onto.base_url} {problem}")
    settings = load_settings(Path.cwd())
    change, what = change_of(opened, call, wish)
    fork = Fork(opened.tape.exchanges, change, tools=_asking(tool_hook(onto.tools)), mask=settings.mask)
    console = make_console(stderr=True)
    console.print(
        f"fork of {opened.name} at call {call}: {what}; from call {fork.first_live} on it is LIVE", soft_wrap=True
    )
    note = f"fork of {Path(opened.name).name} at call {call}: {what}"
    run_fork(
        opened.tape,
        fork,
        Target(onto.model, onto.base_url, onto.key_env),
        out,
        note,
        redact=settings.redact,
        on_row=lambda row: console.print(fork_line(rerun_call(row), console.width), soft_wrap=True),
        on_trouble=lambda text: click.echo(f"wiretape: {text}", err=True),
    )
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
    from wiretape.replay.rerun_report import build_rerun_report
    from wiretape.views.fork_view import fork_view
    from wiretape.views.terminal import make_console

    rerun = forked.fork.rerun
    live = [row for row in rerun.rows if row.number is None or row.number >= forked.fork.first_live]
    report = build_rerun_report(forked.tape, forked.where, rerun.parted, live, rerun.stops, str(forked.path))
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        make_console().print(fork_view(report, len(forked.fork.kept), forked.fork.edited is not None))
    return 1 if rerun.stops else 0


# -- what is changed -------------------------------------------------------------------------------------------------


def change_of(opened: Opened, call: int, wish: Wish) -> tuple[Change, str]:
    """The change that was asked for, and how it is told of."""
    from wiretape.replay.forking import Answers, Asks, Onwards, Results, with_prompt, with_values

    given = [name for name in ("answer", "say", "result", "prompt", "values", "edit") if getattr(wish, name)]
    given += ["say"] if wish.say == "" else []
    given += ["result"] if wish.result == "" else []
    answers = wish.say is not None or wish.answer is not None or wish.edit == "answer"
    if len(set(given)) > (2 if answers and wish.result is not None else 1):
        raise UsageError(f"one thing is changed at a time: {' and '.join(f'--{_option(name)}' for name in given)}")
    if wish.tool is not None and wish.result is None:
        raise UsageError("--tool says which tool --result is of: give that, too")
    made = _call(opened, call)
    if wish.say is not None:
        return Answers(call, _saying(made, wish.say), wish.result), "another answer"
    if wish.answer is not None:
        spoken = _list(Path(wish.answer).read_text(encoding="utf-8"), wish.answer)
        return Answers(call, spoken, wish.result), "another answer"
    if wish.edit == "answer":
        return Answers(call, _edited_answer(made), wish.result), "an edited answer"
    if wish.result is not None:
        index = _tool_index(opened, call, wish.tool)
        return Results(call, index, wish.result), f"another result of {_uses(opened, call)[index]}"
    if wish.prompt is not None:
        return Asks(call, with_prompt(made, wish.prompt)), "another prompt"
    if wish.values:
        values = dict(_assigned(text) for text in wish.values)
        return Asks(call, with_values(values)), f"another {', '.join(values)}"
    if wish.edit == "request":
        return _edited_request(opened, made)
    return Onwards(call), "asked again"


def _option(name: str) -> str:
    return "set" if name == "values" else name


def _call(opened: Opened, number: int) -> ModelCall:
    for step in opened.run.steps:
        if step.call.number == number:
            return step.call
    raise UsageError(f"{opened.name} has no call {number}: it has {len(opened.run.steps)}")


def _saying(call: ModelCall, text: str) -> tuple[Any, ...]:
    """What the answer says, with its last text changed."""
    from wiretape.replay.answer_edit import said

    spoken = said(call.response.messages) if call.response is not None else []
    place = next((n for n in range(len(spoken) - 1, -1, -1) if "text" in spoken[n]), None)
    if place is None:
        raise UsageError(f"the answer of call {call.number} says no text: change what it asks for with --edit answer")
    spoken[place] = {"text": text}
    return tuple(spoken)


def _list(text: str, where: str) -> tuple[Any, ...]:
    import json

    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{where} is no JSON: {error}") from None
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list of what the answer says, as --edit answer shows it")
    return tuple(value)


def _uses(opened: Opened, call: int) -> list[str]:
    return [u.call.name for u in opened.run.tool_uses if u.call_number == call and u.call.kind != "server"]


def _tool_index(opened: Opened, call: int, tool: str | None) -> int:
    names = _uses(opened, call)
    if not names:
        raise UsageError(f"call {call} asks for no tool whose result could be another")
    if tool is None:
        if len(names) > 1:
            raise UsageError(f"call {call} asks for {len(names)} tools: say which with --tool: {', '.join(names)}")
        return 0
    if tool.isdigit() and 1 <= int(tool) <= len(names):
        return int(tool) - 1
    places = [place for place, name in enumerate(names) if name == tool]
    if len(places) != 1:
        many = f"{len(places)} times {tool}: give its place" if places else f"no {tool}"
        listed = ", ".join(f"{place} {name}" for place, name in enumerate(names, 1))
        raise UsageError(f"call {call} asks for {many}; it asks for {listed}")
    return places[0]


def _assigned(text: str) -> tuple[str, Any]:
    """`temperature=0.2`: JSON, or a text where it is none."""
    import json

    path, sign, value = text.partition("=")
    if not sign or not path:
        raise UsageError(f"--set {text}: write PATH=VALUE, as in temperature=0.2 or messages[0].content='Be brief.'")
    try:
        return path, json.loads(value)
    except ValueError:
        return path, value


def _edited_answer(call: ModelCall) -> tuple[Any, ...]:
    from wiretape.replay.answer_edit import said
    from wiretape.views.printable import json_text

    spoken = said(call.response.messages) if call.response is not None else []
    if not spoken:
        raise UsageError(f"the answer of call {call.number} says nothing that could be edited")
    return _list(in_editor(json_text(spoken)), "what was written")


def _edited_request(opened: Opened, call: ModelCall) -> tuple[Change, str]:
    import json

    from wiretape.replay.forking import Asks
    from wiretape.views.printable import json_text
    from wiretape.wire.lenient import body_json

    exchange = next(one for one in opened.tape.exchanges if one.number == call.exchange)
    text = in_editor(json_text(body_json(exchange.request.body)))
    try:
        body = json.loads(text)
    except ValueError as error:
        raise UsageError(f"what was written is no JSON: {error}") from None
    return Asks(call.number, lambda _: body), "an edited request"


# -- with the agent's own program ------------------------------------------------------------------------------------


def _with_program(opened: Opened, call: int, wish: Wish, onto: Onto, out: Path, argv: Sequence[str]) -> int:
    """Play the program up to the fork, and record it from there on."""
    from wiretape.adapters.child import find_command
    from wiretape.adapters.forking import write_fork
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.record import Options, need_mitmproxy
    from wiretape.cli.record_update import update
    from wiretape.replay.forking import Answers, Fork, Onwards

    if onto != Onto():
        raise UsageError(
            "--model, --base-url, --key-env and --tools are the program's own affair: leave them out with CMD"
        )
    find_command(argv, os.environ)
    change, what = change_of(opened, call, wish)
    if not isinstance(change, Answers | Onwards):
        raise UsageError(
            "with a program only an answer can be another (--say, --answer, --edit answer): "
            "its requests and its tools' results are its own"
        )
    need_mitmproxy()
    fork = Fork(opened.tape.exchanges, change)
    if not fork.kept and fork.edited is None:
        raise UsageError(f"a fork at call {call} shares nothing with its tape: wiretape record -- {shlex.join(argv)}")
    note = f"fork of {Path(opened.name).name} at call {call}: {what}"
    out.unlink(missing_ok=True)
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
