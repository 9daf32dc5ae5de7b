"""Where a chunk of raw bytes may be cut without cutting a secret in two. Looks at the last 8 KB only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from wiretape.tape.redaction.names import Member, member, secret_parameter
from wiretape.tape.redaction.scanning import Span

LONGEST = 8192  # a private key: the longest secret that is waited for

TOKEN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/=%@:!#$&*?^"
IS_TOKEN = re.compile(f"[{re.escape(TOKEN.decode())}]*").fullmatch
_SCHEME = re.compile(rb"(?:[Bb]earer|[Bb]asic) \Z")
# The text between a member's colon and the end of its string, in JSON or in JSON inside a string.
_OPEN_VALUE = re.compile(rb'\s*(?:\\*(?:"(?:[^"\n]|(?<=\\)")*)?)?\Z')
_NAME = re.compile(rb"([A-Za-z0-9_.-]{2,64})\\*\Z")
_STEMS = (b"key", b"token", b"secret", b"pass", b"pwd", b"auth", b"cookie", b"cred", b"jwt")
_AROUND = 512  # bytes before and behind a cut in which a known secret is looked for
_BETWEEN = 96  # bytes between a name and its value
_NAMED = re.compile(
    rb"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]{2,64})"
    rb"(?:[\\\"'`\]\[{,:=>\s]|[Vv]alue|</key>|<string>|[Bb]asic|[Bb]earer|[Tt]oken|ApiKey|\bis\b){1,96}\Z"
)
_FIELD_NAME = re.compile(rb'(?<!file)name=\\*"?([A-Za-z0-9_.\[\]-]{1,64})[";\s\\]')
_PEM = b"-----BEGIN "

Occurrences = Callable[[str], Iterable[Span]]


def unfinished(data: bytes, forms: Sequence[bytes] = (), least: int = 0, occurrences: Occurrences | None = None) -> int:
    """The number of bytes at the end that may begin a secret which continues in the next chunk.

    `forms`: known secrets with other characters than tokens have; `least`: how much to hold where these are too many.
    `occurrences`: finds known secrets in a text.
    """
    end = data[-LONGEST:]
    run = _token_run(end)
    held = max(run, _open_key(end), min(least, len(end)))
    if not end.endswith(b"\n\n"):
        held = max(held, _named_before(end, len(end) - run))
    if not end.endswith(b"\n"):
        held = max(held, _open_member(end))
    held = max(held, _open_field(end))
    for form in forms:
        held = max(held, _begun(end, form))
    return _around(end, held, occurrences) if held and occurrences and (forms or least) else held


def _token_run(end: bytes) -> int:
    left = end.rstrip(b"\\").rstrip(TOKEN)  # an escape is not parted from its backslash
    if not left.endswith(b" "):
        return len(end) - len(left)
    scheme = _SCHEME.search(left, max(0, len(left) - 7))
    return len(end) - (scheme.start() if scheme else len(left))


def _open_key(end: bytes) -> int:
    at = end.rfind(_PEM)
    if at < 0 or (b"-----END " in end[at:] and end.rstrip().endswith(b"-----")):
        return 0
    return len(end) - at


def _named_before(end: bytes, at: int) -> int:
    """The number of bytes to hold for a credential's name before `at`, with or without a sign of assignment."""
    before = end[max(0, at - 64 - _BETWEEN) : at]
    lower = before.lower()
    if not any(stem in lower for stem in _STEMS):
        return 0
    name = _NAMED.search(before)
    return len(end) - at + len(before) - name.start() if name and _is_credential(name[1]) else 0


def _open_member(end: bytes) -> int:
    """A credential-named member whose string has not ended."""
    at = end.rfind(b'":')
    if at < 0 or not _OPEN_VALUE.match(end, at + 2):
        return 0
    name = _NAME.search(end, max(0, at - 70), at)
    return len(end) - name.start() if name and _is_credential(name[1]) else 0


def _is_credential(name: bytes) -> bool:
    return member(name.decode()) in (Member.SECRET, Member.MAYBE)


def _open_field(end: bytes) -> int:
    """A field of a multipart form whose name is still to come, or whose name is a credential's and value not over."""
    at = end.rfind(b"form-data;")
    if at < 0 or b"\n--" in end[at:] or b"\\n--" in end[at:]:
        return 0
    name = _FIELD_NAME.search(end, at, at + 200)
    if name is None:
        return len(end) - at if len(end) - at < 200 else 0
    return len(end) - at if _is_credential(name[1]) or secret_parameter(name[1].decode()) else 0


def _begun(end: bytes, form: bytes) -> int:
    """The length of the longest end that a known secret begins with."""
    if end[-1:] not in form:
        return 0
    longest = min(len(form) - 1, len(end))
    at = end.find(form[:1], len(end) - longest) if longest > 0 else -1
    while at >= 0:
        if form.startswith(end[at:]):
            return len(end) - at
        at = end.find(form[:1], at + 1)
    return 0


def _around(end: bytes, held: int, occurrences: Occurrences) -> int:
    """Hold a little more where the cut would go through a known secret that is there as a whole."""
    cut = len(end) - held
    begin = max(0, cut - _AROUND)
    near = end[begin : cut + _AROUND].decode("latin-1")
    through = [begin + span.start for span in occurrences(near) if begin + span.start < cut < begin + span.end]
    return len(end) - min([cut, *through])
