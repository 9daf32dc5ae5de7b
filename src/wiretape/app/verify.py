"""Verifies a tape: records its program again, and compares the two recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wiretape.adapters.launch.child import run_child
from wiretape.adapters.output import say
from wiretape.adapters.settings import load_settings, redactor_of
from wiretape.app.record import (
    RecordObserver,
    RecordOptions,
    RecordResult,
    check_recording,
    make_recorder,
    run_recorder,
)
from wiretape.compare.difference import Tier
from wiretape.matching.values import ReplayOptions
from wiretape.matching.verify.freshness import Freshness, freshness
from wiretape.tape.reading.reader import read_tape

_STDERR = 2


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to compare. The fields are named as the options of `wiretape verify`."""

    tape: Path
    tier: str = "masked"
    tolerance: float = 0.25
    partial: bool = False  # accept damaged tapes


def record_again(options: RecordOptions, argv: Sequence[str], observer: RecordObserver) -> RecordResult:
    """Record a program with live models. Its standard output goes to stderr."""
    check_recording(options, argv)
    say("verifying: the program runs LIVE, with real models")
    recorder = make_recorder(options, redactor_of(load_settings(Path.cwd())), observer)
    return run_recorder(recorder, options, argv, observer, run=partial(run_child, stdout=_STDERR))


def compare_recordings(options: VerifyOptions, live: Path) -> Freshness:
    """Compare a tape with a later recording. Warnings of both go to stderr."""
    mask = tuple(load_settings(Path.cwd()).mask)
    recorded, again = (read_tape(path, options.partial) for path in (options.tape, live))
    for warning in (*recorded.warnings, *again.warnings):
        say(warning)
    match = ReplayOptions(Tier[options.tier.upper()], mask=mask)
    return freshness(recorded, again, match, options.tolerance)
