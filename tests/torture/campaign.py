"""The common frame of a campaign: its options, its seed, its counts and its exit code."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

WIRETAPE = Path(sys.executable).with_name("wiretape")  # the command of this Python's installation


@dataclass
class Campaign:
    """A campaign: a seeded random source, its cases and its failures."""

    name: str
    seed: int
    count: int
    """How many tries were asked for."""
    source: random.Random = field(init=False)
    tried: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.source = random.Random(self.seed)

    def fail(self, what: str) -> None:
        """Note one failure. The first failures are printed immediately, since a campaign takes minutes."""
        self.failures.append(what)
        if len(self.failures) <= 20:
            print(f"{self.name}: FAILED: {what}", flush=True)

    def finish(self) -> int:
        """Print seed and counts on one line. Return the exit code: 1 if anything failed."""
        counts = ", ".join(f"{number:,} {what}" for what, number in sorted(self.tried.items()))
        seconds = time.monotonic() - self.started
        print(f"{self.name}: seed {self.seed}; {counts}; {len(self.failures)} failures; {seconds:.0f} s", flush=True)
        return 1 if self.failures else 0


def start(name: str, argv: list[str], count: int) -> Campaign:
    """Read `--seed N` and `--count N` (default: `count`) from `argv` (without the program's name)."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.torture.{name}")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="repeat the campaign of this seed")
    parser.add_argument("--count", type=int, default=count, help=f"how much to try [{count}]")
    options = parser.parse_args(argv)
    return Campaign(name, options.seed, options.count)
