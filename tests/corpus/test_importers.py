"""Every archive of recorded traffic through the importers: each exchange is imported or reported.

The archives are next to the repository; without them the tests are skipped.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from tests.support import corpora

from wiretape.adapters.importers.importing import ImportedExchange, RefusedEntry, import_data
from wiretape.adapters.importers.write_imported import place, write_imported
from wiretape.model.http import Body, Exchange, JsonBody, StreamBody, body_bytes
from wiretape.tape.reading.reader import read_tape
from wiretape.tape.redaction import Redactor

ARCHIVES = [
    "charmbracelet+fantasy",
    "elastic+elastic-otel-python-instrumentations",
    "open-telemetry+opentelemetry-python-contrib",
    "pydantic+logfire",
    "pydantic+pydantic-ai",
    "simonw+llm",
    "simonw+llm-anthropic",
    "simonw+llm-gemini",
    "simonw+llm-openai-plugin",
    "simonw+llm-openrouter",
]
NO_HTTP = {
    "is not an HTTP exchange (it holds request_sample, response_sample)",
    "is not an HTTP exchange (it holds request_stream, response_stream)",
    "is not an HTTP exchange (it holds collections_method)",
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def outcomes(archive: str) -> tuple[ImportedExchange | RefusedEntry, ...]:
    return tuple(one for path, data in corpora.files(archive, ".yaml") for one in import_data(path, data))


def taken(archive: str) -> list[ImportedExchange]:
    return [one for one in outcomes(archive) if isinstance(one, ImportedExchange)]


def entries_in(data: bytes) -> int:
    """Count the exchanges of a cassette without parsing it, by the indentation of its entries."""
    margin = re.search(rb"(?m)^interactions:\n( *)- ", data)
    if margin is None:
        return 0
    entries = re.findall(rb"(?m)^%b- (?!kind: (?:message|close))" % margin[1], data)
    kinds = re.findall(rb"(?m)^%b- kind: (message|close)" % margin[1], data)
    connections = kinds.count(b"close") + (kinds[-1:] == [b"message"])
    return len(entries) + connections


@pytest.mark.parametrize("archive", ARCHIVES)
def test_every_exchange_is_imported_or_reported(archive: str) -> None:
    came: Counter[str] = Counter()
    for one in outcomes(archive):
        came[one.file] += not (isinstance(one, RefusedEntry) and one.entry is None)
    files = list(corpora.files(archive, ".yaml"))
    assert files
    for path, data in files:
        assert came[path] == entries_in(data), path
    refused = [one for one in outcomes(archive) if isinstance(one, RefusedEntry)]
    whole = [one for one in refused if one.entry is None]
    assert {one.reason for one in whole} <= {"holds no exchange"}
    assert {one.reason for one in refused if one.entry is not None} <= NO_HTTP
    if archive == "pydantic+pydantic-ai":
        assert (len(taken(archive)), len(refused)) == (1960, 84)
    else:
        assert not refused


@pytest.mark.parametrize("archive", ARCHIVES)
def test_bodies_equal_those_of_the_cassettes(archive: str) -> None:
    """Compared with a plain reading of the files, without importers."""
    mine: dict[str, list[Exchange]] = {}
    for one in taken(archive):
        if not one.exchange.messages:
            mine.setdefault(one.file, []).append(one.exchange)
    checked = 0
    for path, plain in corpora.cassettes(archive, every=3):
        for ours, theirs in zip(mine[path], plain, strict=True):
            assert ours.response is not None
            assert theirs.response is not None
            assert ours.request.method == theirs.request.method.upper()
            assert ours.request.url == theirs.request.url
            assert ours.response.status == theirs.response.status
            assert same(ours.request.body, theirs.request.body), path
            assert same(ours.response.body, theirs.response.body), path
            checked += 1
    assert checked


def same(ours: Body | None, theirs: Body | None) -> bool:
    if isinstance(theirs, JsonBody):  # a value in the cassette
        return isinstance(ours, JsonBody) and bool(ours.value == theirs.value)
    if isinstance(ours, JsonBody) and not ours.exact:
        # The plain reading skips bodies that are mappings.
        return theirs is None or bool(ours.value == json.loads(body_bytes(theirs)))
    return body_bytes(ours) == body_bytes(theirs)


@pytest.mark.parametrize("archive", ARCHIVES)
def test_the_tape_of_an_archive_has_every_imported_exchange(archive: str, tmp_path: Path) -> None:
    found = taken(archive)
    placed = place(found, NOW)
    write_imported(tmp_path / "all.tape", found, NOW, Redactor(), None)
    tape = read_tape(tmp_path / "all.tape")
    assert not tape.warnings
    assert [(x.number, x.at, x.ended, x.ended_at) for x in tape.exchanges] == [
        (x.number, x.at, x.ended, x.ended_at) for x in placed.exchanges
    ]
    changed = 0
    for read, made in zip(tape.exchanges, placed.exchanges, strict=True):
        assert (read.response is None) == (made.response is None)
        assert len(read.messages) == len(made.messages)
        if read.response is not None and made.response is not None:
            changed += body_bytes(read.response.body) != body_bytes(made.response.body)
    assert changed < 0.02 * len(found)  # secrets
    assert (tape.header.provenance or "").startswith("imported from ")


def test_streams_come_as_frames() -> None:
    streams = [
        one.exchange.response
        for archive in ARCHIVES
        for one in taken(archive)
        if one.exchange.response
        and one.exchange.response.headers.get("content-type", "").startswith("text/event-stream")
    ]
    framed = [answer for answer in streams if isinstance(answer.body, StreamBody)]
    assert len(framed) > 480
    assert all(set(answer.body.ms) <= {0} for answer in framed if isinstance(answer.body, StreamBody))
    binary = [
        one.exchange.response.body
        for archive in ARCHIVES
        for one in taken(archive)
        if one.exchange.response and "eventstream" in one.exchange.response.headers.get("content-type", "")
    ]
    assert len(binary) == 54
    assert all(isinstance(body, StreamBody) and body.binary and len(body.frames) > 0 for body in binary)


def test_bare_bodies_are_imported() -> None:
    kinds: Counter[str] = Counter()
    for suffix in (".json", ".chunks.txt", ".sse"):
        for path, data in corpora.files("vercel+ai", suffix):
            (one,) = import_data(path, data, "body")
            assert isinstance(one, ImportedExchange), one
            assert one.exchange.response is not None
            streamed = isinstance(one.exchange.response.body, StreamBody)
            assert streamed == (suffix != ".json"), path
            kinds[suffix] += 1
            if suffix == ".chunks.txt":
                lines = [line for line in data.splitlines() if line.strip()]
                assert isinstance(one.exchange.response.body, StreamBody)
                assert len(one.exchange.response.body.frames) == len(lines), path
    assert kinds == {".json": 163, ".chunks.txt": 139, ".sse": 1}
