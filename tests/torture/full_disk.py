"""Fill the disk while a tape is recorded, continued and rewritten, and compare the files with the promises.

The disk is a small tmpfs, where this user may mount one. Otherwise a file size limit simulates it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.upstream import CHAT_EVENTS, Upstream
from tests.torture.campaign import WIRETAPE, Campaign, start
from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.storage import journal_path

CALLS = 12
KEY = "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl"
_FULL = ("No space left on device", "File too large")
_COUNTED = re.compile(r"^wiretape (\d+) exchanges? on ", re.MULTILINE)


def agent(size: int) -> int:
    """The program that is recorded: it must get every answer, however full the disk is."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    host, _, base = os.environ["OPENAI_BASE_URL"].removeprefix("http://").partition("/")
    for number in range(CALLS):
        body = json.dumps({"model": "m", "stream": number % 2 == 1, "pad": os.urandom(size // 2).hex()})
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request("POST", f"/{base}/chat/completions", body, {"authorization": f"Bearer {KEY}"})
        assert connection.getresponse().read(), number
        connection.close()
    return 0


class Disk:
    """A directory with little room."""

    def __init__(self, directory: Path, mounted: bool, room: int) -> None:
        self.directory, self.room = directory, None if mounted else room

    def run(self, *arguments: str, url: str = "") -> subprocess.CompletedProcess[str]:
        """Run `wiretape`."""
        root = str(Path(__file__).parents[2])
        environ = {
            **os.environ,
            "OPENAI_BASE_URL": url,
            "PYTHONPATH": root,
            "XDG_STATE_HOME": str(self.directory.parent / "state"),
        }
        environ.pop("WIRETAPE_DEBUG", None)
        return subprocess.run(
            [str(WIRETAPE), *arguments],
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            preexec_fn=None if self.room is None else self._limit,
        )

    def _limit(self) -> None:
        import resource

        assert self.room is not None
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.room, resource.RLIM_INFINITY))

    def fill(self) -> None:
        """Leave no byte."""
        self.room = None if self.room is None else 0
        if self.room is None:
            with suppress(OSError), open(self.directory / "fill", "wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass

    def empty(self) -> None:
        self.room = None if self.room is None else 10**9
        (self.directory / "fill").unlink(missing_ok=True)
        if self.room is None:
            subprocess.run(["mount", "-o", "remount,size=64m", str(self.directory)], check=True)


@contextmanager
def disk(directory: Path, room: int) -> Iterator[Disk]:
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={room // 1024}k", "tmpfs", str(directory)]
    mounted = False
    with suppress(OSError):
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield Disk(directory, mounted, room)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(directory)], check=True)


def contents(tape: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (tape, journal_path(tape)) if path.exists()}


def numbers(tape: Path) -> list[int]:
    """The exchanges of a tape that are complete; those must be whole."""
    found = [one for one in read_tape(tape).exchanges if one.ended is Ended.COMPLETE]
    for one in found:
        assert one.response is not None
        answer, request = body_bytes(one.response.body), body_bytes(one.request.body)
        assert request.endswith(b'"}'), f"x{one.number} has half a request"
        if b'"stream": true' in request:
            assert answer == b"".join(CHAT_EVENTS), f"x{one.number} has half an answer"
    return [one.number for one in found]


def attempt(campaign: Campaign, disk: Disk, upstream: Upstream, what: str) -> None:
    tape = disk.directory / f"t{campaign.source.choice(['.tape', '.tape', '.tape.zst'])}"
    size = campaign.source.choice([1_000, 20_000, 100_000])

    def check(right: bool, said: str) -> None:
        campaign.tried["checks"] += 1
        if not right:
            campaign.fail(f"{what}, {tape.name}, {size} bytes a call: {said}")

    program = [sys.executable, "-m", "tests.torture.full_disk", "agent", str(size)]
    done = disk.run("record", "-o", str(tape), "--no-stats", "--", *program, url=f"{upstream.url}/v1")
    if "cannot be written" in done.stderr and not tape.exists():
        check(done.returncode == 2, f"no room to begin: exit {done.returncode}")
        return
    full = "IS INCOMPLETE" in done.stderr
    campaign.tried["full while recorded"] += full
    check(done.returncode == (4 if full else 0), f"record: exit {done.returncode}: {done.stderr[-300:]}")
    found = read_tape(tape).exchanges if tape.exists() or journal_path(tape).exists() else ()
    counted = _COUNTED.search(done.stderr)
    check(int(counted[1]) == len(found) if counted else not found, f"{len(found)} are on disk: {done.stderr[-300:]}")
    check(full or len(found) == CALLS, f"{len(found)} of {CALLS} calls, and nothing was reported")
    if found:
        _rewrite(check, disk, tape, program, f"{upstream.url}/v1")


def _rewrite(check: Callable[[bool, str], None], disk: Disk, tape: Path, program: list[str], url: str) -> None:
    """On a full disk, no operation changes a tape; with space, recording continues."""
    whole = numbers(tape)
    disk.fill()
    other = tape.with_name(f"other{''.join(tape.suffixes)}")
    for arguments in (
        ["record", "-o", str(tape), "--append", "--no-stats", "--", "true"],
        ["record", "-o", str(tape), "--force", "--no-stats", "--", "true"],
        ["redact", str(tape), "--pattern", "model"],
        ["merge", str(tape), str(tape), "-o", str(other)],
    ):
        before = contents(tape)
        done = disk.run(*arguments)
        refused = done.returncode == 2 and any(word in done.stderr for word in _FULL)
        kept = contents(tape) == before
        check(kept or not refused, f"{arguments[0]}: the tape has changed, and it failed: {done.stderr[-200:]}")
        check(numbers(tape) == whole, f"{arguments[:4]}: {len(numbers(tape))} of {len(whole)} calls are left")
        check(done.returncode != 70 and "Traceback" not in done.stderr, f"{arguments[0]}: {done.stderr[-300:]}")
        check(not other.exists(), "merge has left half a tape")
        check(not list(tape.parent.glob(".*.new")), "a temporary file was left")
    disk.empty()
    done = disk.run("record", "-o", str(tape), "--append", "--no-stats", "--", *program, url=url)
    check(done.returncode == 0, f"append with room: exit {done.returncode}: {done.stderr[-300:]}")
    after = numbers(tape)
    check(set(whole) < set(after) and len(after) == len(whole) + CALLS, f"{len(after)} calls after {len(whole)}")


def main(argv: list[str]) -> int:
    campaign = start("full_disk", argv, 16)
    with tempfile.TemporaryDirectory() as name, Upstream() as upstream:
        for number in range(campaign.count):
            room = campaign.source.choice([4, 40, 200, 600, 1500, 3000]) * 1024
            with disk(Path(name, str(number)), room) as made:
                campaign.tried["disks" if made.room is None else "limits on the size of files"] += 1
                try:
                    attempt(campaign, made, upstream, f"{room // 1024} kB")
                except Exception as error:
                    campaign.fail(f"{room // 1024} kB: {type(error).__name__}: {error}")
    return campaign.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["agent"]:
        raise SystemExit(agent(int(sys.argv[2])))
    raise SystemExit(main(sys.argv[1:]))
