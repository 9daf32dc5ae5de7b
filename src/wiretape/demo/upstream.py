"""The scripted upstream: a model provider on loopback that answers the agents of the demo.

`python -m wiretape.demo.upstream --port 8137` runs it until Ctrl-C. With `-- CMD` it runs while CMD does, and CMD's
environment points to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from wiretape.demo.scripted_model import answer_for

_KEYS = {"OPENAI_API_KEY": "none", "DEEPSEEK_API_KEY": "none"}  # SDKs refuse to start without one
_GAP_S = 0.004  # seconds between two events of a streamed answer


class Upstream(ThreadingHTTPServer):
    """A server on 127.0.0.1 with a thread for each request."""

    daemon_threads = True

    def __init__(self, port: int = 0, delay: float = 0.0) -> None:
        self.delay = delay  # seconds before an answer, as of a real model
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore connections that the agent closed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        time.sleep(self.server.delay)
        try:
            request = json.loads(body)
            answer = answer_for(self.path, request)
        except (ValueError, AttributeError):
            return self._refuse("the body is not a model request")
        if answer is None:
            return self._refuse(f"the scripted upstream has no answer to this POST {self.path}")
        if request.get("stream"):
            return self._stream(sse(answer))
        return self._send(200, answer)

    def _refuse(self, reason: str) -> None:
        self._send(400, {"error": {"message": reason, "type": "invalid_request_error", "code": "not_scripted"}})

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            time.sleep(_GAP_S)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the agents print to the same terminal."""


@contextmanager
def serve(port: int = 0, delay: float = 0.0) -> Iterator[Upstream]:
    """Run a scripted upstream inside the `with` block."""
    upstream = Upstream(port, delay)
    thread = threading.Thread(target=upstream.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        upstream.shutdown()
        upstream.server_close()
        thread.join()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Answer the demo's agents in place of their models.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("cmd", nargs="*", metavar="CMD", help="a program to run with this upstream")
    options = parser.parse_args(argv)
    with serve(options.port) as upstream, suppress(KeyboardInterrupt):
        variables = {"DEEPSEEK_BASE_URL": upstream.url, "OPENAI_BASE_URL": f"{upstream.url}/v1"}
        if options.cmd:
            return subprocess.run(options.cmd, env={**_KEYS, **os.environ, **variables}, check=False).returncode
        print(" ".join(f"{name}={value}" for name, value in variables.items()), flush=True)
        threading.Event().wait()
    return 0


Json = dict[str, Any]

_PIECE = 4  # characters a delta


def sse(answer: Json) -> Iterator[bytes]:
    """The events in which the provider would stream an answer."""
    yield from _responses(answer) if "output" in answer else _chat(answer)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def _spell(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- Chat Completions ---


def _chat(answer: Json) -> Iterator[bytes]:
    choice = answer["choices"][0]
    head = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"

    def chunk(delta: Json, finish: str | None = None, usage: Json | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return f"data: {_spell({**head, 'choices': choices, 'usage': usage})}\n\n".encode()

    for delta in _chat_deltas(choice["message"]):
        yield chunk(delta)
    yield chunk({"content": ""}, choice["finish_reason"], answer.get("usage"))
    yield b"data: [DONE]\n\n"


def _chat_deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for name in ("reasoning_content", "content"):
        for piece in _pieces(message.get(name) or ""):
            yield {name: piece}
    for call in message.get("tool_calls", ()):
        function = call["function"]
        yield {"tool_calls": [{**call, "function": {"name": function["name"], "arguments": ""}}]}
        for piece in _pieces(function["arguments"]):
            yield {"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]}


# --- Responses ---


def _responses(answer: Json) -> Iterator[bytes]:
    for number, event in enumerate(_responses_events(answer)):
        event = {"type": event.pop("type"), "sequence_number": number, **event}
        yield f"event: {event['type']}\ndata: {_spell(event)}\n\n".encode()


def _responses_events(answer: Json) -> Iterator[Json]:
    begun = {**answer, "status": "in_progress", "output": []}
    begun.pop("usage", None)
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(answer["output"]):
        for event in _item_events(item):
            yield {**event, "output_index": index}
    yield {"type": "response.completed", "response": answer}


def _item_events(item: Json) -> Iterator[Json]:
    opened = {**item, "status": "in_progress"}
    opened.pop("encrypted_content", None)
    match item["type"]:
        case "function_call":
            yield {"type": "response.output_item.added", "item": {**opened, "arguments": ""}}
            yield from _deltas("response.function_call_arguments", "arguments", item["arguments"], {})
        case kind:
            yield {"type": "response.output_item.added", "item": {**opened, "content": []}}
            name = "response.reasoning_text" if kind == "reasoning" else "response.output_text"
            for index, part in enumerate(item["content"]):
                yield from _deltas(name, "text", part["text"], {"content_index": index})
    yield {"type": "response.output_item.done", "item": item}


def _deltas(name: str, member: str, text: str, place: Json) -> Iterator[Json]:
    for piece in _pieces(text):
        yield {"type": f"{name}.delta", **place, "delta": piece}
    yield {"type": f"{name}.done", **place, member: text}


if __name__ == "__main__":
    sys.exit(main())
