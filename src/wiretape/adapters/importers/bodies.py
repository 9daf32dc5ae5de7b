"""Makes bodies as they crossed the wire from the bytes that a container stored.

Containers misstate bodies: a content-encoding that is already undone, or one without its header; binary data stored
as text. Where the bytes themselves show what they are, the bytes decide.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

from wiretape.adapters.importers.documents import ImportRefused
from wiretape.model.framing import AwsFramer
from wiretape.model.http import Body, Headers, JsonBody
from wiretape.model.jsonvalue import Json
from wiretape.tape.format.bodies import plain_body, response_body
from wiretape.tape.format.codings import GZIP, CodingError, TooLarge, decode, decoder_for
from wiretape.tape.format.json_layout import NotCarried, loads

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_EVENT_STREAM = "application/vnd.amazon.eventstream"
_BINARY = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip", "application/octet-stream")
_PACKED = ("application/gzip", "application/x-gzip", "application/x-tar", "application/zip", "application/octet-stream")
_SMALLEST_EVENT = 16
_AT_ONCE = 1024 * 1024  # decoded bytes


def content_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def text_bytes(text: str, headers: Headers) -> bytes:
    """Return the bytes of a body that was stored as text. Raises ImportRefused if bytes are lost."""
    kind = content_type(headers)
    binary = kind == _EVENT_STREAM or kind.startswith(_BINARY) or text.startswith(("\x1f\x8b", "\x1f\ufffd"))
    if binary and not text.isascii():
        if "\ufffd" in text:
            what = "AWS event stream" if kind == _EVENT_STREAM else f"{kind or 'compressed'} body"
            raise ImportRefused(f"its {what} was stored as text, and is corrupt: bytes that are not text are lost")
        try:
            return text.encode("latin-1")  # one character for each byte
        except UnicodeEncodeError:
            pass
    return text.encode("utf-8", "surrogatepass")


def from_base64(text: str) -> bytes:
    """Decode base64, also without padding. Raises ImportRefused."""
    try:
        return b64decode("".join(text.split()) + "=" * (-len(text.strip()) % 4))
    except (Base64Error, ValueError) as error:
        raise ImportRefused(f"its body is not base64: {error}") from None


# -- content-encoding --------------------------------------------------------------------------------------------


def decoded(raw: bytes, headers: Headers) -> bytes:
    """Undo the content-encoding of a body, if it is still there. Raises ImportRefused if the body is corrupt."""
    encodings = ",".join(headers.all("content-encoding")).strip().lower()
    named = encodings not in ("", "identity")
    if not _still_encoded(raw, encodings if named else "", content_type(headers)):
        return raw
    name = encodings if named else "gzip"
    decoder = decoder_for(name)
    if decoder is None:
        raise ImportRefused(f"its body is encoded with {name}, which wiretape cannot decode")
    try:
        return decode(decoder, raw)
    except TooLarge as error:
        raise ImportRefused(f"its body, encoded with {name}, is refused: {error}") from None
    except CodingError as error:
        raise ImportRefused(f"its body, encoded with {name}, is corrupt: {error}") from None


def _still_encoded(raw: bytes, encodings: str, kind: str) -> bool:
    if not encodings:
        return raw.startswith(_GZIP) and kind not in _PACKED
    last = encodings.rpartition(",")[2].strip()
    if last in ("gzip", "x-gzip"):
        return raw.startswith(_GZIP)
    if last == "zstd":
        return raw.startswith(_ZSTD)
    return bool(raw) and not _is_text(raw)


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def cut_short(raw: bytes, headers: Headers) -> bool:
    """True if a gzip-encoded body or an AWS event stream lacks its end."""
    if not raw.startswith(_GZIP):
        return content_type(headers) == _EVENT_STREAM and _breaks_off(raw)
    decompressor = zlib.decompressobj(GZIP)
    try:
        while raw and not decompressor.eof:
            decompressor.decompress(raw, _AT_ONCE)
            raw = decompressor.unconsumed_tail
    except zlib.error:
        return False
    return not decompressor.eof


# -- bodies ------------------------------------------------------------------------------------------------------


def sent_body(raw: bytes, headers: Headers) -> Body | None:
    """Return the body of a request."""
    raw = decoded(raw, headers)
    body = plain_body(raw)
    if body is None or isinstance(body, JsonBody) or raw.lstrip()[:1] not in (b"{", b"["):
        return body
    try:
        return JsonBody(loads(raw), exact=False)
    except NotCarried:
        return body


def received_body(raw: bytes, headers: Headers, ms: int = 0) -> Body | None:
    """Return the body of a response. All its frames get the same time, because containers store only one."""
    raw = decoded(raw, headers)
    kind = headers.get("content-type")
    if content_type(headers) == _EVENT_STREAM and (fault := event_stream_fault(raw)):
        raise ImportRefused(f"its AWS event stream is corrupt: {fault}")
    return response_body([(ms, raw)], kind) if raw else None


def value_body(value: Json) -> Body | None:
    """Return a body that a container stored as a JSON value. Its original spelling is not known."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ImportRefused(f"its parsed body is not JSON: {error}") from None
    raw = text.encode("utf-8", "surrogatepass")
    try:
        return JsonBody(loads(raw), exact=False)
    except NotCarried:
        return plain_body(raw)


def event_stream_fault(raw: bytes) -> str | None:
    """Return what is wrong with the lengths or checksums of an AWS event stream. A missing end is not an error."""
    framer = AwsFramer()
    frames = [*framer.feed(raw), *framer.close()]
    for number, frame in enumerate(frames, 1):
        if len(frame) < _SMALLEST_EVENT:
            return None if number == len(frames) else f"message {number} is too short"
        length = int.from_bytes(frame[:4], "big")
        if zlib.crc32(frame[:8]) != int.from_bytes(frame[8:12], "big"):
            return f"CRC mismatch in the prelude of message {number}"
        if length > len(frame) and number == len(frames):
            return None
        if zlib.crc32(frame[:-4]) != int.from_bytes(frame[-4:], "big"):
            return f"CRC mismatch in message {number}"
    return None


def _breaks_off(raw: bytes) -> bool:
    framer = AwsFramer()
    framer.feed(raw)
    return bool(framer.close())


# -- heads -------------------------------------------------------------------------------------------------------


def clean(text: Any) -> str:
    """Return text that a tape can carry: surrogates are escaped."""
    if isinstance(text, bytes):
        return text.decode("latin-1")
    return str(text).encode("utf-8", "backslashreplace").decode()


def header_pairs(headers: Any) -> Headers:
    """Read the headers of a container: a mapping to values or lists, pairs, or {name, value} objects."""
    pairs: list[tuple[str, str]] = []
    for name, value in headers.items() if isinstance(headers, dict) else _listed(headers or ()):
        values = value if isinstance(value, list | tuple) else [value]
        pairs += [(clean(name), clean(one)) for one in values if one is not None]
    return Headers(pair for pair in pairs if not pair[0].startswith(":"))  # HTTP/2's pseudo-headers


def _listed(headers: Any) -> list[tuple[Any, Any]]:
    return [(h["name"], h["value"]) if isinstance(h, dict) else (h[0], h[1]) for h in headers]


def http_version(text: Any) -> str | None:
    """Return `1.1` for `HTTP/1.1`, and `2` for `h2` or `http/2.0`."""
    version = str(text or "").lower().removeprefix("http/").removeprefix("h").strip()
    version = version.removesuffix(".0") if version not in ("1.0",) else version
    return version if version in ("1.0", "1.1", "2", "3") else None
