"""Prepare live requests for comparison: decode and parse them, and translate their ids."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import orjson

from wiretape.compare.address import address
from wiretape.matching.id_map import IdMap
from wiretape.matching.lookup.index import Probe
from wiretape.matching.recorded import plain
from wiretape.matching.values import LiveRequest
from wiretape.model.common_prefix import CommonPrefixes
from wiretape.model.http import BytesBody, JsonBody, Request
from wiretape.model.jsonvalue import Json
from wiretape.tape.format.codings import CodingError, decode, decoder_for
from wiretape.tape.format.incremental_parser import BodyParser
from wiretape.tape.format.json_layout import NotCarried
from wiretape.wire.registry import Registry

_SHARED: Final = 2048  # bytes; larger bodies are parsed from the end of their common prefix with an earlier body
_MOST_ELEMENTS: Final = 4096


def plain_bytes(data: bytes, encoding: str) -> bytes:
    """A live body without its content-encoding; unchanged if it cannot be decoded."""
    decoder = decoder_for(encoding) if encoding else None
    if decoder is None:
        return data
    try:
        return decode(decoder, data)
    except CodingError:
        return data


class LiveReader:
    """Reads the live requests of a session."""

    def __init__(self, registry: Registry, echoes: IdMap, prefixes: CommonPrefixes) -> None:
        self._registry = registry
        self._echoes = echoes
        self._prefixes = prefixes
        self._parser = BodyParser()
        self._elements: dict[bytes, Json] = {}  # list elements of small bodies, by the digest of their bytes

    def probe(self, request: LiveRequest) -> Probe:
        data = plain_bytes(request.body, request.headers.get("content-encoding", ""))
        read = self._value(data)
        value = self._echoes.back(plain(read, request.headers.get("content-type", "")))
        where = address(request.method, self._echoes.back_text(request.url))
        body = BytesBody(read) if isinstance(read, bytes) else JsonBody(value) if data else None
        made = Request(where.method, request.url, request.headers, body)
        return Probe(where, value, self._registry.recognise_request(made), made)

    def _value(self, data: bytes) -> Json:
        try:
            parsed = self._parser.parse(data) if len(data) >= _SHARED else None
        except NotCarried:
            parsed = None
        if parsed is not None:
            if parsed.base is not None and parsed.key is not None:
                self._prefixes.remember(parsed.base.value[parsed.key], parsed.value[parsed.key], parsed.common)
            return parsed.value
        try:
            return self._shared(orjson.loads(data))
        except ValueError:
            return data or None

    def _shared(self, value: Json) -> Json:
        """A small body in which list elements equal to earlier ones are the same objects."""
        if not isinstance(value, dict):
            return value
        for key, member in value.items():
            if isinstance(member, list):
                value[key] = [self._one(element) if isinstance(element, dict) else element for element in member]
        return value

    def _one(self, element: Json) -> Json:
        if len(self._elements) >= _MOST_ELEMENTS:
            self._elements.clear()
        try:
            text = orjson.dumps(element)  # not kept: it may take several times its length in memory
        except TypeError:  # nested too deeply
            return element
        return self._elements.setdefault(blake2b(text, digest_size=16).digest(), element)
