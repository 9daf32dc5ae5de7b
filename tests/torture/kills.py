"""Kill recorders at random instants, also while they continue a tape, and search for lost finished calls.

A call has finished when its client has the whole answer. Each tape is recorded in one to four rounds; every round but
the last is killed: while calls run, while `--append` opens the tape, at a change of the tape's directory, or while the
recorder closes the tape. Calls come over the base-URL route, through the HTTP proxy, and from a child of `record`.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from tests.support import starting
from tests.support.upstream import CHAT_EVENTS, Upstream
from tests.torture.campaign import Campaign, start
from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor
from wiretape.tape.storage import journal_path

KEY = "Bearer sk-proj-Ab12Cd34Ef56Gh78Ij90Kl"
PADS = (1_000, 30_000, 400_000)  # bytes of a request: a large tape takes long to rewrite
WORKERS = 4
_START_S = 60.0


def converse(route: tuple[str, int, str], tag: str, seed: int, stop: threading.Event, finished: list[str]) -> None:
    """Make calls until the recorder has gone, and note each whose answer has come whole. The tag states their size."""
    pad = int(tag.split("-")[1])
    host, port, base = route
    source = random.Random(seed)
    with closing(http.client.HTTPConnection(host, port, timeout=60)) as connection:
        for number in range(10_000):
            if stop.is_set():
                return
            name, streamed = f"{tag}-{number}", source.random() < 0.5
            body = json.dumps({"model": "m", "stream": streamed, "pad": source.randbytes(pad // 2).hex()})
            path = f"{base}/{name}/chat/completions" if streamed else f"{base}/{name}/echo"
            try:
                connection.request("POST", path, body, {"content-type": "application/json", "authorization": KEY})
                answer = connection.getresponse()
                data = answer.read()
            except (OSError, http.client.HTTPException):
                return
            if answer.status == 200 and (data.endswith(CHAT_EVENTS[-1]) if streamed else name.encode() in data):
                finished.append(name)
            if source.random() < 0.2:
                connection.close()  # the next request opens it again


def child(log: str, tag: str) -> int:
    """The program that `wiretape record` runs: the same workers, with finished calls listed in a file."""

    class Log(list[str]):
        def append(self, name: str) -> None:
            os.write(descriptor, f"{name}\n".encode())

    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    host, _, rest = os.environ["OPENAI_BASE_URL"].removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    converse((name, int(port), f"/{rest}"), tag, int.from_bytes(tag.encode()), threading.Event(), Log())
    os.write(descriptor, b".\n")
    return 0


class Round:
    """One recorder, its clients, and what they have received whole."""

    def __init__(self, campaign: Campaign, tape: Path, upstream: Upstream, tag: str, append: bool) -> None:
        self._source, self._tape, self._tag = campaign.source, tape, tag
        self._stop, self.finished = threading.Event(), list[str]()
        self._log = tape.parent / f"{tag}.log"
        self.by_child = self._source.random() < 0.25
        self.port = _free_port()
        arguments = ["record", "-o", str(tape), "--port", str(self.port), "--no-stats", *(["--append"] * append)]
        if self.by_child:
            arguments += ["--", sys.executable, "-m", "tests.torture.kills", "child", str(self._log), tag]
        kept = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
        root = str(Path(__file__).parents[2])
        environ = {
            **kept,
            "XDG_STATE_HOME": str(tape.parent.parent / "state"),
            "OPENAI_BASE_URL": f"{upstream.url}/v1",
            "PYTHONPATH": root,
        }
        self._before = _directory(tape.parent)
        with open(tape.parent.parent / "stderr", "ab") as err, open(os.devnull, "wb") as nowhere:
            self.process = starting.start(
                arguments, env=environ, cwd=Path(root), stdout=nowhere.fileno(), stderr=err.fileno()
            )
        self._routes = [
            ("127.0.0.1", self.port, f"/http:127.0.0.1:{upstream.port}"),
            ("127.0.0.1", self.port, f"http://127.0.0.1:{upstream.port}"),
        ]
        self._workers: list[threading.Thread] = []

    def listens(self) -> bool:
        """Wait until the recorder listens; False if it has ended."""
        patience = time.monotonic() + _START_S
        while time.monotonic() < patience:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            try:
                os.kill(self.process.pid, 0)
            except ProcessLookupError:
                return False
            time.sleep(0.01)
        return False

    def converse(self) -> None:
        for number in range(0 if self.by_child else WORKERS):
            arguments = (
                self._routes[number % 2],
                f"{self._tag}-{number}",
                self._source.getrandbits(32),
                self._stop,
                self.finished,
            )
            self._workers.append(threading.Thread(target=converse, args=arguments))
            self._workers[-1].start()

    def wait_for_change(self, changes: int, patience_s: float) -> None:
        """Until the tape's directory has changed so many times."""
        last, until = self._before, time.monotonic() + patience_s
        while changes > 0 and time.monotonic() < until:
            now = _directory(self._tape.parent)
            changes -= now != last
            last = now

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)

    def interrupt(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Wait for all workers, and collect the finished calls."""
        self._stop.set()
        self.process.wait()
        for worker in self._workers:
            worker.join()
        patience = time.monotonic() + 20
        while self.by_child and self._log.exists() and time.monotonic() < patience:
            names = self._log.read_text().split("\n")
            if "." in names:
                break
            time.sleep(0.02)
        if self._log.exists():
            self.finished += [name for name in self._log.read_text().split("\n")[:-1] if name != "."]


def _directory(path: Path) -> list[tuple[str, int, int]]:
    found = []
    for entry in os.scandir(path):
        with suppress(OSError):
            status = entry.stat()
            found.append((entry.name, status.st_ino, status.st_size))
    return sorted(found)


def prepare(tape: Path, tag: str, pad: int, calls: int) -> list[str]:
    """Leave a tape and a journal as a killed recorder does: a large tape takes long to rewrite. Return its calls."""
    made = tape.with_name(f"made{''.join(tape.suffixes)}")
    recorder = Recorder(made, clock=time.monotonic, started=datetime.now(UTC), redactor=Redactor())
    names = [f"{tag}-{pad}-{number}" for number in range(calls)]
    for name in names:
        x = recorder.begin("POST", f"http://127.0.0.1/v1/{name}/echo", "1.1", [("authorization", KEY)])
        recorder.request_data(x, json.dumps({"model": "m", "pad": os.urandom(pad // 2).hex()}).encode())
        recorder.request_end(x)
        recorder.response(x, 200, [("content-type", "application/json")])
        recorder.response_data(x, json.dumps({"path": name}).encode())
        recorder.end(x, Ended.COMPLETE)
    while len(read_tape(made).exchanges) < calls:
        time.sleep(0.01)
    shutil.copy(journal_path(made), journal_path(tape))
    shutil.copy(made, tape)
    recorder.close()
    made.unlink()
    return names


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def lost(tape: Path, finished: list[str]) -> list[str]:
    """Of the calls that had finished, those that a reader does not get whole."""
    whole = {}
    for exchange in read_tape(tape).exchanges if finished else ():
        if exchange.response is not None and exchange.ended is Ended.COMPLETE:
            whole[exchange.request.url.split("/")[-2 if exchange.request.url.endswith("/echo") else -3]] = exchange
    missing = []
    for name in finished:
        found = whole.get(name)
        if found is None or found.response is None:
            missing.append(name)
            continue
        answer, request = body_bytes(found.response.body), body_bytes(found.request.body)
        right = name.encode() in answer or answer == b"".join(CHAT_EVENTS)
        if not right or len(request) < int(name.split("-")[1]):
            missing.append(f"{name} (has another text)")
    return missing


def kill_one(campaign: Campaign, round_: Round, append: bool) -> str:
    """Kill a recorder. Return how."""
    source = campaign.source
    ways = ["opening", "change", "change", "running", "closing"] if append else ["running", "closing"]
    how = source.choice(ways)
    if how == "opening":
        time.sleep(source.uniform(0, 0.4))
    elif how == "change":
        round_.wait_for_change(source.choice([1, 1, 1, 2, 4, 8]), 20)
    elif round_.listens():
        round_.converse()
        time.sleep(source.uniform(0.05, 2))
        if how == "closing" and not round_.by_child:
            before = _directory(round_._tape.parent)
            round_.interrupt()
            round_._before = before
            round_.wait_for_change(source.randint(1, 8), source.uniform(0.01, 1))
    round_.kill()
    return how


def one_tape(campaign: Campaign, directory: Path, upstream: Upstream, number: int) -> None:
    """Record one tape in rounds, of which all but the last are killed."""
    suffix = campaign.source.choice([".tape", ".tape", ".tape.zst"])
    tape = directory / f"{number}" / f"t{suffix}"
    tape.parent.mkdir()
    finished: list[str] = []
    kills, pad = campaign.source.randint(1, 4), campaign.source.choice(PADS)
    prepared = campaign.source.random() < 0.5
    if prepared:
        finished += prepare(tape, f"r{number}.made", PADS[-1], 40)
    for step in range(kills + 1):
        append = step > 0 or prepared
        round_ = Round(campaign, tape, upstream, f"r{number}.{step}-{pad}", append)
        if step < kills:
            how = kill_one(campaign, round_, append)
            campaign.tried["kills"] += 1
            campaign.tried[f"kills while {how}"] += 1
            campaign.tried["kills of --append"] += append
        else:
            how = "closed well"
            if round_.listens():
                round_.converse()
                time.sleep(0.1)
            if round_.by_child:
                time.sleep(0.3)
            round_.interrupt()
        round_.end()
        finished += round_.finished
        campaign.tried["finished calls, looked for after each kill"] += len(finished)
        try:
            missing = lost(tape, finished)
        except Exception as error:
            campaign.fail(f"tape {number}{suffix}, round {step}, {how}: {type(error).__name__}: {error}")
            return
        if missing:
            campaign.tried["lost calls"] += len(missing)
            campaign.fail(
                f"tape {number}{suffix}, round {step}, {how}: {len(missing)} of {len(finished)} calls lost: "
                f"{missing[:3]}"
            )
            return


def main(argv: list[str]) -> int:
    campaign = start("kills", argv, 300)
    with tempfile.TemporaryDirectory() as name, Upstream() as upstream:
        number = 0
        while campaign.tried["kills"] < campaign.count:
            number += 1
            one_tape(campaign, Path(name), upstream, number)
            upstream.seen.clear()
    campaign.tried["tapes"] = number
    return campaign.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        raise SystemExit(child(*sys.argv[2:]))
    raise SystemExit(main(sys.argv[1:]))
