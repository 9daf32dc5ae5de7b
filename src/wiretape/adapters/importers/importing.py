"""Imports recordings of other tools: finds the container of a file, and calls its importer.

An importer is a module with `read(source)`. Adding one is that file and a line in `IMPORTERS`; another package
registers one in the entry-point group `wiretape.importers`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol, cast

from wiretape import _plugins
from wiretape.adapters.importers.documents import ImportRefused, parse_json
from wiretape.adapters.importers.source import ImportedExchange, RefusedEntry, Source
from wiretape.model.http import Exchange, JsonBody, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import text_of
from wiretape.tape.format.codings import most_decoded, too_large

__all__ = ["FORMATS", "ImportedExchange", "RefusedEntry", "import_data", "import_files"]

IMPORTERS: dict[str, str] = {
    "vcr": "wiretape.adapters.importers.vcr",
    "go-vcr": "wiretape.adapters.importers.go_vcr",
    "ruby-vcr": "wiretape.adapters.importers.ruby_vcr",
    "har": "wiretape.adapters.importers.har",
    "nock": "wiretape.adapters.importers.nock",
    "wiremock": "wiretape.adapters.importers.wiremock",
    "mitm": "wiretape.adapters.importers.mitm_flows",
    "jsonl": "wiretape.adapters.importers.trace_jsonl",
    "body": "wiretape.adapters.importers.bare_body",
}
FORMATS = ("auto", *IMPORTERS)
UNKNOWN = "is not a recording in a known format"
_FLOWS = re.compile(rb"\d{1,12}:\d+:")  # netstrings in a netstring
_TAPE = re.compile(rb'\s*\{\s*"wiretape"\s*:')
_JSON_START = re.compile(rb"\s*[{\[]")
# YAML of a known container
_CASSETTE = re.compile(rb"(?m)^(?:interactions|http_interactions|log|requests?|mappings|- request|-\s+!)\b")
_LOOK = 20  # lines
_STREAM_START = re.compile(rb"\s*(?:data|event|id|retry)?:")


class Importer(Protocol):
    """Reads recordings of one container format."""

    def read(self, source: Source) -> Iterator[ImportedExchange | RefusedEntry]:
        """Yield an exchange, or a refusal, for each entry of a file."""
        ...


class ImporterPlugin(Importer, Protocol):
    """An importer of another package. Its entry point's name is its `--format`."""

    def claims(self, source: Source) -> bool:
        """True if the file is of this container."""
        ...


def import_files(paths: Iterable[str | Path], form: str = "auto") -> Iterator[ImportedExchange | RefusedEntry]:
    """Yield every exchange of the files, and the entries that were refused. Errors in a file do not raise."""
    for path in paths:
        yield from _import(Source(str(path), path=Path(path)), form)


def import_data(name: str, data: bytes, form: str = "auto") -> Iterator[ImportedExchange | RefusedEntry]:
    """Yield every exchange in the bytes of a file, and the entries that were refused."""
    return _import(Source(name, data), form)


def _import(source: Source, form: str) -> Iterator[ImportedExchange | RefusedEntry]:
    found, size = False, 0
    try:
        container = form if form != "auto" else _container(source)
        for outcome in importer(container).read(source):
            found = True
            if isinstance(outcome, ImportedExchange):
                size += _size(outcome.exchange)
                if size > (limit := most_decoded(source.size)):
                    raise ImportRefused(f"is not read further: its bodies decode to {too_large(limit)}")
            yield _checked(outcome) if form == "auto" and container == "body" else outcome
    except ImportRefused as error:
        yield RefusedEntry(source.name, None, str(error))
    except OSError as error:
        yield RefusedEntry(source.name, None, f"cannot be read: {error.strerror or error}")
    except Exception as error:  # an unexpected error in one file must not stop the import of others
        reason = " ".join(str(error).split())[:200]
        yield RefusedEntry(source.name, None, f"cannot be imported: {type(error).__name__}: {reason}")
    else:
        if not found:
            yield RefusedEntry(source.name, None, "holds no exchange")


def _size(exchange: Exchange) -> int:
    """Return the number of bytes of an exchange's bodies."""
    response = exchange.response.body if exchange.response is not None else None
    bodies = (exchange.request.body, response, *(message.body for message in exchange.messages))
    return sum(len(text_of(body.value) if isinstance(body, JsonBody) else body_bytes(body)) for body in bodies)


def _checked(outcome: ImportedExchange | RefusedEntry) -> ImportedExchange | RefusedEntry:
    """Accept a possible response body only if a wire format recognizes it."""
    from wiretape.wire.registry import default_registry

    if isinstance(outcome, ImportedExchange) and default_registry().recognise(outcome.exchange) is None:
        return RefusedEntry(outcome.file, None, f"{UNKNOWN}; --format body imports it as the body of a response")
    return outcome


def importer(name: str) -> Importer:
    """Return the importer of a container: a module of this package, or a plug-in."""
    if name in IMPORTERS:
        return cast(Importer, importlib.import_module(IMPORTERS[name]))
    return plugins()[name]


def plugins() -> dict[str, ImporterPlugin]:
    """Return the importers of installed plug-ins, by name."""
    return _plugins.usable(_plugins.IMPORTERS, FORMATS)


def _container(source: Source) -> str:
    """Return the container of a file. Plug-ins are tried on files that no built-in importer claims for sure."""
    try:
        found = container_of(source)
    except ImportRefused as error:
        if str(error) != UNKNOWN:
            raise
        found = ""
    if found in ("", "body"):
        for name, plugin in plugins().items():
            if _claims(name, plugin, source):
                return name
    if not found:
        raise ImportRefused(UNKNOWN)
    return found


def _claims(name: str, plugin: ImporterPlugin, source: Source) -> bool:
    try:
        return plugin.claims(source)
    except ImportRefused:
        return False
    except Exception as error:
        _plugins.warn(f"importer {name} failed: {type(error).__name__}: {error}")
        return False


def container_of(source: Source) -> str:
    """Return the container of a file, by its content. Raises ImportRefused."""
    head = source.head
    if not head:
        raise ImportRefused("is empty")
    if _TAPE.match(head):
        raise ImportRefused("is a tape already; wiretape merge combines tapes")
    if _FLOWS.match(head):
        return "mitm"
    if _STREAM_START.match(head):
        return "body"
    if _JSON_START.match(head):
        lines = _lines(source)
        return _container_of_lines(lines) if lines else _container_of_document(source.document)
    if not _CASSETTE.search(head):
        raise ImportRefused(UNKNOWN)
    return _container_of_document(source.document)


def _lines(source: Source) -> list[Json]:
    """Return the first documents of a file with one JSON document a line, or an empty list for another file."""
    lines = [line for line in islice(source.lines(), _LOOK) if line.strip()]
    found = [value for line in lines if isinstance(value := _parsed(line), dict)]
    return found if len(lines) > 1 and 2 * len(found) > len(lines) else []


def _parsed(line: bytes) -> Json:
    try:
        return parse_json(line)
    except ImportRefused:
        return None


def _container_of_lines(lines: list[Json]) -> str:
    return "jsonl" if any(_is_trace(line) for line in lines) else "body"


def _container_of_document(document: Json) -> str:
    from wiretape.adapters.importers import go_vcr, har, nock, ruby_vcr, vcr, wiremock

    if har.claims(document):
        return "har"
    if ruby_vcr.claims(document):
        return "ruby-vcr"
    if go_vcr.claims(document):
        return "go-vcr"
    if nock.claims(document):
        return "nock"
    if wiremock.claims(document):
        return "wiremock"
    if isinstance(document, dict) and vcr.claims(document):
        return "vcr"
    if isinstance(document, list) and document and all(_is_trace(entry) for entry in document):
        return "vcr" if _is_old_vcr(document[0]) else "jsonl"
    if _is_trace(document):
        return "jsonl"
    if isinstance(document, dict | list):
        return "body"
    raise ImportRefused(UNKNOWN)


def _is_trace(entry: Json) -> bool:
    return isinstance(entry, dict) and "request" in entry and "response" in entry


def _is_old_vcr(entry: Json) -> bool:
    return isinstance(entry["response"], dict) and isinstance(entry["response"].get("status"), dict)
