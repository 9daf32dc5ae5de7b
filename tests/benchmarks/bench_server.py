"""The replay server compared with mitmproxy's server replay: small requests per second over eight connections.

    python tests/benchmarks/bench_server.py [REQUESTS [ROUNDS]]

Both play the same recording: so many chat requests of half a kilobyte, each a little different, each answered once.
Each runs in a separate process and answers a first request before the measurement. The load comes from this one:
eight connections that are kept open, each of which sends its next request when it has the answer. All answers of a
server have the same length, so counting bytes is enough. The servers take turns, and the ratio is that of two runs
that followed one another: its median counts, because a busy machine slows both. `with its lines` is the command line's
server, which prints a line for each call to a file: while it is asked without a pause most lines wait until it is not,
and all must be there at the end. Without mitmproxy, the benchmark reports that the comparison is missing.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from statistics import median

import orjson

CONNECTIONS = 8
HOST = "api.example.com"
TARGET = 12.0
SECONDS = 60  # a server that has not answered all by then is stopped
MESSAGE = {"role": "assistant", "content": "ok"}
ANSWER = {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": MESSAGE}]}


def body(number: int) -> bytes:
    text = f"What is the answer to question {number:06}? " + "Be brief, and say what it rests on. " * 11 + "Go"
    return orjson.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})


# Neither server prints a line for each call: `mitmdump -q`, and wiretape's without its command line.
SERVE = """
import sys, threading
from wiretape.adapters.replay_runner import ReplayServer, ReplayServerOptions
from wiretape.matching.session import ReplaySession
from wiretape.tape.reading.reader import read_tape
with ReplayServer(ReplaySession([read_tape(sys.argv[1])]), ReplayServerOptions(port=int(sys.argv[2]))):
    threading.Event().wait()
"""


class Asking(asyncio.Protocol):
    """One connection: sends its requests one after the other. `size`: bytes of an answer, learnt from the first."""

    def __init__(self, head: Callable[[int], bytes], bodies: Iterator[bytes], done: asyncio.Future[int]) -> None:
        self._head, self._bodies, self._done = head, bodies, done
        self._size, self._came, self._answered = 0, 0, 0
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        assert self._transport is not None
        sent = next(self._bodies, None)
        if sent is None:
            self._done.set_result(self._answered)
            self._transport.close()
            return
        self._transport.write(self._head(len(sent)) + sent)

    def data_received(self, data: bytes) -> None:
        if not self._size:
            self._learn(data)
        else:
            self._came += len(data)
        if self._size and self._came >= self._size:
            self._came = 0
            self._answered += 1
            self._next()

    def _learn(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None)
        if not end or length is None:
            return
        assert b" 200 " in head.partition(b"\r\n")[0], self._buffer
        self._size = len(head) + len(end) + int(length.partition(b":")[2])
        self._came = len(head) + len(end) + len(rest)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or ConnectionError("the server hung up"))


async def load(port: int, target: str, bodies: Sequence[bytes]) -> float:
    """Answers a second."""

    def head(length: int) -> bytes:
        lines = f"POST {target} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\ncontent-length: {length}"
        return f"{lines}\r\n\r\n".encode()

    loop = asyncio.get_running_loop()
    every = iter(bodies)
    done = [loop.create_future() for _ in range(CONNECTIONS)]
    start = time.perf_counter()
    for one in done:
        await loop.create_connection(lambda one=one: Asking(head, every, one), "127.0.0.1", port)  # type: ignore[misc]
    answered = await asyncio.wait_for(asyncio.gather(*done), SECONDS)
    return float(sum(answered) / (time.perf_counter() - start))


@contextmanager
def serving(command: list[str], port: int, told: Path | None = None) -> Iterator[None]:
    """`told`: where what the server prints goes."""
    with (told or Path(os.devnull)).open("wb") as file:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        try:
            asyncio.run(_open(port))
            yield
        finally:
            process.terminate()
            process.wait()


async def _open(port: int) -> None:
    """Wait for a first answer, so that start-up is not measured."""
    for _ in range(600):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.write(f"GET / HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n".encode())
        with suppress(OSError):  # an unrecorded request may get an error or a closed connection
            await reader.read()
        writer.close()
        return
    raise SystemExit("the server did not start")


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def documents(bodies: Sequence[bytes]) -> Iterator[bytes]:
    """A tape, as its format is documented."""
    headers = {"content-type": "application/json"}
    url = f"http://{HOST}/v1/chat/completions"
    yield orjson.dumps({"wiretape": 1, "started": "2026-02-28T15:05:30Z", "recorder": "bench", "redacted": []})
    for n, one in enumerate(bodies, 1):
        request = {"method": "POST", "url": url, "headers": headers, "body": {"json": orjson.loads(one)}}
        response = {"status": 200, "headers": headers, "headers_at": n, "body": {"json": ANSWER}}
        yield orjson.dumps({"exchange": n, "at": n, "request": request})
        yield orjson.dumps({"exchange": n, "at": n, "response": response, "ended": "complete"})


def of_wiretape(directory: Path, bodies: Sequence[bytes], lines: bool = False) -> float:
    tape = directory / "bench.tape"
    tape.write_bytes(b"\n\n".join(documents(bodies)) + b"\n")
    port = free_port()
    command = [sys.executable, "-c", SERVE, str(tape), str(port)]
    if lines:
        command = [sys.executable, "-m", "wiretape", "replay", str(tape), "--no-proxy", "--port", str(port)]
    with serving(command, port, directory / "lines" if lines else None):
        speed = asyncio.run(load(port, f"/{HOST}/v1/chat/completions", bodies))
    printed = (directory / "lines").read_bytes().count(b"tokens unknown") if lines else len(bodies)
    assert printed >= len(bodies), f"{printed} lines"
    return speed


def of_mitmproxy(directory: Path, bodies: Sequence[bytes]) -> float | None:
    mitmdump = which("mitmdump") or str(Path(sys.executable).with_name("mitmdump"))
    try:
        from mitmproxy.io import FlowWriter
        from mitmproxy.test import tflow, tutils
    except ImportError:
        return None
    answer = orjson.dumps(ANSWER)
    flows = directory / "bench.flows"
    with flows.open("wb") as file:
        writer = FlowWriter(file)
        for one in bodies:
            where = {"host": HOST, "port": 80, "scheme": b"http", "authority": b"", "path": b"/v1/chat/completions"}
            request = tutils.treq(method=b"POST", content=one, **where)
            writer.add(tflow.tflow(req=request, resp=tutils.tresp(content=answer)))
    port = free_port()
    command = [mitmdump, "-q", "--listen-port", str(port), "--set", "connection_strategy=lazy",
               "--set", "server_replay_kill_extra=true", "-S", str(flows)]  # fmt: skip
    with serving(command, port):
        return asyncio.run(load(port, f"http://{HOST}/v1/chat/completions", bodies))


def main(requests: int, rounds: int) -> int:
    bodies = [body(number) for number in range(requests)]
    fewer = bodies[: max(CONNECTIONS, requests // 8)]  # mitmproxy is slow
    print(f"{requests} requests of {len(bodies[0])} bytes, {CONNECTIONS} connections, {rounds} rounds")
    print("  wiretape replay   with its lines   mitmdump -S   ratio   with lines")
    ratios: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for _ in range(rounds):
            ours, told = of_wiretape(directory, bodies), of_wiretape(directory, bodies, lines=True)
            theirs = of_mitmproxy(directory, fewer)
            if theirs is None:
                print(f"  {ours:13,.0f}/s   {told:12,.0f}/s   not installed: nothing to compare with")
                return 0
            ratios.append((ours / theirs, told / theirs))
            shown = f"  {ours:13,.0f}/s   {told:12,.0f}/s   {theirs:9,.0f}/s"
            print(f"{shown}   {ratios[-1][0]:5.1f}   {ratios[-1][1]:10.1f}", flush=True)
    ratio = median(plain for plain, _ in ratios)
    print(f"  median ratio {ratio:.1f} (target {TARGET:.0f}), {median(told for _, told in ratios):.1f} with its lines")
    return 0 if ratio >= TARGET else 1


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(given[0] if given else 3000, given[1] if len(given) > 1 else 3))
