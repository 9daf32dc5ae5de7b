"""Good traffic to start from: handmade exchanges of every format, recorded ones if available, and tapes."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.sockets import create, events, function_call, message, socket
from tests.support.wire import CHAT, DONE, GEMINI, MESSAGES, MINIMAL, RESPONSES, chunk, frame, named, stream
from tests.support.wire_binary import ASKED, STREAMS, binary

from wiretape.adapters.importers.importing import import_data
from wiretape.adapters.importers.source import ImportedExchange
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.wire.registry import Registry, built_in

ROOT = Path(__file__).parents[2]
CORPORA = ROOT.parent / "shared" / "corpora"
ARCHIVES = {"pydantic+pydantic-ai": 12, "charmbracelet+fantasy": 10, "pydantic+logfire": 8, "vercel+ai": 8}
MOST = 60  # seeds of one format
MOST_BYTES = 200_000


@dataclass
class Seeds:
    exchanges: dict[str, list[Exchange]] = field(default_factory=dict)  # by format
    files: list[tuple[str, bytes]] = field(default_factory=list)  # what importers read
    tapes: list[bytes] = field(default_factory=list)
    streams: list[bytes] = field(default_factory=list)


def gather() -> Seeds:
    seeds = Seeds()
    registry = Registry(built_in())
    for exchange in hand_made():
        _add(seeds, registry, exchange)
    for archive, every in ARCHIVES.items():
        for name, data in _files(CORPORA / f"{archive}.tar.xz", every):
            seeds.files.append((name, data))
            for taken in import_data(name, data, "auto" if name.endswith(".yaml") else "body"):
                if isinstance(taken, ImportedExchange):
                    _add(seeds, registry, taken.exchange)
    seeds.tapes = [path.read_bytes() for path in sorted((ROOT / "captures").glob("*.tape"))]
    seeds.tapes += [path.read_bytes() for path in sorted((ROOT / "tests" / "tapes").rglob("*.tape"))]
    return seeds


def _files(archive: Path, every: int) -> list[tuple[str, bytes]]:
    if not archive.exists():
        return []
    found = []
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.isfile() and member.size < MOST_BYTES]
        for member in members[::every]:
            opened = tar.extractfile(member)
            assert opened is not None
            found.append((member.name.rpartition("/")[2], opened.read()))
    return found


def _add(seeds: Seeds, registry: Registry, exchange: Exchange) -> None:
    form = registry.socket_format(exchange) if exchange.messages else registry.recognise(exchange)
    if form is None:
        return
    name = "WebSocket" if exchange.messages else form.name
    mine = seeds.exchanges.setdefault(name, [])
    if len(mine) < MOST:
        mine.append(exchange)
        if exchange.response is not None:
            frames = getattr(exchange.response.body, "frames", None)
            if frames is not None:
                seeds.streams.append(b"".join(frames))


def hand_made() -> list[Exchange]:
    chat = [chunk({"role": "assistant", "content": "你好"}), chunk({"content": " 🙂"}), chunk({}, "stop"), DONE]
    said = {"id": "r", "status": "completed", "output": [message("Hi."), function_call("f", "c", "{}")]}
    responses = named(
        [{"type": "response.created", "response": {"id": "r"}}, {"type": "response.completed", "response": said}]
    )
    begun = {"type": "message_start", "message": {"id": "m", "model": "m", "content": [], "usage": {"input_tokens": 3}}}
    messages = named([begun, {"type": "message_stop"}])
    gemini = [frame({"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]})]
    found = [
        _exchange(url, MINIMAL[url], stream(frames))
        for url, frames in ((CHAT, chat), (RESPONSES, responses), (MESSAGES, messages), (GEMINI, gemini))
    ]
    for url, frames in STREAMS:
        body = binary(frames) if "bedrock" in url else stream(frames)
        found.append(_exchange(url, ASKED.get(url, {}), body))
    for path, asked in SIDE.items():
        found.append(_exchange(f"https://api.example.com{path}", asked, JsonBody({"data": [{"embedding": [0.1]}]})))
    found.append(
        socket(
            [create("Go."), *events("r1", function_call("f", "c1", "{}")), create("On."), *events("r2", message("Hi."))]
        )
    )
    return found


SIDE = {
    "/v1/embeddings": {"model": "m", "input": ["one"]},
    "/v1beta/models/m:embedContent": {"content": {"parts": [{"text": "one"}]}},
    "/v2/rerank": {"model": "m", "query": "q", "documents": ["d"]},
    "/v1/moderations": {"model": "m", "input": "x"},
    "/v1/tokenize": {"model": "m", "text": "x"},
    "/v1/decisions": {"model": "m", "input": "x", "questions": [{"q": "?"}]},
    "/v1beta/interactions": {"model": "m", "input": "go"},
}


def _exchange(url: str, asked: object, body: object) -> Exchange:
    response = Response(200, Headers(), 10, body)  # type: ignore[arg-type]
    return Exchange(1, 0, Request("POST", url, Headers(), JsonBody(asked)), response, Ended.COMPLETE, 500)
