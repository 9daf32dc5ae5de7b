"""A chat model on loopback that numbers its answers, so that replayed and live answers differ."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class CountingModel:
    """Every path serves chat completions, except that `/page` serves a page."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refused: set[str] = set()  # requests that are answered with 429
        self.together: threading.Barrier | None = None  # answers only after this many requests arrived
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                model.asked.append(self.path)
                self._send("text/plain", b"a page")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                text = body["messages"][-1]["content"]
                if model.together is not None:
                    model.together.wait(30)
                model.asked.append(text)
                if text in model.refused:
                    error = {"error": {"message": "slow down", "type": "rate_limit"}}
                    return self._send("application/json", json.dumps(error).encode(), 429)
                said = f"answer {len(model.asked)} to: {text}"
                if body.get("stream"):
                    return self._send("text/event-stream", b"".join(_events(said)))
                return self._send("application/json", json.dumps(_answer(said)).encode())

            def _send(self, kind: str, body: bytes, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> CountingModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _answer(said: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "counting-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    }


def _events(said: str) -> list[bytes]:
    chunks: list[dict[str, Any]] = [{"role": "assistant", "content": word + " "} for word in said.split()]
    lines = []
    for delta, finish in [*((chunk, None) for chunk in chunks), ({}, "stop")]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "counting-1"}
        lines.append(b"data: " + json.dumps({**event, "choices": [choice]}).encode() + b"\n\n")
    return [*lines, b"data: [DONE]\n\n"]
