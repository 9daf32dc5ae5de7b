"""A loop replayed in process through a bare httpx client: calls per second, compared with the floor and with peers.

    python tests/benchmarks/bench_peers.py [CALLS …]

The loop is `bench_replay`'s: a 20 kB system prompt, 30 tools, 1.2 kB more at every step. The floor is an httpx client
with a canned answer behind it, which parses each body and nothing more. "the same": the recorded loop, as it was.
"other times": tool results tell the time, and it is another. "a clock": one in the system prompt, at every call.
vcrpy and cassetter match method, address and body, on a cassette of the same loop; absent ones are skipped. Times are
of this process alone; the best of three runs counts.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import orjson

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.benchmarks.bench_replay import URL, BenchTape, clock, recorded, spelled

import wiretape
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

NOON, LATER = "2026-02-28 15:05:30", "2027-03-01 09:23:47"
ANSWER = orjson.dumps({"choices": [{"message": {"role": "assistant", "content": "ok"}}]})
HEADERS = {"content-type": "application/json"}
TARGETS = {200: {"the same": 1500, "a clock": 250}, 1000: {"the same": 1000}}
MOST_FOR_PEERS = 50  # calls: their cassettes hold every body whole, and are searched from the start


def calls_a_second(client: httpx.Client, url: str, sent: list[bytes]) -> float:
    gc.collect()
    start = time.process_time()
    for body in sent:
        client.post(url, content=body, headers=HEADERS).raise_for_status()
    return len(sent) / (time.process_time() - start)


def best(run: Callable[[], float]) -> float:
    return max(run() for _ in range(3))


def floor(sent: list[bytes], parse: bool) -> float:
    def canned(request: httpx.Request) -> httpx.Response:
        if parse:
            orjson.loads(request.read())
        return httpx.Response(200, content=ANSWER)

    with httpx.Client(transport=httpx.MockTransport(canned)) as client:
        return calls_a_second(client, URL, sent)


def replayed(tape: BenchTape, sent: list[bytes]) -> float:
    header = Header(wiretape=1, started=datetime.now(UTC), recorder="bench")
    made = Tape(Path("bench.tape"), header, tape.exchanges, (), False)
    with wiretape.replay(made), httpx.Client() as client:
        return calls_a_second(client, URL, sent)


class _Upstream(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Upstream)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/chat/completions"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def of_vcrpy(sent: list[bytes], path: Path) -> float:
    import vcr  # type: ignore[import-untyped]

    def cassette(mode: str) -> object:
        return vcr.use_cassette(str(path), serializer="json", record_mode=mode, match_on=["method", "uri", "body"])

    with upstream() as url:
        with cassette("once"), httpx.Client() as client:  # type: ignore[attr-defined]
            calls_a_second(client, url, sent)
        with cassette("none"), httpx.Client() as client:  # type: ignore[attr-defined]
            return calls_a_second(client, url, sent)


def of_cassetter(sent: list[bytes], path: Path) -> float:
    import cassetter

    def cassette(mode: str) -> object:
        return cassetter.use_cassette(path, record_mode=mode, match_on=["method", "uri", "body"], intercept=["httpx"])

    with upstream() as url:
        with cassette("once"), httpx.Client() as client:  # type: ignore[attr-defined]
            calls_a_second(client, url, sent)
        with cassette("none"), httpx.Client() as client:  # type: ignore[attr-defined]
            return calls_a_second(client, url, sent)


def peers(sent: list[bytes]) -> Iterator[tuple[str, float | None]]:
    with tempfile.TemporaryDirectory() as directory:
        for name, run, file in (("vcrpy", of_vcrpy, "x.json"), ("cassetter", of_cassetter, "x.yaml")):
            try:
                yield name, run(sent, Path(directory) / file)
            except ImportError:
                yield name, None


def measure(calls: int) -> bool:
    """Prints one table; whether the targets were met."""
    same = spelled(calls, "call_a", NOON)
    print(f"{calls} calls, {sum(map(len, same)) / 1e6:.0f} MB on the wire")
    parsed = best(lambda: floor(same, parse=True))
    bare = best(lambda: floor(same, parse=False))
    cases = {
        "the same": lambda: replayed(recorded(calls), same),
        "other times": lambda: replayed(recorded(calls), spelled(calls, "call_a", LATER)),
        "a clock": lambda: replayed(recorded(calls, clock(0)), spelled(calls, "call_a", NOON, clock(1800))),
    }
    show("httpx alone", bare, parsed)
    show("httpx and orjson.loads", parsed, parsed)
    met = True
    for name, run in cases.items():
        rate, target = best(run), TARGETS.get(calls, {}).get(name, 0)
        show(name, rate, parsed, target)
        met = met and rate >= target
    for name, found in peers(same) if calls <= MOST_FOR_PEERS else ():
        show(name, found, parsed)
    return met


def show(name: str, rate: float | None, floor: float, target: int = 0) -> None:
    if rate is None:
        print(f"  {name:<24} not installed: skipped")
        return
    aim = f"   (target {target}/s)" if target else ""
    print(f"  {name:<24} {rate:8,.0f}/s   {rate / floor:5.2f} of the floor{aim}", flush=True)


def main(sizes: list[int]) -> int:
    met = [measure(size) for size in sizes]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main([int(size) for size in sys.argv[1:]] or [50, 200, 1000]))
