"""Recordings of other tools -> exchanges: finds out which container a file is, and has its importer read it.

An importer is a module with `NAME` (as in `--format`), `TITLE`, and `read(source)`. Adding one is that file and a
line in `IMPORTERS`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, cast

from wiretape.adapters.import_source import CannotTake, Refused, Source, Taken
from wiretape.model.jsonvalue import Json

__all__ = ["FORMATS", "Refused", "Taken", "import_data", "import_files"]

IMPORTERS: dict[str, str] = {
    "vcr": "wiretape.adapters.vcr",
    "go-vcr": "wiretape.adapters.go_vcr",
    "ruby-vcr": "wiretape.adapters.ruby_vcr",
    "har": "wiretape.adapters.har",
    "mitm": "wiretape.adapters.mitm_flows",
    "jsonl": "wiretape.adapters.trace_jsonl",
    "body": "wiretape.adapters.bare_body",
}
FORMATS = ("auto", *IMPORTERS)
_FLOWS = re.compile(rb"\d{1,12}:\d+:")  # netstrings in a netstring
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
_STREAM_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")


class Importer(Protocol):
    NAME: str
    TITLE: str

    def read(self, source: Source) -> Iterator[Taken | Refused]: ...


def import_files(paths: Iterable[str | Path], form: str = "auto") -> Iterator[Taken | Refused]:
    """Every exchange of the files, file by file, and what could not be taken. No file makes it raise."""
    for path in paths:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            yield Refused(str(path), None, f"cannot be read: {error.strerror or error}")
            continue
        yield from import_data(str(path), data, form)


def import_data(name: str, data: bytes, form: str = "auto") -> Iterator[Taken | Refused]:
    """Every exchange of a file's bytes, and what could not be taken."""
    source = Source(name, data)
    found = False
    try:
        for outcome in importer(form if form != "auto" else container_of(source)).read(source):
            found = True
            yield outcome
    except CannotTake as error:
        yield Refused(name, None, str(error))
        return
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        yield Refused(name, None, f"is not as it should be: {type(error).__name__}: {said}")
        return
    if not found:
        yield Refused(name, None, "holds no exchange")


def importer(name: str) -> Importer:
    return cast(Importer, importlib.import_module(IMPORTERS[name]))


def container_of(source: Source) -> str:
    """Which container a file is, by its content. Raises CannotTake."""
    data = source.data
    if not data.strip():
        raise CannotTake("is empty")
    if _FLOWS.match(data):
        return "mitm"
    if _STREAM_START.match(data):
        return "body"
    if not _JSON_START.match(data):
        return _container_of_document(source.document)
    if _is_lines(data):
        return _container_of_line(data)
    return _container_of_document(source.document)


def _is_lines(data: bytes) -> bool:
    """Whether this is one JSON text a line, and more than one."""
    first, _, rest = data.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    return bool(rest.strip()) and _parsed(first) is not None


def _parsed(line: bytes) -> Any:
    from wiretape.adapters.import_source import parse_json

    try:
        return parse_json(line)
    except CannotTake:
        return None


def _container_of_line(data: bytes) -> str:
    first = _parsed(data.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0])
    return "jsonl" if _is_trace(first) else "body"


def _container_of_document(document: Json) -> str:
    from wiretape.adapters import go_vcr, ruby_vcr, vcr

    if isinstance(document, dict) and isinstance(document.get("log"), dict) and "entries" in document["log"]:
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
    raise CannotTake(
        "is no recording that wiretape knows: cassettes of vcrpy, go-vcr and Ruby's VCR, HAR, mitmproxy's flows, "
        "JSON Lines of requests and responses"
    )


def _is_trace(entry: Json) -> bool:
    return isinstance(entry, dict) and "request" in entry and "response" in entry


def _is_old_vcr(entry: Json) -> bool:
    return isinstance(entry["response"], dict) and isinstance(entry["response"].get("status"), dict)
