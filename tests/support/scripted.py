"""A model on loopback that sends its answers in turn and stores the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Scripted(ThreadingHTTPServer):
    """Sends its answers in turn and stores the requests."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers = answers
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        data = json.dumps(self.server.answers.pop(0)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextmanager
def scripted_model(answers: Sequence[dict[str, Any]] = ()) -> Iterator[Scripted]:
    with Scripted(list(answers)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def says(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def asks(name: str, arguments: str) -> dict[str, Any]:
    call = {"id": "call_live", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {"id": "c", "object": "chat.completion", "choices": [choice]}
