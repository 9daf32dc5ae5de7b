"""Reads recorded traffic of other projects (vcrpy and go-vcr YAML) as exchanges, if it is available."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from wiretape.model.http import Body, BytesBody, Ended, Exchange, Headers, JsonBody, Request, Response, TextBody

CORPORA = Path(__file__).parents[2].parent / "shared" / "corpora"


def archive(name: str) -> Path:
    """The archive's path; the test is skipped where it is absent."""
    path = CORPORA / f"{name}.tar.xz"
    if not path.exists():
        pytest.skip(f"no recorded traffic at {path}")
    return path


def files(name: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive(name)) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(suffix):
                stream = tar.extractfile(member)
                assert stream is not None
                yield member.name, stream.read()


def load_yaml(data: bytes) -> Any:
    yaml = pytest.importorskip("yaml", reason="reading cassettes needs PyYAML")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(data, loader)


@cache
def cassettes(name: str, part: str = "", every: int = 1) -> list[tuple[str, list[Exchange]]]:
    """(file, exchanges) of an archive's cassettes; `every` takes one file in so many."""
    found = []
    chosen = [(path, data) for path, data in files(name, ".yaml") if part in path]
    for path, data in chosen[::every]:
        document = load_yaml(data)
        entries = document.get("interactions") if isinstance(document, dict) else None
        plain = [entry for entry in entries or [] if "request" in entry and "response" in entry]  # else a WebSocket
        if plain:
            found.append((path, [exchange(entry, n) for n, entry in enumerate(plain, 1)]))
    return found


def exchange(entry: dict[str, Any], number: int) -> Exchange:
    asked, answered = entry["request"], entry["response"]
    status = answered.get("code") or answered.get("status")
    if isinstance(status, dict):
        status = status["code"]
    request = Request(asked["method"], asked.get("uri") or asked["url"], headers(asked), body(asked))
    response = Response(int(status), headers(answered), number * 10 + 1, body(answered))
    return Exchange(number, number * 10, request, response, Ended.COMPLETE, number * 10 + 5)


def headers(message: dict[str, Any]) -> Headers:
    pairs = []
    for name, values in (message.get("headers") or {}).items():
        pairs += [(name, str(v)) for v in (values if isinstance(values, list) else [values])]
    return Headers(pairs)


def body(message: dict[str, Any]) -> Body | None:
    if "parsed_body" in message:
        return JsonBody(message["parsed_body"])
    value = message.get("body")
    if isinstance(value, dict):
        value = value.get("string", value.get("base64_string"))
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return TextBody(value)
    if not isinstance(value, bytes):
        return JsonBody(value)
    return BytesBody(inflated(value))


def inflated(data: bytes) -> bytes:
    try:
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error):
        return data
