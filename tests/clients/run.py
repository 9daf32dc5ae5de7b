"""Records real agent clients through wiretape, then replays them with wiretape as the only server.

    python tests/clients/run.py [--kit DIRECTORY] [--runs N] [--sealed] [--changed] [--json FILE] [--write] [CASE...]

CASE is a name or its beginning (`codex`, `pi-`); the default is every case whose client is installed. The script prints
a table: calls, drift by kind, misses, verdict. A verdict is `ok` only if the tree of agents is the one in trees.py.
`--sealed` replays once more with `wiretape replay --sealed`; the verdict must be the same. `--changed` replays once
more with another prompt; the replay must miss and show the change. The kit (drive.py and a scripted mock;
`../shared/clients` beside the repository) and the installed clients (CLIENTS_DIR, ~/.cache/agent-clients) are not part
of wiretape: without them the script prints a notice and exits with 0. It needs Linux, for a separate network, and takes
minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from tests.clients.cases import CASES, Case  # noqa: E402
from tests.clients.changed import changed_command, verdict_of_changed  # noqa: E402
from tests.clients.page import PAGE, with_rows  # noqa: E402
from tests.clients.trees import differences  # noqa: E402
from tests.support.trees import tree_of  # noqa: E402
from wiretape.compare.mask import Masker  # noqa: E402
from wiretape.tape.reading.reader import read_tape  # noqa: E402

PATIENCE_S = 150
MOCK_PORT = 9000
_PRINTED = (r"\bCommit [0-9a-f]{7}\b",)  # a new one
_UNREACHED = re.compile(r"(?m)^HTTPSConnectionPool\(.*\n?")  # aider prints it for each failed attempt to reach a host
COLUMNS = ("case", "version", "calls", "exact", "normalized", "masked", "misses", "left over", "time", "verdict")


@dataclass
class Result:
    """The result of one run of a case."""

    case: str
    version: str = ""
    calls: int = 0
    tiers: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)  # where live requests differed
    misses: list[str] = field(default_factory=list)
    left_over: int = 0
    seconds: float = 0.0
    verdict: str = ""
    tree: list[str] = field(default_factory=list)  # turns, agents, messages between them, side calls

    @property
    def cells(self) -> tuple[str, ...]:
        tiers = (str(self.tiers[name]) for name in ("exact", "normalized", "masked"))
        misses, left = str(len(self.misses)), str(self.left_over)
        return (self.case, self.version, str(self.calls), *tiers, misses, left, f"{self.seconds:.0f} s", self.verdict)


class Clients:
    """The kit and the installed clients."""

    def __init__(
        self, kit: Path, installed: Path, wiretape: Path, keep: Path, changed: bool = False, sealed: bool = False
    ) -> None:
        self.kit, self.installed, self.wiretape, self.keep = kit, installed, wiretape, keep
        self.changed, self.sealed = changed, sealed

    def filled(self, text: str) -> str:
        return (
            text.replace("{d}", str(self.installed)).replace("{kit}", str(self.kit)).replace("{keep}", str(self.keep))
        )

    def has(self, case: Case) -> bool:
        return Path(self.filled(case.needs)).exists()

    def run(self, case: Case) -> Result:
        began = time.monotonic()
        result = Result(case.name, self.version(case))
        tape = self.keep / f"{case.name}.tape"
        command = [self.filled(word) for word in case.command]
        record = [str(self.wiretape), "record", "--no-stats", "--force", "-o", str(tape), "--", *command]
        if case.tls_hosts:
            record = [sys.executable, str(HERE / "tls_front.py"), str(MOCK_PORT), *case.tls_hosts, "--", *record]
        recorded = self._drive(case, "recorded", record)
        said = self._said(case)
        if recorded == 0:
            replayed = self._replay(case, "replayed", tape, command)
            _read_report(self._report(case, "replayed"), result)
            result.verdict = _verdict(result, replayed, said, self._said(case))
            result.tree = list(tree_of(read_tape(tape).exchanges))
            wrong = differences(case.name, tuple(result.tree))
            if wrong and result.verdict == "ok":
                result.verdict = f"another tree: {'; '.join(wrong)}"
        else:
            result.verdict = f"the recording ended with {recorded}"
        if self.sealed and result.verdict == "ok":
            result.verdict = self._sealed(case, tape, command, said)
        if self.changed and result.verdict == "ok":
            result.verdict = self._with_another_prompt(case, tape, command)
        result.seconds = time.monotonic() - began
        return result

    def _report(self, case: Case, what: str) -> Path:
        return self.keep / f"{case.name}.{what}.json"

    def _replay(self, case: Case, what: str, tape: Path, command: list[str], *flags: str) -> int | str:
        report = self._report(case, what)
        report.unlink(missing_ok=True)
        replay = [str(self.wiretape), "replay", *flags, "--report", str(report), str(tape), "--", *command]
        return self._drive(case, what, replay, "--no-mock")

    def _sealed(self, case: Case, tape: Path, command: list[str], recorded: str) -> str:
        """Return the verdict of a replay in a network without any other host."""
        code = self._replay(case, "sealed", tape, command, "--sealed")
        seen = Result(case.name)
        _read_report(self._report(case, "sealed"), seen)
        verdict = _verdict(seen, code, recorded, self._said(case))
        return "ok" if verdict == "ok" else f"sealed: {verdict}"

    def _with_another_prompt(self, case: Case, tape: Path, command: list[str]) -> str:
        """Return the verdict of a replay."""
        code = self._replay(case, "changed", tape, changed_command(command, self.keep))
        seen = Result(case.name)
        _read_report(self._report(case, "changed"), seen)
        return verdict_of_changed(code, seen.misses)

    def version(self, case: Case) -> str:
        """Return the version in the package's metadata. Python cases have several packages, so they have none."""
        program = Path(self.filled(case.needs))
        installed = program.parent.parent.glob(f"lib/*/site-packages/{program.name}[_-]*.dist-info")
        if program.name != "python" and (found := next(installed, None)):
            return found.name.removesuffix(".dist-info").rpartition("-")[2]
        for parent in list(program.resolve().parents)[:4]:
            manifest = parent / "package.json"
            if "node_modules" in str(parent) and manifest.exists():
                return str(json.loads(manifest.read_text()).get("version", ""))
        return ""

    def _drive(self, case: Case, what: str, command: list[str], *more: str) -> int | str:
        options = ["--script", case.script, "--timeout", str(PATIENCE_S), *more]
        options += ["--home", case.home] if case.home else []
        options += ["--base", case.base] if case.base else []
        for variable in case.variables:
            options += ["--env", self.filled(variable)]
        shutil.copy(HERE / "qwen.settings.json", self.keep)  # Qwen Code rewrites its settings
        name = f"wiretape-{case.name}"
        done = subprocess.run(
            [sys.executable, str(self.kit / "drive.py"), name, *options, "--", *command],
            env={**os.environ, "CLIENTS_DIR": str(self.installed)},
            capture_output=True,
            text=True,
        )
        (self.keep / f"{case.name}.{what}.log").write_text(done.stdout + done.stderr)
        meta = self.installed / "logs" / f"{name}.meta.json"
        if not meta.exists():
            return f"nothing run: {done.stderr.strip().splitlines()[-1:]}"
        code: int | str = json.loads(meta.read_text())["rc"]
        meta.unlink()
        return code

    def _said(self, case: Case) -> str:
        text = (self.installed / "logs" / f"wiretape-{case.name}.out").read_text(errors="replace").strip()
        return once(text) if case.subagents else text


def once(text: str) -> str:
    """Merge equal consecutive paragraphs: an agent may repeat its last answer for each report of a subagent."""
    return "\n\n".join(paragraph for paragraph, _ in groupby(text.split("\n\n")))


def _read_report(path: Path, result: Result) -> None:
    if not path.exists():
        return
    report: dict[str, Any] = json.loads(path.read_text())
    calls = [played for played in report["played"] if played["answer"]["call"] is not None]
    result.calls = len(calls) + len(report["missed"])
    result.tiers = Counter(played["tier"] for played in calls)
    result.places = [drift["where"] for drift in report["drifted"]]
    result.misses = [missed["message"] for missed in report["missed"]]
    result.left_over = sum(1 for left in report["left_over"] if left["call"] is not None)


def _verdict(result: Result, code: int | str, recorded: str, replayed: str) -> str:
    if result.misses:
        return "missed"
    if code != 0:
        return f"the replay ended with {code}"
    if not result.calls:
        return "no model call came by"
    masker = Masker(_PRINTED)  # programs also print durations
    plain, again = (masker.text(_UNREACHED.sub("", text).strip()) for text in (recorded, replayed))
    if plain != again:
        return "played, but the program said something else"
    return "ok"


def table(results: list[Result]) -> str:
    rows = [COLUMNS, *(result.cells for result in results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def write(results: list[Result]) -> None:
    """Write the results into the documentation. Several runs of a case are summed in one row."""
    day = time.strftime("%Y-%m-%d")
    rows = [(*result.cells, day) for result in merged(results)]
    PAGE.write_text(
        with_rows(PAGE.read_text("utf-8"), (*COLUMNS, "seen"), rows, [case.name for case in CASES]), encoding="utf-8"
    )


def read_results(files: list[Path]) -> list[Result]:
    """Read the results that `--json` wrote."""
    documents = [one for file in files for one in json.loads(file.read_text("utf-8"))]
    return [Result(**{**document, "tiers": Counter(document["tiers"])}) for document in documents]


def merged(results: list[Result]) -> list[Result]:
    """Merge the results of each case. Its verdict is the first one that is not `ok`."""
    sums: dict[str, Result] = {}
    counts: Counter[str] = Counter()
    for one in results:
        counts[one.case] += 1
        known = sums.get(one.case)
        if known is None:
            sums[one.case] = replace(one)
            continue
        sums[one.case] = replace(
            one,
            calls=known.calls + one.calls,
            tiers=known.tiers + one.tiers,
            misses=known.misses + one.misses,
            left_over=known.left_over + one.left_over,
            seconds=known.seconds + one.seconds,
            verdict=known.verdict if known.verdict != "ok" else one.verdict,
        )
    return [
        replace(one, verdict=f"{one.verdict} ({counts[one.case]} runs)" if counts[one.case] > 1 else one.verdict)
        for one in sums.values()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--kit", type=Path, default=ROOT.parent / "shared" / "clients")
    parser.add_argument("--runs", type=int, default=1, help="how often each case is run")
    parser.add_argument("--sealed", action="store_true", help="replay each case with --sealed, too")
    parser.add_argument("--changed", action="store_true", help="replay each case with another prompt, too")
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--write", action="store_true", help="write the rows into docs/clients.md")
    parser.add_argument(
        "--from", dest="earlier", type=Path, action="append", help="results that --json wrote; run nothing"
    )
    parser.add_argument("--keep", type=Path, help="keep tapes, reports and logs in this directory")
    asked = parser.parse_args()
    if asked.earlier:
        loaded = read_results(asked.earlier)
        print(table(merged(loaded)))
        if asked.write:
            write(loaded)
        return 0
    installed = Path(os.environ.get("CLIENTS_DIR", Path.home() / ".cache" / "agent-clients")).resolve()
    missing = [str(path) for path in (asked.kit / "drive.py", installed / "venv" / "mock") if not path.exists()]
    if missing:
        print(f"no real clients here, nothing was run: {' and '.join(missing)} not found (--kit, CLIENTS_DIR)")
        return 0
    chosen = [case for case in CASES if not asked.cases or case.name.startswith(tuple(asked.cases))]
    keep = asked.keep or Path(tempfile.mkdtemp(prefix="wiretape-clients-"))
    keep.mkdir(parents=True, exist_ok=True)
    wiretape = Path(sys.executable).with_name("wiretape")
    clients = Clients(asked.kit.resolve(), installed, wiretape, keep.resolve(), asked.changed, asked.sealed)
    absent = sorted({case.name for case in chosen if not clients.has(case)})
    results: list[Result] = []
    for case in (case for case in chosen if clients.has(case)):
        for _ in range(asked.runs):
            results.append(clients.run(case))
            print("  ".join(results[-1].cells), file=sys.stderr, flush=True)
            for line in results[-1].tree if case.subagents else ():
                print(f"    {line}", file=sys.stderr, flush=True)
    if asked.json:
        asked.json.write_text(json.dumps([vars(result) for result in results], indent=1, ensure_ascii=False) + "\n")
    print(table(results))
    if asked.write:
        write(results)
    if absent:
        print(f"not installed: {', '.join(absent)}")
    print(f"tapes, reports and logs: {keep}")
    return 0 if all(result.verdict == "ok" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
