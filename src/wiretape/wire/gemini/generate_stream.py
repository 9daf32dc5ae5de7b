"""A Gemini stream, put together into the answer that an unstreamed call would have given.

Each chunk holds new parts. Texts that follow one another grow together, unless one carries a signature: signatures
belong to their parts. Counts are snapshots: the last one that says something wins.
"""

from __future__ import annotations

import re
from typing import Any

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.failures import has_error
from wiretape.wire.gemini.payload import camel, get, spelled, unwrapped
from wiretape.wire.lenient import is_empty, items, merge, number, obj, string
from wiretape.wire.payload import Event

_PLAIN = frozenset({"text", "thought"})
_KNOWN = frozenset(
    {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "createTime", "modelStatus"}
    | {"automaticFunctionCallingHistory", "sdkHttpResponse", "parsed", "error", "response", "traceId"}
    | {"consumedCredits", "remainingCredits"}
)
_APART = frozenset({"candidates", "usageMetadata", "usage_metadata", "error"})
_STEP = re.compile(r"""\.?([^.\[\]]+)|\[(\d{1,6})\]|\[(['"])(.*?)\3\]""")
_VALUES = ("stringValue", "numberValue", "boolValue")


class Arguments:
    """One call under way. `call` is the object that it becomes; its `args` grow."""

    __slots__ = ("_root", "_strings", "call")

    def __init__(self, call: JsonObject) -> None:
        self.call = dict(call)
        given = call.get("args")
        self._root: Any = dict(given) if isinstance(given, dict) else {}
        self._strings: dict[str, list[str]] = {}
        self.call["args"] = self._root

    def add(self, piece: JsonObject) -> None:
        path = piece.get(spelled(piece, "jsonPath"))
        if not isinstance(path, str):
            self._odd(piece)
            return
        key = next((k for name in _VALUES if piece.get(k := spelled(piece, name)) is not None), None)
        value = piece[key] if key is not None else None
        if isinstance(value, str) and path in self._strings:
            self._strings[path].append(value)
        elif not self._put(path, value):
            self._odd(piece)
        elif isinstance(value, str):
            self._strings[path] = [value]

    def settle(self) -> None:
        """Put strings together that came in pieces."""
        for path, pieces in self._strings.items():
            self._put(path, "".join(pieces))

    def _odd(self, piece: JsonObject) -> None:
        """A piece that fits nowhere is kept beside the arguments."""
        self.call["partialArgs"] = [*items(self.call.get("partialArgs")), piece]

    def _put(self, path: str, value: Json) -> bool:
        steps = _steps(path)
        if not steps:
            return False
        place = self._root
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if isinstance(step, int) != isinstance(place, list):
                return False
            if isinstance(step, int):
                if step > len(place):
                    return False
                if step == len(place):
                    place.append(None)
            if following is None:
                place[step] = value
                return True
            inner = place[step] if isinstance(step, int) else place.get(step)
            if inner is None:
                inner = place[step] = [] if isinstance(following, int) else {}
            if not isinstance(inner, dict | list):
                return False
            place = inner
        return False


def _steps(path: str) -> list[str | int]:
    """`$.items[0].name` as its steps; none if it cannot be read."""
    rest = path.removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return []
        name, index, _, quoted = found.groups()
        steps.append(int(index) if index is not None else name if name is not None else quoted)
        at = found.end()
    return steps


class CandidatePieces:
    """One candidate under way."""

    __slots__ = ("_beside", "_calls", "_growing", "_open", "members", "parts")

    def __init__(self) -> None:
        self.members: JsonObject = {}
        self._beside: JsonObject = {}  # what the content has beside its parts
        self.parts: list[JsonObject] = []
        self._growing: list[str] | None = None  # the pieces of the last part, if that is a text that may grow
        self._calls: list[Arguments] = []
        self._open: Arguments | None = None  # the function call whose arguments are still coming

    def add(self, candidate: JsonObject) -> bool:
        """Take what a chunk says of this candidate; True if that has_content content."""
        has_content = False
        content = candidate.get("content")
        if content is not None and not isinstance(content, dict):
            content = {"parts": [content]}  # odd, but not lost
        content = obj(content)
        parts = content.get("parts")
        for part in parts if isinstance(parts, list) else [] if parts is None else [parts]:
            has_content = self._goes_on(part) or self._part(part) or has_content
        for key, value in candidate.items():
            if key == "content":
                self._beside.update(content)
            elif self.members.get(key) is value:
                pass  # as before, and most are
            elif not is_empty(value) or key not in self.members:
                self.members[key] = value
        return has_content

    def _goes_on(self, part: Json) -> bool:
        """Most parts are only more of the answer's text: the quick way."""
        if self._growing is None or not isinstance(part, dict) or len(part) != 1 or "thought" in self.parts[-1]:
            return False
        text = part.get("text")
        if not text or not isinstance(text, str):
            return False
        self._growing.append(text)
        return True

    def _part(self, part: Json) -> bool:
        raw = obj(part)
        text = raw.get("text")
        if isinstance(text, str) and _PLAIN.issuperset(raw):
            return self._text(text, raw)
        key = spelled(raw, "functionCall")
        call = raw.get(key)
        if isinstance(call, dict) and "text" not in raw:
            if call == {} and self._open is None and len(raw) == 1:
                return False  # the end of a call that has ended
            in_pieces = get(call, "partialArgs") is not None or get(call, "willContinue") is True
            if in_pieces or (self._open is not None and not call.get("name")):
                self._arguments(raw, key, call)
                return True
        self._settle()
        self._open = None
        self.parts.append(part)
        return bool(text) or not isinstance(text, str)

    def _text(self, text: str, raw: JsonObject) -> bool:
        if not text:
            return False
        thought = raw.get("thought") is True
        if self._growing is not None and (self.parts[-1].get("thought") is True) == thought:
            self._growing.append(text)
            return True
        self._settle()
        self._open = None
        self.parts.append({"text": "", "thought": True} if thought else {"text": ""})
        self._growing = [text]
        return True

    def _arguments(self, raw: JsonObject, key: str, call: JsonObject) -> None:
        """A call whose arguments come in pieces: a name first, then pieces, then (mostly) an empty call as its end."""
        self._settle()
        if self._open is None or string(call.get("name")):
            self._open = Arguments({k: v for k, v in call.items() if camel(k) not in ("partialArgs", "willContinue")})
            self._calls.append(self._open)
            self.parts.append({**raw, key: self._open.call})
        else:
            self.parts[-1].update({k: v for k, v in raw.items() if k != key})
        for piece in items(get(call, "partialArgs")):
            self._open.add(obj(piece))
        if get(call, "willContinue") is not True:
            self._open = None

    def _settle(self) -> None:
        if self._growing is not None:
            self.parts[-1]["text"] = "".join(self._growing)
            self._growing = None

    def value(self) -> JsonObject:
        self._settle()
        for call in self._calls:
            call.settle()
        return {**self.members, "content": {**self._beside, "parts": self.parts}}


class GenerateAssembler:
    """Takes the objects of one stream; `value` is the answer so far."""

    __slots__ = ("_candidates", "_members", "_usage", "error", "finished", "first_ms", "unknown_events")

    def __init__(self) -> None:
        self._candidates: dict[int, CandidatePieces] = {}
        self._members: JsonObject = {}
        self._usage: JsonObject | None = None
        self.error: Json = None
        self.finished = False
        self.first_ms: int | None = None
        self.unknown_events: list[Json] = []

    def add(self, event: Event) -> None:
        value = event.value
        body = unwrapped(value) if not isinstance(value, dict) or "response" in value else value
        if has_error(body):
            self.error = body
        elif _KNOWN.isdisjoint(body) and not any(camel(key) in _KNOWN for key in body):
            self.unknown_events.append(event.value)
            return
        has_content = False
        for candidate in items(body.get("candidates")):
            if isinstance(candidate, dict):
                has_content |= self._candidate(candidate)
            else:
                self.unknown_events.append(candidate)
        if has_content and self.first_ms is None:
            self.first_ms = event.ms
        feedback = body.get("promptFeedback") or body.get("prompt_feedback")
        if feedback and not is_empty(get(obj(feedback), "blockReason")):
            self.finished = True
        counts = body.get("usageMetadata") or body.get("usage_metadata")
        if isinstance(counts, dict):
            whole = counts.get("totalTokenCount") is not None or counts.get("total_token_count") is not None
            self._usage = counts if whole else merge(self._usage, counts)
        for key, value in body.items():
            if value is not None and key not in _APART:
                self._members[key] = value

    def _candidate(self, candidate: JsonObject) -> bool:
        index = candidate.get("index")
        if type(index) is not int:
            index = number(index) or 0
        pieces = self._candidates.get(index)
        if pieces is None:
            pieces = self._candidates[index] = CandidatePieces()
        reason = candidate.get("finishReason") or candidate.get("finish_reason")
        if reason and not is_empty(reason):
            self.finished = True
        return pieces.add(candidate)

    def value(self) -> JsonObject:
        answer: dict[str, Any] = {**self._members, "usageMetadata": self._usage}
        if self._candidates:
            answer["candidates"] = [self._candidates[index].value() for index in sorted(self._candidates)]
        return answer
