"""Where a chunk of raw bytes may be cut without cutting a secret in two."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wiretape.tape.redact_names import Member, member, secret_parameter

LONGEST = 8192  # a private key: the longest secret that is waited for

TOKEN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/=%@:!#$&*?^"
_BEARER = re.compile(rb"[Bb]earer \Z")
# What may stand between a member's colon and the end of its string, in JSON or in JSON inside a string.
_OPEN_VALUE = re.compile(rb'\s*(?:\\*(?:"(?:[^"\n]|(?<=\\)")*)?)?\Z')
_NAME = re.compile(rb"([A-Za-z0-9_.-]{2,64})\\*\Z")
_FIELD_NAME = re.compile(rb'(?<!file)name=\\*"?([A-Za-z0-9_.\[\]-]{1,64})[";\s\\]')
_PEM = b"-----BEGIN "


def unfinished(data: bytes, forms: Sequence[bytes]) -> int:
    """How many bytes at the end may begin a secret that goes on behind it.

    `forms`: known secrets with other characters than tokens have.
    """
    end = data[-LONGEST:]
    held = max(_token_run(end), _open_key(end))
    if not end.endswith(b"\n"):
        held = max(held, _open_member(end))
    held = max([held, _open_field(end), *(_begun(end, form) for form in forms)])
    return _around(end, held, forms)


def _token_run(end: bytes) -> int:
    left = end.rstrip(b"\\").rstrip(TOKEN)  # an escape is not parted from its backslash
    bearer = _BEARER.search(left, max(0, len(left) - 7))
    return len(end) - (bearer.start() if bearer else len(left))


def _open_key(end: bytes) -> int:
    at = end.rfind(_PEM)
    if at < 0 or (b"-----END " in end[at:] and end.rstrip().endswith(b"-----")):
        return 0
    return len(end) - at


def _open_member(end: bytes) -> int:
    """A credential-named member whose string has not ended, or whose name has just."""
    held = 0
    if end.endswith((b'"', b" ", b"\\")):  # the colon is still to come, and the quote maybe
        held = _named(end, len(end.rstrip(b' "')))
    at = end.rfind(b'":')
    if at >= 0 and _OPEN_VALUE.match(end, at + 2):
        held = max(held, _named(end, at))
    return held


def _named(end: bytes, at: int) -> int:
    """How much to hold for the member whose name ends at `at`."""
    name = _NAME.search(end, max(0, at - 70), at)
    if name is None or member(name[1].decode()) not in (Member.SECRET, Member.MAYBE):
        return 0
    return len(end) - name.start()


def _open_field(end: bytes) -> int:
    """A field of a multipart form whose name is still to come, or whose name is a credential's and value not over."""
    at = end.rfind(b"form-data;")
    if at < 0 or b"\n--" in end[at:] or b"\\n--" in end[at:]:
        return 0
    name = _FIELD_NAME.search(end, at, at + 200)
    if name is None:
        return len(end) - at if len(end) - at < 200 else 0
    secret = member(name[1].decode()) is Member.SECRET or secret_parameter(name[1].decode())
    return len(end) - at if secret else 0


def _begun(end: bytes, form: bytes) -> int:
    """The length of the longest end that a known secret begins with."""
    longest = min(len(form) - 1, len(end))
    at = end.find(form[:1], len(end) - longest) if longest > 0 else -1
    while at >= 0:
        if form.startswith(end[at:]):
            return len(end) - at
        at = end.find(form[:1], at + 1)
    return 0


def _around(end: bytes, held: int, forms: Sequence[bytes]) -> int:
    """Hold a little more where the cut would go through a known secret that is there as a whole."""
    cut = len(end) - held
    for form in forms:
        at = end.find(form, max(0, cut - len(form) + 1))
        if 0 <= at < cut:
            return _around(end, len(end) - at, forms)
    return held
