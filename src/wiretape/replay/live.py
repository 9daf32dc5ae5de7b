"""Live requests, made ready to be compared: decoded, parsed at the cost of what is new, under the recorded names."""

from __future__ import annotations

import orjson

from wiretape.model.http import BytesBody, JsonBody, Request
from wiretape.model.jsonvalue import Json
from wiretape.replay.beginnings import Beginnings
from wiretape.replay.echo import Echoes
from wiretape.replay.index import Probe
from wiretape.replay.recorded import plain
from wiretape.replay.values import LiveRequest, address
from wiretape.tape.codings import CodingError, decoder_for
from wiretape.tape.sharing import BodyParser
from wiretape.tape.spelling import NotCarried
from wiretape.wire.registry import Registry


def plain_bytes(data: bytes, encoding: str) -> bytes:
    """A live body without its content-encoding; as it came, where nobody can undo that."""
    decoder = decoder_for(encoding)
    if decoder is None:
        return data
    try:
        return decoder.feed(data)
    except CodingError:
        return data


class LiveReader:
    """Reads the live requests of a session."""

    def __init__(self, registry: Registry, echoes: Echoes, beginnings: Beginnings) -> None:
        self._registry = registry
        self._echoes = echoes
        self._beginnings = beginnings
        self._parser = BodyParser()

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
            parsed = self._parser.parse(data)
        except NotCarried:
            pass
        else:
            if parsed.base is not None and parsed.key is not None:
                self._beginnings.tell(parsed.base.value[parsed.key], parsed.value[parsed.key], parsed.common)
            return parsed.value
        try:
            return orjson.loads(data)
        except ValueError:
            return data or None
