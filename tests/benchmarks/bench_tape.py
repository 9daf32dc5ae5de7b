"""The cost of a tape: writing and loading a loop of growing history, as ratios to the bytes on the wire.

A loop of 200 calls (20 kB system prompt, 30 tools, 1.2 kB a step; about 40 MB on the wire), once with plain answers,
once with streamed ones (four characters a delta). Times are CPU times, so that other work on the machine counts little.
Prints ratios against the raw bytes, and against `orjson.loads` and
`orjson.dumps` of everything. The last line is JSON. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from wiretape.model.http import Ended, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor

CALLS = 200
WORDS = (
    *("the", "agent", "read", "2026", "files", "14:05", "and", "87", "tests", "passed", "before", "step", "42", "of"),
    *(
        "plan",
        "3",
        "changed",
        "src/app.py",
        "line",
        "118",
        "because",
        "it",
        "was",
        "7",
        "days",
        "old",
        "on",
        "2026-03-01",
    ),
)
KEY = "Bearer sk-" + "a1B2c3D4e5F6" * 4
TARGETS = {
    "plain": {"tape_bytes": 2_000_000, "flush_ms": 1.0, "load_s": 2.0},
    "streamed": {"tape_bytes": 4_000_000, "load_s": 2.0},  # 300 events a call: see the time of an event
}


def text(source: random.Random, length: int) -> str:
    """Digit-heavy prose, the worst case for searching secrets."""
    pieces: list[str] = []
    size = 0
    while size < length:
        pieces.append(source.choice(WORDS))
        size += len(pieces[-1]) + 1
    return " ".join(pieces)[:length]


def requests(source: random.Random) -> list[bytes]:
    """The bodies that a loop sends: each the whole history and one step more."""
    tool = {"type": "function", "function": {"name": "", "parameters": {"type": "object", "properties": {}}}}
    tools = [
        {**tool, "function": {**tool["function"], "name": f"tool_{i}", "description": text(source, 1_200)}}
        for i in range(30)
    ]
    messages: list[dict[str, Any]] = [{"role": "system", "content": text(source, 20_000)}]
    bodies = []
    for step in range(CALLS):
        messages.append({"role": "user" if step == 0 else "tool", "content": text(source, 600)})
        bodies.append(orjson.dumps({"model": "m-1", "messages": messages, "tools": tools, "temperature": 0.5}))
        messages.append({"role": "assistant", "content": text(source, 600)})
    return bodies


def plain_answer(source: random.Random, number: int) -> list[bytes]:
    message = {"role": "assistant", "content": text(source, 600)}
    usage = {"prompt_tokens": 1000 + number, "completion_tokens": 150, "total_tokens": 1150 + number}
    return [orjson.dumps({"id": f"chat-{number}", "model": "m-1", "choices": [{"message": message}], "usage": usage})]


def streamed_answer(source: random.Random, number: int) -> list[bytes]:
    """Chunks as providers send them: id, created and model in each, four characters of text."""
    answer = text(source, 1_200)
    base = {"id": f"chatcmpl-{number:029d}", "object": "chat.completion.chunk", "created": 1_760_000_000 + number}
    chunks = []
    for at in range(0, len(answer), 4):
        choice = {"index": 0, "delta": {"content": answer[at : at + 4]}, "logprobs": None, "finish_reason": None}
        body = orjson.dumps({**base, "model": "m-1-2026", "choices": [choice]})
        chunks.append(b"data: %b\n\n" % body)
    return [*chunks, b"data: [DONE]\n\n"]


def record(path: Path, bodies: list[bytes], answers: list[list[bytes]], kind: str) -> dict[str, float]:
    """Record the loop: seconds of CPU time until everything is on the tape, and seconds spent in the event methods."""
    recorder = Recorder(path, clock=time.monotonic, started=datetime.now(UTC), redactor=Redactor(), on_trouble=sys.exit)
    start = time.process_time()
    events = 0
    loop = 0.0
    for body, answer in zip(bodies, answers, strict=True):
        begun = time.thread_time()
        x = recorder.begin("POST", "https://api.example.com/v1/chat/completions", "1.1", [("authorization", KEY)])
        for at in range(0, len(body), 65_536):
            recorder.request_data(x, body[at : at + 65_536])
        recorder.request_end(x)
        recorder.response(x, 200, [("content-type", kind)])
        for chunk in answer:
            recorder.response_data(x, chunk)
        recorder.end(x, Ended.COMPLETE)
        loop += time.thread_time() - begun
        events += 4 + len(answer) + (len(body) + 65_535) // 65_536
    summary = recorder.close()
    assert not summary.incomplete, summary
    return {"total": time.process_time() - start, "loop": loop, "events": events}


def best(measure: Callable[[], float], times: int = 3) -> float:
    return min(measure() for _ in range(times))


def timed(action: Callable[[], object]) -> float:
    start = time.thread_time()
    action()
    return time.thread_time() - start


def floor(bodies: list[bytes]) -> tuple[float, float]:
    """What parsing and spelling everything costs, with nothing else done."""
    loads = best(lambda: timed(lambda: [orjson.loads(body) for body in bodies]))
    values = [orjson.loads(body) for body in bodies]
    dumps = best(lambda: timed(lambda: [orjson.dumps(value) for value in values]))
    return loads, dumps


def measure(name: str, directory: Path, answer: Callable[[random.Random, int], list[bytes]]) -> dict[str, Any]:
    source = random.Random(7)
    bodies = requests(source)
    answers = [answer(source, number) for number in range(CALLS)]
    path = directory / f"{name}.tape"
    kind = "application/json" if name == "plain" else "text/event-stream"
    runs = [record(path, bodies, answers, kind) for _ in range(5)]
    run = min(runs, key=lambda r: r["total"])
    load = best(lambda: timed(lambda: read_tape(path)))
    tape = read_tape(path)
    assert [body_bytes(x.request.body) for x in tape.exchanges] == bodies
    assert [body_bytes(x.response.body) for x in tape.exchanges if x.response] == [b"".join(a) for a in answers]
    wire = sum(map(len, bodies)) + sum(len(chunk) for chunks in answers for chunk in chunks)
    loads, dumps = floor(bodies)
    return {
        "calls": CALLS,
        "wire_bytes": wire,
        "tape_bytes": path.stat().st_size,
        "write_ms": run["total"] / CALLS * 1000,
        "flush_ms": (run["total"] - run["loop"]) / CALLS * 1000,
        "event_us": run["loop"] / run["events"] * 1e6,
        "load_s": load,
        "loads_s": loads,
        "dumps_s": dumps,
    }


def report(name: str, found: dict[str, Any]) -> list[str]:
    """Print; return what misses its target."""
    wire, tape = found["wire_bytes"], found["tape_bytes"]
    floor_ms = (found["loads_s"] + found["dumps_s"]) / CALLS * 1000
    print(f"{name}: {CALLS} calls, {wire / 1e6:.1f} MB on the wire")
    print(f"  tape     {tape / 1e6:6.2f} MB    {tape / wire:.4f} of the wire")
    flush, write, load = found["flush_ms"], found["write_ms"], found["load_s"]
    print(
        f"  writing  {flush:6.3f} ms    a call, parsing to flushing; {flush / floor_ms:.2f} of orjson loads and dumps"
    )
    print(f"           {write:6.3f} ms    with the journal and its search for secrets, while both threads are busy")
    print(f"  events   {found['event_us']:6.1f} µs    each, in the thread that forwards")
    print(
        f"  loading  {load * 1000:6.1f} ms    the tape; {load / found['loads_s']:.2f} of orjson.loads of all requests"
    )
    limits = TARGETS[name]
    return [f"{name}: {key} is {found[key]:.3f}, target {limit}" for key, limit in limits.items() if found[key] > limit]


def main() -> int:
    missed: list[str] = []
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, answer in (("plain", plain_answer), ("streamed", streamed_answer)):
            results[name] = measure(name, Path(directory), answer)
            missed += report(name, results[name])
    for line in missed:
        print(f"MISSED {line}")
    print(json.dumps({"bench": "tape", "ok": not missed, **results}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
