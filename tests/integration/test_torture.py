"""Short runs of the campaigns that try to lose calls."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("mitmproxy", reason="the recorder needs mitmproxy (Python 3.12 or later)")

from tests.torture import full_disk, kills, soak

pytestmark = [pytest.mark.proxy, pytest.mark.slow]
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@unix
def test_recorders_that_are_killed(capsys: pytest.CaptureFixture[str]) -> None:
    assert kills.main(["--count", "8", "--seed", "8"]) == 0, capsys.readouterr().out


@unix
def test_disks_that_are_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert full_disk.main(["--count", "1", "--seed", "3"]) == 0, capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_stays_flat(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--count", "600"]) == 0, capsys.readouterr().out
