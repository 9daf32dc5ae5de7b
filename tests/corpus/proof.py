"""Runs every archive of recorded traffic through import, tape and decoding, and fails below the known figures.

    python -m tests.corpus.proof              the table, compared with figures.json
    python -m tests.corpus.proof --json       the same as JSON
    python -m tests.corpus.proof --write      write the results as the new figures
    python -m tests.corpus.proof vercel       only archives with this in their names

The archives are next to the repository; without them it does nothing. Each exchange that is reported as unknown,
refused or wrong needs a reason in figures.json, written by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.support.proving import NAMED, NUMBERS, Findings, compare_twins, prove, total

CORPORA = Path(__file__).parents[2].parent / "shared" / "corpora"
FIGURES = Path(__file__).with_name("figures.json")
TWINS = "charmbracelet+fantasy"  # records every case streamed and unstreamed
WORKERS = 2
TITLES = ("archive", "files", "exch.", "recognised", "calls", "other", "unkn.", "err.", "usage equal", "s")
WIDTHS = (17, 5, 5, 10, 5, 5, 5, 4, 11, 4)
Figures = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    archives = [path for path in sorted(CORPORA.glob("*.tar.xz")) if options.part in path.name]
    if not archives:
        print(f"no recorded traffic at {CORPORA}: nothing to check", file=sys.stderr)
        return 0
    started = time.monotonic()
    found: dict[str, Findings] = {}
    with tempfile.TemporaryDirectory() as directory, ProcessPoolExecutor(WORKERS) as pool:
        for path in archives:
            name = path.name.removesuffix(".tar.xz")
            print(f"{name} …", file=sys.stderr, flush=True)
            found[name] = prove_archive(path, name, Path(directory), pool)
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {"archives": {}, "reasons": []}
    if options.write:
        figures["archives"].update({name: figures_of(one) for name, one in found.items()})
        FIGURES.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
    missed = list(misses(figures, found))
    seconds = time.monotonic() - started
    if options.json:
        told = {name: {**figures_of(one), "seconds": round(one.seconds, 1)} for name, one in found.items()}
        print(
            json.dumps({"ok": not missed, "archives": told, "missed": missed, "seconds": round(seconds, 1)}, indent=2)
        )
    else:
        print("\n".join([*table(found), *details(found)]))
        print("\n".join(f"MISSED {line}" for line in missed) or "equal to the figures")
        print(f"{seconds:.0f} s")
    return 1 if missed else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="proof", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="?", default="", help="only archives with this in their names")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="keep what comes out as the figures")
    return parser.parse_args(arguments)


# -- running -------------------------------------------------------------------------------------------------------


def prove_archive(archive: Path, name: str, directory: Path, pool: Executor) -> Findings:
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter="data")
    root = directory / name
    jobs = [(path, str(path.relative_to(root)), directory) for path in sorted(root.rglob("*")) if path.is_file()]
    found = total(pool.map(_prove, jobs, chunksize=8))
    if name == TWINS:
        compare_twins(found)
    return found


def _prove(job: tuple[Path, str, Path]) -> Findings:
    path, name, directory = job
    started = time.thread_time()
    # Bodies without requests are reported for the whole archive.
    form = "auto" if path.suffix == ".yaml" else "body"
    found = prove(path, name, directory / f"{os.getpid()}.tape", form)
    found.seconds = time.thread_time() - started
    return found


# -- judging -------------------------------------------------------------------------------------------------------


def figures_of(found: Findings) -> Figures:
    numbers = {name: found.numbers[name] for name in NUMBERS if found.numbers[name]}
    return numbers | {name: dict(sorted(found.named[name].items())) for name in NAMED if found.named[name]}


def misses(figures: Figures, found: dict[str, Findings]) -> Iterator[str]:
    """Yield what falls below its figure, is reported more often than before, or is reported without a reason."""
    for archive, one in found.items():
        kept = figures["archives"].get(archive, {})
        for number in NUMBERS:
            if one.numbers[number] < kept.get(number, 0):
                yield f"{archive}: {number} {one.numbers[number]}, was {kept[number]}"
        for sort in NAMED:
            for name, times in sorted(one.named[sort].items()):
                if times > kept.get(sort, {}).get(name, 0):
                    yield f"{archive}: {sort} {name}: {times}, was {kept.get(sort, {}).get(name, 0)}"
                elif reason(figures, sort, name) is None:
                    yield f"{archive}: {sort} {name}: figures.json gives no reason for it"


def reason(figures: Figures, sort: str, name: str) -> str | None:
    return next((r["because"] for r in figures["reasons"] if r["in"] == sort and fnmatchcase(name, r["like"])), None)


# -- output --------------------------------------------------------------------------------------------------------


def table(found: dict[str, Findings]) -> Iterator[str]:
    """Return the table, 80 columns wide."""
    yield _row(TITLES)
    for name, one in found.items():
        yield _row((name.rpartition("+")[2], *_numbers(one)))
    if len(found) > 1:
        yield _row(("all", *_numbers(total(found.values()))))


def _numbers(one: Findings) -> tuple[str, ...]:
    n, named = one.numbers, one.named
    return (
        str(n["files"]),
        str(n["exchanges"]),
        _of(n["recognised"], n["model_shaped"]),
        str(n["calls"]),
        str(n["other_calls"]),
        str(named["unknown"].total()),
        str(named["errors"].total()),
        _of(n["usage_equal"], n["usage_told"]),
        f"{one.seconds:.0f}",
    )


def _of(some: int, all_: int) -> str:
    return f"{some}" if some == all_ else f"{some}/{all_}"


def _row(cells: tuple[str, ...]) -> str:
    first = cells[0] if len(cells[0]) <= WIDTHS[0] else cells[0][: WIDTHS[0] - 1] + "…"
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], WIDTHS[1:], strict=True)]
    return " ".join([first.ljust(WIDTHS[0]), *rest])


def details(found: dict[str, Findings]) -> Iterator[str]:
    for name, one in found.items():
        lines = []
        if one.numbers["twins"]:
            equal = _of(one.numbers["twins_equal"], one.numbers["twins"])
            lines.append(f"  streamed and unstreamed twins equal: {equal}")
        if one.rest:
            lines.append(f"  no model calls: {one.rest.total()}")
        for sort in NAMED:
            lines += [f"  {sort.replace('_', ' ')}: {times} {what}" for what, times in sorted(one.named[sort].items())]
        if lines:
            yield f"\n{name}"
            yield from (line if len(line) <= 80 else line[:79] + "…" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
