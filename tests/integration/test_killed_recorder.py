"""A recorder that is killed at any moment loses no finished exchange."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.taping import Taping

from wiretape.model.http import Ended, Exchange, body_bytes
from wiretape.tape.reading.reader import read_tape

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
# Records calls as fast as it can, several open at a time, and says the number of each that has ended.
PROGRAM = """
import itertools, os, sys
from datetime import UTC, datetime
from pathlib import Path
from wiretape.model.http import Ended
from wiretape.tape.recording import writer_thread as binding
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor
binding._REWRITE_FROM = int(sys.argv[2])
started = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
r = Recorder(Path(sys.argv[1]), clock=lambda: 100.0, started=started, redactor=Redactor(), append=True)
SSE_TYPE = [("content-type", "text/event-stream")]
history, open_ones = [], []
long = r.begin("GET", "https://events.example/", "1.1", [])
r.request_end(long); r.response(long, 200, SSE_TYPE)
ws = r.begin("GET", "wss://socket.example/", "1.1", [])
r.request_end(ws); r.response(ws, 101, [])
os.write(1, b"open %d %d\\n" % (long, ws))
for step in itertools.count():
    history.append('{"role":"user","content":"%s"}' % ("step %d " % step * 30))
    x = r.begin("POST", "https://a.example/", "1.1", [])
    r.request_data(x, ('{"messages":[' + ",".join(history[-40:]) + "]}").encode()); r.request_end(x)
    r.response(x, 200, SSE_TYPE)
    for n in range(3):
        r.response_data(x, b"data: %d of %d\\n\\n" % (n, x))
    r.response_data(long, b"data: tick %d\\n\\n" % step)
    r.message(ws, "server", '{"step":%d}' % step)
    open_ones.append(x)
    if len(open_ones) == 3:
        done = open_ones.pop(step % 3)
        r.end(done, Ended.COMPLETE)
        os.write(1, b"ended %d %d\\n" % (done, step))
"""


def record_and_kill(path: Path, calls: int, seconds: float, rewrite_from: int) -> tuple[set[int], int, int, int]:
    """Killed so long after so many calls have ended.

    Numbers that ended; the long stream's and the WebSocket's numbers, and the last step that both saw.
    """
    command = [sys.executable, "-c", PROGRAM, str(path), str(rewrite_from)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    assert process.stdout is not None
    first = process.stdout.readline().split()
    output = b"".join(process.stdout.readline() for _ in range(calls))
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    output += process.stdout.read()
    process.wait()
    process.stdout.close()
    ended, last = set(), -1
    for line in output.splitlines(keepends=True):
        if line.endswith(b"\n"):
            _, number, step = line.split()
            ended.add(int(number))
            last = int(step)
    return ended, int(first[1]), int(first[2]), last


def check(found: dict[int, Exchange], ended: set[int], long: int, ws: int, last: int) -> None:
    for number in ended:
        exchange = found[number]
        assert exchange.ended is Ended.COMPLETE
        assert exchange.response is not None
        assert body_bytes(exchange.response.body) == b"".join(b"data: %d of %d\n\n" % (n, number) for n in range(3))
        assert body_bytes(exchange.request.body).endswith(b"]}")
    stream = found[long].response
    assert stream is not None
    assert body_bytes(stream.body).startswith(b"".join(b"data: tick %d\n\n" % step for step in range(last + 1)))
    steps = [body_bytes(message.body) for message in found[ws].messages]
    assert steps[: last + 1] == [b'{"step":%d}' % step for step in range(last + 1)]
    assert len(set(steps)) == len(steps)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize(("suffix", "rewrite_from"), [(".tape", 2**23), (".tape", 0), (".tape.zst", 2**23)])
def test_a_killed_recorder_loses_no_finished_exchange(tmp_path: Path, suffix: str, rewrite_from: int) -> None:
    """Killed at random moments, many times over, on one and the same tape; also while the journal is rewritten."""
    if suffix.endswith(".zst") and sys.version_info < (3, 14):
        pytest.importorskip("backports.zstd", reason="needs the extra zstd")
    source = random.Random(20260301)
    path = tmp_path / f"killed{suffix}"
    runs = []
    for _ in range(12):
        runs.append(record_and_kill(path, source.randrange(60), source.uniform(0.0, 0.01), rewrite_from))
        tape = read_tape(path)
        found = {exchange.number: exchange for exchange in tape.exchanges}
        for run in runs:
            check(found, *run)
        assert tape.incomplete
    assert sum(len(ended) for ended, *_ in runs) > 100
    before = read_tape(path)
    Taping(path, append=True).recorder.close()  # folds the last journal in
    assert not path.with_name(path.name + ".journal").exists()
    after = read_tape(path)
    assert [x.number for x in after.exchanges] == [x.number for x in before.exchanges]
    assert all(x.ended is not None for x in after.exchanges)
    for run in runs:
        check({exchange.number: exchange for exchange in after.exchanges}, *run)


def test_a_journal_that_was_folded_in_already_adds_nothing(tmp_path: Path) -> None:
    """A crash between folding a journal in and removing it."""
    path = tmp_path / "twice.tape"
    journal = tmp_path / "twice.tape.journal"
    taping = Taping(path)
    taping.call(b'{"a":1}', [b'{"b":2}'])
    x = taping.recorder.begin("GET", "wss://socket.example/", "1.1", [])
    taping.recorder.request_end(x)
    taping.recorder.response(x, 101, [])
    taping.recorder.message(x, "client", "hello")
    kept = journal.read_bytes()
    taping.recorder.close()
    once = read_tape(path)
    journal.write_bytes(kept)
    assert read_tape(path).exchanges == once.exchanges
    Taping(path, append=True).recorder.close()
    assert read_tape(path).exchanges == once.exchanges
