"""Builders for the tests of importers: files in memory, imported exchanges, hand-made containers."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from wiretape.adapters.importers.importing import ImportedExchange, RefusedEntry, import_data
from wiretape.model.http import Exchange


def outcomes(data: bytes | str, form: str = "auto", name: str = "dir/file") -> list[ImportedExchange | RefusedEntry]:
    return list(import_data(name, data.encode() if isinstance(data, str) else data, form))


def taken(data: bytes | str, form: str = "auto", name: str = "dir/file") -> list[Exchange]:
    """The exchanges, none refused."""
    found = outcomes(data, form, name)
    assert not [str(one) for one in found if isinstance(one, RefusedEntry)]
    return [one.exchange for one in found if isinstance(one, ImportedExchange)]


def reasons(data: bytes | str, form: str = "auto") -> list[str]:
    """Why nothing could be taken, each with its place."""
    found = outcomes(data, form)
    assert all(isinstance(one, RefusedEntry) for one in found), found
    return [str(one) for one in found]


def aws_message(payload: bytes, kind: str = "chunk") -> bytes:
    """One message of an AWS event stream."""
    name, value = b":event-type", kind.encode()
    headers = bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return body + struct.pack(">I", zlib.crc32(body))


def har_file(*entries: dict[str, Any], creator: str = "WebInspector") -> str:
    return json.dumps({"log": {"version": "1.2", "creator": {"name": creator, "version": "1"}, "entries": entries}})


def har_entry(
    content: dict[str, Any] | None = None,
    *,
    url: str = "https://api.example.com/v1/chat/completions",
    post: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    status: int = 200,
    **more: Any,
) -> dict[str, Any]:
    named = [
        {"name": name, "value": value} for name, value in (headers or {"Content-Type": "application/json"}).items()
    ]
    return {
        "startedDateTime": "2026-01-02T03:04:05.678Z",
        "time": 110,
        "request": {
            "method": "POST",
            "url": url,
            "httpVersion": "h2",
            "headers": [{"name": ":method", "value": "POST"}, {"name": "content-type", "value": "application/json"}],
            "postData": {"mimeType": "application/json", "text": '{"a": 1}'} if post is None else post,
        },
        "response": {"status": status, "headers": named, "content": content or {"size": 0}},
        "timings": {"blocked": 5, "dns": -1, "connect": -1, "ssl": -1, "send": 1, "wait": 94, "receive": 10},
        **more,
    }
