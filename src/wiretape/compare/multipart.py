"""Multipart forms as JSON for comparison: each part by its name, with file name, type and content.

Boundaries do not count; only parts of one name have an order. Text is compared as text, other content by its size and
a fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final
from urllib.parse import unquote

from wiretape.model.jsonvalue import Json, JsonObject

_OPENING: Final = re.compile(rb"\A(?:\r?\n)?--([^\r\n]{1,200}?)[ \t]*\r?\n")
_BOUNDARY: Final = re.compile(r'multipart/[^;]+;.*?\bboundary\s*=\s*(?:"([^"]+)"|([^\s;]+))', re.IGNORECASE | re.DOTALL)
_NAMED: Final = re.compile(r'[;\s](name|filename\*?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))', re.IGNORECASE)
FORM: Final = "part"  # the member with the parts of a form
_LETTERS: Final = str.maketrans(
    "0123456789abcdef", "ghijklmnopqrstuv"
)  # letters, so that no part of a fingerprint is volatile text


def parts_of(data: bytes, content_type: str) -> Json:
    """A form as JSON: `{"part": {name: {"filename"?, "type"?, "content"}}}`; None if the bytes are not a form."""
    told = _BOUNDARY.match(content_type.strip())
    seen = _OPENING.match(data)
    if told is not None:
        boundary = (told[1] or told[2]).encode("latin-1", "replace")
    elif seen is not None and len(seen[1]) >= 8 and b"content-disposition" in data[: seen.end() + 4096].lower():
        boundary = seen[1]
    else:
        return None
    found: dict[str, Json] = {}
    for name, part in _parts(data, boundary):
        known = found.get(name)
        if known is None:
            found[name] = part
        elif isinstance(known, list):
            known.append(part)
        else:
            found[name] = [known, part]
    return {FORM: found} if found else None


def _parts(data: bytes, boundary: bytes) -> Iterator[tuple[str, JsonObject]]:
    line = re.compile(rb"(?:\A|\r?\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?:\r?\n|\Z)")
    start: int | None = None
    for match in line.finditer(data):
        if start is not None:
            yield _part(data[start : match.start()])
        if match[1]:
            return
        start = match.end()
    if start is not None:
        yield _part(data[start:])  # the form is truncated


def _part(data: bytes) -> tuple[str, JsonObject]:
    found = re.search(rb"(?:\A|\r?\n)\r?\n", data)
    head, content = (data[: found.start()], data[found.end() :]) if found is not None else (data, b"")
    headers = dict(_headers(head))
    names = {
        match[1].lower(): re.sub(r"\\(.)", r"\1", match[2] if match[2] is not None else match[3])
        for match in _NAMED.finditer(headers.get("content-disposition", ""))
    }
    part: JsonObject = {}
    filename = names.get("filename")
    if "filename*" in names:
        filename = unquote(names["filename*"].rpartition("'")[2])
    if filename is not None:
        part["filename"] = filename
    if "content-type" in headers:
        part["type"] = headers["content-type"]
    part["content"] = _content(content)
    return names.get("name", ""), part


def _headers(head: bytes) -> Iterator[tuple[str, str]]:
    text = head.decode("utf-8", "replace").replace("\r\n", "\n").replace("\n ", " ").replace("\n\t", " ")
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def _content(data: bytes) -> Json:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return text
    return {"bytes": len(data), "fingerprint": sha256(data).hexdigest()[:32].translate(_LETTERS)}
