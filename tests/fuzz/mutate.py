"""Strange versions of good traffic: randomly changed bytes, and JSON with unexpected members.

Every function takes its `random.Random`, so that a seed gives the same input again.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable
from typing import Any

DEEP = 400
TOKENS = (
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"\r", b"\n\n", b"\r\n\r\n", b'"', b"\\u", b"\\ud800", b"{", b"}", b"[", b"]"),
    *(b"NaN", b"-Infinity", b"1e400", b"-0", b"9" * 400, b"9" * 5000, b"data: ", b"data:[DONE]\n\n", b"event: error\n"),
    *(b": x\n\n", b"null", b'{"error":', b'"type":', b"\xef\xbb\xbf", b"[" * 3000, b'{"a":' * 3000, b"\xe4\xbd"),
)


def _nested(depth: int, make: Callable[[Any], Any]) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = make(value)
    return value


VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "0", "null", "\ud800", "\x00", "é" * 3000, "[DONE]", "{", '{"a":1}', "$.a[0].b", "error", "-1"),
    *(
        [],
        {},
        [None],
        [[]],
        [{}],
        {"": None},
        {"type": None},
        {"type": {}},
        {"type": "text"},
        [1, "a", {}],
        {"a": [{}]},
    ),
)
NESTS: tuple[Callable[[Any], Any], ...] = (lambda v: [v], lambda v: {"a": v}, lambda v: {"content": [v]})


def _strange(source: random.Random) -> Any:
    """A copy that may be changed again."""
    if source.random() < 0.05:
        return _nested(DEEP, source.choice(NESTS))
    return copy.deepcopy(source.choice(VALUES))


def data(source: random.Random, seed: bytes, other: bytes = b"") -> bytes:
    """A few changes of bytes."""
    made = bytearray(seed)
    for _ in range(source.choice((1, 1, 2, 5))):
        at = source.randrange(len(made) + 1)
        until = min(len(made), at + source.choice((1, 2, 8, 64, 1000)))
        match source.randrange(7):
            case 0:
                made[at:until] = b""
            case 1:
                made[at:at] = source.choice(TOKENS)
            case 2:
                made[at:until] = source.choice(TOKENS)
            case 3 if at < len(made):
                made[at] = source.randrange(256)
            case 4:
                made[at:at] = made[at:until]
            case 5:
                del made[at:]
            case 6:
                start = source.randrange(len(other) + 1)
                made[at:until] = other[start : start + 200]
    return bytes(made)


def value(source: random.Random, seed: Any) -> Any:
    """A few members changed, in a copy."""
    made = [copy.deepcopy(seed)]
    for _ in range(source.choice((1, 1, 2, 4))):
        holder, key = _place(source, made)
        _change(source, holder, key)
    return made[0]


def _place(source: random.Random, made: list[Any]) -> tuple[Any, Any]:
    """Some member of some object or list of the value, and where it stands."""
    holder, key = made, 0
    while isinstance(holder[key], dict | list) and holder[key] and source.random() < 0.8:
        holder = holder[key]
        key = source.choice(list(holder)) if isinstance(holder, dict) else source.randrange(len(holder))
    return holder, key


def _change(source: random.Random, holder: Any, key: Any) -> None:
    old = holder[key]
    match source.randrange(6):
        case 0:
            holder[key] = _strange(source)
        case 1 if isinstance(holder, dict):
            del holder[key]
            holder[source.choice(("", "type", "content", str(key).upper(), "x"))] = old
        case 2 if isinstance(holder, list) and len(holder) < 200:
            holder.insert(key, old)
        case 3:
            holder[key] = [old]
        case 4:
            holder[key] = {"x": old}
        case 5 if isinstance(old, str):
            holder[key] = old[: source.randrange(len(old) + 1)]
        case _:
            holder[key] = _strange(source)


def events(source: random.Random, frames: list[bytes]) -> list[bytes]:
    """Frames lost, twice, in another order, or with data of another shape."""
    made = list(frames)
    for _ in range(source.choice((1, 1, 2, 6))):
        if not made:
            break
        at = source.randrange(len(made))
        match source.randrange(5):
            case 0:
                del made[at]
            case 1:
                made.insert(source.randrange(len(made)), made[at])
            case 2:
                del made[at:]
            case _:
                made[at] = _frame(source, made[at])
    return made


def _frame(source: random.Random, frame: bytes) -> bytes:
    head, colon, rest = frame.partition(b"data:")
    if not colon and frame[:1] in (b"{", b"["):
        head, rest = b"", frame
    try:
        changed = value(source, json.loads(rest))
        return head + colon + json.dumps(changed).encode("utf-8", "surrogatepass") + (b"\n\n" if colon else b"\n")
    except (ValueError, RecursionError):
        return data(source, frame)


def pieces(source: random.Random, whole: bytes) -> list[bytes]:
    """The same bytes in pieces."""
    if len(whole) < 400 and source.random() < 0.3:
        return [whole[n : n + 1] for n in range(len(whole))]
    cuts = sorted({0, len(whole), *(source.randrange(len(whole) + 1) for _ in range(source.choice((1, 3, 20))))})
    return [whole[a:b] for a, b in itertools.pairwise(cuts)] or [b""]
