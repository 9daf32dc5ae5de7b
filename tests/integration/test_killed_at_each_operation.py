"""A process that ends at any of its file operations, or in the middle of a write, loses no finished call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("suffix", [".tape", ".tape.zst"])
@pytest.mark.parametrize(
    ("scenario", "least"), [("record", 40), ("append", 20), ("append-torn", 20), ("append-closed", 15), ("rewrite", 5)]
)
def test_no_finished_call_is_lost_at_any_operation(tmp_path: Path, scenario: str, least: int, suffix: str) -> None:
    if suffix.endswith(".zst") and sys.version_info < (3, 14):
        pytest.importorskip("backports.zstd", reason="needs the extra zstd")
    made = subprocess.run(
        [sys.executable, "-m", "tests.support.killing", scenario, suffix, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    operations = int(made.stdout.split()[0])
    assert made.stdout == f"{operations} operations, 0 failures\n", made.stderr
    assert operations > least
