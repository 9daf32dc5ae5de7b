"""Recordings of other tools -> exchanges: finds out which container a file is, and has its importer read it.

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
from wiretape.adapters.importers.import_source import CannotTake, Refused, Source, Taken, parse_json
from wiretape.model.http import Exchange, JsonBody, body_bytes
from wiretape.model.jsonvalue import Json
from wiretape.model.jsonwalk import text_of
from wiretape.tape.format.codings import most_decoded, too_large

__all__ = ["FORMATS", "Refused", "Taken", "import_data", "import_files"]

IMPORTERS: dict[str, str] = {
    "vcr": "wiretape.adapters.importers.vcr",
    "go-vcr": "wiretape.adapters.importers.go_vcr",
    "ruby-vcr": "wiretape.adapters.importers.ruby_vcr",
    "har": "wiretape.adapters.importers.har",
    "mitm": "wiretape.adapters.importers.mitm_flows",
    "jsonl": "wiretape.adapters.importers.trace_jsonl",
    "body": "wiretape.adapters.importers.bare_body",
}
FORMATS = ("auto", *IMPORTERS)
UNKNOWN = "is no recording that wiretape knows"
_FLOWS = re.compile(rb"\d{1,12}:\d+:")  # netstrings in a netstring
_TAPE = re.compile(rb'\s*\{\s*"wiretape"\s*:')
_JSON_START = re.compile(rb"\s*[{\[]")
_CASSETTE = re.compile(rb"(?m)^(?:interactions|http_interactions|log|- request|-\s+!)\b")  # YAML that is worth reading
_LOOK = 20  # lines
_STREAM_START = re.compile(rb"\s*(?:data|event|id|retry)?:")


class Importer(Protocol):
    """Reads the recordings of one container."""

    def read(self, source: Source) -> Iterator[Taken | Refused]:
        """Every entry of a file: an exchange, or why it cannot be taken."""
        ...


class ImporterPlugin(Importer, Protocol):
    """An importer of another package. Its entry point's name is its `--format`."""

    def claims(self, source: Source) -> bool:
        """True if the file is of this container."""
        ...


def import_files(paths: Iterable[str | Path], form: str = "auto") -> Iterator[Taken | Refused]:
    """Every exchange of the files, file by file, and what could not be taken. No file makes it raise."""
    for path in paths:
        yield from _import(Source(str(path), path=Path(path)), form)


def import_data(name: str, data: bytes, form: str = "auto") -> Iterator[Taken | Refused]:
    """Every exchange of a file's bytes, and what could not be taken."""
    return _import(Source(name, data), form)


def _import(source: Source, form: str) -> Iterator[Taken | Refused]:
    found, size = False, 0
    try:
        container = form if form != "auto" else _container(source)
        for outcome in importer(container).read(source):
            found = True
            if isinstance(outcome, Taken):
                size += _size(outcome.exchange)
                if size > (limit := most_decoded(source.size)):
                    raise CannotTake(f"is not read further: its bodies decode to {too_large(limit)}")
            yield _checked(outcome) if form == "auto" and container == "body" else outcome
    except CannotTake as error:
        yield Refused(source.name, None, str(error))
    except OSError as error:
        yield Refused(source.name, None, f"cannot be read: {error.strerror or error}")
    except Exception as error:  # whatever an odd file does, the others are imported
        said = " ".join(str(error).split())[:200]
        yield Refused(source.name, None, f"is not as it should be: {type(error).__name__}: {said}")
    else:
        if not found:
            yield Refused(source.name, None, "holds no exchange")


def _size(exchange: Exchange) -> int:
    """The bytes of an exchange's bodies."""
    response = exchange.response.body if exchange.response is not None else None
    bodies = (exchange.request.body, response, *(message.body for message in exchange.messages))
    return sum(len(text_of(body.value) if isinstance(body, JsonBody) else body_bytes(body)) for body in bodies)


def _checked(outcome: Taken | Refused) -> Taken | Refused:
    """A file that only may be the body of a response is taken when some wire format knows it."""
    from wiretape.wire.registry import default_registry

    if isinstance(outcome, Taken) and default_registry().recognise(outcome.exchange) is None:
        return Refused(outcome.file, None, f"{UNKNOWN}; --format body takes it for the body of a response")
    return outcome


def importer(name: str) -> Importer:
    """The importer of a container: a module of this package, or a plug-in."""
    if name in IMPORTERS:
        return cast(Importer, importlib.import_module(IMPORTERS[name]))
    return plugins()[name]


def plugins() -> dict[str, ImporterPlugin]:
    """The importers of installed plug-ins, by name."""
    return _plugins.usable(_plugins.IMPORTERS, FORMATS)


def _container(source: Source) -> str:
    """The container of a file. Plug-ins decide about files that no built-in importer is sure of. Raises CannotTake."""
    try:
        found = container_of(source)
    except CannotTake as error:
        if str(error) != UNKNOWN:
            raise
        found = ""
    if found in ("", "body"):
        for name, plugin in plugins().items():
            if _claims(name, plugin, source):
                return name
    if not found:
        raise CannotTake(UNKNOWN)
    return found


def _claims(name: str, plugin: ImporterPlugin, source: Source) -> bool:
    try:
        return plugin.claims(source)
    except CannotTake:
        return False
    except Exception as error:
        _plugins.warn(f"importer {name} failed: {type(error).__name__}: {error}")
        return False


def container_of(source: Source) -> str:
    """Which container a file is, by its content. Raises CannotTake."""
    head = source.head
    if not head:
        raise CannotTake("is empty")
    if _TAPE.match(head):
        raise CannotTake("is a tape already; wiretape merge makes one of several")
    if _FLOWS.match(head):
        return "mitm"
    if _STREAM_START.match(head):
        return "body"
    if _JSON_START.match(head):
        lines = _lines(source)
        return _container_of_lines(lines) if lines else _container_of_document(source.document)
    if not _CASSETTE.search(head):
        raise CannotTake(UNKNOWN)
    return _container_of_document(source.document)


def _lines(source: Source) -> list[Json]:
    """The documents of a file that has one a line, as far as lines are documents; none if that is not what it is."""
    lines = [line for line in islice(source.lines(), _LOOK) if line.strip()]
    found = [value for line in lines if isinstance(value := _parsed(line), dict)]
    return found if len(lines) > 1 and 2 * len(found) > len(lines) else []


def _parsed(line: bytes) -> Json:
    try:
        return parse_json(line)
    except CannotTake:
        return None


def _container_of_lines(lines: list[Json]) -> str:
    return "jsonl" if any(_is_trace(line) for line in lines) else "body"


def _container_of_document(document: Json) -> str:
    from wiretape.adapters.importers import go_vcr, har, ruby_vcr, vcr

    if har.claims(document):
        return "har"
    if ruby_vcr.claims(document):
        return "ruby-vcr"
    if go_vcr.claims(document):
        return "go-vcr"
    if isinstance(document, dict) and vcr.claims(document):
        return "vcr"
    if isinstance(document, list) and document and all(_is_trace(entry) for entry in document):
        return "vcr" if _is_old_vcr(document[0]) else "jsonl"
    if _is_trace(document):
        return "jsonl"
    if isinstance(document, dict | list):
        return "body"
    raise CannotTake(UNKNOWN)


def _is_trace(entry: Json) -> bool:
    return isinstance(entry, dict) and "request" in entry and "response" in entry


def _is_old_vcr(entry: Json) -> bool:
    return isinstance(entry["response"], dict) and isinstance(entry["response"].get("status"), dict)
