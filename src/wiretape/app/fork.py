"""Forks a recorded run: changes one thing at a call, and continues live from there, on a new tape."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretape.adapters.launch.child import find_command
from wiretape.adapters.output import say, typed
from wiretape.adapters.rerun.fork_tape import run_fork, write_fork
from wiretape.adapters.rerun.live_model import Target
from wiretape.adapters.settings import load_settings
from wiretape.app.fork_changes import ChangeOptions, ForkSource, change_of
from wiretape.app.record import RecordObserver, RecordOptions, need_mitmproxy
from wiretape.app.rerun import LiveModelOptions, check_base_url, described_target, tool_hook
from wiretape.errors import TapeUnwritable, UsageError
from wiretape.rerun.fork.fork import EditedAnswer, Fork, Unchanged
from wiretape.rerun.values import CallOutcome, ToolHook
from wiretape.tape.storage import free_derived_name

if TYPE_CHECKING:
    from wiretape.app.update import UpdateResult
    from wiretape.matching.values import Answer
    from wiretape.model.call import ModelCall


@dataclass(frozen=True, slots=True)
class ForkOptions(LiveModelOptions):
    """How to fork. The fields are named as the options of `wiretape fork`."""

    change: ChangeOptions


@dataclass(frozen=True, slots=True)
class ForkResult:
    """A fork that was made: its path, its calls, where the live calls went, and whether all of it was recorded."""

    path: Path
    fork: Fork
    target: str
    complete: bool


def fork_path(source: ForkSource, call: int, options: ForkOptions) -> Path:
    """Return the path of the new tape. Raises an error before anything is sent."""
    if options.output is None:
        if source.tape.path is None or source.name == "-":
            raise UsageError("a tape from standard input has no path: name its fork with -o")
        return free_derived_name(Path(source.name), f"fork-{call}")
    out, same = options.output, source.tape.path
    if out.exists() and same is not None and same.exists() and out.samefile(same):
        raise TapeUnwritable(f"{out} is the tape itself: give the fork another name")
    options.check_output()
    return out


def fork_live(
    source: ForkSource,
    call: int,
    options: ForkOptions,
    out: Path,
    *,
    on_start: Callable[[str, Fork], None] = lambda what, fork: None,
    on_outcome: Callable[[CallOutcome], None] = lambda row: None,
    with_person: Callable[[ToolHook | None], ToolHook | None] = lambda hook: hook,
) -> ForkResult:
    """Continue a run without its program: calls go to a live model, and tools are answered from the tape.

    `on_start` gets a description of the change; `with_person` may add a hook that asks a person for tool results.
    """
    check_base_url(options.base_url)
    settings = load_settings(Path.cwd())
    change, what = change_of(source, call, options.change)
    tools = with_person(tool_hook(options.tool_file))
    fork = Fork(source.tape.exchanges, change, tools=tools, mask=settings.mask)
    on_start(what, fork)
    complete = run_fork(
        source.tape,
        fork,
        options.target,
        out,
        _note(source, call, what),
        settings=settings,
        on_outcome=on_outcome,
        on_trouble=say,
    )
    return ForkResult(out, fork, described_target(options.target), complete)


def fork_with_program(
    source: ForkSource,
    call: int,
    options: ForkOptions,
    out: Path,
    argv: Sequence[str],
    observer: RecordObserver,
    on_kept: Callable[[Answer, ModelCall], None] = lambda answer, call: None,
    partial: bool = False,
) -> UpdateResult:
    """Continue a run with its program: play the calls up to the changed answer, and record the rest live."""
    if options.target != Target() or options.tool_file is not None:
        raise UsageError("--model, --base-url, --key-env and --tools do not apply to a program: omit them, or omit CMD")
    find_command(argv, os.environ)
    change, what = change_of(source, call, options.change)
    if not isinstance(change, EditedAnswer | Unchanged):
        raise UsageError(
            "with a program, only an answer can be changed (--say, --answer, --body, --edit answer): "
            "the program makes its own requests and tool results"
        )
    need_mitmproxy()
    from wiretape.app.update import update  # the optional extra: mitmproxy

    fork = Fork(source.tape.exchanges, change)
    if fork.splits_socket:
        raise UsageError(
            f"call {call} is on a WebSocket, and a tape cannot play only the first part of one\n"
            "  omit CMD: wiretape then continues over HTTP"
        )
    if not fork.entries:
        raise UsageError(f"a fork at call {call} shares nothing with its tape: wiretape record -- {typed(argv)}")
    write_fork(source.tape, fork, out, _note(source, call, what), load_settings(Path.cwd()))
    return update(RecordOptions(out, force=True, update=out), argv, observer, on_kept=on_kept, partial=partial)


def _note(source: ForkSource, call: int, what: str) -> str:
    return f"fork of {Path(source.name).name} at call {call}: {what}"
