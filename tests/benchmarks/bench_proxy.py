"""The recorder against bare mitmproxy with an empty tee: calls per second, and time to the first event of a stream.

Both proxies, a scripted upstream and the client run on this machine at the same time and take turns, so that what else
the machine does hits both. Run: python tests/benchmarks/bench_proxy.py; exit code 1 if a target is missed.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

LEAST_SHARE = 0.9  # of the bare proxy's calls per second
MOST_BEYOND_MS = 5.0  # to the first event, beyond the bare proxy
ROUNDS, ROUND_CALLS, CLIENTS = 9, 240, 4
STREAMS = 120
HISTORY = [{"role": "user" if i % 2 == 0 else "assistant", "content": f"{i} " + "words " * 40} for i in range(12)]
BODY = json.dumps({"model": "m", "messages": HISTORY, "temperature": 0}).encode()
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "words " * 100}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000},
    }
).encode()
EVENT = b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word"}}]}\n\n'

UPSTREAM = """
import asyncio, sys
ANSWER, EVENT = eval(sys.argv[1]), eval(sys.argv[2])
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\\r\\n")[0] or 0)
            await reader.readexactly(size)
            if b"/stream" in head.partition(b"\\r\\n")[0]:
                writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n")
                for _ in range(3):
                    await asyncio.sleep(0.004)
                    writer.write(b"%x\\r\\n%s\\r\\n" % (len(EVENT), EVENT))
                writer.write(b"0\\r\\n\\r\\n")
            else:
                writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n%s" % (len(ANSWER), ANSWER))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""  # noqa: E501

BARE = """
import asyncio
from mitmproxy import options
from mitmproxy.tools.dump import DumpMaster
class Tee:
    def requestheaders(self, flow): flow.request.stream = lambda data: data
    def responseheaders(self, flow): flow.response.stream = lambda data: data
    def running(self):
        print(self.master.addons.get("proxyserver").listen_addrs()[0][1], flush=True)
async def main():
    master = DumpMaster(options.Options(mode=["regular@127.0.0.1:0"]), with_termlog=False, with_dumper=False)
    tee = Tee(); tee.master = master
    master.addons.add(tee)
    await master.run()
asyncio.run(main())
"""


class Server:
    """A process that prints its port."""

    def __init__(self, argv: list[str], environ: dict[str, str], marker: str = "") -> None:
        self.process = subprocess.Popen(
            argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        line = next(line for line in self.process.stdout if line.startswith(marker))
        self.port = int(line.strip().strip("'").rpartition(":")[2])

    def cpu(self) -> float:
        """Seconds of processor time used so far; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=20)


class Client:
    """A persistent connection to a proxy over bare sockets, so that the client costs little."""

    def __init__(self, proxy: int, upstream: int) -> None:
        self._proxy = proxy
        self._head = f"POST http://127.0.0.1:{upstream}%s HTTP/1.1\r\nHost: 127.0.0.1:{upstream}\r\n"
        self._head += f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._proxy)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def call(self) -> None:
        self._writer.write((self._head % "/v1/chat/completions").encode() + BODY)
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        assert await self._reader.readexactly(len(ANSWER)) == ANSWER

    async def first_event(self) -> float:
        """Milliseconds to the first event of a stream."""
        began = time.perf_counter()
        self._writer.write((self._head % "/stream/chat/completions").encode() + BODY)
        await self._reader.readuntil(b"\n\n")
        took = (time.perf_counter() - began) * 1000
        await self._reader.readuntil(b"0\r\n\r\n")
        return took


async def calls_per_second(proxy: int, upstream: int) -> float:
    async def run() -> None:
        async with Client(proxy, upstream) as client:
            for _ in range(ROUND_CALLS // CLIENTS):
                await client.call()

    began = time.perf_counter()
    await asyncio.gather(*(run() for _ in range(CLIENTS)))
    return ROUND_CALLS / (time.perf_counter() - began)


async def first_events(proxy: int, upstream: int) -> float:
    async with Client(proxy, upstream) as client:
        await client.first_event()  # a connection's first request pays for the connection
        return statistics.median([await client.first_event() for _ in range(STREAMS // ROUNDS)])


async def turns(measure: Callable[[int, int], Awaitable[float]], ports: list[int], upstream: int) -> list[list[float]]:
    """Both proxies alternate, and the first of a round alternates, too."""
    figures: list[list[float]] = [[], []]
    for port in ports:
        await measure(port, upstream)  # warm
    for number in range(ROUNDS):
        for which in (0, 1) if number % 2 else (1, 0):
            figures[which].append(await measure(ports[which], upstream))
    return figures


async def measure(proxies: list[Server], upstream: int) -> bool:
    ports = [proxy.port for proxy in proxies]
    before = [proxy.cpu() for proxy in proxies]
    bare, ours = await turns(calls_per_second, ports, upstream)
    each = [
        (proxy.cpu() - used) * 1000 / (ROUND_CALLS * (ROUNDS + 1)) for proxy, used in zip(proxies, before, strict=True)
    ]
    share = statistics.median(o / b for b, o in zip(bare, ours, strict=True))
    print(f"calls/s          bare {statistics.median(bare):7.0f}   recorder {statistics.median(ours):7.0f}", end="")
    print(f"   ratio {share:.2f}   (at least {LEAST_SHARE})")
    if all(each):
        print(
            f"processor, ms    bare {each[0]:7.2f}   recorder {each[1]:7.2f}   ratio {each[0] / each[1]:.2f}   a call"
        )
    bare, ours = await turns(first_events, ports, upstream)
    beyond = statistics.median(o - b for b, o in zip(bare, ours, strict=True))
    print(f"first event, ms  bare {statistics.median(bare):7.2f}   recorder {statistics.median(ours):7.2f}", end="")
    print(f"   beyond {beyond:+.2f}  (at most {MOST_BEYOND_MS})")
    return share >= LEAST_SHARE and beyond <= MOST_BEYOND_MS


def main() -> int:
    environ = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
    with tempfile.TemporaryDirectory() as directory:
        environ["XDG_STATE_HOME"] = directory
        tape = str(Path(directory) / "bench.tape")
        servers = [
            Server([sys.executable, "-c", UPSTREAM, repr(ANSWER), repr(EVENT)], environ),
            Server([sys.executable, "-c", BARE], environ),
            Server([sys.executable, "-m", "wiretape", "record", "-o", tape], environ, "export HTTP_PROXY="),
        ]
        try:
            reached = asyncio.run(measure(servers[1:], servers[0].port))
        finally:
            for server in servers:
                server.stop()
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
