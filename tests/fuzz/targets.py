"""The fuzz targets and their invariants: only documented exceptions, no lost data, no effect of chunking.

A target takes random choices and gives the input it made, so that a failing one can be kept, and a check of it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.fuzz import mutate
from tests.fuzz.seeds import Seeds
from tests.support.wire import everything
from tests.support.wire_binary import message

from wiretape.adapters.importers.importing import ImportedExchange, RefusedEntry, import_data
from wiretape.analyze.stats import stats
from wiretape.errors import TapeError
from wiretape.model.call import ModelCall
from wiretape.model.framing import AwsFramer, Framer, LineFramer, ListFramer, SseFramer
from wiretape.model.http import Body, BytesBody, Exchange, JsonBody, Response, StreamBody, TextBody, WsMessage
from wiretape.runs.run import build_run
from wiretape.tape.reading.reader import read_tape
from wiretape.wire.base import Memo, WireFormat
from wiretape.wire.lenient import body_json, raw_bytes
from wiretape.wire.registry import Registry, built_in, decode
from wiretape.wire.sse import NdjsonDecoder, SseDecoder


@dataclass(frozen=True)
class Case:
    """One input: how it is kept when it fails, and the check."""

    input: bytes
    check: Callable[[], None]


Target = Callable[[random.Random], Case]


def targets(seeds: Seeds, directory: Path) -> Iterator[tuple[str, Target]]:
    registry = Registry(built_in())
    for form in registry.formats:
        mine = seeds.exchanges.get(form.name, [])
        if mine:
            yield form.name, _decoding(form, mine, [x for xs in seeds.exchanges.values() for x in xs if not x.messages])
    yield "WebSocket", _socket(seeds.exchanges["WebSocket"])
    yield "a whole run", _run([x for xs in seeds.exchanges.values() for x in xs])
    for name, make in (("SSE", SseFramer), ("NDJSON", LineFramer), ("AWS", AwsFramer), ("JSON list", ListFramer)):
        yield f"frames of {name}", _framing(make, seeds.streams)
    for name, decoder in (("SSE", SseDecoder), ("NDJSON", NdjsonDecoder)):
        yield f"events of {name}", _events(decoder, seeds.streams)
    yield "tape reader", _tape(seeds.tapes, directory)
    if seeds.files:
        yield "importers", _importing(seeds.files)


# -- wire formats ------------------------------------------------------------------------------------------------


def _decoding(form: WireFormat, mine: list[Exchange], others: list[Exchange]) -> Target:
    """Its own traffic, changed, and now and then another format's."""

    def target(source: random.Random) -> Case:
        one = source.choice(mine if source.random() < 0.9 else others)
        request = replace(one.request, body=_request_body(source, one.request.body))
        response = one.response and replace(one.response, body=_response_body(source, one.response.body))
        changed = replace(one, request=request, response=response)
        whole = raw_bytes(response.body if response else None)
        cut = mutate.pieces(source, whole)

        def check() -> None:
            call = form.decode(changed, Memo())
            check_call(call)
            form.claims(request)
            form.claims_response(changed)
            form.decode_request(request, Memo())
            if response is not None:
                _check_chunks(form, changed, response, cut)

        return Case(_spell(changed), check)

    return target


def check_call(call: ModelCall) -> None:
    answered = call.response.messages if call.response else ()
    for said in (*call.request.messages, *answered):
        assert len(said.blocks) == len(said.block_paths)
    for n in range(len(call.request.messages)):
        assert isinstance(call.request.path(n), str)


def _check_chunks(form: WireFormat, one: Exchange, response: Response, cut: list[bytes]) -> None:
    binary = isinstance(response.body, StreamBody) and response.body.binary
    whole, split = (
        form.decode(replace(one, response=replace(response, body=stream(pieces, binary))), Memo()).response
        for pieces in ([b"".join(cut)], cut)
    )
    assert whole is not None
    assert split is not None
    # NaN is not equal to itself, so compare its text.
    assert repr(everything(whole)) == repr(everything(split)), "chunking changes the decoded call"


def stream(pieces: list[bytes], binary: bool = False) -> StreamBody:
    return StreamBody(tuple(pieces), (0,) * len(pieces), binary)


def _request_body(source: random.Random, body: Body | None) -> Body:
    value = body_json(body)
    if isinstance(value, dict) and source.random() < 0.9:
        return JsonBody(mutate.value(source, value))
    return BytesBody(mutate.data(source, raw_bytes(body)))


def _response_body(source: random.Random, body: Body | None) -> Body:
    if isinstance(body, StreamBody):
        if source.random() < 0.2:
            return stream([mutate.data(source, raw_bytes(body))], body.binary)
        frames = list(body.frames)
        return stream([*_binary(source, frames)] if body.binary else mutate.events(source, frames), body.binary)
    value = body_json(body)
    if isinstance(value, dict | list) and source.random() < 0.8:
        return JsonBody(mutate.value(source, value))
    raw = mutate.data(source, raw_bytes(body), b'data: {"error": {"message": "x"}}\n\n')
    return BytesBody(raw) if source.random() < 0.5 else TextBody(raw.decode("utf-8", "surrogateescape"))


def _binary(source: random.Random, frames: list[bytes]) -> Iterator[bytes]:
    """Frames of an AWS event stream whose payloads are changed and whose checksums are right."""
    for frame in mutate.events(source, frames):
        length = int.from_bytes(frame[4:8], "big")
        head, payload = frame[12 : 12 + length], frame[12 + length : -4]
        try:
            changed = json.dumps(mutate.value(source, json.loads(payload))).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            changed = mutate.data(source, payload)
        kind = head.partition(b":event-type")[2][3:].partition(b"\r:content-type")[0].decode("latin-1") or "chunk"
        yield frame if source.random() < 0.6 else message(changed, event_type=kind, message_type="event")


def _spell(one: Exchange) -> bytes:
    asked, answered = raw_bytes(one.request.body), raw_bytes(one.response.body if one.response else None)
    return f"{one.request.method} {one.request.url}\n\n".encode() + asked + b"\n\n====\n\n" + answered


# -- connections and runs ----------------------------------------------------------------------------------------


def _socket(mine: list[Exchange]) -> Target:
    def target(source: random.Random) -> Case:
        one = source.choice(mine)
        messages = [_message(source, m) for m in one.messages]
        if source.random() < 0.3:
            source.shuffle(messages)
        changed = replace(one, messages=tuple(messages[: source.randrange(len(messages) + 1)]))

        def check() -> None:
            registry = Registry(built_in())
            for call in decode([changed], registry):
                check_call(call)
            assert not registry.problems, registry.problems
            form = registry.sockets[0]
            follower = form.follow()
            calls = [call for m in changed.messages for call in follower.feed(replace(changed, messages=()), m)]
            for call in [*calls, *follower.rest(replace(changed, messages=()))]:
                check_call(call)

        return Case(b"\n".join(raw_bytes(m.body) for m in changed.messages), check)

    return target


def _message(source: random.Random, said: WsMessage) -> WsMessage:
    if source.random() < 0.7:
        return said
    value = body_json(said.body)
    if source.random() < 0.7:
        return replace(said, body=JsonBody(mutate.value(source, value)))
    raw = mutate.data(source, raw_bytes(said.body))
    return replace(said, body=BytesBody(raw) if source.random() < 0.5 else TextBody(raw.decode("utf-8", "replace")))


def _run(every: list[Exchange]) -> Target:
    """Changed exchanges one after the other: recognised, decoded, threaded, counted."""

    def target(source: random.Random) -> Case:
        chosen: list[Exchange] = []
        before = source.choice(every)
        for number in range(1, source.randrange(2, 6)):
            before = one = source.choice(every) if source.random() < 0.4 else before
            if not one.messages:
                request = replace(one.request, body=_request_body(source, one.request.body))
                response = one.response and replace(one.response, body=_response_body(source, one.response.body))
                one = replace(one, request=request, response=response)
            chosen.append(replace(one, number=number, at=number * 1000, ended_at=number * 1000 + 500))

        def check() -> None:
            registry = Registry(built_in())
            calls = decode(chosen, registry)
            assert not registry.problems, registry.problems
            stats(build_run(calls))

        return Case(b"\n\n########\n\n".join(map(_spell, chosen)), check)

    return target


# -- streams, tapes, containers ----------------------------------------------------------------------------------


def _framing(make: Callable[[], Framer], streams: list[bytes]) -> Target:
    def target(source: random.Random) -> Case:
        raw = mutate.data(source, source.choice(streams)[:4000], b"\r\r\n\n\r\n")
        cut = mutate.pieces(source, raw)

        def check() -> None:
            whole, split = (_fed(make(), pieces) for pieces in ([raw], cut))
            assert b"".join(whole) == raw, "frames joined are not the input"
            assert whole == split, "chunks change the frames"

        return Case(raw, check)

    return target


def _fed(framer: Framer, pieces: list[bytes]) -> list[bytes]:
    return [*(frame for piece in pieces for frame in framer.feed(piece)), *framer.close()]


def _events(make: Callable[[], SseDecoder | NdjsonDecoder], streams: list[bytes]) -> Target:
    def target(source: random.Random) -> Case:
        raw = mutate.data(source, source.choice(streams)[:4000], b"event: x\r\rdata\n\r\n: c\n\n")
        cut = mutate.pieces(source, raw)

        def check() -> None:
            whole, split = (_decoded(make(), pieces) for pieces in ([raw], cut))
            assert whole == split, "chunks change the events"

        return Case(raw, check)

    return target


def _decoded(decoder: SseDecoder | NdjsonDecoder, pieces: list[bytes]) -> list[object]:
    return [*(event for piece in pieces for event in decoder.feed(piece)), *decoder.close()]


def _tape(tapes: list[bytes], directory: Path) -> Target:
    path = directory / "fuzz.tape"

    def target(source: random.Random) -> Case:
        raw = source.choice(tapes)
        documents = raw.split(b"\n\n")
        at = source.randrange(len(documents))
        if source.random() < 0.6:
            try:
                changed = mutate.value(source, json.loads(documents[at]))
                documents[at] = json.dumps(changed, indent=2).encode("utf-8", "surrogatepass")
            except (ValueError, RecursionError):
                documents[at] = mutate.data(source, documents[at])
        else:
            documents[at] = mutate.data(source, documents[at])
        if source.random() < 0.2:
            source.shuffle(documents)
        made = b"\n\n".join(documents)

        def check() -> None:
            path.write_bytes(made)
            try:
                tape = read_tape(path)
            except TapeError:
                return
            for exchange in tape.exchanges:
                raw_bytes(exchange.request.body)
                raw_bytes(exchange.response.body if exchange.response else None)

        return Case(made, check)

    return target


def _importing(files: list[tuple[str, bytes]]) -> Target:
    small = [(name, data) for name, data in files if len(data) < 20_000]

    def target(source: random.Random) -> Case:
        name, data = source.choice(small)
        raw = mutate.data(source, data, source.choice(small)[1])
        form = source.choice(("auto", "auto", "vcr", "go-vcr", "ruby-vcr", "har", "mitm", "jsonl", "body"))

        def check() -> None:
            outcomes = list(import_data(name, raw, form))
            assert outcomes, "neither taken nor refused"
            for outcome in outcomes:
                assert isinstance(outcome, ImportedExchange | RefusedEntry)
                if isinstance(outcome, RefusedEntry):
                    assert str(outcome)

        return Case(raw, check)

    return target
