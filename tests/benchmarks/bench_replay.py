"""The speed of matching: calls per second in a loop of growing history, as ratios to parsing alone.

    python tests/benchmarks/bench_replay.py [CALLS …]

A loop as agents make it: a 20 kB system prompt, 30 tools, 1.2 kB more at every step. The floor is `orjson.loads` of the
same bodies. Through HTTP the client is a bare httpx: SDKs transform such bodies at 25 to 85 calls a second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from wiretape.compare.difference import Tier
from wiretape.matching.session import ReplaySession
from wiretape.matching.values import Answer, LiveRequest
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response

URL = "https://api.example.com/v1/chat/completions"
HEADERS = Headers([("content-type", "application/json")])
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{n}",
            "description": "Does one thing and does it well. " * 8,
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "at": {"type": "integer"}}},
        },
    }
    for n in range(30)
]
PROMPT = "You are an agent. Rule 7.31: read 12 files, then 4 more, at most 2026 lines. " * 260


@dataclass(frozen=True)
class BenchTape:
    exchanges: tuple[Exchange, ...]
    path: Path | None = None


def step(n: int, id: str, when: str) -> list[dict[str, Any]]:
    function = {"name": f"tool_{n % 30}", "arguments": f'{{"path": "src/file_{n}.py", "at": {n}}}'}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
    text = f"[{when}] line {n}: 0x{n:04x} " + "def f(x): return x * 2 + 17  # 3.14 " * 30
    return [call, {"role": "tool", "tool_call_id": id, "content": text}]


def bodies(calls: int, ids: str, when: str, clock: Callable[[int], str] = lambda n: "") -> Iterator[dict[str, Any]]:
    system = {"role": "system", "content": PROMPT}
    history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(calls):
        if clock(n):
            system = {"role": "system", "content": PROMPT + clock(n)}
        messages = [system, *history]  # unchanged messages are the same objects, as in a tape that was read
        yield {"model": "m", "stream": False, "tools": TOOLS, "messages": messages}
        history += step(n, f"{ids}{n:012x}", when)


def recorded(calls: int, clock: Callable[[int], str] = lambda n: "") -> BenchTape:
    answer = Response(200, HEADERS, 0, JsonBody({"choices": [{"message": {"role": "assistant", "content": "ok"}}]}))
    made = bodies(calls, "call_a", "2026-02-28 15:05:30", clock)
    return BenchTape(
        tuple(
            Exchange(n, n, Request("POST", URL, HEADERS, JsonBody(body)), answer, Ended.COMPLETE, n + 1)
            for n, body in enumerate(made, 1)
        )
    )


def spelled(calls: int, ids: str, when: str, clock: Callable[[int], str] = lambda n: "") -> list[bytes]:
    return [orjson.dumps(body) for body in bodies(calls, ids, when, clock)]


def timed(work: Callable[[], None], clock: Callable[[], float] = time.process_time) -> float:
    """Seconds of this process: other programs on the machine do not count."""
    start = clock()
    work()
    return clock() - start


def through_session(tape: BenchTape, live: list[bytes], tier: Tier) -> float:
    session = ReplaySession([tape])  # type: ignore[list-item]
    session.answer(LiveRequest("POST", URL, HEADERS, b'{"model":"m","messages":[{"role":"user","content":"?"}]}'))

    def work() -> None:
        for number, body in enumerate(live):
            outcome = session.answer(LiveRequest("POST", URL, HEADERS, body))
            assert isinstance(outcome, Answer), outcome
            assert outcome.tier is tier or number == 0, outcome.tier  # the first call has no history to differ in

    return timed(work)


def through_http(tape: BenchTape, live: list[bytes]) -> float:
    """Seconds with the replay server and a client in one process."""
    import httpx

    from wiretape.adapters.replay_runner import ReplayServer

    with ReplayServer(ReplaySession([tape])) as replaying, httpx.Client(trust_env=False) as client:  # type: ignore[list-item]
        url = f"http://127.0.0.1:{replaying.port}/api.example.com/v1/chat/completions"

        def work() -> None:
            for body in live:
                found = client.post(url, content=body)
                assert found.status_code == 200

        return timed(work)


def clock(seconds: int) -> Callable[[int], str]:
    return lambda n: f" It is 2026-02-28 15:{(n + seconds) // 60 % 60:02}:{(n + seconds) % 60:02}."


def main(sizes: list[int]) -> None:
    print("calls/s through session.answer; in brackets the ratio to orjson.loads alone")
    for calls in sizes:
        tape, same = recorded(calls), spelled(calls, "call_a", "2026-02-28 15:05:30")
        floor = timed(lambda same=same: [orjson.loads(body) for body in same] and None)
        print(f"{calls:>5} calls, {sum(map(len, same)) / 1e6:.0f} MB: orjson.loads {calls / floor:,.0f}/s")
        cases = [
            ("exact", tape, same, Tier.EXACT),
            ("normalized (new ids)", tape, spelled(calls, "call_b", "2026-02-28 15:05:30"), Tier.NORMALIZED),
            ("masked (new ids, times)", tape, spelled(calls, "call_b", "2027-03-01 09:23:47"), Tier.MASKED),
        ]
        for name, made, live, tier in cases:
            taken = through_session(made, live, tier)
            print(f"      {name:<28} {calls / taken:>8,.0f}/s  ({floor / taken:.2f})")
        ticking = recorded(calls, clock(0)), spelled(calls, "call_a", "2026-02-28 15:05:30", clock(1800))
        taken = through_session(*ticking, Tier.MASKED)
        print(f"      {'a clock in every prompt':<28} {calls / taken:>8,.0f}/s  ({floor / taken:.2f})")
        served = through_http(tape, same)
        print(f"      {'exact, over HTTP':<28} {calls / served:>8,.0f}/s  ({floor / served:.2f})")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [50, 200])
