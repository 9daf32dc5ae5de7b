"""Compares the cache diagnosis of recorded traffic with the cache hits that providers reported.

    python -m tests.corpus.caches              the table, compared with cache_figures.json
    python -m tests.corpus.caches --json       the same as JSON
    python -m tests.corpus.caches --write      write the results as the new figures

It counts the calls that continue an earlier call and whose answers report cached tokens, in recordings of two or more
exchanges. The archives are next to the repository; without them it does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from tests.corpus.proof import CORPORA, WORKERS

from wiretape.adapters.importers.importing import ImportedExchange, import_files
from wiretape.adapters.importers.write_imported import write_imported
from wiretape.analyze.cache.diagnosis import diagnose
from wiretape.analyze.cache.report import CacheCall
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor
from wiretape.wire.registry import decode

FIGURES = Path(__file__).with_name("cache_figures.json")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TITLES = ("rules", "calls", "predicted", "reported", "equal", "more", "less", "served", "missed", "short")
WIDTHS = (14, 5, 9, 9, 5, 5, 5, 6, 6, 6)
MISSED = ("broken", "expired", "too_early", "routed_elsewhere")
Row = Counter[str]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="caches", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="keep what comes out as the figures")
    options = parser.parse_args(arguments)
    archives = sorted(CORPORA.glob("*.tar.xz"))
    if not archives:
        print(f"no recorded traffic at {CORPORA}: nothing to check", file=sys.stderr)
        return 0
    calls = [one for _, found in diagnosed(archives) for one in found]
    rows = table(calls)
    figures = {rules: dict(sorted(row.items())) for rules, row in sorted(rows.items())}
    if options.write:
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    missed = list(misses(kept, rows))
    if options.json:
        print(json.dumps({"ok": not missed, "rules": figures, "missed": missed}, indent=2))
    else:
        print("\n".join([_line(TITLES), *(_line((rules, *_cells(row))) for rules, row in sorted(rows.items()))]))
        print("\n".join(f"MISSED {line}" for line in missed) or "equal to the figures")
    return 1 if missed else 0


def diagnosed(archives: list[Path]) -> Iterator[tuple[str, list[CacheCall]]]:
    """Yield the diagnosis of every recording, file by file."""
    with tempfile.TemporaryDirectory() as directory, ProcessPoolExecutor(WORKERS) as pool:
        for archive in archives:
            with tarfile.open(archive) as tar:
                tar.extractall(directory, filter="data")
        files = sorted(path for path in Path(directory).rglob("*") if path.is_file())
        jobs = [(path, Path(directory)) for path in files]
        for path, found in zip(files, pool.map(_diagnose, jobs, chunksize=16), strict=True):
            yield str(path.relative_to(directory)), found


def _diagnose(job: tuple[Path, Path]) -> list[CacheCall]:
    path, directory = job
    outcomes = import_files([path], "auto" if path.suffix == ".yaml" else "body")
    taken = [one for one in outcomes if isinstance(one, ImportedExchange)]
    if len(taken) < 2:
        return []
    tape = directory / f"{os.getpid()}.tape"
    write_imported(tape, taken, NOW, Redactor(), None)
    return diagnose(build_run(decode(read_tape(tape).exchanges))).calls


def table(calls: list[CacheCall]) -> dict[str, Row]:
    """Return for each set of rules how often the predicted figure was reported, and the verdicts."""
    rows: dict[str, Row] = {}
    for one in calls:
        if one.compared_with is None or one.reported is None:
            continue
        row = rows.setdefault(one.rules, Counter())
        row["calls"] += 1
        row[one.verdict] += 1
        if one.predicted is not None and one.verdict in ("served", *MISSED):
            row["predicted"] += one.predicted
            row["reported"] += one.reported
            row["equal"] += one.reported == one.predicted
            row["more"] += one.reported > one.predicted
            row["less"] += one.reported < one.predicted
    return {rules: +row for rules, row in rows.items()}


def misses(kept: dict[str, dict[str, int]], rows: dict[str, Row]) -> Iterator[str]:
    """Yield figures with fewer correct predictions, or with more misses, than before."""
    for rules, row in rows.items():
        old = kept.get(rules, {})
        for name in ("calls", "equal", "served"):
            if row[name] < old.get(name, 0):
                yield f"{rules}: {name} {row[name]}, was {old[name]}"
        for name in ("less", *MISSED):
            if row[name] > old.get(name, 0):
                yield f"{rules}: {name} {row[name]}, was {old.get(name, 0)}"


def _cells(row: Row) -> tuple[str, ...]:
    short = row["below_minimum"] + row["not_asked"]
    numbers = [row[name] for name in ("calls", "predicted", "reported", "equal", "more", "less", "served")]
    return tuple(f"{number:,}" for number in [*numbers, sum(row[name] for name in MISSED), short])


def _line(cells: tuple[str, ...]) -> str:
    first = cells[0] if len(cells[0]) <= WIDTHS[0] else cells[0][: WIDTHS[0] - 1] + "…"
    return " ".join([first.ljust(WIDTHS[0]), *(c.rjust(w) for c, w in zip(cells[1:], WIDTHS[1:], strict=True))])


if __name__ == "__main__":
    sys.exit(main())
