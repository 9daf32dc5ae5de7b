"""`wiretape record --update`: ask live only what a tape no longer answers, and put the new tape in the old one's place.

Real models are called here: the tape is being recorded, not replayed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wiretape.adapters.output import output
from wiretape.cli.damaged import INCOMPLETE, read_whole
from wiretape.errors import UsageError
from wiretape.views.call_line import call_line
from wiretape.views.replay.summary import tier_mark

if TYPE_CHECKING:
    from wiretape.adapters.launch.tagging import CallTags
    from wiretape.adapters.update.session import UpdateSession
    from wiretape.adapters.update.staging import StagedRecording
    from wiretape.cli.run.record import Options
    from wiretape.cli.run.record_report import LiveReport
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.values import Answer
    from wiretape.tape.reading.reader import Tape
    from wiretape.tape.recording.recorder import RecorderSummary
    from wiretape.tape.redaction import Redactor


@dataclass(frozen=True, slots=True)
class Update:
    """What is at work: the old tape, the session that answers from it, and the recording beside it."""

    options: Options
    tape: Tape
    redactor: Redactor
    renewing: UpdateSession
    rerecording: StagedRecording

    @property
    def session(self) -> ReplaySession:
        return self.renewing.session


def update(options: Options, argv: Sequence[str]) -> int:
    from wiretape.adapters.update.staging import StagedRecording
    from wiretape.tape.storage import TapeFile

    if not argv:
        raise UsageError("--update needs the program whose calls are compared: wiretape record --update TAPE -- CMD")
    if options.append:
        raise UsageError("--append adds to a tape and --update replaces what drifted: give one of them")
    old = _old_tape(options)
    with closing(TapeFile(options.tape)):  # its lock: nobody else records to it meanwhile
        rerecording = StagedRecording(options.tape, goes_on=False)
        try:
            return _update(_prepared(options, old, rerecording), argv)
        finally:
            rerecording.remove()
            if not options.tape.stat().st_size:  # a new name, which came to nothing
                options.tape.unlink()


def _old_tape(options: Options) -> Tape:
    assert options.update is not None
    tape = read_whole(options.update)
    if options.tape != options.update and options.tape.exists() and not options.force:
        raise UsageError(f"{options.tape} exists already, and nothing was recorded; --force replaces it")
    for warning in tape.warnings:
        click.echo(f"wiretape: {warning}", err=True)
    return tape


def _prepared(options: Options, tape: Tape, rerecording: StagedRecording) -> Update:
    from wiretape.adapters.settings import load_settings, redactor_of
    from wiretape.adapters.update.session import UpdateSession
    from wiretape.compare.difference import Tier
    from wiretape.matching.session import ReplaySession
    from wiretape.matching.values import ReplayOptions
    from wiretape.tape.storage import read_text

    settings = load_settings(Path.cwd())
    asked = ReplayOptions(
        Tier[options.tier.upper()], mask=tuple(settings.mask), names=(str(options.update),), output=output()
    )
    redactor = redactor_of(settings)
    if tape.path is not None and tape.path.exists():
        redactor.resume(read_text(tape.path).decode("utf-8", "replace"))  # its placeholders keep their meaning
    session = ReplaySession([tape], asked)
    return Update(options, tape, redactor, UpdateSession(session), rerecording)


def _update(at_work: Update, argv: Sequence[str]) -> int:
    from wiretape.adapters.launch.config_discovery import discover_config
    from wiretape.adapters.mitm.updating import AnswerServer, UpdatingAddon
    from wiretape.adapters.settings import load_settings
    from wiretape.cli.run.record import held_signals, recorder_of, recording_of, run_recorded, tagging, tags_of
    from wiretape.cli.run.record_report import LiveReport

    options = at_work.options
    around = discover_config(argv, os.environ, Path.cwd())
    settings = load_settings(Path.cwd())
    report = LiveReport(options.tape, argv, counted=options.stats)
    fresh = replace(options, tape=at_work.rerecording.fresh, append=False)
    click.echo(f"wiretape updating {options.update}: what it does not answer is asked LIVE, of real models", err=True)
    recorder = recorder_of(fresh, at_work.redactor, report)
    code, tags = 1, tags_of(options)
    try:
        with AnswerServer() as answers:
            addon = functools.partial(
                UpdatingAddon,
                renewing=at_work.renewing,
                answers=answers,
                on_kept=functools.partial(_say_kept, report, at_work.session, tags),
            )
            hosts = [*options.hosts, *settings.hosts, *around.hosts]
            recording = recording_of(options, tagging(recorder, tags), report, hosts, addon)
            code = run_recorded(recording, argv, report, around, options, tags=tags)
    finally:
        with held_signals():
            summary = recorder.close()
    with held_signals():
        return _settle(at_work, report, summary, code)


def _say_kept(report: LiveReport, session: ReplaySession, tags: CallTags | None, answer: Answer) -> None:
    call = session.call_of(answer)
    if call is not None and tags is not None:
        tags.answered_more(1)
    if call is not None:
        mark = f"{tier_mark(answer)}  kept"
        report.say_line(call_line(call, report.width, beside=len(mark) + len("wiretape ")).append(mark, "dim"))


def _settle(at_work: Update, report: LiveReport, summary: RecorderSummary, code: int) -> int:
    """Put the new tape in its place, or leave the old one, and say so."""
    from wiretape.views.replay.update import Updated, update_view
    from wiretape.views.terminal import make_console

    outcome, written, own_code = _outcome(at_work, summary, code)
    report.troubles_again(summary)
    updated = Updated(at_work.renewing.report(), at_work.session.misses, summary.exchanges, outcome, written)
    make_console(stderr=True).print(update_view(updated))
    if written:
        report.closing()
    return code or own_code


def _outcome(at_work: Update, summary: RecorderSummary, code: int) -> tuple[str, bool, int]:
    """What to say, whether the tape was written, and wiretape's own exit code."""
    options, kept = at_work.options, at_work.renewing.kept
    tape, elsewhere = options.tape, options.tape != options.update
    as_it_was = f"{options.update} is as it was"
    if summary.incomplete:
        return f"the recording is incomplete: {as_it_was}", False, INCOMPLETE
    if code and not options.force:
        return f"the program exited with {code}: {as_it_was} (--force writes it all the same)", False, 0
    if not kept and not summary.exchanges:
        return f"nothing was asked: {as_it_was}", False, 1
    if not elsewhere and not _drifted(at_work, summary):
        return f"every call on {tape} still answers: it is as it was", False, 0
    if not options.force and (refused := _refused(at_work)):
        return f"the model did not answer {refused}: {as_it_was} (--force writes it all the same)", False, 1
    _write(at_work, summary)
    return f"updated {tape}" if not elsewhere else f"wrote {tape}; {as_it_was}", True, 0


def _refused(at_work: Update) -> str:
    """Which fresh calls have no answer that would serve on a tape: `x2 (error 429 rate_limit)`."""
    from wiretape.matching.verify.pairing import unanswered
    from wiretape.tape.reading.reader import read_tape
    from wiretape.views.call_line import ending

    calls = unanswered(read_tape(at_work.rerecording.fresh)) if at_work.rerecording.fresh.exists() else []
    return ", ".join(f"x{call.exchange} ({ending(call)[0]})" for call in calls)


def _drifted(at_work: Update, summary: RecorderSummary) -> bool:
    """Whether there is anything to write. `--force` writes what was other telemetry, too."""
    if at_work.options.force:
        return bool(summary.exchanges or at_work.renewing.report().left_over)
    return at_work.renewing.drifted


def _write(at_work: Update, summary: RecorderSummary) -> None:
    from wiretape.tape.editing.splice import write_spliced
    from wiretape.tape.reading.reader import read_tape
    from wiretape.tape.storage import journal_path

    tape, fresh = at_work.options.tape, read_tape(at_work.rerecording.fresh)
    order = at_work.renewing.order({exchange.number: exchange for exchange in fresh.exchanges})
    write_spliced(at_work.tape, fresh.header, order, tape, at_work.redactor)
    journal_path(tape).unlink(missing_ok=True)  # what it held is on the new tape
