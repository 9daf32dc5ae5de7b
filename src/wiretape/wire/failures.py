"""Reads provider errors of any shape: type, message, whether to retry, and how long to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias

from wiretape.model.call import CallError
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import dumps, is_empty, items, load, number, obj, string

Phase: TypeAlias = Literal["before_stream", "mid_stream", "terminal_event"]

_RETRY_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_RETRY_TYPE = re.compile(
    r"rate_limit|overloaded|server_error|throttling|resource_exhausted|unavailable|api_error|timeout_error|rate_limited",
    re.IGNORECASE,
)
_NEVER_RETRY = re.compile(r"insufficient_quota|invalid_request|authentication|permission|not_found", re.IGNORECASE)
_DURATION = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)(ms|s|m|h)")
_TRY_AGAIN = re.compile(r"(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) ?(ms|m(?:in)?|s)", re.IGNORECASE)
_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}


def has_error(value: Json) -> bool:
    """Return whether a JSON value with a successful status reports an error (`error: null` does not)."""
    if not isinstance(value, dict):
        return False
    error = value.get("error")
    if value.get("type") == "error" or value.get("object") == "error" or (error is not None and not is_empty(error)):
        return True
    return value.get("success") is False and bool(value.get("errors"))


def call_error(
    status: int, value: Json, headers: Mapping[str, str], phase: Phase = "before_stream", text: str = ""
) -> CallError:
    """Return the error in `value`. `text` is the body if it is not JSON."""
    kind, code, message = _parts(value)
    inner = number(obj(obj(value).get("error")).get("status_code")) or number(obj(value).get("status"))
    reported = status if status >= 400 else (_status_in(code) or inner or status)
    kind = kind or _amazon_type(headers)
    message = message or text.strip()[:2000] or f"HTTP {status}"
    return CallError(
        status=reported,
        type=kind,
        code=code,
        message=message,
        phase=phase,
        retryable=_retryable(reported, kind, code),
        retry_after_ms=_retry_after(headers, value, message, reported),
    )


def _parts(value: Json) -> tuple[str | None, str | None, str]:
    """Return type, code and message of any known shape."""
    if isinstance(value, str):
        return None, None, value
    if isinstance(value, list):  # Gemini's OpenAI-compatible endpoint wraps its error in a list
        return _parts(value[0]) if len(value) == 1 else (None, None, dumps(value))
    body = obj(value)
    error = body.get("error")
    if isinstance(error, dict) and error:
        return _kind(error), _code(error), _message(error)
    if isinstance(error, str) and error:  # xAI: {"code": …, "error": "text"}
        return None, _code(body), error
    for listed in (body.get("detail"), body.get("errors")):
        if isinstance(listed, list) and listed:
            entry = obj(listed[0])
            return _kind(entry), _code(entry), _message(entry) if entry else dumps(listed)
    detail = body.get("detail")
    if isinstance(detail, str):
        return None, None, detail
    return _kind(body), _code(body), _message(body) if body else ""


def _kind(error: JsonObject) -> str | None:
    kind = string(error.get("type")) or string(error.get("status"))
    return None if kind == "error" else kind


def _code(error: JsonObject) -> str | None:
    code = error.get("code")
    if code is None:
        code = obj(error.get("details")).get("error_code")
    if code is None or isinstance(code, bool | dict | list):
        return None
    return str(code) or None


def _message(error: JsonObject) -> str:
    for key in ("message", "Message", "msg", "error", "error_message"):
        found = string(error.get(key))
        if found:
            return _with_upstream(found, error)
    return dumps(error)


def _with_upstream(message: str, error: JsonObject) -> str:
    """Add the upstream's reason: OpenRouter keeps it in `metadata.raw`, often as JSON in a string."""
    raw = obj(error.get("metadata")).get("raw")
    if isinstance(raw, str) and raw:
        inner = load(raw)
        reason = _parts(inner)[2] if isinstance(inner, dict) else raw
        return message if not reason or reason in message else f"{message}: {reason}"
    return message


def _amazon_type(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-amzn-errortype", "").partition(":")[0] or None


def _status_in(code: str | None) -> int | None:
    status = int(code) if code and len(code) < 10 and code.isascii() and code.isdigit() else 0
    return status if 400 <= status < 600 else None


def _retryable(status: int, kind: str | None, code: str | None) -> bool:
    names = f"{kind or ''} {code or ''}"
    if "insufficient_quota" in names:
        return False
    if status in _RETRY_STATUS:
        return True
    return status < 400 and bool(_RETRY_TYPE.search(names)) and not _NEVER_RETRY.search(names)


def _retry_after(headers: Mapping[str, str], value: Json, message: str, status: int) -> int | None:
    """Return the requested wait in milliseconds, from the most explicit source."""
    for found in (_plain(headers.get("retry-after-ms"), 1), _retry_after_header(headers), _retry_info(value)):
        if found is not None:
            return found
    hint = _TRY_AGAIN.search(message)
    if hint:
        return round(float(hint[1]) * _MS[hint[2].lower()])
    if status != 429:
        return None
    resets = [_duration(v) for k, v in headers.items() if k.startswith("x-ratelimit-reset")]
    return max((r for r in resets if r is not None), default=None)


def _plain(text: str | None, unit: int) -> int | None:
    try:
        return max(0, round(float(text) * unit)) if text else None
    except (ValueError, OverflowError):
        return None


def _retry_after_header(headers: Mapping[str, str]) -> int | None:
    """Read seconds, or a date relative to the response's own `date`."""
    text = headers.get("retry-after")
    seconds = _plain(text, 1000)
    if seconds is not None or not text:
        return seconds
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0, round(wait.total_seconds() * 1000))


def _retry_info(value: Json) -> int | None:
    """Read Google's RetryInfo: `details[].retryDelay`, such as "12s"."""
    body = value[0] if isinstance(value, list) and value else value
    for detail in items(obj(obj(body).get("error")).get("details")):
        delay = string(obj(detail).get("retryDelay"))
        if delay:
            return _duration(delay)
    return None


def _duration(text: str) -> int | None:
    """Read `6m0s`, `20ms` or plain seconds; an epoch is not a duration."""
    parts = _DURATION.findall(text)
    if parts:
        return round(sum(float(n) * _MS[unit] for n, unit in parts))
    plain = _plain(text, 1000)
    return plain if plain is not None and plain < 86_400_000 else None
