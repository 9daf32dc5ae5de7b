"""Record and replay many calls, and measure the memory of the recorder and of the replay server while they work.

Memory may grow by 15 MB between the 1,000th and the last call. The default is 10,000 calls.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.support.upstream import Upstream
from tests.torture.campaign import WIRETAPE, Campaign, start
from wiretape.tape.reading.reader import read_tape

ALLOWED_MB = 15.0
SETTLED = 1_000  # calls, before memory is measured for the first time
WORKERS = 4
JSON = {"content-type": "application/json"}
TURN = 20  # calls of one conversation


def request(number: int) -> bytes:
    """A call of a conversation that grows, and restarts from time to time."""
    first = number - number % TURN
    messages = [{"role": "user", "content": f"question {n} {'word ' * 60}"} for n in range(first, number + 1)]
    return json.dumps({"model": "m", "messages": messages}).encode()


def calls(port: int, base: str, numbers: Iterator[int], lock: threading.Lock, failed: list[str]) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                connection.request("POST", f"{base}/chat/completions", request(number), JSON)
                answer = connection.getresponse()
                if answer.read() and answer.status != 200:
                    failed.append(f"call {number}: {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                failed.append(f"call {number}: {type(error).__name__}: {error}")
                connection.close()


def resident_mb(pid: int) -> float:
    """The resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:"))) / 1024


@contextmanager
def running(arguments: list[str], port: int, directory: Path) -> Iterator[int]:
    """A `wiretape` command that listens. Its process id."""
    environ = {**os.environ, "XDG_STATE_HOME": str(directory / "state")}
    process = subprocess.Popen(
        [str(WIRETAPE), *arguments], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while process.poll() is None:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(300)


def growth(campaign: Campaign, what: str, pid: int, port: int, base: str) -> None:
    """Make the calls, and measure."""
    failed: list[str] = []
    lock, numbers = threading.Lock(), iter(range(campaign.count))
    settled = min(SETTLED, campaign.count // 2)
    measured = []
    for part in (settled, campaign.count - settled):
        share = itertools.islice(numbers, part)
        workers = [threading.Thread(target=calls, args=(port, base, share, lock, failed)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        time.sleep(1)
        measured.append(resident_mb(pid))
    grown = measured[1] - measured[0]
    print(f"soak: {what}: {measured[0]:.1f} MB after {settled:,} calls, {measured[1]:.1f} MB after {campaign.count:,}")
    campaign.tried[f"{what} calls"] += campaign.count
    for one in failed[:5]:
        campaign.fail(f"{what}: {one}")
    if grown > ALLOWED_MB:
        campaign.fail(f"{what}: memory grew by {grown:.1f} MB")


def main(argv: list[str]) -> int:
    campaign = start("soak", argv, 10_000)
    if not Path("/proc/self/status").exists():
        print("soak: skipped: memory is read from /proc, which is not here")
        return 0
    with tempfile.TemporaryDirectory() as name, Upstream() as upstream, socket.socket() as free:
        directory, tape = Path(name), Path(name, "soak.tape")
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        free.close()
        base = f"/http:127.0.0.1:{upstream.port}/v1"
        with running(["record", "-o", str(tape), "--port", str(port), "--no-stats"], port, directory) as pid:
            growth(campaign, "recorded", pid, port, base)
        found = len(read_tape(tape).exchanges)
        if found != campaign.count:
            campaign.fail(f"{found} of {campaign.count} calls are on the tape")
        with running(["replay", "--port", str(port), str(tape)], port, directory) as pid:
            growth(campaign, "replayed", pid, port, base)
    return campaign.finish()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
