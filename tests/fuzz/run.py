"""Feeds every decoder with strange traffic for a while, and reports failures.

    SECONDS=60 python -m tests.fuzz.run [TARGET]     seconds for each target; inputs that fail go to fuzz-failures/
    SEED=7 …                                         the same inputs again

Large and hostile bodies go through each format once, in a separate process, to measure time and memory.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.big import run_big
from tests.fuzz.seeds import gather
from tests.fuzz.targets import Target, targets

FAILURES = Path("fuzz-failures")
TOO_LONG = 10  # seconds for one input
MOST_KEPT = 5  # inputs of one failure


class Hangs(Exception):
    """One input took too long."""


@dataclass
class Outcome:
    inputs: int = 0
    slowest: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)


def main() -> int:
    seconds = float(os.environ.get("SECONDS", "60"))
    seed = int(os.environ.get("SEED", str(time.time_ns() % 1_000_000)))
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    seeds = gather()
    told = ", ".join(f"{name} {len(found)}" for name, found in seeds.exchanges.items())
    print(f"seed {seed}; starting from {told}; {len(seeds.files)} files, {len(seeds.tapes)} tapes", file=sys.stderr)
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, target in targets(seeds, Path(directory)):
            if wanted in name:
                failed += _report(name, fuzz(name, target, random.Random(seed), seconds))
    if wanted in "big":
        failed += run_big()
    print(f"{failed} failures" if failed else "0 failures")
    return 1 if failed else 0


def fuzz(name: str, target: Target, source: random.Random, seconds: float) -> Outcome:
    outcome = Outcome()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        case = target(source)
        started = time.thread_time()
        try:
            _within(TOO_LONG, case.check)
        except Exception as problem:
            where = _where(problem)
            outcome.failures[where] += 1
            if outcome.failures[where] <= MOST_KEPT:
                _keep(name, where, outcome.failures[where], case.input, problem)
        outcome.inputs += 1
        outcome.slowest = max(outcome.slowest, time.thread_time() - started)
    return outcome


def _within(seconds: int, check: object) -> None:
    if not hasattr(signal, "setitimer"):
        check()  # type: ignore[operator]
        return
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        check()  # type: ignore[operator]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _hangs(number: int, frame: FrameType | None) -> None:
    raise Hangs(f"takes more than {TOO_LONG} s")


def _where(problem: Exception) -> str:
    """The exception, and the last line of wiretape that it went through: one failure, however many inputs show it."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [f for f in frames if "wiretape" in f.filename] or list(frames)
    said = str(problem)[:60] if isinstance(problem, AssertionError) else ""
    return f"{type(problem).__name__} {Path(ours[-1].filename).name}:{ours[-1].lineno} {said}".strip()


def _keep(name: str, where: str, count: int, data: bytes, problem: Exception) -> None:
    FAILURES.mkdir(exist_ok=True)
    stem = "".join(c if c.isalnum() else "-" for c in f"{name} {where}")[:100]
    (FAILURES / f"{stem}-{count}.input").write_bytes(data)
    (FAILURES / f"{stem}-{count}.txt").write_text("".join(traceback.format_exception(problem)))


def _report(name: str, outcome: Outcome) -> int:
    print(
        f"{name:24} {outcome.inputs:8} inputs   slowest {outcome.slowest * 1000:6.0f} ms   "
        f"{outcome.failures.total()} failures",
        flush=True,
    )
    for where, times in outcome.failures.most_common():
        print(f"    {times:6} {where}", flush=True)
    return len(outcome.failures)


if __name__ == "__main__":
    sys.exit(main())
