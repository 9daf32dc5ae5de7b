"""Where a chunk of raw bytes may be cut without cutting a secret in two."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 8192  # a private key: the longest secret that is waited for

_TOKEN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/=%@:"
_BEARER = re.compile(rb"[Bb]earer \Z")
# A member's name, its colon, and as much of its string as there is. No line break stands in a JSON string.
_MEMBER = re.compile(rb'[A-Za-z0-9_.-]{2,64}\\*"\s{0,8}:?\s{0,8}(?:\\*"[^"\n]{0,4096})?\\*\Z')
_PEM = b"-----BEGIN "


def unfinished(data: bytes, forms: Iterable[str]) -> int:
    """How many bytes at the end may begin a secret that goes on behind it. `forms`: known secrets, as spelled."""
    end = data[-LONGEST:]
    held = max(_token_run(end), _open_key(end))
    if not end.endswith(b"\n"):
        held = max(held, _open_member(end))
    for form in forms:
        held = max(held, _begun(end, form.encode()))
    return held


def _token_run(end: bytes) -> int:
    left = end.rstrip(_TOKEN)
    bearer = _BEARER.search(left, max(0, len(left) - 7))
    return len(end) - (bearer.start() if bearer else len(left))


def _open_key(end: bytes) -> int:
    at = end.rfind(_PEM)
    if at < 0 or (b"-----END " in end[at:] and end.rstrip().endswith(b"-----")):
        return 0
    return len(end) - at


def _open_member(end: bytes) -> int:
    match = _MEMBER.search(end, max(0, len(end) - LONGEST // 2))
    return len(end) - match.start() if match else 0


def _begun(end: bytes, form: bytes) -> int:
    """The length of the longest end that a known secret begins with."""
    longest = min(len(form) - 1, len(end))
    at = end.find(form[:1], len(end) - longest) if longest > 0 else -1
    while at >= 0:
        if form.startswith(end[at:]):
            return len(end) - at
        at = end.find(form[:1], at + 1)
    return 0
