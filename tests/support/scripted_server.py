"""An HTTP server on loopback with scripted answers that stores every request line and Host header."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

Headers = Mapping[str, str]
Script = Callable[[str, str], tuple[int, Headers, bytes]]  # path and Host -> status, headers, body

CHAT = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
}


@dataclass
class Scripted:
    """`seen` has (method, path, Host, Authorization) of each request."""

    port: int
    seen: list[tuple[str, str, str, str]] = field(default_factory=list)


def answered(path: str, host: str) -> tuple[int, Headers, bytes]:
    return 200, {"content-type": "application/json"}, json.dumps(CHAT).encode()


@contextmanager
def scripted_server(script: Script = answered, address: str = "127.0.0.1") -> Iterator[Scripted]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *values: object) -> None: ...

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            host = self.headers.get("host", "")
            server.seen.append((self.command, self.path, host, self.headers.get("authorization", "")))
            status, headers, body = script(self.path, host)
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer  # noqa: N815  as http.server names them

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

    with Server((address, 0), Handler) as running:
        server = Scripted(running.server_port)
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            running.shutdown()
            thread.join(10)
