"""A short run of the campaign that tries every way out of a replay (tests/torture/escapes.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.sealing import need_sealing
from tests.torture.escapes import why_not

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
ROOT = Path(__file__).parent.parent.parent


def test_a_few_ways_lead_nowhere_unannounced() -> None:
    if problem := why_not():
        pytest.skip(problem)
    need_sealing()
    command = [sys.executable, "-m", "tests.torture.escapes", "--seed", "3", "--count", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120)
    assert (done.returncode, " 20 ways; 0 failures; " in done.stdout) == (0, True), done.stdout + done.stderr
