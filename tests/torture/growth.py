"""Run commands on tapes with n and 4n of each thing, and fail where time grows faster than the tape.

    python -m tests.torture.growth [--seed N] [--count N] [--only WORD]

The seed draws `--count` pairs of a shape and a command from all of them, or from those that hold the word.
Each run is a forked process with wiretape already loaded; its CPU time is measured, with a limit on time and memory.
The exponent of a path is log(time of 4n / time of n) / log(growth of its input): 1 is linear, 2 is quadratic.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.costs import PATHS, growth_of_input, seconds
from tests.support.large import SHAPES, write_pair
from tests.torture.campaign import Campaign, start

STEEPEST = 1.3
FLOOR_S = 0.15  # shorter runs say nothing about growth
LIMIT_S = 20
N = 250
MEMORY = 4_000_000_000


def measured(run: Callable[[Path], object], tape: Path) -> float | str:
    """The CPU time of a run in a separate process, or the signal that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            said = repr(seconds(lambda: run(tape)))
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"[:200]
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    try:
        return float(said)
    except ValueError:
        return said or f"more than {LIMIT_S} s"


def exponent(shape: str, path: str, few: float, many: float) -> float:
    return math.log(max(many, 1e-6) / max(few, 1e-6)) / math.log(growth_of_input(shape, path, 4))


def compare(campaign: Campaign, shape: str, path: str, few: Path, many: Path) -> None:
    run, name = PATHS[path], f"{shape}: {path}"
    campaign.tried["paths"] += 1
    long = measured(run, many)
    if isinstance(long, float) and long < FLOOR_S:
        return
    short = measured(run, few)
    if isinstance(short, str) or isinstance(long, str):
        campaign.fail(f"{name}: {short} at n, {long} at 4n")
        return
    if exponent(shape, path, short, long) > STEEPEST:  # a busy machine misleads once, rarely twice
        short, long = max(short, _again(run, few)), min(long, _again(run, many))
    steep = exponent(shape, path, short, long)
    print(f"  {steep:5.2f}  {short:7.3f} s {long:7.3f} s  {name}", flush=True)
    campaign.tried["measured exponents"] += 1
    if steep > STEEPEST:
        campaign.fail(f"{name}: exponent {steep:.2f} ({short:.3f} s, then {long:.3f} s)")


def _again(run: Callable[[Path], object], tape: Path) -> float:
    taken = measured(run, tape)
    return taken if isinstance(taken, float) else math.inf


def main(argv: list[str]) -> int:
    only = argv.pop(argv.index("--only") + 1) if "--only" in argv else ""
    campaign = start("growth", [one for one in argv if one != "--only"], 150)
    pairs = [(shape, path) for shape in SHAPES for path in PATHS if only in shape or only in path]
    drawn = campaign.source.sample(pairs, min(campaign.count, len(pairs)))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)  # no settings of this project
        try:
            warm = write_pair(Path(made, "warm"), "parallel_tool_calls", 3)
            for run in PATHS.values():
                run(warm)
            for shape in SHAPES:
                if paths := [path for of, path in drawn if of == shape]:
                    _shape(campaign, Path(made), shape, paths)
        finally:
            os.chdir(before)
    return campaign.finish()


def _shape(campaign: Campaign, directory: Path, shape: str, paths: list[str]) -> None:
    few, many = (write_pair(directory / f"{shape}-{n}", shape, n) for n in (N, 4 * N))
    print(f"{shape}: n = {N:,} and {4 * N:,}", flush=True)
    for path in paths:
        compare(campaign, shape, path, few, many)
    for tape in (few, many):
        shutil.rmtree(tape.parent)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
