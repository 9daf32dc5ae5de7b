"""Converts between BODY shapes and bodies of the model, and raw bytes to the most readable body that restores them.

Byte exactness is checked here: where a nicer shape would not give the same bytes, the next plainer is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from wiretape.model.framing import Framer, framer_for, list_framer_for
from wiretape.model.http import Body, BytesBody, JsonBody, Layout, StreamBody, TextBody, dump_json
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.format import frames, patch
from wiretape.tape.format.codings import most_decoded, too_large
from wiretape.tape.format.documents import EventsShape, FramesShape, JsonShape, LikeShape, TextShape, validated
from wiretape.tape.format.json_layout import SEPARATORS, NotCarried, loads, spellings
from wiretape.tape.format.json_offsets import locate

_SHAPES = {"json", "like", "events", "frames", "text", "base64"}
_LARGE = 256 * 1024  # bytes that take milliseconds to spell
_LOOK = 64  # bytes that tell a stream from something else


def digest(shape: JsonObject) -> str:
    """The short hash by which a body that builds on this one knows it."""
    try:
        spelled = orjson.dumps(shape)
    except TypeError:  # nested more deeply than orjson goes
        spelled = json.dumps(shape, ensure_ascii=False, separators=(",", ":")).encode()
    return sha256(spelled).hexdigest()[:8]


# -- from bytes --------------------------------------------------------------------------------------------------


def plain_body(raw: bytes) -> Body | None:
    """The nicest body that gives exactly these bytes: JSON, text or base64."""
    if not raw:
        return None
    return json_body(raw) or text_body(raw)


def text_body(raw: bytes) -> Body:
    try:
        return TextBody(raw.decode())
    except UnicodeDecodeError:
        return BytesBody(raw)


def json_body(raw: bytes) -> JsonBody | None:
    """A JSON object or list that some layout spells exactly so."""
    if raw[:1] not in (b"{", b"["):
        return None
    try:
        value = loads(raw)
    except NotCarried:
        return None
    try:
        for layout, ascii in spellings(raw):
            if _is_spelled(value, raw, layout, ascii):
                return JsonBody(value, layout, ascii)
    except (orjson.JSONEncodeError, RecursionError):
        pass  # nested too deep to be written as JSON
    return None


def _is_spelled(value: Json, raw: bytes, layout: Layout, ascii: bool) -> bool:
    """Whether a value in this layout gives these bytes. A large one goes part by part: other threads run in between."""
    if len(raw) > _LARGE and isinstance(value, dict) and layout in SEPARATORS:
        return locate(value, raw, layout, ascii) is not None
    return dump_json(value, layout, ascii) == raw


def response_body(chunks: Iterable[tuple[int, bytes]], content_type: str | None) -> Body | None:
    """The body of a response that arrived as (milliseconds after the headers, bytes)."""
    parts = list(chunks)
    first = b""
    for _, data in parts:
        first += data
        if len(first) >= _LOOK:
            break
    framer = framer_for(content_type, first[:_LOOK])
    if framer is None and parts and parts[-1][0] > parts[0][0]:
        framer = list_framer_for(content_type, first[:_LOOK])
    if framer is None or not first:
        raw = b"".join(data for _, data in parts)
        parts.clear()  # a large body is not kept twice
        return plain_body(raw)
    return stream_body(framer, parts)


def stream_body(framer: Framer, chunks: Iterable[tuple[int, bytes]]) -> StreamBody:
    """Frames, each timed by its last byte."""
    marks: list[tuple[int, int]] = []  # (bytes that had come, when)
    pieces: list[bytes] = []
    received = 0
    for at, data in chunks:
        received += len(data)
        marks.append((received, at))
        pieces.append(data)
    found = [*framer.feed(b"".join(pieces)), *framer.close()]
    return StreamBody(tuple(found), tuple(_times(found, marks)), framer.binary or not _is_text(found))


def _times(found: Iterable[bytes], marks: list[tuple[int, int]]) -> Iterable[int]:
    end, mark = 0, 0
    for frame in found:
        end += len(frame)
        while marks[mark][0] < end:
            mark += 1
        yield marks[mark][1]


def _is_text(found: Iterable[bytes]) -> bool:
    try:
        for frame in found:
            frame.decode()
    except UnicodeDecodeError:
        return False
    return True


# -- to a shape --------------------------------------------------------------------------------------------------


def shape_of(body: Body) -> JsonObject:
    """The BODY of a tape document, sharing nothing with earlier ones."""
    match body:
        case JsonBody():
            return {"json": body.value, **spelled(body)}
        case TextBody():
            return {"text": body.text}
        case BytesBody():
            return {"base64": frames.to_base64(body.data)}
        case StreamBody():
            return _stream_shape(body)


def spelled(body: JsonBody) -> JsonObject:
    """The members that say how a JSON body is spelled, where that is not the default."""
    members: JsonObject = {}
    if body.layout != "compact":
        members["layout"] = body.layout
    if body.ascii:
        members["ascii"] = True
    if not body.exact:
        members["exact"] = False
    return members


def _stream_shape(body: StreamBody) -> JsonObject:
    rewritten = {"rewritten": list(body.rewritten)} if body.rewritten else {}
    ms = " ".join(map(str, body.ms))
    if not body.binary:
        try:
            return {"events": frames.pack(frame.decode() for frame in body.frames), "ms": ms, **rewritten}
        except UnicodeDecodeError:
            pass  # a rewritten or converted stream that is not text
    return {"frames": [frames.to_base64(frame) for frame in body.frames], "ms": ms, **rewritten}


# -- from a shape ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Base:
    """A JSON body that others may build on: its value, and the shape that it was written as."""

    value: Json
    shape: JsonObject


def body_of(shape: Json, base: Callable[[str], Base], warn: Callable[[str], None]) -> Body:
    """The body that a BODY says. `base` looks an earlier body up by its name. Raises ValueError for a faulty shape."""
    if not isinstance(shape, dict) or len(_SHAPES & shape.keys()) != 1:
        raise ValueError(f"body: must have exactly one of {', '.join(sorted(_SHAPES))}")
    if "json" in shape:
        return _json(shape["json"], shape) if shape.keys() == {"json"} else _json(shape["json"], _checked(shape))
    if "like" in shape:
        return _like(shape, base, warn)
    if "events" in shape:
        return _events(shape)
    if "frames" in shape:
        return _binary(shape)
    if "text" in shape:
        validated(TextShape, shape)
        return TextBody(shape["text"])
    if shape.keys() != {"base64"} or not isinstance(shape["base64"], str):
        raise ValueError("body.base64: must be a string, and alone")
    return BytesBody(frames.from_base64(shape["base64"], "body.base64"))


def _checked(shape: JsonObject) -> JsonObject:
    validated(JsonShape, {**shape, "json": None})
    return shape


def _json(value: Json, shape: JsonObject) -> JsonBody:
    return JsonBody(value, shape.get("layout", "compact"), shape.get("ascii", False), shape.get("exact", True))


def _like(shape: JsonObject, find: Callable[[str], Base], warn: Callable[[str], None]) -> JsonBody:
    validated(LikeShape, shape)
    base = find(shape["like"])
    if digest(base.shape) != shape["base"]:
        warn(
            f"builds on the body of {shape['like']}, which was changed after it was written; its own text may be stale"
        )
    return _json(patch.apply(base.value, shape["patch"], shape.get("keys")), shape)


def _events(shape: JsonObject) -> StreamBody:
    validated(EventsShape, shape)
    size, limit = 0, most_decoded(sum(map(len, shape["events"])))
    for frame in frames.unpack(shape["events"]):  # finds a faulty frame now, not in a later command
        size += len(frame)
        if size > limit:
            raise ValueError(f"body.events: is not read: it unpacks to {too_large(limit)}")
    return _stream(frames.PackedFrames(shape["events"]), shape, binary=False)


def _binary(shape: JsonObject) -> StreamBody:
    validated(FramesShape, shape)
    for number, text in enumerate(shape["frames"]):
        frames.from_base64(text, f"body.frames[{number}]")
    return _stream(frames.Base64Frames(shape["frames"]), shape, binary=True)


def _stream(found: Any, shape: JsonObject, binary: bool) -> StreamBody:
    times = frames.Times(shape["ms"])
    if len(times) != len(found):
        raise ValueError(f"body: {len(found)} frames, but {len(times)} times in ms")
    return StreamBody(found, times, binary, tuple(shape.get("rewritten", ())))
