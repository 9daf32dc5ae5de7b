"""Kill a recorder at each of its file operations in turn, and check the files on disk.

`python -m tests.support.killing SCENARIO SUFFIX DIRECTORY` forks a process for each operation. That process ends before
the operation, or in the middle of it if it is a write. It prints the number of tries and the lost exchanges.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording import writer_thread
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor
from wiretape.tape.writing.writer import write_tape

STARTED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OPERATIONS = ("open", "write", "writev", "fsync", "replace", "rename", "unlink", "ftruncate", "chmod", "chown", "mkdir")
HEADERS = [("content-type", "application/json"), ("authorization", "Bearer sk-proj-Ab12Cd34Ef56Gh78Ij90Kl")]
ENDED = 9  # the exit code of a process that ended itself at an operation


class Kill:
    """Ends this process at the operation of a number, whichever thread it is in."""

    def __init__(self, at: int, half: bool) -> None:
        self._at, self._half, self._count, self._lock = at, half, 0, threading.Lock()
        for name in OPERATIONS:
            setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self._count += 1
                if self._count == self._at:
                    if self._half and name == "write":
                        real(args[0], args[1][: len(args[1]) // 2])
                    os._exit(ENDED)
            return real(*args, **kwargs)

        return guarded


def recorder(path: Path, append: bool) -> Recorder:
    return Recorder(path, clock=lambda: 100.0, started=STARTED, redactor=Redactor(), append=append)


def call(made: Recorder, name: str, finish: bool = True) -> None:
    x = made.begin("POST", "https://api.example/v1/chat", "1.1", HEADERS)
    made.request_data(x, b'{"model":"m","messages":["%s"]}' % (name * 400).encode())
    made.request_end(x)
    answer = b'{"answer":"%s"}' % name.encode()
    made.response(x, 200, [("content-type", "application/json"), ("content-length", str(len(answer)))])
    if finish:
        made.response_data(x, answer)  # with its last byte, the client has the whole answer
        say(name)
        made.end(x, Ended.COMPLETE)


_write = os.write


def say(name: str) -> None:
    """Note that a call has finished, whatever happens next."""
    _write(3, f"{name} ".encode())


def record(path: Path) -> None:
    made = recorder(path, append=False)
    for name in "abc":
        call(made, name)
    made.close()


def append(path: Path) -> None:
    made = recorder(path, append=True)
    call(made, "x")
    made.close()


def rewrite(path: Path) -> None:
    """As `redact`, `cut`, `merge` and `import` do."""
    tape = read_tape(path)
    write_tape(path, tape.header, tape.exchanges)


def prepared(path: Path, torn: bool) -> None:
    """A tape of three calls, as a recorder has left it that was killed."""
    pid = os.fork()
    if pid == 0:
        made = recorder(path, append=False)
        for name in "abc":
            call(made, name)
        call(made, "open", finish=False)
        made._binder._jobs.put(lambda: os._exit(0))
        threading.Event().wait(30)
    os.waitpid(pid, 0)
    if torn:
        os.truncate(path, path.stat().st_size - 5)


def closed(path: Path) -> None:
    made = recorder(path, append=False)
    for name in "abc":
        call(made, name)
    made.close()


SCENARIOS: dict[str, tuple[Callable[[Path], None] | None, Callable[[Path], None]]] = {
    "record": (None, record),
    "append": (lambda path: prepared(path, torn=False), append),
    "append-torn": (lambda path: prepared(path, torn=True), append),
    "append-closed": (closed, append),
    "rewrite": (closed, rewrite),
}


def one(path: Path, pristine: Path | None, work: Callable[[Path], None], at: int, half: bool) -> tuple[int, set[str]]:
    """Run the work up to an operation. The exit code, and the calls that had finished before."""
    shutil.rmtree(path.parent)
    if pristine is not None:
        shutil.copytree(pristine, path.parent)
    else:
        path.parent.mkdir()
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(sink, 3)
        Kill(at, half)
        work(path)
        os._exit(0)
    os.close(sink)
    with open(source, "rb") as told:
        finished = set(told.read().decode().split())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), finished


def lost(path: Path, expected: set[str]) -> str | None:
    """What a reader misses of the calls that had finished."""
    if not expected and not path.exists():
        return None
    try:
        tape = read_tape(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}" if expected else None
    found = {}
    for exchange in tape.exchanges:
        if exchange.response is not None and exchange.ended is Ended.COMPLETE:
            found[body_bytes(exchange.response.body)] = body_bytes(exchange.request.body)
    for name in sorted(expected):
        request = found.get(b'{"answer":"%s"}' % name.encode())
        if request is None:
            return f"call {name} is lost; there are {sorted(found)}"
        if name.encode() * 400 not in request:
            return f"call {name} has another request"
    return None


def main(scenario: str, suffix: str, directory: str) -> int:
    writer_thread._GATHER_S = 0.0
    if scenario == "record":
        writer_thread._REWRITE_FROM = 1500  # the journal is rewritten, too
    prepare, work = SCENARIOS[scenario]
    path = Path(directory, "work", f"t{suffix}")
    path.parent.mkdir()
    before: set[str] = set()
    pristine = None
    if prepare is not None:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 3)
        prepare(path)
        pristine, before = Path(directory, "pristine"), set("abc")
        shutil.copytree(path.parent, pristine)
    at, failures = 0, []
    for half in (False, True):
        at, code = 0, ENDED
        while code == ENDED:
            at += 1
            code, finished = one(path, pristine, work, at, half)
            if missing := lost(path, before | finished):
                failures.append(f"operation {at}{' (half)' if half else ''}: {missing}")
                continue
            append_again = path.exists() or path.with_name(f"{path.name}.journal").exists()
            if append_again and before | finished and at % 5 == 0:
                recorder(path, append=True).close()  # the next recorder repairs the files
                if missing := lost(path, before | finished):
                    failures.append(f"operation {at}, and mended: {missing}")
        if code != 0:
            failures.append(f"operation {at}: exit code {code}")
    print(f"{at} operations, {len(failures)} failures", *failures[:8], sep="\n", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
