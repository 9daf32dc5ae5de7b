from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from wiretape.cli.streams import _Sink

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")
PRINTS = """
import sys
from wiretape.cli.streams import ignore_stdout, open_streams
open_streams()
sys.stderr.write("notice 天\\n" * 9000)
sys.stderr.flush()
if "ignore" in sys.argv:
    ignore_stdout()
    print("lines" * 9000)
sys.stdout.flush()
sys.stdin.read()
with open(sys.argv[1], "w") as file:
    file.write(f"{file.fileno()}")
raise SystemExit(7)
"""


@pytest.mark.parametrize("redirection", ["", "2>&-", ">&-", "<&-", "<&- >&- 2>&-", "2>/dev/full", "2> >(true)"])
@pytest.mark.parametrize("ignore", ["", "ignore"])
def test_a_command_goes_on_without_its_streams(redirection: str, ignore: str, tmp_path: Path) -> None:
    """No file that it opens gets the descriptor of one: that would be written to by whatever prints."""
    out = tmp_path / "out"
    command = f'"$0" -c "$1" {out} {ignore} {redirection}'
    done = subprocess.run(["bash", "-c", command, sys.executable, PRINTS], input=b"", capture_output=True, timeout=60)
    assert done.returncode == 7, done.stderr
    assert int(out.read_text()) > 2


@pytest.mark.parametrize("redirection", ["> >(true)", ">/dev/full"])
def test_results_that_cannot_be_printed_are_an_error(redirection: str, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    command = f'"$0" -m wiretape schema {redirection}'
    done = subprocess.run(["bash", "-c", command, sys.executable], capture_output=True, timeout=60, cwd=tmp_path)
    assert done.returncode == (2 if "full" in redirection else 141)


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    """A program that shares the terminal may have set it so."""
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    text = b"x" * 1_000_000
    read: list[bytes] = []

    def slowly() -> None:
        while data := os.read(source, 60_000):
            read.append(data)
            time.sleep(0.001)

    reader = threading.Thread(target=slowly)
    reader.start()
    with _Sink(sink, "wb", closefd=True) as file:
        left = memoryview(text)
        while left:
            left = left[file.write(left) :]
    reader.join()
    os.close(source)
    assert b"".join(read) == text
