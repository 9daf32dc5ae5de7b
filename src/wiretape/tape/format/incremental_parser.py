"""Parses the bodies of a loop, and each time only their new part.

An agent resends its whole history at every call. `BodyParser` remembers recent bodies: their bytes, and where the
elements of their top-level lists end. When a new body begins with the same bytes up to the end of some element, only
what follows is parsed, and parsing it also proves how it was spelled. Otherwise the body is parsed whole and its
elements are looked up among the base's, by their bytes. Either way, what did not change is the same object in memory.

Works on any JSON object with lists at its root: it knows no provider.
"""

from __future__ import annotations

from bisect import bisect_right

import orjson

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.format.json_layout import SEPARATORS, NotCarried, element_encoder, loads, too_deep
from wiretape.tape.format.json_offsets import Parsed, Spelled, ends_after, locate, parse_whole, shifted

_MOST_BODIES = 16
_MOST_BYTES = 64 * 1024 * 1024
_MENDED = 3  # recent bodies that are tried as bases that differ in one element
_RESUMES = 48  # bytes behind that element by which its end is found
_PIECE = 32 * 1024  # bytes that are compared at a time: the copies fit into the processor's cache
_WORTH_IT = 64  # fewest common bytes of a base


class BodyParser:
    """Parses JSON bodies, sharing what they have in common with recent ones. Never mutate what it returns."""

    def __init__(self) -> None:
        self._recent: list[Spelled] = []  # oldest first

    def parse(self, raw: bytes) -> Parsed:
        """Raises NotCarried for bytes that are not JSON, or JSON that parsing would change."""
        near = self._nearest(raw)
        if near is not None:
            extended = _extend(*near, raw)
            if extended is not None:
                return self._remember(extended, near[0])
        for body in self._recent[: -1 - _MENDED : -1]:
            mended = _mend(body, raw)
            if mended is not None:
                if len(mended.parsed.value[mended.parsed.key]) >= len(body.parsed.value[mended.parsed.key]):
                    self._recent = [one for one in self._recent if one is not body]  # the new one is as good a base
                return self._remember(mended)
        try:
            spelled = parse_whole(raw)
        except (orjson.JSONEncodeError, RecursionError) as error:
            raise too_deep(error) from None
        base = self._most_in_common(spelled) if spelled.members else None
        if base is not None:
            _adopt(spelled, base)
        return self._remember(spelled, base)

    def _nearest(self, raw: bytes) -> tuple[Spelled, str, int] | None:
        """The recent body with the longest common beginning that ends with a list element."""
        best: tuple[Spelled, str, int] | None = None
        longest = _WORTH_IT
        for body in reversed(self._recent):
            if not body.text.startswith(raw[: longest + 1]):
                continue  # cannot be longer than the best so far
            key, count, end = _last_element_within(body, common_prefix(raw, body.text), raw)
            if key is not None and end > longest:
                best, longest = (body, key, count), end
        if best is None:
            return None
        tail = best[0].tail(best[1])
        # When most of the body differs, a moved or changed part stands early: look at all parts instead.
        return best if (longest + raw.endswith(tail) * len(tail)) * 2 > len(raw) else None

    def _most_in_common(self, spelled: Spelled) -> Spelled | None:
        """The recent body that has the most bytes in parts equal to this one's."""
        best, most = None, _WORTH_IT
        parts = spelled.by_bytes()
        for body in reversed(self._recent):
            if len(body.text) <= most or not body.members:
                continue
            shared = sum(len(part) for part in parts.keys() & body.by_bytes().keys())
            if shared > most:
                best, most = body, shared
        return best

    def _remember(self, spelled: Spelled, superseded: Spelled | None = None) -> Parsed:
        parsed = spelled.parsed
        if parsed.base is not None:
            parsed.base.base = None
        if superseded is not None and _covers(spelled, superseded):
            self._recent = [body for body in self._recent if body is not superseded]
        if spelled.members:
            self._recent.append(spelled)
            while len(self._recent) > _MOST_BODIES or (
                len(self._recent) > 1 and sum(len(body.text) for body in self._recent) > _MOST_BYTES
            ):
                self._recent.pop(0)
        return parsed


def common_prefix(a: bytes, b: bytes) -> int:
    """The number of equal leading bytes, found with memcmp: piece by piece, then by halving the piece that differs."""
    low, most = 0, min(len(a), len(b))
    high = min(_PIECE, most)
    while a[low:high] == b[low:high]:
        if high == most:
            return most
        low, high = high, min(high + _PIECE, most)
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _last_element_within(body: Spelled, length: int, raw: bytes) -> tuple[str | None, int, int]:
    """The list in which `length` common bytes end, how many of its elements they hold, and where the last one ends."""
    for key in reversed(body.ends):
        start, ends = body.starts[key], body.ends[key]
        if start > length:
            continue
        count = bisect_right(ends, length)
        if count and raw[ends[count - 1] : ends[count - 1] + 1] not in (b",", b"]"):
            count -= 1  # a number that goes on
        return key, count, ends[count - 1] if count else start
    return None, 0, 0


def _covers(new: Spelled, old: Spelled) -> bool:
    """True if the new body holds all elements of the old body's lists, and is therefore the better base."""
    key = new.parsed.key
    return key is not None and new.parsed.base is old.parsed and new.parsed.common == len(old.ends[key])


# -- by prefix ---------------------------------------------------------------------------------------------------


def _extend(base: Spelled, key: str, count: int, raw: bytes) -> Spelled | None:
    """Parse a body that begins like `base` up to element `count` of its list `key`; None if that proves nothing."""
    parsed = base.parsed
    if not parsed.exact or parsed.layout not in SEPARATORS:
        return None
    comma = SEPARATORS[parsed.layout][0]
    cut = base.ends[key][count - 1] if count else base.starts[key]
    tail = base.tail(key)
    if raw.endswith(tail) and cut <= len(raw) - len(tail):
        return _same_tail(base, key, count, raw, cut, len(raw) - len(tail), comma)
    return _other_tail(base, key, count, raw, cut, comma)


def _fresh(middle: bytes, count: int, comma: bytes) -> bytes | None:
    """The elements that `middle` adds, without the comma before the first."""
    if count and middle:
        return middle[len(comma) :] if middle.startswith(comma) and len(middle) > len(comma) else None
    return middle


def _same_tail(base: Spelled, key: str, count: int, raw: bytes, cut: int, end: int, comma: bytes) -> Spelled | None:
    body = base.parsed
    middle = _fresh(raw[cut:end], count, comma)
    if middle is None:
        return None
    try:
        added = orjson.loads(b"[" + middle + b"]")
    except orjson.JSONDecodeError:
        return None
    encode = element_encoder(body.layout, body.ascii)
    spelled = [encode(element) for element in added]
    if comma.join(spelled) != middle:
        return None
    added = _reuse(base, key, count, added, spelled)
    value = dict(body.value)
    value[key] = _joined(body.value[key], count, added)
    shift = end - (base.members[key][1] - 1)
    members, starts, ends = shifted(base, key, shift)
    ends[key] = ends_after(base.ends[key][:count], base.starts[key], spelled, len(comma))
    common = _common(body.value[key], value[key], count)
    made = Parsed(value, body, key, common, body.layout, body.ascii)
    return Spelled(made, raw, len(comma), members, starts, ends)


def _mend(base: Spelled, raw: bytes) -> Spelled | None:
    """Parse a body of which one element differs from `base`, and the end of its list: a prompt that tells the time."""
    body = base.parsed
    if not body.exact or body.layout not in SEPARATORS:
        return None
    comma = SEPARATORS[body.layout][0]
    key, at, _ = _last_element_within(base, common_prefix(raw, base.text), raw)
    if key is None or at + 1 >= len(base.ends[key]):
        return None
    ends = base.ends[key]
    start = ends[at - 1] + len(comma) if at else base.starts[key]
    resumes = raw.find(base.text[ends[at] : ends[at] + _RESUMES], start)
    tail = base.tail(key)
    if resumes < 0 or not raw.endswith(tail):
        return None
    shift = resumes - ends[at]
    same = ends[at] + common_prefix(raw[resumes:], base.text[ends[at] :])
    until = bisect_right(ends, same)
    if until > at + 1 and raw[ends[until - 1] + shift : ends[until - 1] + shift + 1] not in (b",", b"]"):
        until -= 1  # a number that goes on
    end = len(raw) - len(tail)
    if (
        until <= at + 1
        or 2 * (ends[until - 1] - ends[at]) < len(raw) - len(tail) - start
        or ends[until - 1] + shift > end
    ):
        return None
    middle = _fresh(raw[ends[until - 1] + shift : end], until, comma)
    if middle is None:
        return None
    try:
        [changed] = orjson.loads(b"[" + raw[start:resumes] + b"]")
        added = orjson.loads(b"[" + middle + b"]")
    except ValueError:
        return None
    encode = element_encoder(body.layout, body.ascii)
    spelled = [encode(element) for element in added]
    if encode(changed) != raw[start:resumes] or comma.join(spelled) != middle:
        return None
    old = body.value[key]
    value = dict(body.value)
    value[key] = [*old[:at], changed, *old[at + 1 : until], *_reuse(base, key, until, added, spelled)]
    members, starts, all_ends = shifted(base, key, end - (base.members[key][1] - 1))
    kept = [*ends[:at], *[one + shift for one in ends[at:until]]]
    all_ends[key] = ends_after(kept, base.starts[key], spelled, len(comma))
    made = Parsed(value, body, key, at, body.layout, body.ascii)
    return Spelled(made, raw, len(comma), members, starts, all_ends)


def _joined(old: list[Json], count: int, added: list[Json]) -> list[Json]:
    return old if count == len(old) and not added else old[:count] + added


def _reuse(base: Spelled, key: str, count: int, added: list[Json], spelled: list[bytes]) -> list[Json]:
    """Elements that stand further on in the base are the base's objects."""
    old = base.parsed.value[key]
    if count >= len(old) or not added:
        return added
    known = {base.element(key, index): old[index] for index in range(count, len(old))}
    return [known.get(text, element) for text, element in zip(spelled, added, strict=True)]


def _other_tail(base: Spelled, key: str, count: int, raw: bytes, cut: int, comma: bytes) -> Spelled | None:
    """The list has a common beginning, and the text after it differs: parse the body without the common elements."""
    body = base.parsed
    rest = raw[cut:]
    if count and rest.startswith(comma):
        rest = rest[len(comma) :]
    elif count and not rest.startswith(b"]"):
        return None
    head = base.starts[key]
    try:
        stub = locate(loads(raw[:head] + rest), raw[:head] + rest, body.layout, body.ascii)
    except NotCarried:
        return None
    if stub is None or stub.starts.get(key) != head:
        return None
    spelled = [stub.element(key, index) for index in range(len(stub.ends[key]))]
    added = _reuse(base, key, count, stub.parsed.value[key], spelled)
    value = {name: _known(base, stub, name) for name in stub.parsed.value}
    value[key] = _joined(body.value[key], count, added)
    members, starts, ends = shifted(stub, key, len(raw) - len(stub.text))
    ends[key] = ends_after(base.ends[key][:count], head, spelled, len(comma))
    common = _common(body.value[key], value[key], count)
    made = Parsed(value, body, key, common, body.layout, body.ascii)
    return Spelled(made, raw, len(comma), members, starts, ends)


def _known(base: Spelled, other: Spelled, name: str) -> Json:
    """A member's value: the base's object if it is spelled the same there."""
    if name in base.members:
        start, end = other.members[name]
        old_start, old_end = base.members[name]
        if base.text[old_start:old_end] == other.text[start:end]:
            return base.parsed.value[name]
    return other.parsed.value[name]


def _common(old: list[Json], new: list[Json], count: int) -> int:
    if new is old:
        return len(old)
    while count < len(old) and count < len(new) and old[count] is new[count]:
        count += 1
    return count


# -- by the bytes of its parts ------------------------------------------------------------------------------------


def _adopt(spelled: Spelled, base: Spelled) -> None:
    """Put the base's objects wherever the same bytes stand."""
    parts = base.by_bytes()
    parsed = spelled.parsed
    value: JsonObject = {}
    for name, (start, end) in spelled.members.items():
        found = parts.get(spelled.text[start:end])
        member = parsed.value[name] if found is None else found
        if found is None and name in spelled.ends:
            member = [
                parts.get(spelled.element(name, index), element) for index, element in enumerate(parsed.value[name])
            ]
        value[name] = member
    parsed.value, parsed.base, spelled.parts = value, base.parsed, None
    shared = {
        name: _common(base.parsed.value[name], value[name], 0)
        for name in spelled.ends
        if isinstance(base.parsed.value.get(name), list)
    }
    if shared:
        parsed.key = max(shared, key=lambda name: shared[name])
        parsed.common = shared[parsed.key]
