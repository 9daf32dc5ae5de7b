"""Runs a tape's scheduler again without its program, against the tape or a live model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wiretape.adapters.old_tape import OldTape
from wiretape.adapters.output import say
from wiretape.adapters.rerun.live_model import LiveModel, Target, parent_of, play_live, play_tape
from wiretape.adapters.rerun.tool_files import ToolFile
from wiretape.adapters.routing.routes import base_url_problem, without_user
from wiretape.adapters.settings import Settings, load_settings
from wiretape.errors import TapeUnwritable, UsageError
from wiretape.model.call import ToolCall, ToolResult
from wiretape.rerun.report import RerunReport, build_rerun_report
from wiretape.rerun.scheduler import Rerun
from wiretape.rerun.values import CallOutcome, ToolHook
from wiretape.tape.reading.reader import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveModelOptions:
    """The live model that answers calls, what answers its tool calls, and the new tape."""

    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    tool_file: str | None = None
    output: Path | None = None
    force: bool = False

    @property
    def target(self) -> Target:
        return Target(self.model, self.base_url, self.key_env)

    def check_output(self) -> None:
        """Raise TapeUnwritable if the new tape exists and must not be replaced."""
        if self.output is not None and self.output.exists() and not self.force:
            raise TapeUnwritable(f"{self.output} exists already, and nothing was sent\n  --force replaces it")


@dataclass(frozen=True, slots=True)
class RerunOptions(LiveModelOptions):
    """How to rerun. The fields are named as the options of `wiretape rerun`."""

    live: bool = False

    @property
    def goes_live(self) -> bool:
        return self.live or self.model is not None or self.base_url is not None


def check_rerun(tape: str, options: RerunOptions) -> None:
    """Raise an error for options that do not fit together, before a request is sent."""
    output = options.output
    for option, value in (("--tools", options.tool_file), ("-o", output), ("--key-env", options.key_env)):
        if value and not options.goes_live:
            raise UsageError(f"{option} is for live reruns: give --model, --base-url or --live, too")
    check_base_url(options.base_url)
    if output is not None and tape != "-" and output.resolve() == Path(tape).resolve():
        raise UsageError(f"-o {output} is the tape that is rerun: give the new one another name")
    options.check_output()


def check_base_url(base_url: str | None) -> None:
    """Raise UsageError if a `--base-url` cannot be used."""
    if base_url is not None and (problem := base_url_problem(base_url)):
        raise UsageError(f"--base-url {without_user(base_url)} {problem}")


def rerun(
    name: str, tape: Tape, options: RerunOptions, on_outcome: Callable[[CallOutcome], None]
) -> tuple[RerunReport, bool]:
    """Rerun a tape. Return the report, and whether the new tape is complete. `on_outcome`: for live requests."""
    settings = load_settings(Path.cwd())
    hook = tool_hook(options.tool_file) if options.goes_live else None
    made = Rerun(tape.exchanges, live=options.goes_live, mask=settings.mask, tools=hook)
    complete, where = True, None
    if options.goes_live:
        complete = _rerun_live(made, options, name, settings, on_outcome)
        where = described_target(options.target)
    else:
        play_tape(made)
    output = str(options.output) if options.output is not None else None
    return build_rerun_report(name, where, made.diverged, made.outcomes, made.stopped, output, tape.gaps), complete


def described_target(target: Target) -> str:
    """Name the endpoint and the model of live requests."""
    endpoint = target.base_url or "the recorded endpoint"
    return f"{endpoint}, model {target.model}" if target.model is not None else endpoint


def tool_hook(path: str | None) -> ToolHook | None:
    """Return a hook that answers tool calls without a recorded result with the functions of a file."""
    if path is None:
        return None
    functions = ToolFile(path)

    def answer(call: ToolCall, found: ToolResult | None) -> ToolResult | None:
        return found if found is not None else functions(call)

    return answer


def _rerun_live(
    made: Rerun, options: RerunOptions, tape: str, settings: Settings, on_outcome: Callable[[CallOutcome], None]
) -> bool:
    path = options.output
    parent = parent_of(Path(tape), path) if path is not None and tape != "-" else None
    with _replacing(path) as rows, LiveModel(options.target, os.environ, path, parent, settings, say) as model:

        def show(row: CallOutcome) -> None:
            rows.append(row)
            on_outcome(row)

        play_live(made, model, show)
    return not (path is not None and model.incomplete)


@contextmanager
def _replacing(path: Path | None) -> Iterator[list[CallOutcome]]:
    """Replace an existing tape only if a row was added; otherwise put the old tape back."""
    rows: list[CallOutcome] = []
    old = OldTape(path) if path is not None else None
    if path is not None:
        path.unlink(missing_ok=True)
    try:
        yield rows
    finally:
        if path is not None and old is not None:
            if rows:
                old.forget()
            elif not old.put_back():
                path.unlink(missing_ok=True)
