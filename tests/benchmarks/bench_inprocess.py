"""The cost of the in-process patches: calls per second through `wiretape.replay` and `wiretape.record`, as ratios
to a bare httpx.

    python tests/benchmarks/bench_inprocess.py [CALLS]

A loop of growing history (1.2 kB a step behind 20 kB of system prompt) is sent through httpx. "bare": its MockTransport
with one canned answer, which parses nothing. "replay": the door, with matching. "record": the door over that replay,
so that nothing but wiretape itself is between the client and the answer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson

import wiretape
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.tape.format.documents import Header
from wiretape.tape.reading.reader import Tape

URL = "https://api.openai.com/v1/chat/completions"
ANSWER = {"id": "c", "object": "chat.completion", "model": "m", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}  # fmt: skip
HEADERS = Headers([("content-type", "application/json")])


def bodies(count: int) -> list[Any]:
    messages: list[Any] = [
        {"role": "system", "content": "You are an agent. " * 1200},
        {"role": "user", "content": "go"},
    ]
    made = []
    for number in range(count):
        made.append({"model": "m", "messages": list(messages)})
        messages.append({"role": "assistant", "content": f"step {number}"})
        messages.append({"role": "user", "content": f"result {number} " * 100})
    return made


def tape(asked: list[Any]) -> Tape:
    exchanges = tuple(
        Exchange(n, n, Request("POST", URL, HEADERS, JsonBody(body)), Response(200, HEADERS, n, JsonBody(ANSWER)),
                 Ended.COMPLETE)
        for n, body in enumerate(asked, 1)
    )  # fmt: skip
    return Tape(
        Path("bench.tape"), Header(wiretape=1, started=datetime.now(UTC), recorder="bench"), exchanges, (), False
    )


def rate(client: httpx.Client, sent: list[bytes]) -> float:
    start = time.perf_counter()
    for body in sent:
        client.post(URL, content=body, headers={"content-type": "application/json"}).raise_for_status()
    return len(sent) / (time.perf_counter() - start)


def main(count: int) -> None:
    asked = bodies(count)
    sent = [orjson.dumps(body) for body in asked]
    recorded = tape(asked)
    canned = orjson.dumps(ANSWER)

    def bare() -> float:
        with httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200, content=canned))) as client:
            return rate(client, sent)

    def replayed() -> float:
        with wiretape.replay(recorded), httpx.Client() as client:
            return rate(client, sent)

    def taped() -> float:
        with (
            tempfile.TemporaryDirectory() as directory,
            wiretape.replay(recorded),
            wiretape.record(Path(directory) / "x.tape"),
            httpx.Client() as client,
        ):
            return rate(client, sent)

    runs: dict[str, Callable[[], float]] = {"bare": bare, "replay": replayed, "record over replay": taped}
    rates = {name: max(run() for _ in range(3)) for name, run in runs.items()}
    print(f"{count} calls, {sum(map(len, sent)) / 1e6:.0f} MB on the wire")
    for name, value in rates.items():
        print(f"{name:20} {value:8.0f} calls/s   {value / rates['bare']:.2f} of bare")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
