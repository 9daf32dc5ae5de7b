"""Updates a tape: answers from it what still matches, records the rest live, and replaces the tape at the end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from wiretape.adapters.output import output, say
from wiretape.adapters.settings import load_settings, redactor_of
from wiretape.adapters.update.session import UpdateSession
from wiretape.adapters.update.staged_recording import StagedRecording
from wiretape.app.call_tags import CallTags
from wiretape.app.record import RecordObserver, RecordOptions, check_recording, make_recorder, run_recorder
from wiretape.app.signals import held_signals
from wiretape.compare.difference import Tier
from wiretape.errors import EXIT_INCOMPLETE, UsageError
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, ReplayOptions
from wiretape.matching.verify.pairing import unanswered
from wiretape.model.call import ModelCall
from wiretape.tape.editing.splice import write_spliced
from wiretape.tape.reading.reader import Tape, read_tape
from wiretape.tape.recording.recorder import RecorderSummary
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import TapeFile, journal_path
from wiretape.views.call_line import ending
from wiretape.views.replay.update import UpdateSummary


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """How an update ended: what to show, and the exit code."""

    updated: UpdateSummary
    summary: RecorderSummary
    exit_code: int


@dataclass(frozen=True, slots=True)
class _Update:
    """The old tape, the session that answers from it, and the recording beside it."""

    options: RecordOptions
    tape: Tape
    redactor: Redactor
    session: UpdateSession
    staged: StagedRecording


def update(
    options: RecordOptions,
    argv: Sequence[str],
    observer: RecordObserver,
    *,
    on_kept: Callable[[Answer, ModelCall], None] = lambda answer, call: None,
    tags: CallTags | None = None,
    partial: bool = False,
) -> UpdateResult:
    """Run a program, update `options.update`, and write the result to `options.tape`.

    Requests without a recorded answer go to live models. `partial` accepts a damaged tape. The tape stays unchanged
    if the recording is incomplete, a model did not answer, or the program failed, unless `options.force` is set.
    """
    check_recording(options, argv)
    if not argv:
        raise UsageError("--update needs the program whose calls are compared: wiretape record --update TAPE -- CMD")
    if options.append:
        raise UsageError("--append continues a tape and --update replaces what drifted: use one of them")
    old = _read_old_tape(options, partial)
    with closing(TapeFile(options.tape)):  # locked: no other recorder may write to it
        staged = StagedRecording(options.tape, goes_on=False)
        try:
            return _run(_make_update(options, old, staged), argv, observer, on_kept, tags)
        finally:
            staged.remove()
            if not options.tape.stat().st_size:  # TapeFile created it
                options.tape.unlink()


def _read_old_tape(options: RecordOptions, partial: bool) -> Tape:
    assert options.update is not None
    tape = read_tape(options.update, partial)
    if options.tape != options.update and options.tape.exists() and not options.force:
        raise UsageError(f"{options.tape} exists already, and nothing was recorded; --force replaces it")
    for warning in tape.warnings:
        say(warning)
    return tape


def _make_update(options: RecordOptions, tape: Tape, staged: StagedRecording) -> _Update:
    settings = load_settings(Path.cwd())
    redactor = redactor_of(settings, tool_arguments=options.redact_tool_arguments, continues=tape.path)
    match = ReplayOptions(
        Tier[options.tier.upper()], mask=tuple(settings.mask), names=(str(options.update),), output=output()
    )
    return _Update(options, tape, redactor, UpdateSession(ReplaySession([tape], match)), staged)


def _run(
    update: _Update,
    argv: Sequence[str],
    observer: RecordObserver,
    on_kept: Callable[[Answer, ModelCall], None],
    tags: CallTags | None,
) -> UpdateResult:
    from wiretape.adapters.mitm.updating import AnswerServer, UpdatingAddon  # the optional extra: mitmproxy

    def kept(answer: Answer) -> None:
        call = update.session.session.call_of(answer)
        if call is not None:
            if tags is not None:
                tags.answered_more(1)
            on_kept(answer, call)

    options = update.options
    say(f"updating {options.update}: requests that it does not answer go LIVE to real models")
    staged = replace(options, tape=update.staged.fresh, append=False)
    recorder = make_recorder(staged, update.redactor, observer)
    with AnswerServer() as answers:
        addon = functools.partial(UpdatingAddon, update_session=update.session, answers=answers, on_kept=kept)
        result = run_recorder(recorder, options, argv, observer, addon=addon, tags=tags)
    with held_signals():
        outcome, written, exit_code = _complete(update, result.summary, result.code)
        session = update.session
        updated = UpdateSummary(session.report(), session.session.misses, result.summary.exchanges, outcome, written)
        return UpdateResult(updated, result.summary, result.code or exit_code)


def _complete(update: _Update, summary: RecorderSummary, code: int) -> tuple[str, bool, int]:
    """Write the new tape, or leave the old one. Return the outcome, whether it was written, and our exit code."""
    options, kept = update.options, update.session.kept
    tape, elsewhere = options.tape, options.tape != options.update
    unchanged = f"{options.update} is unchanged"
    if summary.incomplete:
        return f"the recording is incomplete: {unchanged}", False, EXIT_INCOMPLETE
    if code and not options.force:
        return f"the program exited with {code}: {unchanged} (--force writes it anyway)", False, 0
    if not kept and not summary.exchanges:
        return f"the program made no request: {unchanged}", False, 1
    if not elsewhere and not _drifted(update, summary):
        return f"every call on {tape} still matches: it is unchanged", False, 0
    if not options.force and (refused := _unanswered_calls(update)):
        return f"the model did not answer {refused}: {unchanged} (--force writes it anyway)", False, 1
    _write(update)
    return f"updated {tape}" if not elsewhere else f"wrote {tape}; {unchanged}", True, 0


def _unanswered_calls(update: _Update) -> str:
    """Name the live calls that got no usable answer: `x2 (error 429 rate_limit)`."""
    calls = unanswered(read_tape(update.staged.fresh)) if update.staged.fresh.exists() else []
    return ", ".join(f"x{call.exchange} ({ending(call)[0]})" for call in calls)


def _drifted(update: _Update, summary: RecorderSummary) -> bool:
    """True if the tape needs an update. `--force` also updates telemetry."""
    if update.options.force:
        return bool(summary.exchanges or update.session.report().left_over)
    return update.session.drifted


def _write(update: _Update) -> None:
    tape, fresh = update.options.tape, read_tape(update.staged.fresh)
    order = update.session.order({exchange.number: exchange for exchange in fresh.exchanges})
    write_spliced(update.tape, fresh.header, order, tape, update.redactor)
    journal_path(tape).unlink(missing_ok=True)  # its exchanges are on the new tape
