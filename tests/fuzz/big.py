"""Bodies of 50 MB and of hostile shapes: each format decodes each in bounded time and memory, or fails.

Every case runs in a separate process, to measure its peak memory.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.support.wire import CHAT, GEMINI, MESSAGES, RESPONSES, frame
from tests.support.wire_binary import COHERE, CONVERSE_STREAM, INVOKE_STREAM, OLLAMA, delta, event

from wiretape.model.framing import AwsFramer, Framer, LineFramer, ListFramer, SseFramer
from wiretape.model.http import Body, BytesBody, Ended, Exchange, Headers, JsonBody, Request, Response, StreamBody
from wiretape.wire.registry import Registry, built_in, decode
from wiretape.wire.sse import NdjsonDecoder, SseDecoder

SIZE = 50_000_000
CHUNK = 65_536
MOST_SECONDS = 20.0
MOST_TIMES = 30  # the size of the body, in memory
EVENTS: dict[str, Callable[[str], bytes]] = {
    CHAT: lambda text: frame({"choices": [{"index": 0, "delta": {"content": text}}]}),
    RESPONSES: lambda text: frame({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
    MESSAGES: lambda text: frame(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    ),
    GEMINI: lambda text: frame({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
    OLLAMA: lambda text: json.dumps({"message": {"content": text}, "done": False}).encode() + b"\n",
    COHERE: lambda text: frame(
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}
    ),
    CONVERSE_STREAM: lambda text: event(*delta(0, {"text": text})),
    INVOKE_STREAM: lambda text: event("chunk", {"bytes": "e30=", "p": text}),
}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
TOOL = '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}}]}'


def cases() -> dict[str, tuple[str, Callable[[], Body]]]:
    """Name -> URL and what makes the response's body."""
    made: dict[str, tuple[str, Callable[[], Body]]] = {}
    for url in EVENTS:
        name = url.rpartition("/")[2].partition("?")[0]
        made[f"{name}: one event of 50 MB"] = url, partial(_events, url, SIZE)
        made[f"{name}: events of 1 KB"] = url, partial(_events, url, 1000)
    for name, text in HOSTILE.items():
        made[f"JSON: {name}"] = CHAT, partial(_whole, text)
        made[f"event: {name}"] = MESSAGES, partial(_event, text)
    made["tool arguments in 4-character pieces"] = (
        CHAT,
        lambda: StreamBody((frame(TOOL % "abcd"),) * 300_000, (0,) * 300_000),
    )
    return made


HOSTILE: dict[str, Callable[[], bytes]] = {
    "lists in lists": lambda: b"[" * SIZE,
    "objects in objects": lambda: b'{"a":' * (SIZE // 5),
    "closed lists in lists": lambda: b'{"choices":' + b"[" * 900_000 + b"]" * 900_000 + b"}",
    "an integer of 5 MB": lambda: b'{"usage":{"prompt_tokens":' + b"9" * 5_000_000 + b"}}",
    "the same key again and again": lambda: b'{"id":"a"' + b',"id":"b"' * (SIZE // 9) + b"}",
    "half a million empty choices": lambda: b'{"choices":[' + b"{}," * (SIZE // 100) + b"{}]}",
    "escapes": lambda: b'{"choices":[{"message":{"content":"' + b"\\ud83d\\ude42" * (SIZE // 12) + b'"}}]}',
    "line ends": lambda: b"\r\n" * (SIZE // 2),
    "blanks": lambda: b" " * SIZE,
    "comments": lambda: b": x\n" * (SIZE // 4),
    "NaN": lambda: b'{"choices":[' + b"NaN," * (SIZE // 4) + b"1]}",
    "lone surrogates": lambda: b'{"choices":[{"message":{"content":"' + b"\\ud800" * (SIZE // 6) + b'"}}]}',
}


def _events(url: str, size: int) -> Body:
    return StreamBody((EVENTS[url]("x" * size),) * (SIZE // size), (0,) * (SIZE // size), binary="bedrock" in url)


def _whole(text: Callable[[], bytes]) -> Body:
    return BytesBody(text())


def _event(text: Callable[[], bytes]) -> Body:
    return StreamBody((b"data: ", text(), b"\n\n"), (0, 0, 0))


def run_big() -> int:
    """Run them all, print what each took; how many took too much."""
    failed = 0
    jobs: list[tuple[str, Callable[[str], tuple[int, float, int, str]]]] = [(name, _decode) for name in cases()]
    jobs += [(name, _split) for name in SPLITTERS]
    for name, job in jobs:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            try:
                size, seconds, memory, problem = pool.submit(job, name).result()
            except Exception as error:  # the process died
                size, seconds, memory, problem = 0, 0.0, 0, f"{type(error).__name__}: {error}"
        if not problem and seconds > MOST_SECONDS:
            problem = f"takes more than {MOST_SECONDS:.0f} s"
        if not problem and memory > MOST_TIMES * max(size, 10_000_000):
            problem = f"takes more than {MOST_TIMES} times its size in memory"
        failed += bool(problem)
        print(f"{name:46} {seconds:6.1f} s {memory / 1e6:7.0f} MB {problem}", flush=True)
    return failed


def _decode(name: str) -> tuple[int, float, int, str]:
    url, make = cases()[name]
    body = make()
    before = _peak()
    request = Request("POST", url, Headers(), JsonBody(ASKED))
    one = Exchange(1, 0, request, Response(200, Headers(), 0, body), Ended.COMPLETE, 1)
    registry = Registry(built_in())
    started = time.process_time()
    calls = decode([one], registry)
    seconds = time.process_time() - started
    problem = "; ".join(registry.problems)[:200] or ("" if len(calls) == 1 else f"{len(calls)} calls")
    return (
        len(body.data if isinstance(body, BytesBody) else b"".join(_frames(body))),
        seconds,
        _peak() - before,
        problem,
    )


def _frames(body: Body) -> list[bytes]:
    return list(body.frames) if isinstance(body, StreamBody) else []


SPLITTERS: dict[str, tuple[Callable[[], Framer | SseDecoder | NdjsonDecoder], bytes]] = {
    "one SSE frame in chunks, split": (SseFramer, b"data: "),
    "one SSE frame in chunks, decoded": (SseDecoder, b"data: "),
    "one line in chunks, split": (LineFramer, b""),
    "one line in chunks, decoded": (NdjsonDecoder, b""),
    "one AWS message in chunks, split": (AwsFramer, b""),
    "one JSON list in chunks, split": (ListFramer, b'[{"a":"'),
}


def _split(name: str) -> tuple[int, float, int, str]:
    """A body of one frame, as a socket delivers it."""
    make, head = SPLITTERS[name]
    data = event("x", b"x" * 30_000_000) if make is AwsFramer else head + b"x" * SIZE
    before = _peak()
    started = time.process_time()
    splitter = make()
    found = [piece for at in range(0, len(data), CHUNK) for piece in splitter.feed(data[at : at + CHUNK])]
    found += splitter.close()
    return len(data), time.process_time() - started, _peak() - before, "" if len(found) == 1 else f"{len(found)} frames"


def _peak() -> int:
    """The most memory that this process ever had, in bytes; 0 where that cannot be known."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
