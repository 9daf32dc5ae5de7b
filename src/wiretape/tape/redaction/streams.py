"""Takes secrets out of a stream, also where one is split over frames.

The strings of all frames that stand at the same place of the frames' JSON (a message's text deltas, a tool call's
arguments) are joined, searched, and cut again: the placeholder goes where the secret began.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import orjson

from wiretape.model.jsonvalue import Json
from wiretape.model.stream_text import INDEX_MEMBERS, index_values
from wiretape.tape.redaction import aws
from wiretape.tape.redaction.arguments import holds_arguments
from wiretape.tape.redaction.assignments import kind_of
from wiretape.tape.redaction.json_values import is_secret
from wiretape.tape.redaction.names import Member, member
from wiretape.tape.redaction.scanning import Span
from wiretape.tape.redaction.search import Care, Search, care_for

if TYPE_CHECKING:
    from wiretape.tape.redaction.redactor import Redactor

JsonPath: TypeAlias = tuple[str | int, ...]
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_MOST_PASSES = 8
_MOST_FORMS = 16  # that differ in names or types only


class Leaf(NamedTuple):
    """One string of a frame's JSON: the `ordinal`-th string in it, names counted too."""

    frame: int
    ordinal: int
    text: str


class Form(NamedTuple):
    """How a frame is built, apart from its strings' values: the next of its kind need not be parsed."""

    names: tuple[str, ...]
    names_of: Callable[[list[str]], tuple[str, ...]]
    values_of: Callable[[list[str]], tuple[str, ...]]
    places: tuple[tuple[int, list[Leaf]], ...]  # for each value: its ordinal, and its channel's leaves
    kind: tuple[int, str] | None  # which value is the root's `type`, and what it is: it tells channels apart


class Forms:
    """The forms of the frames so far. A stream has a few, and hundreds of frames of each."""

    def __init__(self) -> None:
        self._forms: dict[str, list[Form]] = {}

    def read(self, frame: int, body: str) -> bool:
        """Note the strings of a frame whose form is known; False if it must be parsed."""
        if "\\" in body:
            return False
        parts = body.split('"')  # strings have odd indexes
        for form in self._forms.get('"'.join(parts[::2]), ()):
            if form.names_of(parts) == form.names:
                values = form.values_of(parts)
                if form.kind and values[form.kind[0]] != form.kind[1]:
                    continue
                for (ordinal, leaves), text in zip(form.places, values, strict=True):
                    leaves.append(Leaf(frame, ordinal, text))
                return True
        return False

    def learn(self, body: str, noted: list[tuple[int, list[Leaf]]], kind: tuple[int, str] | None) -> None:
        """Remember the form of a frame that was parsed. `noted`: its string values."""
        if "\\" in body or not noted:
            return
        parts = body.split('"')
        values = [2 * ordinal + 1 for ordinal, _ in noted]
        names = sorted(set(range(1, len(parts), 2)) - set(values))
        if len(names) < 2 or len(values) < 2:
            return
        names_of, values_of = itemgetter(*names), itemgetter(*values)
        form = Form(names_of(parts), names_of, values_of, tuple(noted), kind)
        known = self._forms.setdefault('"'.join(parts[::2]), [])
        if len(known) < _MOST_FORMS:
            known.append(form)


@dataclass(slots=True)
class StringChannel:
    """All strings at one place."""

    name: str
    written: bool  # by a model, as a tool's arguments
    leaves: list[Leaf] = field(default_factory=list)


class Payload(NamedTuple):
    """The position of a frame's JSON, or of its plain text."""

    text: str  # the whole frame
    start: int
    end: int


def redact_frames(redactor: Redactor, frames: Sequence[bytes]) -> tuple[Sequence[bytes], tuple[int, ...]]:
    """The frames without secrets (the very same object if there are none), and the numbers of those rewritten."""
    whole = b"".join(frames)
    if redactor.known_clean(whole, "frames"):
        return frames, ()
    search = redactor.search()
    made = _Stream(redactor, list(frames)).redacted()
    rewritten = tuple(i for i, (a, b) in enumerate(zip(made, frames, strict=True)) if a != b)
    if not rewritten:
        redactor.remember_clean(whole, "frames", search)
        return frames, ()
    return made, rewritten


class _Stream:
    """One stream being redacted."""

    def __init__(self, redactor: Redactor, frames: list[bytes]) -> None:
        self._redactor = redactor
        self._frames = frames
        self._payloads: dict[int, Payload] = {}
        self._sealed: dict[int, aws.EventStreamMessage] = {}
        self._channels: dict[JsonPath, StringChannel] = {}
        self._new: dict[int, dict[int, str]] = {}  # frame -> ordinal -> new text; ordinal -1: the payload is plain text
        self._clean_rests: set[str] = set()
        self._noted: list[tuple[int, list[Leaf]]] = []  # the strings of the frame that is being read
        self._forms = Forms()

    def redacted(self) -> list[bytes]:
        for i, frame in enumerate(self._frames):
            self._read(i, frame)
        self._learn()
        search = self._redactor.search()
        self._redact_channels(search)
        if search is not self._redactor.search():  # again: a secret of one text may be in another
            search = self._redactor.search()
            self._redact_channels(search)
        made = [self._rewritten(i) if i in self._new and i in self._payloads else f for i, f in enumerate(self._frames)]
        known = self._redactor.knows(b"".join(made).decode("utf-8", "surrogateescape"))
        return [self._rest(i, frame, search, known) for i, frame in enumerate(made)]

    # Reading

    def _read(self, i: int, frame: bytes) -> None:
        message = aws.opened(frame)
        if message is not None:
            self._sealed[i] = message
            payload: Payload | None = Payload(message.text, 0, len(message.text))
        else:
            payload = _payload(frame.decode("utf-8", "surrogateescape"))
        if payload is None:
            return
        self._payloads[i] = payload
        body = payload.text[payload.start : payload.end]
        if self._forms.read(i, body):
            return
        try:
            value = orjson.loads(body)
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            self._channel(("",), "", False).append(Leaf(i, -1, body))
            return
        root = (value["type"],) if isinstance(value, dict) and isinstance(value.get("type"), str) else ()
        value = value if isinstance(value, dict | list) else [value]
        self._noted = []
        try:
            whole = self._walk(i, value, root, "", 0, False) == _strings_in(body)
        except RecursionError:
            whole = False
        if not whole:  # too deep, or a name stands twice and what the first one says is lost: search the frame as text
            del self._payloads[i]
            return
        self._forms.learn(body, self._noted, self._kind(value, root))

    def _kind(self, value: Json, root: JsonPath) -> tuple[int, str] | None:
        """Which of the noted strings is the root's `type`, and its value."""
        if not root:
            return None
        leaves = self._channels[(*root, *index_values(value), "type")].leaves
        return next((i, value["type"]) for i, (_, noted) in enumerate(self._noted) if noted is leaves)

    def _walk(self, frame: int, value: Json, place: JsonPath, name: str, ordinal: int, written: bool) -> int:
        """Note the strings in a dict or list, from the `ordinal`-th on; returns the number of the next string."""
        if isinstance(value, list):
            for i, part in enumerate(value):
                ordinal = self._part(frame, part, (*place, i), name, ordinal, written)
            return ordinal
        if not INDEX_MEMBERS.isdisjoint(value):
            place = (*place, *index_values(value))
        for key, part in value.items():
            inside = written or (not self._redactor.tool_arguments and holds_arguments(value, key))
            ordinal = self._part(frame, part, (*place, key), key, ordinal + 1, inside)
        return ordinal

    def _part(self, frame: int, part: Json, place: JsonPath, name: str, ordinal: int, written: bool) -> int:
        if isinstance(part, str):
            channel = self._channel(place, name, written)
            channel.append(Leaf(frame, ordinal, part))
            self._noted.append((ordinal, channel))
            return ordinal + 1
        if isinstance(part, dict | list):
            return self._walk(frame, part, place, name, ordinal, written)
        return ordinal

    def _channel(self, place: JsonPath, name: str, written: bool) -> list[Leaf]:
        channel = self._channels.get(place)
        if channel is None:
            channel = self._channels[place] = StringChannel(name, written)
        return channel.leaves

    def _learn(self) -> None:
        for channel in self._channels.values():
            if not channel.written and member(channel.name) in (Member.SECRET, Member.MAYBE):
                for leaf in channel.leaves:
                    if is_secret(channel.name, leaf.text):
                        self._redactor.learn_named(leaf.text, kind_of(channel.name))

    # Searching

    def _redact_channels(self, search: Search) -> None:
        for channel in self._channels.values():
            self._redact_channel(channel, search)

    def _redact_channel(self, channel: StringChannel, search: Search) -> None:
        leaves = channel.leaves
        says = member(channel.name)
        if says in (Member.SECRET, Member.MAYBE, Member.LINK) or all(leaf.text == leaves[0].text for leaf in leaves):
            made: dict[str, str] = {}  # separate texts, not parts of one
            for leaf in leaves:
                if leaf.text not in made:
                    made[leaf.text] = self._alone(leaf.text, channel, search)
                self._note(leaf, made[leaf.text])
            return
        care = Care.KNOWN if says is Member.OPAQUE else Care.WRITTEN if channel.written else Care.ALL
        texts = [leaf.text for leaf in leaves]
        if care is Care.WRITTEN:
            self._redactor.note_named("".join(texts), search)
        for _ in range(_MOST_PASSES):
            spans = search.spans("".join(texts), care)
            if not spans:
                break
            texts = _cut(texts, spans, self._redactor)
            care = min(care, Care.WRITTEN)
        for leaf, text in zip(leaves, texts, strict=True):
            self._note(leaf, text)

    def _alone(self, text: str, channel: StringChannel, search: Search) -> str:
        care = care_for(member(channel.name), text)
        if is_secret(channel.name, text):
            if not channel.written:
                return self._redactor.placeholder(text, kind_of(channel.name))
            self._redactor.note_written(channel.name, text)
        return self._redactor.redacted(text, search, min(care, Care.WRITTEN) if channel.written else care)

    def _note(self, leaf: Leaf, text: str) -> None:
        if text != leaf.text:
            self._new.setdefault(leaf.frame, {})[leaf.ordinal] = text

    # Writing

    def _rewritten(self, i: int) -> bytes:
        payload, new = self._payloads[i], self._new[i]
        body = payload.text[payload.start : payload.end]
        body = new[-1] if -1 in new else _with_strings(body, new)
        if i in self._sealed:
            return self._sealed[i].sealed(body)
        return (payload.text[: payload.start] + body + payload.text[payload.end :]).encode("utf-8", "surrogateescape")

    def _rest(self, i: int, frame: bytes, search: Search, known: bool) -> bytes:
        """The frame, redacted outside the string values of its JSON: event names, comments and member names.

        `known`: some frame still holds a known credential.
        """
        if i in self._sealed:
            return self._sealed_rest(frame, search)
        payload = self._payloads.get(i)
        if frame is not self._frames[i]:
            payload = _payload(frame.decode("utf-8", "surrogateescape"))
        text = payload.text if payload else frame.decode("utf-8", "surrogateescape")
        rest = text[: payload.start] + text[payload.end :] if payload else text
        if rest not in self._clean_rests and search.raw_spans(rest):
            return self._redactor.redacted_raw(text, search).encode("utf-8", "surrogateescape")
        if payload:
            self._clean_rests.add(rest)
        if not known:
            return frame
        clean = self._redactor.redacted(text, search, Care.KNOWN)
        return frame if clean is text else clean.encode("utf-8", "surrogateescape")

    def _sealed_rest(self, frame: bytes, search: Search) -> bytes:
        message = aws.opened(frame)
        if message is None:
            return frame
        clean = self._redactor.redacted(message.text, search, Care.KNOWN)
        return frame if clean is message.text else message.sealed(clean)


def _payload(text: str) -> Payload | None:
    """A frame's payload: its only `data:` line, or the line that it is (NDJSON). None: search the whole frame."""
    at = 0 if text.startswith("data:") else text.find("\ndata:") + 1
    if at or text.startswith("data:"):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        return (
            None
            if "\ndata:" in text[end:] or "\r" in text[at : end - 1]
            else Payload(text, *_stripped(text, at + 5, end))
        )
    if text.lstrip()[:1] in ("{", "["):
        return Payload(text, *_stripped(text, 0, len(text)))
    return None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while end > start and text[end - 1] in "\r\n \t":
        end -= 1
    while start < end and text[start] in "\r\n \t":
        start += 1
    return start, end


def _cut(texts: list[str], spans: Sequence[Span], redactor: Redactor) -> list[str]:
    """The texts without what the spans of their joined text cover; each placeholder stands where its span began."""
    ends = list(accumulate(len(text) for text in texts))
    pieces: list[list[str]] = [[] for _ in texts]
    at = 0
    for span in spans:
        _spread(texts, ends, pieces, at, span.start)
        pieces[bisect_right(ends, span.start)].append(redactor.replacement(span, ""))
        at = span.end
    _spread(texts, ends, pieces, at, ends[-1])
    return ["".join(parts) for parts in pieces]


def _spread(texts: list[str], ends: list[int], pieces: list[list[str]], start: int, end: int) -> None:
    """Give each text its part of start:end of the joined text."""
    i = bisect_right(ends, start)
    while start < end:
        begin = ends[i] - len(texts[i])
        stop = min(end, ends[i])
        if stop > start:
            pieces[i].append(texts[i][start - begin : stop - begin])
        start, i = max(start, stop), i + 1


def _with_strings(body: str, new: dict[int, str]) -> str:
    """A JSON text with some of its strings replaced, the rest spelled as it was."""
    tokens = list(_STRING.finditer(body))
    pieces, at = [], 0
    for ordinal in sorted(new):
        token = tokens[ordinal]
        pieces += [body[at : token.start()], json.dumps(new[ordinal], ensure_ascii=body.isascii())]
        at = token.end()
    return "".join([*pieces, body[at:]])


def _strings_in(body: str) -> int:
    """How many strings are written in a JSON text, names too."""
    if "\\" not in body:
        return body.count('"') // 2
    return sum(1 for _ in _STRING.finditer(body))
