"""The debugger on a run of 1,000 calls: the time to open it, and to draw a step forward and back.

Targets: open in under a second, each step in under 50 ms, in line mode and on the screen. Times are CPU of the
thread that draws: a shared machine's clock says little. Findings are computed concurrently in a thread.
The floor is reading the tape alone.

    python tests/benchmarks/bench_debug.py [CALLS]
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from wiretape.cli.debug.open_debugger import open_debugger
from wiretape.debug.session import Debugger
from wiretape.model.http import Ended
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.recording.recorder import Recorder
from wiretape.tape.redaction import Redactor
from wiretape.views.debug.reply import reply_view

OPEN_S, STEP_S = 1.0, 0.05
COMMANDS = ("step", "reverse-step", "stepi", "reverse-stepi", "next", "reverse-next", "goto 500", "print usage", "list")
KEYS = ("s", "S", "i", "I", "n", "N", "s", "b", "c", "C")
URL = "https://api.deepseek.com/v1/chat/completions"


def tool(number: int) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    about = "Reads a file and describes it. " * 8
    return {"type": "function", "function": {"name": f"tool_{number}", "description": about, "parameters": parameters}}


def record(path: Path, calls: int) -> None:
    """One loop whose history grows: 20 kB of system prompt, 30 tools, 1.2 kB a step."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.01
        return now

    recorder = Recorder(path, clock=clock, started=datetime(2026, 1, 1, tzinfo=UTC), redactor=Redactor())
    tools = [tool(number) for number in range(30)]
    messages: list[Any] = [{"role": "system", "content": "You look after a repository. " * 700}]
    messages.append({"role": "user", "content": "Read all files, please."})
    for number in range(calls):
        body = json.dumps({"model": "m", "messages": messages, "tools": tools}, separators=(",", ":")).encode()
        x = recorder.begin("POST", URL, "1.1", [("content-type", "application/json")])
        recorder.request_data(x, body)
        recorder.request_end(x)
        call = {"name": f"tool_{number % 30}", "arguments": json.dumps({"path": f"src/file_{number}.py"})}
        said = {"role": "assistant", "content": "I go on. " * 30}
        said["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": call}]
        size = len(body) // 4
        usage = {"prompt_tokens": size, "completion_tokens": 90, "prompt_cache_hit_tokens": size * 9 // 10}
        choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
        answer = {"id": f"r{number}", "model": "m", "choices": [choice], "usage": usage}
        recorder.response(x, 200, [("content-type", "application/json")])
        recorder.response_data(x, json.dumps(answer).encode())
        recorder.end(x, Ended.COMPLETE)
        messages += [said, {"role": "tool", "tool_call_id": f"call_{number}", "content": "a line of text\n" * 50}]
    recorder.close()


def cpu(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def in_lines(debugger: Debugger) -> dict[str, float]:
    """Seconds for each command, its reply drawn at 80 columns; the median of three."""

    def do(line: str) -> None:
        Console(file=StringIO(), width=80).print(reply_view(debugger.execute(line)))

    do("goto 500")
    do("step")  # work that is done once does not count for a step
    return {line: median(cpu(lambda line=line: do(line)) for _ in range(3)) for line in COMMANDS}  # type: ignore[misc]


def on_screen(debugger: Debugger) -> tuple[float, dict[str, float]]:
    """Seconds until the screen stands, and for each key until what it changed is drawn."""
    from wiretape.adapters.tui.app import DebugScreen

    app, found = DebugScreen(debugger), dict[str, list[float]]()
    opened = 0.0

    async def sit() -> None:
        nonlocal opened
        start = time.thread_time()
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            opened = time.thread_time() - start
            await app.workers.wait_for_complete()
            for key in KEYS * 3:
                start = time.thread_time()
                await pilot.press(key)
                await pilot.pause()
                found.setdefault(key, []).append(time.thread_time() - start)

    asyncio.run(sit())
    return opened, {key: median(times) for key, times in found.items()}


def main(calls: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "loop.tape"
        record(path, calls)
        read = cpu(lambda: read_tape(path))
        opened: list[Debugger] = []
        open_s = cpu(lambda: opened.append(open_debugger(str(path))))
        lines = in_lines(opened[0])
        screen_s, keys = on_screen(open_debugger(str(path)))
    print(
        f"{calls} calls: reading the tape {read:.2f} s; with its debugger {open_s:.2f} s; the screen {screen_s:.2f} s"
    )
    for name, times in (("lines", lines), ("screen", keys)):
        print(f"{name}: " + ", ".join(f"{key} {1000 * seconds:.0f} ms" for key, seconds in times.items()))
    slow = [key for times in (lines, keys) for key, seconds in times.items() if seconds > STEP_S]
    if open_s + screen_s > OPEN_S or slow:
        print(f"missed: open in {OPEN_S} s, each step in {1000 * STEP_S:.0f} ms: {slow or 'opening'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
